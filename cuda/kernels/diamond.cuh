// One diamond: 32 steps of a strip of query rows, a warp's lanes side by side, columns streaming past.
//
// The method is that of docs/design/diamond.md and tests/diamond/horizon_model.py. A strip is 32 lanes of kRows rows each, in
// registers. In step t lane a does column t - kLag * a, so no lane needs what another does in the same step: the cells of
// a step are a band of independent cells, and the 32 steps of a diamond keep all lanes busy. What a diamond hands to the
// next of its strip, the rightmost cells of each row, stays in registers; what it hands to the strip below, its lowest row,
// collects in shared memory and goes to the horizon when the diamond is done.
//
// The recurrence, for query rows i and subject columns j, first = open + extend; E and F are those the next cell may take:
//
//     U         = max(H(i-1, j-1) + s(i, j), E(i, j))         and for local problems not below 0
//     H(i, j)   = max(U, F(i, j))
//     E(i, j+1) = max(E - extend, U - first)                  a gap that consumes the subject
//     F(i+1, j) = max(F - extend, U - first)                  a gap that consumes the query
//
// F(i+1, j) could as well open from H: F - first is not above F - extend. E(i, j+1) does not hear of F: a gap in one
// sequence next to one in the other costs the same in either order, and here the one that consumes the subject comes
// first. So the chain from row to row is one instruction, not three. With open = 0 both are H - first.

#pragma once

#include "swsearch/cells.cuh"
#include "swsearch/horizon.cuh"
#include "swsearch/pair_scores.cuh"
#include "swsearch/platform.cuh"

namespace swsearch {

constexpr int kDiamondSteps = 32;
// 32-bit words of shared memory in which a diamond's lowest row collects.
constexpr int kLowestRowWords = 2 * kDiamondSteps;

struct PairCosts {
    int open;
    int extend;
    bool query_free;    // H(i, 0) is 0
    bool subject_free;  // H(0, j) is 0

    SWS_DEVICE int first() const { return open + extend; }
    SWS_DEVICE int left_border(int row) const { return border(row, query_free); }
    SWS_DEVICE int top_border(int column) const { return border(column, subject_free); }

   private:
    SWS_DEVICE int border(int k, bool free) const { return free || k == 0 ? 0 : -(open + k * extend); }
};

// A row whose scores are written, one a column: H of row `row` of the strip; none where `scores` is null.
struct WrittenRow {
    int* scores;
    int row;
};

// kDefinedE: E opens from H, as docs/design/diamond.md defines it, which takes one more instruction. All other values are the
// same; a path's decisions compare with E.
template <class Cells, class Scores, int kWords, bool kLocal, bool kAffine, bool kDefinedE = false>
class StripLane {
   public:
    using Word = typename Cells::Word;
    static constexpr int kRows = kWords * Cells::kRowsPerWord;
    static constexpr int kStripRows = kRows * kWarpSize;
    // Steps from a column's entry in the strip to the one in which lane 0 hears of the strip's lowest row there.
    static constexpr int kDepth = Cells::kLag * kWarpSize;
    using Edge = u32[Cells::kEdgeWords];

    // above: rows of the matrix above the strip. The state is that of the left border.
    SWS_DEVICE StripLane(const Scores& scores, const PairCosts& costs, int above, int base, u32* lowest_row)
        : lane_(static_cast<int>(threadIdx.x) % kWarpSize),
          base_(base),
          minus_first_(Cells::both(-costs.first())),
          minus_extend_(Cells::both(-costs.extend)),
          lowest_row_(lowest_row),
          scores_(scores) {
        const int first_row = above + lane_ * kRows;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            const int low = costs.left_border(first_row + k + 1) - base;
            const int high = costs.left_border(first_row + kWords + k + 1) - base;
            h_[k] = Cells::pair(low, high);
            e_[k] = Cells::pair(low - costs.first(), high - costs.first());
        }
        f_ = e_[kWords - 1];
        up_ = Cells::pair(costs.left_border(first_row) - base, costs.left_border(first_row + kWords) - base);
    }

    // Goes on to a diamond: scores count from `base`, and `above` is the node above the strip in this lane's of its
    // columns.
    SWS_DEVICE void enter(const HorizonNode& above, int base) {
        if constexpr (Cells::kRelative) {
            const Word by = Cells::both(base_ - base);
#pragma unroll
            for (int k = 0; k < kWords; ++k) {
                h_[k] = Cells::add(h_[k], by);
                e_[k] = Cells::add(e_[k], by);
            }
            f_ = Cells::add(f_, by);
            up_ = Cells::add(up_, by);
            base_ = base;
        }
        Cells::edge_of(above.h - base_, above.f - base_, top_);
        best_ = 0;
        scores_.next_group();
    }

    SWS_DEVICE int base() const { return base_; }

    // Every lane has a column in every step, or does no harm in those beyond the matrix.
    SWS_DEVICE void run() { steps<false>(0, 0, WrittenRow{nullptr, 0}); }

    // The same where columns are missing: halves whose column is not one of 0 to columns - 1 keep their state.
    SWS_DEVICE void run_at_border(int first_step, int columns, const WrittenRow& written) {
        steps<true>(first_step, columns, written);
    }

    // Local: this lane's best score in the diamond just done.
    SWS_DEVICE int reached() const {
        const int low = Cells::row(best_, 0);
        const int high = Cells::row(best_, Cells::kRowsPerWord - 1);
        return base_ + (low > high ? low : high);
    }

    // Local: does a diamond to find where `score` is reached first: (column - first step + kDepth) * kStripRows + row of the
    // strip, kNowhere where it is not.
    SWS_DEVICE int find(int score) {
        int place = kNowhere;
#pragma unroll 1
        for (int step = 0; step < kDiamondSteps; step += kBlock) {
            scores_.next_four();
#pragma unroll
            for (int i = 0; i < kBlock; ++i) {
                scores_.next(i);
                one_step<false>(step + i, 0, 0, WrittenRow{nullptr, 0});
#pragma unroll
                for (int row = 0; row < kRows; ++row) {
                    const int column = kDepth + step + i - Cells::kLag * lane_ - row / kWords;
                    const int here = column * kStripRows + lane_ * kRows + row;
                    const bool found = base_ + Cells::row(h_[row % kWords], row / kWords) == score;
                    place = found && here < place ? here : place;
                }
            }
        }
        return place;
    }
    static constexpr int kNowhere = 0x7FFFFFFF;

    // A lane's state between entering a diamond and doing it, as words for memory.
    static constexpr int kStateWords = 2 * kWords + 3;
    SWS_DEVICE void save(u32 (&state)[kStateWords]) const {
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            state[2 * k] = static_cast<u32>(h_[k]);
            state[2 * k + 1] = static_cast<u32>(e_[k]);
        }
        state[2 * kWords] = static_cast<u32>(f_);
        state[2 * kWords + 1] = static_cast<u32>(up_);
        state[2 * kWords + 2] = static_cast<u32>(base_);
    }
    SWS_DEVICE void restore(const u32 (&state)[kStateWords]) {
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            h_[k] = static_cast<Word>(state[2 * k]);
            e_[k] = static_cast<Word>(state[2 * k + 1]);
        }
        f_ = static_cast<Word>(state[2 * kWords]);
        up_ = static_cast<Word>(state[2 * kWords + 1]);
        base_ = static_cast<int>(state[2 * kWords + 2]);
    }

    // The lowest row at this lane's column of those that left the strip in the diamond.
    SWS_DEVICE HorizonNode lowest() const {
        Edge edge;
#pragma unroll
        for (int i = 0; i < Cells::kEdgeWords; ++i) {
            edge[i] = lowest_row_[i * kDiamondSteps + lane_];
        }
        return HorizonNode{base_ + Cells::edge_h(edge), base_ + Cells::edge_f(edge)};
    }

    // H of each of the lane's rows at its last column.
    SWS_DEVICE void write_column(int* column, int rows) const {
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
            const int at = lane_ * kRows + row;
            if (at < rows) {
                column[at] = base_ + Cells::row(h_[row % kWords], row / kWords);
            }
        }
    }

   private:
    static constexpr int kBlock = 4;  // steps that the compiler sees at once

    template <bool kMasked>
    SWS_DEVICE void steps(int first_step, int columns, const WrittenRow& written) {
#pragma unroll 1
        for (int step = 0; step < kDiamondSteps; step += kBlock) {
            scores_.next_four();
#pragma unroll
            for (int i = 0; i < kBlock; ++i) {
                scores_.next(i);
                one_step<kMasked>(step + i, first_step, columns, written);
            }
        }
    }

    template <bool kMasked>
    SWS_DEVICE void one_step(int step, int first_step, int columns, const WrittenRow& written) {
        Edge handed, incoming;
        Cells::hand_on(h_[kWords - 1], f_, handed);
#pragma unroll
        for (int i = 0; i < Cells::kEdgeWords; ++i) {
            // The lanes are a ring: lane 0 gets what the last lane hands on, the strip's lowest row.
            incoming[i] = __shfl_sync(kWholeWarp, handed[i], (lane_ + kWarpSize - 1) % kWarpSize);
            const u32 top = __shfl_sync(kWholeWarp, top_[i], step);
            if (lane_ == 0) {
                lowest_row_[i * kDiamondSteps + step] = incoming[i];
                incoming[i] = top;
            }
        }
        const Word above = Cells::take_h(incoming, h_[kWords - 1]);
        Word f = Cells::take_f(incoming, f_);
        Word diagonal = up_;
        up_ = above;

        const int column = first_step + step - Cells::kLag * lane_;  // of the low half
        const Word mask = kMasked ? Cells::inside(column, columns) : Word{};
        Word pending = 0;  // H of an even word, which waits for its neighbour to be compared together
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            const Word u = Cells::add_max_floor(diagonal, scores_.score(k), e_[k]);
            diagonal = h_[k];
            Word h = Cells::max(u, f);
            const Word opened = Cells::add(kAffine ? u : h, minus_first_);
            const Word e_opened = kAffine && kDefinedE ? Cells::add(h, minus_first_) : opened;
            Word e = kAffine ? Cells::add_max(e_[k], minus_extend_, e_opened) : opened;
            f = kAffine ? Cells::add_max(f, minus_extend_, opened) : opened;
            if constexpr (kMasked) {
                h = Cells::select(mask, h, h_[k]);
                e = Cells::select(mask, e, e_[k]);
            }
            h_[k] = h;
            e_[k] = e;
            if constexpr (kLocal) {
                if (k % 2 == 1) {
                    best_ = Cells::max3(best_, pending, h);
                } else {
                    pending = h;
                }
            }
        }
        f_ = f;
        if constexpr (kMasked) {
            write_row(column, columns, written);
        }
    }

    SWS_DEVICE void write_row(int column, int columns, const WrittenRow& written) const {
        const int row = written.row - lane_ * kRows;
        if (written.scores == nullptr || row < 0 || row >= kRows) {
            return;
        }
        const int half = row / kWords;
        const int at = column - half;
        // By masks: an index that is not known to the compiler would put the lane's whole state in memory.
        Word word = 0;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            word |= h_[k] & -static_cast<Word>(k == row % kWords);
        }
        if (at >= 0 && at < columns) {
            written.scores[at] = base_ + Cells::row(word, half);
        }
    }

    int lane_;
    int base_;
    Word minus_first_;
    Word minus_extend_;
    u32* lowest_row_;
    Scores scores_;
    Edge top_;
    Word h_[kWords];
    Word e_[kWords];
    Word f_;      // of the last word
    Word up_;     // H above the first word, a column back
    Word best_ = 0;  // local: the best score of each half in a diamond
};

}  // namespace swsearch
