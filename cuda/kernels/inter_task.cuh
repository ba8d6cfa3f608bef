// Inter-task kernel: one strip of one query, or of two, against a range of subjects, a group of lanes to each.
//
// Blocks are persistent: each stages the strip into shared memory once, then its warps take work from a counter, one item
// for as many subjects side by side as the warp has groups, the longest first (the database is stored by length), so that
// the groups of a warp end together and short subjects fill the end. A query longer than a strip is one launch a strip;
// H and F of a strip's last row wait in global memory, a column's at its residue's place (boundary.cuh).
//
// Best scores of more than one strip are combined in place; all launches of a query run in order.

#pragma once

#include "kernels/strip.cuh"

namespace swsearch {

struct SubjectRange {
    const u32* residues;  // packed residues, 16-byte aligned
    const u64* starts;    // byte of each subject's first residue, a multiple of 16
    const u32* lengths;   // residues of each subject, growing
    u32 n_subjects;
};

// A strip of the query and what lies around it.
struct StripOfQuery {
    int first_unit;  // of its packed profile
    int further;     // whether a strip lies above
    int followed;    // whether one lies below
    const u32* above;
    u32* below;
};

template <class Arithmetic, class Shape, int kOpen, int kExtend, bool kDeferred, Edges kEdges, bool kTexture>
SWS_DEVICE void inter_task(uint4* strip, const ProfileSource& profile, const StripOfQuery& query,
                            const SubjectRange& subjects, int* scores_low, int* scores_high, u32* work_counter) {
    stage_strip<kTexture>(strip, profile, query.first_unit, Shape::kStripUnits, static_cast<int>(threadIdx.x),
                          static_cast<int>(blockDim.x));
    __syncthreads();

    const u32 group = (threadIdx.x % kWarpSize) / Shape::kGroup;
    const bool writer = threadIdx.x % Shape::kGroup == 0;
    for (;;) {
        u32 item = 0;
        if (threadIdx.x % kWarpSize == 0) {
            item = atomicAdd(work_counter, 1u);
        }
        const u32 taken = __shfl_sync(kWholeWarp, item, 0) * Shape::kGroupsPerWarp;
        if (__all_sync(kWholeWarp, taken >= subjects.n_subjects)) {
            return;
        }
        const bool real = taken + group < subjects.n_subjects;
        const u32 place = real ? subjects.n_subjects - 1 - taken - group : 0;
        const u64 start = real ? subjects.starts[place] : 0;
        const int length = real ? static_cast<int>(subjects.lengths[place]) : 0;

        const EdgePlace edges{query.above, query.below, static_cast<u32>(start / kColumnsPerRound)};
        const auto best = align_strip<Arithmetic, Shape, kOpen, kExtend, kDeferred, kEdges>(
            strip, subjects.residues + start / 4, WholeSubject<Shape>(length), edges, query.further != 0,
            query.followed != 0, Finished());

        if (writer && real) {
            const bool further = kEdges != Edges::kNone && query.further != 0;
            if (Shape::kPairing == Pairing::kTwoQueries) {
                const int low = low_half(static_cast<u32>(best));
                const int high = high_half(static_cast<u32>(best));
                scores_low[place] = further && scores_low[place] > low ? scores_low[place] : low;
                scores_high[place] = further && scores_high[place] > high ? scores_high[place] : high;
            } else {
                const int score = single_score<Arithmetic>(best);
                scores_low[place] = further && scores_low[place] > score ? scores_low[place] : score;
            }
        }
    }
}

}  // namespace swsearch
