// The recurrence of the diamond kernels: it computes one diamond, which is 32 steps of a strip of query rows. sweep.cuh
// and locate_best.cu use it, and describe the memory. Inputs: H and F of the row above the diamond (a HorizonNode per
// lane), the state of the lanes, and the scores of the letters. Outputs: the new state, H and F of the strip's lowest
// row and, in local problems, the best score. docs/design/diamond.md ("On a GPU") has the mapping of cells to lanes and
// the order of the recurrence, by which the dependency chain from row to row is one instruction.
//
// In step t lane a computes column t - kLag * a. The rightmost cells of each row, which the next diamond of the strip
// needs, stay in registers. The lowest row, which the strip below needs, is collected in shared memory and written to
// the horizon (horizon.cuh) after the diamond.
//
// Scores are exact up to 2^30, in local problems up to 2^31 - 2^16. The host refuses pairs whose scores could be
// larger, and chooses narrow cells only if they can represent every score of a diamond (cells.cuh).

#pragma once

#include "common/platform.cuh"
#include "pairs/cells.cuh"
#include "pairs/free_ends.cuh"
#include "pairs/horizon.cuh"
#include "pairs/pair_scores.cuh"

namespace swsearch {

constexpr int kDiamondSteps = 32;
// 32-bit words of shared memory in which the lowest row of a diamond is collected.
constexpr int kLowestRowWords = 2 * kDiamondSteps;

struct PairCosts {
    int open;
    int extend;
    FreeEnds free_ends;

    SWS_DEVICE int first() const { return open + extend; }
    SWS_DEVICE int left_border(int row) const { return border(row, free_ends.has(kQueryStart)); }
    SWS_DEVICE int top_border(int column) const { return border(column, free_ends.has(kSubjectStart)); }

   private:
    SWS_DEVICE int border(int k, bool free) const { return free || k == 0 ? 0 : -(open + k * extend); }
};

// A row of the strip whose H is written to `scores`, by column; no row if `scores` is null.
struct WrittenRow {
    int* scores;
    int row;
};

// The state of a lane of a strip, and the computation of a diamond. All lanes of a warp call the member functions
// together.
//
// kDefinedE: E opens from H, as docs/design/diamond.md defines it, at the cost of one more instruction. All other
// values are unchanged. The traceback needs this E, because the decisions of a path compare with it.
template <class Cells, class Scores, int kWords, bool kLocal, bool kAffine, bool kDefinedE = false>
class StripLane {
   public:
    using Word = typename Cells::Word;
    static constexpr int kRows = kWords * Cells::kRowsPerWord;
    static constexpr int kStripRows = kRows * kWarpSize;
    // Steps between the computation of a column in the strip's first row and the step in which lane 0 receives the
    // strip's lowest row at that column.
    static constexpr int kDepth = Cells::kLag * kWarpSize;
    using Edge = u32[Cells::kEdgeWords];

    // Begins at the left border. above: rows of the matrix above the strip. base: see cells.cuh. lowest_row:
    // kLowestRowWords words of shared memory of the warp.
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

    // Enters the next diamond. above: the horizon node above the strip in this lane's column of the diamond. base: the
    // base of the diamond.
    SWS_DEVICE void enter(const HorizonNode& above, int base) {
        if constexpr (Cells::kRelative) {
            const Word shift = Cells::both(base_ - base);
#pragma unroll
            for (int k = 0; k < kWords; ++k) {
                h_[k] = Cells::add(h_[k], shift);
                e_[k] = Cells::add(e_[k], shift);
            }
            f_ = Cells::add(f_, shift);
            up_ = Cells::add(up_, shift);
            base_ = base;
        }
        Cells::edge_of(above.h - base_, above.f - base_, top_);
        best_ = 0;
        scores_.next_group();
    }

    SWS_DEVICE int base() const { return base_; }

    // Computes a diamond that lies inside the matrix, or whose cells outside it cannot change the result.
    SWS_DEVICE void run() { steps<false>(0, 0, WrittenRow{nullptr, 0}); }

    // Computes a diamond that extends beyond the matrix: halves whose column is not one of 0 to columns - 1 retain
    // their state. first_step: number of the diamond's first step in the strip.
    SWS_DEVICE void run_at_border(int first_step, int columns, const WrittenRow& written) {
        steps<true>(first_step, columns, written);
    }

    // Local problems: this lane's best score in the diamond just computed.
    SWS_DEVICE int reached() const {
        const int low = Cells::row(best_, 0);
        const int high = Cells::row(best_, Cells::kRowsPerWord - 1);
        return base_ + (low > high ? low : high);
    }

    // Local problems: computes a diamond and returns this lane's first position with `score`:
    // (column - first step + kDepth) * kStripRows + row of the strip, or kNotFound.
    SWS_DEVICE int find(int score) {
        int position = kNotFound;
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
                    position = found && here < position ? here : position;
                }
            }
        }
        return position;
    }
    static constexpr int kNotFound = 0x7FFFFFFF;

    // A lane's state at the beginning of a diamond, as words for global memory.
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

    // The lowest row of the strip, at this lane's column of the 32 columns that the diamond has completed.
    SWS_DEVICE HorizonNode lowest() const {
        Edge edge;
#pragma unroll
        for (int i = 0; i < Cells::kEdgeWords; ++i) {
            edge[i] = lowest_row_[i * kDiamondSteps + lane_];
        }
        return HorizonNode{base_ + Cells::edge_h(edge), base_ + Cells::edge_f(edge)};
    }

    // Writes H of each of the lane's rows at its last column. column: the array for the strip's `rows` rows that lie in
    // the matrix.
    SWS_DEVICE void write_column(int* column, int rows) const {
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
            const int strip_row = lane_ * kRows + row;
            if (strip_row < rows) {
                column[strip_row] = base_ + Cells::row(h_[row % kWords], row / kWords);
            }
        }
    }

   private:
    static constexpr int kBlock = 4;  // steps that are unrolled together

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
        Edge outgoing, incoming;
        Cells::edge_below(h_[kWords - 1], f_, outgoing);
#pragma unroll
        for (int i = 0; i < Cells::kEdgeWords; ++i) {
            // The lanes form a ring: lane 0 receives the edge of the last lane, which is the strip's lowest row.
            incoming[i] = __shfl_sync(kWholeWarp, outgoing[i], (lane_ + kWarpSize - 1) % kWarpSize);
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
        Word pending = 0;  // H of an even word, compared together with the next word's
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
        const int score_column = column - half;
        // H is selected by masks, because an index unknown to the compiler would move the lane's complete state to
        // memory.
        Word word = 0;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            word |= h_[k] & -static_cast<Word>(k == row % kWords);
        }
        if (score_column >= 0 && score_column < columns) {
            written.scores[score_column] = base_ + Cells::row(word, half);
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
    Word f_;         // F below the last word
    Word up_;        // H above the first word, of the previous column
    Word best_ = 0;  // local problems: the best score of each half in the diamond
};

}  // namespace swsearch
