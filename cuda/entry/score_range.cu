// Entry of the inter-task kernel (kernels/score_range.cuh).
//
// Compile-time constants: SWS_ARITHMETIC (FastPair, ShortPair, Wide), SWS_PAIRING (kRowBlocks, kTwoQueries, kSingle),
// SWS_GROUP, SWS_WORDS, SWS_COLUMNS (the tile), SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_DEFERRED, SWS_BOUNDARY, SWS_TEXTURE (0
// or 1), SWS_THREADS and SWS_BLOCKS (threads a block, blocks a multiprocessor).

#include "kernels/score_range.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
score_range(const uint4* profile, swsearch::u64 texture, int strip_number, int n_strips, const swsearch::u32* residues,
            const swsearch::u64* starts, const swsearch::u32* lengths, swsearch::u32 n_subjects, swsearch::u32* boundary,
            long long below_words, int* scores_low, int* scores_high, swsearch::u32* work_counter) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strip);
    using Shape = Tile<SWS_GROUP, SWS_WORDS, SWS_COLUMNS, Pairing::SWS_PAIRING>;
    swsearch::score_range<SWS_ARITHMETIC, Shape, SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_DEFERRED != 0, SWS_BOUNDARY != 0,
                          SWS_TEXTURE != 0>(strip, ProfileSource{profile, texture}, strip_number, n_strips,
                                            SubjectRange{residues, starts, lengths, n_subjects}, boundary,
                                            below_words, scores_low, scores_high, work_counter);
}
