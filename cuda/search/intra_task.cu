// Entry of the intra-task kernel (intra_task.cuh), which scores all strips of a query against listed subjects.
//
// Inputs: the packed profile (tile.cuh) as a texture; the packed residues with the subjects' starts in
// bytes and lengths (subject.cuh); the list of subject indices. Output: the int32 score of each listed subject, stored
// by subject index.
//
// Compile-time constants: SWS_ARITHMETIC (FastPair, ShortPair, Wide); SWS_PAIRING (kTwoBlocks, or kOneScore for Wide),
// SWS_WORDS (the tile, whose group is a complete warp); SWS_GAP_OPEN and SWS_GAP_EXTEND (gap_costs.cuh); SWS_EDGES
// (kNone for a query of one strip, else kOwn); SWS_THREADS and SWS_BLOCKS (maximum number of threads per block, minimum
// number of blocks per multiprocessor).

#include "search/intra_task.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
intra_task(SWS_PARAMETERS swsearch::IntraTaskParameters parameters) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strips);
    using Shape = Tile<kWarpSize, SWS_WORDS, Pairing::SWS_PAIRING>;
    swsearch::intra_task<SWS_ARITHMETIC, Shape, Edges::SWS_EDGES>(
        strips, parameters, gap_costs(SWS_GAP_OPEN, SWS_GAP_EXTEND, parameters.gap), ScoresAlone());
}
