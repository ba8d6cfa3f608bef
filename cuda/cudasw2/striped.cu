// Entry of the striped kernel of CUDASW++ 2.0, one warp per subject (striped.cuh). Inputs: the profile as a
// texture and the packed subjects. Output: the int32 score of each subject. cells is a buffer for H and E.
//
// Compile-time constants: SWS_CELL (NarrowCell or WideCell); SWS_GAP_OPEN; SWS_GAP_EXTEND; SWS_THREADS and SWS_BLOCKS
// (threads per block, minimum of blocks per multiprocessor).

#include "cudasw2/striped.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
striped(swsearch::u64 texture, int n_vectors, const swsearch::u32* residues, const swsearch::u64* starts,
        const swsearch::u32* lengths, const swsearch::u32* listed, swsearch::u32 n_subjects,
        swsearch::SWS_CELL::Stored* cells, int* scores, swsearch::u32* counter) {
    using namespace swsearch;
    score_striped<SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_CELL>(
        texture, n_vectors, SubjectQueue{residues, starts, lengths, listed, n_subjects}, cells, scores, counter);
}
