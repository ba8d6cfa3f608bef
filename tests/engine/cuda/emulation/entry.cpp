// One entry of cuda/ as a function of a shared library. SWS_ENTRY_FILE is the entry's file, SWS_ENTRY its
// function.

#include SWS_ENTRY_FILE

extern "C" int emulate(const void* parameters, unsigned long n_bytes, unsigned grid, unsigned block,
                       unsigned long shared_bytes, int reversed) {
    return emulation::launch(SWS_ENTRY, parameters, n_bytes, grid, block, shared_bytes, reversed != 0);
}
