// Entry of the diamond kernel (kernels/sweep.cuh).
//
// Compile-time constants: SWS_CELLS (NarrowCells, WideCells), SWS_WORDS (words a lane), SWS_LOCAL, SWS_AFFINE, SWS_COMPARED
// (0 or 1), SWS_BLOCKS (blocks a multiprocessor; a block is one warp).

#include "kernels/sweep.cuh"

SWS_KERNEL(32, SWS_BLOCKS)
sweep_pairs(const swsearch::SweepPair* pairs, swsearch::u32 n_pairs, swsearch::u32 n_strips,
            const unsigned char* classes, const signed char* lines, int n_columns, const unsigned short* letters,
            int match, int mismatch, const unsigned char* subjects, int open, int extend, int query_free,
            int subject_free, int reach, swsearch::u64* horizon, int* known, int* found, int* lasts,
            const int* kept_place, swsearch::u64* kept, swsearch::u32 kept_columns, swsearch::u32* work_counter) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, shared);
    const Sweep sweep{pairs,
                      n_pairs,
                      n_strips,
                      QueryLetters{classes, lines, letters, n_columns, match, mismatch},
                      subjects,
                      PairCosts{open, extend, query_free != 0, subject_free != 0},
                      reach,
                      horizon,
                      known,
                      found,
                      lasts,
                      kept_place,
                      kept,
                      kept_columns,
                      work_counter};
    swsearch::sweep_pairs<SWS_CELLS, SWS_WORDS, SWS_LOCAL != 0, SWS_AFFINE != 0, SWS_COMPARED != 0>(
        reinterpret_cast<u32*>(shared), sweep);
}
