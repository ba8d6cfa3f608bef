// Entry of the inter-task kernel (kernels/inter_task.cuh), which scores one strip of one query, or of two, against a
// range of subjects.
//
// Inputs: the packed profile (tile.cuh), in memory and as a texture; the packed residues with the subjects' starts in
// bytes and lengths (subject.cuh); the boundary of the strip above. Outputs: the boundary of this strip, and the int32
// score of each subject, scores_low and, for two queries, scores_high.
//
// Compile-time constants: SWS_ARITHMETIC (FastPair, ShortPair, Wide); SWS_PAIRING (kRowBlocks, kTwoQueries, kSingle),
// SWS_GROUP, SWS_WORDS and SWS_COLUMNS (the tile); SWS_GAP_OPEN; SWS_GAP_EXTEND; SWS_DEFERRED (0 or 1); SWS_EDGES
// (kNone, kOwn, kReadsPair); SWS_TEXTURE (0 or 1); SWS_THREADS and SWS_BLOCKS (threads per block, minimum of blocks per
// multiprocessor).

#include "kernels/inter_task.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
inter_task(const uint4* profile, swsearch::u64 texture, int first_unit, int has_strip_above, int has_strip_below,
           const swsearch::u32* above, swsearch::u32* below, const swsearch::u32* residues, const swsearch::u64* starts,
           const swsearch::u32* lengths, swsearch::u32 n_subjects, int* scores_low, int* scores_high,
           swsearch::u32* work_counter) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strip);
    using Shape = Tile<SWS_GROUP, SWS_WORDS, SWS_COLUMNS, Pairing::SWS_PAIRING>;
    swsearch::inter_task<SWS_ARITHMETIC, Shape, SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_DEFERRED != 0, Edges::SWS_EDGES,
                         SWS_TEXTURE != 0>(strip, ProfileSource{profile, texture},
                                           StripOfQuery{first_unit, has_strip_above, has_strip_below, above, below},
                                           SubjectRange{residues, starts, lengths, n_subjects}, scores_low, scores_high,
                                           work_counter);
}
