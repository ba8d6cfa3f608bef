// Entry of the diamond kernel (kernels/sweep.cuh).
//
// Compile-time constants: SWS_CELLS (NarrowCells, WideCells); SWS_WORDS (words a lane); SWS_LOCAL, SWS_AFFINE and
// SWS_COMPARED (0 or 1); SWS_THREADS and SWS_BLOCKS (threads a block, minimum of blocks a multiprocessor).

#include "kernels/sweep.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
sweep_pairs(SWS_SWEEP_PARAMETERS) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, shared);
    swsearch::sweep_pairs<SWS_CELLS, SWS_WORDS, SWS_LOCAL != 0, SWS_AFFINE != 0, SWS_COMPARED != 0>(
        shared_of_warp(reinterpret_cast<u32*>(shared), words_a_warp), Sweep{SWS_SWEEP_VALUES});
}
