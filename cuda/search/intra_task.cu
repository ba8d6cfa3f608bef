// Entry of the intra-task kernel (intra_task.cuh), which scores all strips of a query against listed subjects.
//
// Inputs: the packed profile (tile.cuh), in memory and as a texture; the packed residues with the subjects' starts in
// bytes and lengths (subject.cuh); the list of subject indices. Output: the int32 score of each listed subject, stored
// by subject index. boundary and counters are buffers of the kernel.
//
// Compile-time constants: SWS_ARITHMETIC (FastPair, ShortPair, Wide); SWS_PAIRING (kRowBlocks, or kSingle for Wide),
// SWS_WORDS and SWS_COLUMNS (the tile, whose group is a complete warp); SWS_GAP_OPEN; SWS_GAP_EXTEND; SWS_EDGES (kNone
// for a query of one strip, else kOwn); SWS_TEXTURE (0 or 1); SWS_THREADS and SWS_BLOCKS (maximum number of threads per
// block, minimum number of blocks per multiprocessor).

#include "search/intra_task.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
intra_task(const uint4* profile, swsearch::u64 texture, int n_strips, const swsearch::u32* residues,
           const swsearch::u64* starts, const swsearch::u32* lengths, const swsearch::u32* listed,
           const swsearch::u32* n_listed, swsearch::u32 least, swsearch::u32 most, swsearch::u32* boundary,
           swsearch::u32 boundary_stride, swsearch::u64* counters, int team_size, int* scores,
           swsearch::u32* work_counter, SWS_GAP_PARAMETERS) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strips);
    const SubjectList subjects{residues, starts, lengths, listed, n_listed, least, most};
    using Shape = Tile<kWarpSize, SWS_WORDS, SWS_COLUMNS, Pairing::SWS_PAIRING>;
    swsearch::intra_task<SWS_ARITHMETIC, Shape, Edges::SWS_EDGES, SWS_TEXTURE != 0>(
        strips, ProfileSource{profile, texture}, n_strips, subjects, SWS_GAP_COSTS, boundary, boundary_stride, counters,
        team_size, scores, work_counter, ScoresAlone());
}
