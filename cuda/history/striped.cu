// Entry of the striped kernel of CUDASW++ 2.0, one warp per subject (striped.cuh). Inputs: the profile as a
// texture and the packed subjects. Output: the int32 score of each subject.
//
// Compile-time constants: SWS_CELL (NarrowCell or WideCell); SWS_GAP_OPEN; SWS_GAP_EXTEND; SWS_THREADS and SWS_BLOCKS
// (threads per block, minimum of blocks per multiprocessor).

#include "history/striped.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
striped(SWS_PARAMETERS swsearch::StripedParameters<swsearch::SWS_CELL> parameters) {
    swsearch::score_striped<SWS_GAP_OPEN, SWS_GAP_EXTEND, swsearch::SWS_CELL>(parameters);
}
