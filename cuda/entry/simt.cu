// The __global__ function `simt`: the best local score of one query with each subject, one thread per subject (the SIMT
// kernel of CUDASW++ 2.0, kernels/simt.cuh). swsearch/engine/cuda/cudasw2.py compiles this file and launches it.
//
// In:  texture   texture object of the query's int8 scores: 16 rows per texel, 32 residue columns per block of rows
//      n_blocks  blocks of 16 query rows (not CUDA blocks)
//      residues, starts, lengths   the packed subjects (swsearch/subject_queue.cuh)
//      listed    indices of the n_subjects subjects to score, or null for subjects 0 to n_subjects - 1
//      cells     buffer for H and E of n_blocks * 16 rows per thread of the grid
//      counter   must be 0 before the launch
// Out: scores    int32 per subject. A NarrowCell score that left 16 bits is computed again with WideCell by the host.
//
// Compile-time constants: SWS_CELL (NarrowCell or WideCell), SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_THREADS (threads per
// block), SWS_BLOCKS (minimum number of resident blocks per multiprocessor).

#include "kernels/simt.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
simt(swsearch::u64 texture, int n_blocks, const swsearch::u32* residues, const swsearch::u64* starts,
     const swsearch::u32* lengths, const swsearch::u32* listed, swsearch::u32 n_subjects,
     swsearch::SWS_CELL::Stored* cells, int* scores, swsearch::u32* counter) {
    using namespace swsearch;
    score_simt<SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_CELL>(
        texture, n_blocks, SubjectQueue{residues, starts, lengths, listed, n_subjects}, cells, scores, counter);
}
