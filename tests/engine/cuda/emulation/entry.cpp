// One entry of cuda/ as a function of a shared library. SWS_ENTRY_FILE is the entry's file, SWS_ENTRY its
// function.

#include SWS_ENTRY_FILE

extern "C" int emulate(void** args, unsigned grid, unsigned block, unsigned long shared_bytes, int reversed) {
    return emulation::launch(SWS_ENTRY, args, grid, block, shared_bytes, reversed != 0);
}
