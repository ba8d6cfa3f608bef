// An upper bound of the scores that strip.cuh computes: it proves for most subjects that no alignment reaches a given
// score. inter_task.cu calls it in place of align_strip. Inputs: the staged profile strip, packed residues and the
// boundary of the strip above. Outputs: the largest E in every lane and the boundary of this strip.
//
// The method. Every kBand consecutive query rows are a band. The rows of a band share one E, and F passes from band to
// band only. In column j, for each band from the top down, where c = open + extend is the cost of a gap of one residue
// and d = min(kBand * extend, c):
//
//     t(i)    = kept(i-1, j-1) + s(i, j)             for each row of the band
//     g       = max over the band's t - c
//     Y       = max(E, F, g, 0)
//     kept(i) = max(t(i), Y)                         for each row of the band
//     E'      = max(E - extend, g)                   of the next column
//     F'      = max(Y - d, g)                        of the band below
//
// Theorem: kept(i, j) >= H(i, j) in every cell. E is looked at after every four columns; if the largest one is below
// the limit T - open - 4 * extend, no alignment scores T. A larger one proves nothing: those subjects are scored by an
// exact kernel. docs/design/bound.md proves both, and that what the kernel changes leaves the result a bound.
//
// Changes. Registers hold E, F and Y with c added ("raised"): g + c is then the maximum of the band's t, without a sum,
// and subtracting c from Y is a part of the instruction that computes kept. Raised values are at least 0. The sums t
// are those of FastPair, which rounds beyond 2,047; T is at most 2,047 less the largest profile score (bound_limit in
// routing.py), and c at most 2,047. Rows past the query's end and columns outside the subject score -128.
//
// Threads and cells are those of columns.cuh, except that both halves of a word are in the same column, even if they
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
#include "search/columns.cuh"
#include "search/gap_costs.cuh"

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

// The cells of a lane (columns.cuh): the bound in each column, and the largest E, raised.
template <class ScoreType, class Rows, int kBand, Edges kStripEdges>
class BoundCells {
   public:
    using Arithmetic = ScoreType;
    using Shape = InOneColumn<Rows>;
    using Word = typename Arithmetic::Word;
    static constexpr Edges kEdges = kStripEdges;

    SWS_DEVICE explicit BoundCells(const GapCosts& gap)
        : band_gap_(kBand * gap.extend < gap.first() ? kBand * gap.extend : gap.first()),
          extend_(Arithmetic::decrement(gap.extend)),
          first_gap_(Arithmetic::decrement(gap.first())),
          pass_band_(Arithmetic::decrement(band_gap_)) {
        const bool top = threadIdx.x % Shape::kGroup == 0;
        take_kept_ = top && !kBoundary ? 0x5499u : 0x5410u;
        take_f_ = top && !kBoundary ? 0xFFFFu : 0xFF32u;
        from_above_ = top && !kBoundary ? 0 : kHalfOnes;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            kept_[k] = 0;
        }
#pragma unroll
        for (int band = 0; band < kBands; ++band) {
            e_[band] = 0;
        }
    }

    SWS_DEVICE void first_of_column(const uint4*) {}

    template <class Observer>
    SWS_DEVICE void column(const uint4* scores, const u32 (&incoming)[2], int, Observer&) {
        Word corner, f;  // kept diagonal to the first row, and F above it
        if constexpr (kRowBlocks) {
            corner = permute_bytes(above_kept_, kept_[kWords - 1], take_kept_);
            f = permute_bytes(incoming[0], 0, take_f_);
        } else {
            corner = above_kept_;
            f = kBoundary ? incoming[1] : half2_fma(incoming[1], from_above_, 0);
        }
        above_kept_ = incoming[0];

        Word score[Shape::kChunks * 4];
#pragma unroll
        for (int chunk = 0; chunk < Shape::kChunks; ++chunk) {
            StagedScores<Shape>::load(scores, chunk, score + 4 * chunk);
        }
        Word t[kWords];
        Word y[kBands];
        if constexpr (kRowBlocks || kBoundary) {
            t[0] = Arithmetic::add(corner, score[0]);
        } else {
            t[0] = half2_fma(corner, from_above_, score[0]);
        }
#pragma unroll
        for (int band = 0; band < kBands; ++band) {
#pragma unroll
            for (int k = band * kBand + 1; k <= (band + 1) * kBand && k < kWords; ++k) {
                t[k] = Arithmetic::add(kept_[k - 1], score[k]);
            }
            const Word largest = largest_of<Arithmetic, kBand>(t + band * kBand);
            y[band] = Arithmetic::max3(e_[band], f, largest);
            e_[band] = Arithmetic::decay_or(e_[band], extend_, largest);
            f = Arithmetic::decay_or(y[band], pass_band_, largest);
            if constexpr (!kRowBlocks) {
#pragma unroll
                for (int k = band * kBand; k < (band + 1) * kBand; ++k) {
                    kept_[k] = Arithmetic::decay_or(y[band], first_gap_, t[k]);
                }
            }
        }
        if constexpr (kRowBlocks) {
            const Word from_low = f << 16;  // F above the high half's first row
            pass_f<Arithmetic, kBands>(y, from_low, band_gap_);
            f = Arithmetic::decay_or(from_low, Arithmetic::decrement(decay(band_gap_, kBands)), f);
#pragma unroll
            for (int k = 0; k < kWords; ++k) {
                kept_[k] = Arithmetic::decay_or(y[k / kBand], first_gap_, t[k]);
            }
        }
        last_f_ = f;
    }

    SWS_DEVICE u32 last_row(int number) const { return number == 0 ? kept_[kWords - 1] : last_f_; }

    SWS_DEVICE void end_of_round() {
#pragma unroll
        for (int band = 0; band < kBands; band += 2) {
            best_ = Arithmetic::max3(best_, e_[band], e_[band + 1 < kBands ? band + 1 : band]);
        }
    }

    SWS_DEVICE Word best() const { return best_; }
    static SWS_DEVICE Word larger(Word one, Word other) { return Arithmetic::max2(one, other); }

    // The largest E of a raised one.
    SWS_DEVICE Word lowered(Word raised) const { return Arithmetic::decay_or(raised, first_gap_, 0); }

   private:
    static constexpr int kWords = Shape::kWords;
    static constexpr int kBands = kWords / kBand;
    static constexpr bool kBoundary = kEdges != Edges::kNone;
    static constexpr bool kRowBlocks = Shape::kPairing == Pairing::kRowBlocks;
    static_assert(Arithmetic::kPair, "a word has two halves");
    static_assert(kWords % kBand == 0, "a band lies within a half of a lane");

    int band_gap_;
    Word extend_;
    Word first_gap_;
    Word pass_band_;
    // Row blocks: lanes exchange kept and F of their high half's last row in one word. In a strip without boundaries
    // the first lane has zeros above: its selectors take the sign of numbers that are never negative.
    u32 take_kept_;
    u32 take_f_;
    // Two queries: a factor that makes what the first lane of a strip without boundaries receives zero.
    Word from_above_;
    Word kept_[kWords];
    Word e_[kBands];       // raised, as all values of E, F and Y
    Word above_kept_ = 0;  // kept above the first row, of the previous step; row blocks: in the low half
    Word last_f_ = 0;      // F below the last row
    Word best_ = 0;
};

// Returns the largest E of a subject against the staged strip, in every lane of the group that has the subject. With
// row blocks the larger half is the strip's; with two queries each half belongs to one query. length: the subject's
// residues. gap: the gap costs. The other parameters are those of compute_columns.
template <class Arithmetic, class Rows, int kBand, Edges kEdges>
SWS_DEVICE typename Arithmetic::Word bound_strip(const uint4* strip, const u32* residues, int length,
                                                 const GapCosts& gap, const BoundaryLocation& boundary,
                                                 bool has_strip_above, bool has_strip_below) {
    BoundCells<Arithmetic, Rows, kBand, kEdges> cells(gap);
    const WholeSubject<InOneColumn<Rows>> columns(length);
    return cells.lowered(compute_columns(cells, strip, residues, columns, boundary, has_strip_above, has_strip_below,
                                         NoSync(), NoObserver()));
}

}  // namespace swsearch
