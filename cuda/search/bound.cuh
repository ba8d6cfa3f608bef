// An upper bound of the scores that strip.cuh computes, by which most subjects are excluded. inter_task.cu calls it in
// place of align_strip. Inputs: the staged profile strip, packed residues and the boundary of the strip above. Outputs:
// the largest E in every lane and the boundary of this strip. docs/design/bound.md has the recurrence, its proof, and
// what the kernel changes; `kept` is K there, and E is looked at after every four columns.
//
// Registers hold E, F and Y with the cost of a gap of one residue added ("raised"): g is then the maximum of the band's
// t, without a sum, and the subtraction from Y is a part of the instruction that computes kept. The sums t are those of
// FastPair, so the limit is at most 2,047 less the largest profile score (bound_limit in planner.py). Rows past the
// query's end and columns outside the subject score -128.
//
// Threads and cells are those of strip.cuh, except that both halves of a word are in the same column, even if they
// belong to one query (row blocks). So lanes are one column apart, and one residue and one sum serve both halves. The
// state of a lane is kWords words of kept and kWords / kBand words of E. A band lies within a half of a lane.
//
// Row blocks. The high half's rows follow the low half's, so F of the low half's last band enters the high half's first
// band in the same column. F first passes through the bands of both halves at once, with nothing above the high half.
// What then leaves the low half, less b * d, is compared with Y of band b of the high half: F' is a
// maximum of sums, so the parts of F may pass one after the other. This is one more instruction per band, and kept is
// computed after it.
//
// Boundaries have kept in the place of H and F of the band below, raised, in the place of F. So all strips of a query
// are bounds for the same gap costs; their bands may differ.

#pragma once

#include "common/platform.cuh"
#include "search/arithmetic.cuh"
#include "search/boundary.cuh"
#include "search/gap_costs.cuh"
#include "search/subject.cuh"
#include "search/tile.cuh"

namespace swsearch {

// A tile whose words have both halves in the same column: lanes are one column apart.
template <class Shape>
struct InOneColumn : Shape {
    static constexpr int kLag = 1;
    static constexpr int kDepth = Shape::kGroup - 1;
};

// The largest of kCount words whose halves may be negative sums, or if that is negative, a number from it to 0: E, F
// and Y, which it can raise, are never negative.
template <class Arithmetic, int kCount>
SWS_DEVICE typename Arithmetic::Word largest_of(const typename Arithmetic::Word* words) {
    static_assert(kCount >= 3, "a band has three rows or more");
    typename Arithmetic::Word largest = Arithmetic::max3_signed(words[0], words[1], words[2]);
#pragma unroll
    for (int k = 3; k + 1 < kCount; k += 2) {
        largest = Arithmetic::max3(words[k], words[k + 1], largest);
    }
    return kCount % 2 == 0 ? Arithmetic::max2(words[kCount - 1], largest) : largest;
}

// What F loses across some bands. Larger constants than 2,047 have no exact pattern; of an exact F nothing is left
// then, and a larger F may remain too large in a bound.
SWS_CONSTANT int decay(int band_gap, int bands) { return band_gap * bands < 2047 ? band_gap * bands : 2047; }

// Raises Y of each band to the F that reaches it from f above the first band.
template <class Arithmetic, int kBands, int kBandsAbove = 0>
SWS_DEVICE void pass_f(typename Arithmetic::Word* y, typename Arithmetic::Word f, int band_gap) {
    if constexpr (kBandsAbove < kBands) {
        y[kBandsAbove] = Arithmetic::decay_or(f, Arithmetic::decrement(decay(band_gap, kBandsAbove)), y[kBandsAbove]);
        pass_f<Arithmetic, kBands, kBandsAbove + 1>(y, f, band_gap);
    }
}

// Returns the largest E of a subject against the staged strip, in every lane of the group that has the subject. With
// row blocks the larger half is the strip's; with two queries each half belongs to one query. All lanes of a warp call
// this function together; groups whose subject has ended compute padding until the longest subject of the warp has
// ended.
//
// strip: the staged profile strip. residues: the subject's first word. length: its residues. gap: the gap costs.
// boundary: the location of the last row of the strip above, and that of this strip's last row. boundary,
// has_strip_above and has_strip_below are used only by kernels with boundaries.
template <class Arithmetic, class Rows, int kBand, Edges kEdges>
SWS_DEVICE typename Arithmetic::Word bound_strip(const uint4* strip, const u32* residues, int length,
                                                 const GapCosts& gap, const BoundaryLocation& boundary,
                                                 bool has_strip_above, bool has_strip_below) {
    using Word = typename Arithmetic::Word;
    using Shape = InOneColumn<Rows>;
    using Columns = SubjectColumns<Shape>;
    constexpr int kWords = Shape::kWords;
    constexpr int kBands = kWords / kBand;
    const int band_gap = kBand * gap.extend < gap.first() ? kBand * gap.extend : gap.first();
    const Word extend = Arithmetic::decrement(gap.extend);
    const Word first_gap = Arithmetic::decrement(gap.first());
    const Word pass_band = Arithmetic::decrement(band_gap);
    constexpr bool kBoundary = kEdges != Edges::kNone;
    constexpr bool kTwoBlocks = Shape::kPairing == Pairing::kTwoBlocks;
    static_assert(Arithmetic::kPair, "a word has two halves");
    static_assert(kWords % kBand == 0, "a band lies within a half of a lane");

    const Columns columns(length);
    const int lane = static_cast<int>(threadIdx.x) % Shape::kGroup;
    const bool top = lane == 0;
    // Row blocks: lanes exchange kept and F of their high half's last row in one word. In a strip without boundaries
    // the first lane has zeros above: its selectors take the sign of numbers that are never negative.
    const u32 take_kept = top && !kBoundary ? 0x5499u : 0x5410u;
    const u32 take_f = top && !kBoundary ? 0xFFFFu : 0xFF32u;
    BoundaryBelow<Shape> below(kBoundary && has_strip_below && lane == Shape::kGroup - 1 ? columns.n_boundary() : 0);

    // Two queries: a factor that makes what the first lane of a strip without boundaries receives zero.
    const Word from_above = top && !kBoundary ? 0 : kHalfOnes;

    Word kept[kWords];
    Word e[kBands];  // raised, as all values of E, F and Y
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
        kept[k] = 0;
    }
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
        e[band] = 0;
    }
    Word above_kept = 0;  // kept above the first row, of the previous step; row blocks: in the low half
    Word last_f = 0;      // F below the last row
    Word best = 0;

    const StagedScores<Shape> staged(strip, static_cast<int>(threadIdx.x) % Shape::kSlots);
    ResidueStream stream = columns.residues(residues, lane);
    BoundaryAbove<Shape, kEdges> above(boundary, kBoundary && has_strip_above && top ? columns.n_boundary() : 0);

    // A vote, for the reason that align_strip gives.
    const int n_steps = columns.n_steps(kBoundary && has_strip_below);
    for (int step = 0; __any_sync(kWholeWarp, step < n_steps); step += kColumnsPerRound) {
        const u32 codes = stream.next();
        below.begin_round(boundary, step);
#pragma unroll
        for (int column = 0; column < kColumnsPerRound; ++column) {
            const uint4* const scores = staged.column(codes, column);
            Word score[Shape::kChunks * 4];

            u32 edge[2] = {0, 0};
            if constexpr (kBoundary) {
                above.take(boundary, step, column, edge);
            }
            Word corner, f;  // kept diagonal to the first row, and F above it
            if constexpr (kTwoBlocks) {
                const u32 outgoing = permute_bytes(kept[kWords - 1], last_f, kHighHalves);
                u32 incoming = __shfl_up_sync(kWholeWarp, outgoing, 1, Shape::kGroup);
                if constexpr (kBoundary) {
                    incoming = top ? edge[0] : incoming;
                }
                corner = permute_bytes(above_kept, kept[kWords - 1], take_kept);
                f = permute_bytes(incoming, 0, take_f);
                above_kept = incoming;
            } else {
                const u32 incoming_kept =
                    __shfl_up_sync(kWholeWarp, static_cast<u32>(kept[kWords - 1]), 1, Shape::kGroup);
                const u32 incoming_f = __shfl_up_sync(kWholeWarp, static_cast<u32>(last_f), 1, Shape::kGroup);
                corner = above_kept;
                if constexpr (kBoundary) {
                    f = static_cast<Word>(top ? edge[1] : incoming_f);
                    above_kept = static_cast<Word>(top ? edge[0] : incoming_kept);
                } else {
                    f = half2_fma(incoming_f, from_above, 0);
                    above_kept = incoming_kept;
                }
            }

#pragma unroll
            for (int chunk = 0; chunk < Shape::kChunks; ++chunk) {
                StagedScores<Shape>::load(scores, chunk, score + 4 * chunk);
            }
            Word t[kWords];
            Word y[kBands];
            if constexpr (kTwoBlocks || kBoundary) {
                t[0] = Arithmetic::add(corner, score[0]);
            } else {
                t[0] = half2_fma(corner, from_above, score[0]);
            }
#pragma unroll
            for (int band = 0; band < kBands; ++band) {
#pragma unroll
                for (int k = band * kBand + 1; k <= (band + 1) * kBand && k < kWords; ++k) {
                    t[k] = Arithmetic::add(kept[k - 1], score[k]);
                }
                const Word largest = largest_of<Arithmetic, kBand>(t + band * kBand);
                y[band] = Arithmetic::max3(e[band], f, largest);
                e[band] = Arithmetic::decay_or(e[band], extend, largest);
                f = Arithmetic::decay_or(y[band], pass_band, largest);
                if constexpr (!kTwoBlocks) {
#pragma unroll
                    for (int k = band * kBand; k < (band + 1) * kBand; ++k) {
                        kept[k] = Arithmetic::decay_or(y[band], first_gap, t[k]);
                    }
                }
            }
            if constexpr (kTwoBlocks) {
                const Word from_low = f << 16;  // F above the high half's first row
                pass_f<Arithmetic, kBands>(y, from_low, band_gap);
                f = Arithmetic::decay_or(from_low, Arithmetic::decrement(decay(band_gap, kBands)), f);
#pragma unroll
                for (int k = 0; k < kWords; ++k) {
                    kept[k] = Arithmetic::decay_or(y[k / kBand], first_gap, t[k]);
                }
            }
            last_f = f;

            if constexpr (kBoundary) {
                below.put(step, column, static_cast<u32>(kept[kWords - 1]), static_cast<u32>(last_f));
            }
        }
#pragma unroll
        for (int band = 0; band < kBands; band += 2) {
            best = Arithmetic::max3(best, e[band], e[band + 1 < kBands ? band + 1 : band]);
        }
    }

#pragma unroll
    for (int distance = Shape::kGroup / 2; distance > 0; distance /= 2) {
        best = Arithmetic::max2(best, static_cast<Word>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(best), distance)));
    }
    return Arithmetic::decay_or(best, first_gap, 0);
}

}  // namespace swsearch
