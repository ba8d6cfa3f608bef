// The loop over the columns of a strip, which the recurrence (strip.cuh) and its upper bound (bound.cuh) share: it
// reads residues and the boundary of the strip above, passes values from lane to lane, and writes the boundary of this
// strip. What is computed in a column is the business of a class of cells.
//
// Threads and cells. A group of lanes aligns one subject; each lane stores its query rows in registers (tile.cuh) and
// computes one subject column after another, kLag columns behind the lane above it. The values that it needs from that
// lane were computed in the previous step and arrive by shuffles: two numbers of the lane's last row. Row blocks
// exchange both in one word.
//
// Padding. Lanes before the subject's first column or past its last column read padding, which scores -128.
//
// A class of cells has the members
//   Shape, Arithmetic, kEdges   the tile, the score type, and the boundaries of the strip
//   first_of_column             loads what is needed before the values of the lane above arrive
//   column                      computes a column from these values
//   last_row                    the two numbers of the lane's last row: H, or what takes its place, and F
//   end_of_round                is called after every four columns
//   best, larger                a lane's result, and the larger of two results

#pragma once

#include "common/platform.cuh"
#include "search/arithmetic.cuh"
#include "search/boundary.cuh"
#include "search/column_range.cuh"
#include "search/strip_sync.cuh"
#include "search/subject.cuh"
#include "search/tile.cuh"

namespace swsearch {

// An observer receives the state of a lane while a strip is aligned, for kernels that need more than the best score. If
// kObservesWords is true, word() is called with each word of H. If kObservesRounds is true, round() is called after
// each round of four columns with all values that the lane stores for the next round, and it returns the total number
// of steps. This observer has no effect.
struct NoObserver {
    static constexpr bool kObservesWords = false;
    static constexpr bool kObservesRounds = false;
};

// Computes some columns of a subject against the staged strip, and returns the largest result of the lanes of the group
// that has the subject, in each of them. All lanes of a warp call this function together; groups whose subject has
// ended compute padding until the longest subject of the warp has ended.
//
// strip: the staged profile strip. residues: the word of the columns' first residue. columns: the columns that the
// lanes compute (column_range.cuh). boundary: the location of the last row of the strip above, and that of this strip's
// last row. sync: the synchronisation with the strip above (strip_sync.cuh). boundary, has_strip_above, has_strip_below
// and sync are used only by kernels with boundaries.
template <class Cells, class Sync, class ColumnRange, class Observer>
SWS_DEVICE typename Cells::Word compute_columns(Cells& cells, const uint4* strip, const u32* residues,
                                                const ColumnRange& columns, const BoundaryLocation& boundary,
                                                bool has_strip_above, bool has_strip_below, Sync sync,
                                                Observer observer) {
    using Shape = typename Cells::Shape;
    using Word = typename Cells::Word;
    constexpr bool kBoundary = Cells::kEdges != Edges::kNone;
    constexpr bool kRowBlocks = Shape::kPairing == Pairing::kRowBlocks;

    const int lane = static_cast<int>(threadIdx.x) % Shape::kGroup;
    const bool top = lane == 0;
    // Boundary columns that this lane writes; 0 in lanes that write none.
    const u32 n_written = kBoundary && lane == Shape::kGroup - 1 && has_strip_below ? columns.n_below() : 0;

    const StagedScores<Shape> staged(strip, static_cast<int>(threadIdx.x) % Shape::kSlots);
    ResidueStream stream = columns.residues(residues, lane);
    if (kBoundary && has_strip_above) {
        sync.wait_for(kColumnsPerRound);
    }
    BoundaryAbove<Shape, Cells::kEdges, ColumnRange::kFirstWritten> above(
        boundary, kBoundary && has_strip_above && top ? columns.n_above() : 0);

    // The loop condition is a vote, so the compiler knows that its outcome is the same in all lanes and generates no
    // second copy of the loop for diverged warps.
    int n_steps = columns.n_steps(kBoundary && has_strip_below);
    for (int step = 0; __any_sync(kWholeWarp, step < n_steps); step += kColumnsPerRound) {
        const u32 codes = stream.next();
        if (kBoundary && has_strip_above) {
            sync.wait_for(step + 2 * kColumnsPerRound);
        }
        // Address of the bottom row's columns of this round. Before the boundary's first column it is invalid and is
        // not used.
        const u32 round = boundary.first_round + static_cast<u32>(step) / kColumnsPerRound;
        u32* const below =
            words_from(boundary.below, (static_cast<long long>(round) * kColumnsPerRound + ColumnRange::kFirstWritten) *
                                           Shape::kBoundaryWords);
#pragma unroll
        for (int column = 0; column < kColumnsPerRound; ++column) {
            const uint4* const scores = staged.column(codes, column);
            cells.first_of_column(scores);
            u32 edge[2] = {0, 0};
            if constexpr (kBoundary) {
                above.take(boundary, step, column, edge);
            }
            u32 incoming[2];
            if constexpr (kRowBlocks) {
                const u32 outgoing = permute_bytes(cells.last_row(0), cells.last_row(1), kHighHalves);
                incoming[0] = __shfl_up_sync(kWholeWarp, outgoing, 1, Shape::kGroup);
                if constexpr (kBoundary) {
                    incoming[0] = top ? edge[0] : incoming[0];
                }
            } else {
                incoming[0] = __shfl_up_sync(kWholeWarp, cells.last_row(0), 1, Shape::kGroup);
                incoming[1] = __shfl_up_sync(kWholeWarp, cells.last_row(1), 1, Shape::kGroup);
                if constexpr (kBoundary) {
                    incoming[0] = top ? edge[0] : incoming[0];
                    incoming[1] = top ? edge[1] : incoming[1];
                }
            }
            cells.column(scores, incoming, step + column, observer);
            if constexpr (kBoundary) {
                // The first written column is one past a multiple of four: three columns of a step belong to one
                // round of the boundary, the fourth to the next.
                static_assert((ColumnRange::kFirstWritten - 1) % kColumnsPerRound == 0, "lanes lie whole rounds deep");
                const int first = column < kColumnsPerRound - 1 ? 0 : kColumnsPerRound - 1;
                const bool wanted = static_cast<u32>(step + ColumnRange::kFirstWritten + first) < n_written;
                if constexpr (kRowBlocks) {
                    store_if(wanted, words_from(below, column),
                             permute_bytes(cells.last_row(0), cells.last_row(1), kHighHalves));
                } else {
                    store_pair_if(wanted, words_from(below, 2 * column), cells.last_row(0), cells.last_row(1));
                }
            }
        }
        if (kBoundary && has_strip_below && lane == Shape::kGroup - 1) {
            sync.report(step + ColumnRange::kFirstWritten + kColumnsPerRound - 1);  // complete rounds
        }
        cells.end_of_round();
        if constexpr (Observer::kObservesRounds) {
            n_steps = cells.show_round(observer, step + kColumnsPerRound, n_steps);
        }
    }

    Word best = cells.best();
#pragma unroll
    for (int distance = Shape::kGroup / 2; distance > 0; distance /= 2) {
        best = Cells::larger(best, static_cast<Word>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(best), distance)));
    }
    return best;
}

}  // namespace swsearch
