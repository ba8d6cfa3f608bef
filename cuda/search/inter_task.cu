// Inter-task kernel: the best local score of one strip of a query, or of two queries, against each subject of a
// range. The recurrence is that of strip.cuh, or, with kBand, its upper bound in bound.cuh.
//
// Threads and cells. A group of 4 to 32 lanes aligns one subject, so a warp aligns as many subjects as it has groups.
// Blocks are persistent: each stages the strip in shared memory once, then its warps take subjects by means of a
// counter, the longest first (the database is sorted by length). The groups of a warp therefore end at about the same
// time, and short subjects fill the end of the launch.
//
// Several strips. A query longer than a strip takes one launch for each strip. H and F of a strip's last row are stored
// in global memory, at the offset of the column's residue (boundary.cuh). Each launch replaces a subject's score by the
// maximum of that score and its own, so all launches of a query must run in order.
//
// Memory. The packed profile consists of consecutive strips in the layout of tile.cuh; rows past the query's end and
// column 0 score -128. Residues are packed as in subject.cuh. A boundary has kBoundaryWords words for each residue of
// the database, padding included, and need not be initialised. The output is an int32 score per subject and query.
//
// Scores have the type FastPair (arithmetic.cuh) and are exact up to 2,047. A larger result indicates that it may be
// inexact; collect lists those subjects, and intra_task scores them again in a wider type. Subjects are
// shorter than 2^31.

#include "search/bound.cuh"
#include "search/strip.cuh"

namespace swsearch {

struct SubjectRange {
    const u32* residues;  // packed residues, 16-byte aligned
    const u64* starts;    // byte of each subject's first residue, a multiple of 16
    const u32* lengths;   // residues of each subject, in ascending order
    u32 n_subjects;
    const u32* listed;    // with kListed, indices of the subjects, about in descending order of length
    const u32* n_listed;  // with kListed, their number, which the device has counted
};

// A strip of the query and its neighbours.
struct StripOfQuery {
    int first_unit;       // index of its first unit in the packed profile
    int has_strip_above;  // 0 or 1
    int has_strip_below;  // 0 or 1
    const u32* above;     // boundary of the strip above
    u32* below;           // boundary that this strip writes
};

struct InterTaskParameters {
    u64 profile;  // texture over the packed profile (tile.cuh)
    StripOfQuery query;
    SubjectRange subjects;
    GapCosts gap;
    int* scores_low;    // the score of each subject; with two queries, that of the query in the low halves
    int* scores_high;   // with two queries, that of the other
    u32* work_counter;  // 0 before the launch, or so large that there is no work (open_counters.cu)
};

// strip: shared memory for one staged strip. parameters: by value, since members that are read through a reference
// within the loop take registers for the address.
template <class Arithmetic, class Shape, int kBand, Edges kEdges, bool kListed>
SWS_DEVICE void inter_task(uint4* strip, const InterTaskParameters parameters, const GapCosts& gap) {
    const StripOfQuery& query = parameters.query;
    const SubjectRange& subjects = parameters.subjects;
    int* const scores_low = parameters.scores_low;
    int* const scores_high = parameters.scores_high;
    const u32 n_subjects = kListed ? *subjects.n_listed : subjects.n_subjects;
    stage_strip(strip, parameters.profile, query.first_unit, Shape::kStripUnits, static_cast<int>(threadIdx.x),
                static_cast<int>(blockDim.x));
    __syncthreads();

    const u32 group = (threadIdx.x % kWarpSize) / Shape::kGroup;
    const bool writes_score = threadIdx.x % Shape::kGroup == 0;
    for (;;) {
        u32 item = 0;
        if (threadIdx.x % kWarpSize == 0) {
            item = atomicAdd(parameters.work_counter, 1u);
        }
        const u32 n_taken = __shfl_sync(kWholeWarp, item, 0) * Shape::kGroupsPerWarp;
        if (__all_sync(kWholeWarp, n_taken >= n_subjects)) {
            return;
        }
        const bool has_subject = n_taken + group < n_subjects;
        u32 subject = has_subject ? n_subjects - 1 - n_taken - group : 0;
        if constexpr (kListed) {
            subject = has_subject ? subjects.listed[n_taken + group] : 0;
        }
        const u64 start = has_subject ? subjects.starts[subject] : 0;
        const int length = has_subject ? static_cast<int>(subjects.lengths[subject]) : 0;

        const BoundaryLocation boundary{query.above, query.below, static_cast<u32>(start / kColumnsPerRound)};
        const u32* const residues = subjects.residues + start / 4;
        typename Arithmetic::Word best;
        if constexpr (kBand == 0) {
            best = align_strip<Arithmetic, Shape, kEdges>(strip, residues, SubjectColumns<Shape>(length), gap, boundary,
                                                          query.has_strip_above != 0, query.has_strip_below != 0,
                                                          NoSync());
        } else {
            best = bound_strip<Arithmetic, Shape, kBand, kEdges>(
                strip, residues, length, gap, boundary, query.has_strip_above != 0, query.has_strip_below != 0);
        }

        if (writes_score && has_subject) {
            const bool has_score = kEdges != Edges::kNone && query.has_strip_above != 0;
            if (Shape::kPairing == Pairing::kTwoQueries) {
                const int low = low_half(static_cast<u32>(best));
                const int high = high_half(static_cast<u32>(best));
                scores_low[subject] = has_score && scores_low[subject] > low ? scores_low[subject] : low;
                scores_high[subject] = has_score && scores_high[subject] > high ? scores_high[subject] : high;
            } else {
                const int score = single_score<Arithmetic>(best);
                scores_low[subject] = has_score && scores_low[subject] > score ? scores_low[subject] : score;
            }
        }
    }
}

}  // namespace swsearch

// The entry scores one strip of one query, or of two. Inputs: the packed profile as a texture; the packed
// residues with the subjects' starts in bytes and lengths; the boundary of the strip above. Outputs: the boundary of
// this strip, and the int32 score of each subject, scores_low and, for two queries, scores_high.
//
// Compile-time constants: SWS_PAIRING (kTwoBlocks, kTwoQueries), SWS_GROUP and SWS_WORDS (the tile); SWS_GAP_OPEN and
// SWS_GAP_EXTEND (gap_costs.cuh); SWS_BAND (rows of a band of the bound, or 0); SWS_LISTED (1 if subjects are listed);
// SWS_EDGES (kNone, kOwn, kReadsPair); SWS_THREADS and SWS_BLOCKS (threads per block, blocks per multiprocessor).
SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
inter_task(SWS_PARAMETERS swsearch::InterTaskParameters parameters) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strip);
    using Shape = Tile<SWS_GROUP, SWS_WORDS, Pairing::SWS_PAIRING>;
    swsearch::inter_task<FastPair, Shape, SWS_BAND, Edges::SWS_EDGES, SWS_LISTED != 0>(
        strip, parameters, gap_costs(SWS_GAP_OPEN, SWS_GAP_EXTEND, parameters.gap));
}
