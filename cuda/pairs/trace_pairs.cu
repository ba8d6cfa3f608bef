// Entry of the diamond kernel that sweeps some strips of a pair again for a path (sweep.cuh). Inputs: those of
// sweep_pairs.cu, with the row above the first strip in the horizon. Outputs: the strips' lowest rows and, at
// checkpoints, the states of their lanes.
//
// Compile-time constants: those of sweep_pairs.cu, and SWS_EVERY (diamonds from one checkpoint to the next).

#include "pairs/sweep.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
trace_pairs(SWS_PARAMETERS swsearch::Sweep sweep) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, shared);
    swsearch::sweep_pairs<SWS_CELLS, SWS_WORDS, SWS_LOCAL != 0, SWS_AFFINE != 0, SWS_COMPARED != 0, SWS_EVERY>(
        shared_of_warp(shared, sweep), sweep);
}
