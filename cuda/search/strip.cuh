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
// columns.cuh describes threads and cells, and passes values from lane to lane.
//
// Row blocks. The two halves of a word are one column apart, so the score word of column j serves the low half in one
// step and the high half in the next. Score words are not permuted for this purpose: the diagonal H that a word stores
// for its next step already includes the score of its high half (`add_high`), and the score of its low half is added in
// that step (`add_low`).
//
// Padding. Before the subject's first column all values stay zero; past the last column H can only decrease, so neither
// the best score nor a boundary column changes.

#pragma once

#include "common/platform.cuh"
#include "search/columns.cuh"
#include "search/gap_costs.cuh"

namespace swsearch {

// The cells of a lane (columns.cuh): the recurrence in each column, and the best score.
template <class ScoreType, class Rows, Edges kStripEdges>
class AlignedCells {
   public:
    using Arithmetic = ScoreType;
    using Shape = Rows;
    using Word = typename Arithmetic::Word;
    static constexpr Edges kEdges = kStripEdges;

    SWS_DEVICE explicit AlignedCells(const GapCosts& gap)
        : first_gap_(Arithmetic::addend(-gap.first())), extend_(Arithmetic::decrement(gap.extend)) {
        const bool top = threadIdx.x % Shape::kGroup == 0;
        take_h_ = top && !kBoundary ? 0x5499u : 0x5410u;
        take_f_ = top && !kBoundary ? 0x54BBu : 0x5432u;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            diagonal_h_[k] = 0;
            e_[k] = 0;
        }
    }

    SWS_DEVICE void first_of_column(const uint4* scores) { StagedScores<Shape>::load(scores, 0, score_); }

    template <class Observer>
    SWS_DEVICE void column(const uint4* scores, const u32 (&incoming)[2], int step, Observer& observer) {
        Word h, f;
        if constexpr (kRowBlocks) {
            h = permute_bytes(incoming[0], last_h_, take_h_);
            f = permute_bytes(incoming[0], last_f_, take_f_);
        } else {
            const bool top = threadIdx.x % Shape::kGroup == 0;
            h = static_cast<Word>(top && !kBoundary ? 0u : incoming[0]);
            f = static_cast<Word>(top && !kBoundary ? 0u : incoming[1]);
        }

        Word t = Arithmetic::add(corner_, score_[0]);  // of the current row; row blocks compute it below
        corner_ = h;
        Word pending = 0;  // H of an even row, compared together with the next row's
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            if (k % 4 == 3 && k + 1 < kWords) {
                StagedScores<Shape>::load(scores, k / 4 + 1, score_ + k + 1);
            }
            if constexpr (kRowBlocks) {
                t = Arithmetic::add_low(diagonal_h_[k], score_[k]);
                diagonal_h_[k] = Arithmetic::add_high(h, score_[k]);
                h = Arithmetic::max3_floor(t, e_[k], f);
            } else {
                const Word below_t = k + 1 < kWords ? Arithmetic::add(diagonal_h_[k], score_[k + 1]) : 0;
                h = Arithmetic::max3_floor(t, e_[k], f);
                diagonal_h_[k] = h;
                t = below_t;
            }
            if constexpr (Observer::kObservesWords) {
                observer.word(k, step, h);
            }
            const Word opened = Arithmetic::add(h, first_gap_);
            e_[k] = Arithmetic::decay_or(e_[k], extend_, opened);
            f = Arithmetic::decay_or(f, extend_, opened);
            if (k % 2 == 1) {
                best_ = Arithmetic::max3(best_, pending, h);
            } else if (k == kWords - 1) {
                best_ = Arithmetic::max3(best_, h, h);
            } else {
                pending = h;
            }
        }
        last_h_ = h;
        last_f_ = f;
    }

    SWS_DEVICE u32 last_row(int number) const { return static_cast<u32>(number == 0 ? last_h_ : last_f_); }

    SWS_DEVICE void end_of_round() {}

    template <class Observer>
    SWS_DEVICE int show_round(Observer& observer, int columns, int n_steps) const {
        return observer.round(columns, n_steps, diagonal_h_, e_, corner_, last_h_, last_f_);
    }

    SWS_DEVICE Word best() const { return best_; }
    static SWS_DEVICE Word larger(Word one, Word other) { return Arithmetic::max3(one, other, other); }

   private:
    static constexpr int kWords = Shape::kWords;
    static constexpr bool kBoundary = kEdges != Edges::kNone;
    static constexpr bool kRowBlocks = Shape::kPairing == Pairing::kRowBlocks;

    Word first_gap_;
    Word extend_;
    // Row blocks: lanes exchange H and F of their bottom row in one word. The row above a lane's low half belongs to
    // the lane above, the row above its high half to its own low half. In a strip without boundaries the first lane
    // has zeros above: its selectors take the sign of numbers that are never negative.
    u32 take_h_;
    u32 take_f_;
    // The diagonal H of each word's next step. Row blocks: H above the row, with the high half's score added. Other
    // pairings: the row's own H, which is diagonal to the row below; t of that row is computed just before this H is
    // replaced, so that both may share a register.
    Word diagonal_h_[kWords];
    Word e_[kWords];
    Word corner_ = 0;  // H above the first row, of the previous step
    Word best_ = 0;
    Word last_h_ = 0;
    Word last_f_ = 0;
    Word score_[Shape::kChunks * 4];
};

// Returns the best score of some columns of a subject against the staged strip, in every lane of the group that has the
// subject. With paired scores the result has a score in each half: for row blocks the larger one is the strip's score,
// for two queries each half belongs to one query. gap: the gap costs; the other parameters are those of
// compute_columns.
template <class Arithmetic, class Shape, Edges kEdges, class Sync, class ColumnRange, class Observer = NoObserver>
SWS_DEVICE typename Arithmetic::Word align_strip(const uint4* strip, const u32* residues, const ColumnRange& columns,
                                                 const GapCosts& gap, const BoundaryLocation& boundary,
                                                 bool has_strip_above, bool has_strip_below, Sync sync,
                                                 Observer observer = Observer()) {
    AlignedCells<Arithmetic, Shape, kEdges> cells(gap);
    return compute_columns(cells, strip, residues, columns, boundary, has_strip_above, has_strip_below, sync, observer);
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
