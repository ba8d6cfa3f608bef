// Entry of the diamond kernel (sweep.cuh), which scores long pairs. Inputs: the letters of all pairs and the scoring.
// Outputs: local problems: each strip's best score and the state from which locate_best finds its position; other
// problems: H of the last row and of the last column of each pair.
//
// Compile-time constants: SWS_CELLS (NarrowCells, WideCells); SWS_WORDS (words per lane); SWS_LOCAL, SWS_AFFINE and
// SWS_COMPARED (0 or 1); SWS_THREADS and SWS_BLOCKS (threads per block, minimum of blocks per multiprocessor).

#include "pairs/sweep.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
sweep_pairs(SWS_PARAMETERS swsearch::Sweep sweep) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, shared);
    swsearch::sweep_pairs<SWS_CELLS, SWS_WORDS, SWS_LOCAL != 0, SWS_AFFINE != 0, SWS_COMPARED != 0>(
        shared_of_warp(shared, sweep), sweep);
}
