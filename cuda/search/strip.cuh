// The recurrence: it aligns one strip of the query with the subjects of a warp. inter_task.cu and intra_task.cuh use
// it. Inputs: the staged profile strip, packed residues and the boundary of the strip above. Outputs: the best score in
// every lane and the boundary of this strip.
//
// The method is Smith-Waterman with affine gaps after Gotoh (1982); a gap of k residues costs open + k * extend:
//
//     t = H(i-1, j-1) + s(i, j)
//     H = max(t, E, F, 0)
//     E(i, j+1) = max(E - extend, H - open - extend, 0)      a gap that consumes the subject
//     F(i+1, j) = max(F - extend, H - open - extend, 0)      a gap that consumes the query
//
// The maxima of E and F may include zero because that of H does. The maxima are computed by the integer units and the
// sums by the multiply-add units (arithmetic.cuh, which also gives the largest exact scores).
//
// Threads and cells. A group of lanes aligns one subject; each lane stores its query rows in registers (tile.cuh) and
// computes one subject column after another, kLag columns behind the lane above it. The values that it needs from that
// lane were computed in the previous step and arrive by one shuffle of H and one of F.
//
// Row blocks. The two halves of a word are one column apart, so the score word of column j serves the low half in one
// step and the high half in the next. Score words are not permuted for this purpose: the diagonal H that a word stores
// for its next step already includes the score of its high half (`add_high`), and the score of its low half is added in
// that step (`add_low`).
//
// Padding. Lanes before the subject's first column or past its last column read padding, which scores -128. Before the
// first column all values stay zero; past the last column H can only decrease, so neither the best score nor a boundary
// column changes.

#pragma once

#include "common/platform.cuh"
#include "search/arithmetic.cuh"
#include "search/boundary.cuh"
#include "search/gap_costs.cuh"
#include "search/strip_sync.cuh"
#include "search/subject.cuh"
#include "search/tile.cuh"

namespace swsearch {

// An observer receives each word of H while a strip is aligned, for kernels that need more than the best score: its
// word() is called if kObserves is true. This observer has no effect.
struct NoObserver {
    static constexpr bool kObserves = false;
};

// Returns the best score of a subject against the staged strip, in every lane of the group that has the subject. With
// paired scores the result has a score in each half: for row blocks the larger one is the strip's score, for two
// queries each half belongs to one query. All lanes of a warp call this function together; groups whose subject has
// ended compute padding until the longest subject of the warp has ended.
//
// strip: the staged profile strip. residues: the word of the subject's first residue. columns: the columns that the
// lanes compute (subject.cuh). gap: the gap costs. boundary: the location of the last row of the strip above, and
// that of this strip's last row. sync: the synchronisation with the strip above (strip_sync.cuh). boundary,
// has_strip_above, has_strip_below and sync are used only by kernels with boundaries.
template <class Arithmetic, class Shape, Edges kEdges, class Sync, class Observer = NoObserver>
SWS_DEVICE typename Arithmetic::Word align_strip(const uint4* strip, const u32* residues,
                                                 const SubjectColumns<Shape>& columns, const GapCosts& gap,
                                                 const BoundaryLocation& boundary, bool has_strip_above,
                                                 bool has_strip_below, Sync sync, Observer observer = Observer()) {
    using Word = typename Arithmetic::Word;
    using Columns = SubjectColumns<Shape>;
    constexpr int kWords = Shape::kWords;
    constexpr bool kBoundary = kEdges != Edges::kNone;
    constexpr bool kTwoBlocks = Shape::kPairing == Pairing::kTwoBlocks;
    const Word first_gap = Arithmetic::addend(-gap.first());
    const Word extend = Arithmetic::decrement(gap.extend);

    const int lane = static_cast<int>(threadIdx.x) % Shape::kGroup;
    const bool top = lane == 0;
    // Row blocks: lanes exchange H and F of their bottom row in one word. The row above a lane's low half belongs to
    // the lane above, the row above its high half to its own low half. In a strip without boundaries the first lane
    // has zeros above: its selectors take the sign of numbers that are never negative.
    const u32 take_h = top && !kBoundary ? 0x5499u : 0x5410u;
    const u32 take_f = top && !kBoundary ? 0x54BBu : 0x5432u;
    const bool last = lane == Shape::kGroup - 1;
    BoundaryBelow<Shape> below(kBoundary && has_strip_below && last ? columns.n_boundary() : 0);

    // The diagonal H of each word's next step. Row blocks: H above the row, with the high half's score added. Other
    // pairings: the row's own H, which is diagonal to the row below; t of that row is computed just before this H is
    // replaced, so that both may share a register.
    Word diagonal_h[kWords];
    Word e[kWords];
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
        diagonal_h[k] = 0;
        e[k] = 0;
    }
    Word corner = 0;  // H above the first row, of the previous step
    Word best = 0;
    Word last_h = 0;
    Word last_f = 0;

    const StagedScores<Shape> staged(strip, static_cast<int>(threadIdx.x) % Shape::kSlots);
    ResidueStream stream = columns.residues(residues, lane);
    if (kBoundary && has_strip_above) {
        sync.wait_for(kColumnsPerRound);
    }
    BoundaryAbove<Shape, kEdges> above(boundary, kBoundary && has_strip_above && top ? columns.n_boundary() : 0);

    // The loop condition is a vote, so the compiler knows that its outcome is the same in all lanes and generates no
    // second copy of the loop for diverged warps.
    const int n_steps = columns.n_steps(kBoundary && has_strip_below);
    for (int step = 0; __any_sync(kWholeWarp, step < n_steps); step += kColumnsPerRound) {
        const u32 codes = stream.next();
        if (kBoundary && has_strip_above) {
            sync.wait_for(step + 2 * kColumnsPerRound);
        }
        below.begin_round(boundary, step);
#pragma unroll
        for (int column = 0; column < kColumnsPerRound; ++column) {
            const uint4* const scores = staged.column(codes, column);
            Word score[Shape::kChunks * 4];
            StagedScores<Shape>::load(scores, 0, score);

            u32 edge[2] = {0, 0};
            if constexpr (kBoundary) {
                above.take(boundary, step, column, edge);
            }
            Word h, f;
            if constexpr (kTwoBlocks) {
                const u32 outgoing = permute_bytes(last_h, last_f, kHighHalves);
                u32 incoming = __shfl_up_sync(kWholeWarp, outgoing, 1, Shape::kGroup);
                if constexpr (kBoundary) {
                    incoming = top ? edge[0] : incoming;
                }
                h = permute_bytes(incoming, last_h, take_h);
                f = permute_bytes(incoming, last_f, take_f);
            } else {
                const u32 incoming_h = __shfl_up_sync(kWholeWarp, static_cast<u32>(last_h), 1, Shape::kGroup);
                const u32 incoming_f = __shfl_up_sync(kWholeWarp, static_cast<u32>(last_f), 1, Shape::kGroup);
                h = static_cast<Word>(top ? edge[0] : incoming_h);
                f = static_cast<Word>(top ? edge[1] : incoming_f);
            }

            Word t = Arithmetic::add(corner, score[0]);  // of the current row; row blocks compute it below
            corner = h;
            Word pending = 0;  // H of an even row, compared together with the next row's
#pragma unroll
            for (int k = 0; k < kWords; ++k) {
                if (k % 4 == 3 && k + 1 < kWords) {
                    StagedScores<Shape>::load(scores, k / 4 + 1, score + k + 1);
                }
                if constexpr (kTwoBlocks) {
                    t = Arithmetic::add_low(diagonal_h[k], score[k]);
                    diagonal_h[k] = Arithmetic::add_high(h, score[k]);
                    h = Arithmetic::max3_floor(t, e[k], f);
                } else {
                    const Word below_t = k + 1 < kWords ? Arithmetic::add(diagonal_h[k], score[k + 1]) : 0;
                    h = Arithmetic::max3_floor(t, e[k], f);
                    diagonal_h[k] = h;
                    t = below_t;
                }
                if constexpr (Observer::kObserves) {
                    observer.word(k, step + column, h);
                }
                const Word opened = Arithmetic::add(h, first_gap);
                e[k] = Arithmetic::decay_or(e[k], extend, opened);
                f = Arithmetic::decay_or(f, extend, opened);
                if (k % 2 == 1) {
                    best = Arithmetic::max3(best, pending, h);
                } else if (k == kWords - 1) {
                    best = Arithmetic::max3(best, h, h);
                } else {
                    pending = h;
                }
            }
            last_h = h;
            last_f = f;
            if constexpr (kBoundary) {
                below.put(step, column, static_cast<u32>(last_h), static_cast<u32>(last_f));
            }
        }
        if (kBoundary && has_strip_below && last) {
            sync.report(step + Columns::kFirstWritten + kColumnsPerRound - 1);  // complete rounds
        }
    }

#pragma unroll
    for (int distance = Shape::kGroup / 2; distance > 0; distance /= 2) {
        const Word other = static_cast<Word>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(best), distance));
        best = Arithmetic::max3(best, other, other);
    }
    return best;
}

SWS_DEVICE int low_half(u32 word) { return static_cast<int>(word & 0xFFFFu); }
SWS_DEVICE int high_half(u32 word) { return static_cast<int>(word >> 16); }

// The larger half of a word of two scores, or the one score.
template <class Arithmetic>
SWS_DEVICE int single_score(typename Arithmetic::Word word) {
    if constexpr (Arithmetic::kPair) {
        const int low = low_half(word);
        const int high = high_half(word);
        return low > high ? low : high;
    } else {
        return word;
    }
}

}  // namespace swsearch
