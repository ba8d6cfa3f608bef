// Entry of the kernel that finds the position of a strip's best score after a local sweep (kernels/locate.cuh). Input:
// the states that the sweep saved for the listed strips. Output: positions, an int column and row for each of them,
// counted from 1.
//
// Compile-time constants: those of sweep_pairs.cu, with the values of the sweep that saved the states. SWS_LOCAL is 1.

#include "kernels/locate.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
locate_best(SWS_SWEEP_PARAMETERS, const swsearch::u32* strips, swsearch::u32 n_listed, int* positions) {
    using namespace swsearch;
    static_assert(SWS_LOCAL, "only local problems may end at any cell");
    SWS_DYNAMIC_SHARED(uint4, shared);
    swsearch::locate_best<SWS_CELLS, SWS_WORDS, SWS_AFFINE != 0, SWS_COMPARED != 0>(
        shared_of_warp(reinterpret_cast<u32*>(shared), words_a_warp), Sweep{SWS_SWEEP_VALUES}, strips, n_listed,
        positions);
}
