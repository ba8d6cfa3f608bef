// One diamond: 32 steps of a strip of query rows, a warp's lanes side by side, columns streaming past.
//
// The method is that of docs/design/diamond.md and tests/diamond/horizon_model.py. A strip is 32 lanes of kRows rows each, in
// registers. In step t lane a does column t - kLag * a, so no lane needs what another does in the same step: the cells of
// a step are an anti-diagonal band of independent cells, and the 32 steps of a diamond keep all lanes busy. What a
// diamond hands to the next of its strip, the rightmost cells of each row, stays in registers; what it hands to the
// strip below, its lowest row, goes to the horizon in global memory.
//
// The recurrence, for query rows i and subject columns j, first = open + extend; E and F are those the next cell may take:
//
//     H(i, j)   = max(H(i-1, j-1) + s(i, j), E, F)            and for local problems not below 0
//     E(i, j+1) = max(E - extend, H(i, j) - first)            a gap that consumes the subject
//     F(i+1, j) = max(F - extend, H(i, j) - first)            a gap that consumes the query
//
// With open = 0 both are H - first, since H is at least E and F.

#pragma once

#include "swsearch/cells.cuh"
#include "swsearch/pair_scores.cuh"
#include "swsearch/platform.cuh"

namespace swsearch {

constexpr int kDiamondSteps = 32;

// What steps do besides computing cells.
enum class Steps {
    kPlain,    // every lane has a column in every step
    kMasked,   // halves whose column is outside the matrix keep their state: the triangles at the borders
    kTracked,  // as plain; finds the first place of a score
};

struct PairCosts {
    int open;
    int extend;
    bool query_free;    // H(i, 0) is 0
    bool subject_free;  // H(0, j) is 0

    SWS_DEVICE int left_border(int row) const { return border(row, query_free); }
    SWS_DEVICE int top_border(int column) const { return border(column, subject_free); }

   private:
    SWS_DEVICE int border(int k, bool free) const { return free || k == 0 ? 0 : -(open + k * extend); }
};

// A place in the matrix, counted in letters before it; ends are compared by score, then column, then row.
struct Place {
    int column;
    int row;

    SWS_DEVICE bool before(const Place& other) const {
        return column != other.column ? column < other.column : row < other.row;
    }
};

// The lowest row of a strip at one column: where it is kept, and which step of a lane it is.
template <class Cells, class Scores, int kWords, bool kLocal, bool kAffine>
class StripLane {
   public:
    using Word = typename Cells::Word;
    static constexpr int kRows = kWords * Cells::kRowsPerWord;
    static constexpr int kStripRows = kRows * kWarpSize;
    // Steps from a column's entry in the strip to the one in which lane 0 hears of the strip's lowest row there.
    static constexpr int kDepth = Cells::kLag * kWarpSize;
    using Edge = u32[Cells::kEdgeWords];

    // first_row: rows of the matrix above the strip. The state is that of the left border.
    SWS_DEVICE StripLane(const Scores& scores, const PairCosts& costs, int first_row, int base)
        : lane_(static_cast<int>(threadIdx.x) % kWarpSize),
          base_(base),
          first_(Cells::both(-(costs.open + costs.extend))),
          extend_(Cells::both(-costs.extend)),
          scores_(scores) {
        const int above = first_row + lane_ * kRows;
        const int gap = costs.open + costs.extend;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            const int low = costs.left_border(above + k + 1) - base;
            const int high = costs.left_border(above + kWords + k + 1) - base;
            h_[k] = Cells::pair(low, high);
            e_[k] = Cells::pair(low - gap, high - gap);
        }
        f_ = e_[kWords - 1];
        up_ = Cells::pair(costs.left_border(above) - base, costs.left_border(above + kWords) - base);
    }

    SWS_DEVICE int base() const { return base_; }

    // Counts scores from another base.
    SWS_DEVICE void rebase(int base) {
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

    // What a diamond is asked and finds.
    struct Task {
        int first_step;        // of the strip; lane 0's first column
        int columns;           // of the matrix
        Edge top;              // H and F above the strip at this lane's column first_step + lane
        u32* below;            // where lane 0 writes the lowest row of column first_step - kDepth, or null
        u32* kept;             // the same for a row that is kept, or null
        int* last_row;         // masked: where H of query row `rows` is written, by column, or null
        int rows;              // rows of the strip up to that one
        int target;            // tracked: the score that is looked for
        int reached;           // plain and local: this lane's best score
        Place place;           // tracked: the first place of `target` in this lane; column -1 where there is none
    };

    template <Steps kSteps>
    SWS_DEVICE void run(Task& task) {
        Word best = 0;
        task.place = Place{-1, 0};
#pragma unroll 1
        for (int step = 0; step < kDiamondSteps; step += 4) {
            scores_.next_four();
#pragma unroll
            for (int column = 0; column < 4; ++column) {
                scores_.next(column);
                one_step<kSteps>(task, step + column, best);
            }
        }
        if (kLocal && kSteps == Steps::kPlain) {
            const int low = Cells::row(best, 0);
            const int high = Cells::row(best, Cells::kRowsPerWord - 1);
            task.reached = base_ + (low > high ? low : high);
        }
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
    template <Steps kSteps>
    SWS_DEVICE void one_step(Task& task, int step, Word& best) {
        const bool top_lane = lane_ == 0;
        Edge handed, incoming;
        Cells::hand_on(h_[kWords - 1], f_, handed);
#pragma unroll
        for (int i = 0; i < Cells::kEdgeWords; ++i) {
            // The lanes are a ring: lane 0 gets what the last lane hands on, the strip's lowest row.
            incoming[i] = __shfl_sync(kWholeWarp, handed[i], (lane_ + kWarpSize - 1) % kWarpSize);
            store_if(top_lane && task.below != nullptr, words_from(task.below, step * Cells::kEdgeWords + i), incoming[i]);
            store_if(top_lane && task.kept != nullptr, words_from(task.kept, step * Cells::kEdgeWords + i), incoming[i]);
            const u32 top = __shfl_sync(kWholeWarp, task.top[i], step);
            incoming[i] = top_lane ? top : incoming[i];
        }
        const Word above_h = Cells::take_h(incoming, h_[kWords - 1]);
        Word f = Cells::take_f(incoming, f_);
        Word diagonal = up_;
        up_ = above_h;

        const int column = task.first_step + step - Cells::kLag * lane_;  // of the low half
        const Word mask = kSteps == Steps::kMasked ? Cells::inside(column, task.columns) : Word{};
        Word pending = 0;  // H of an even word, which waits for its neighbour to be compared together
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            const Word t = scores_.matched(diagonal, k);
            diagonal = h_[k];
            Word h = Cells::best_of(t, e_[k], f);
            Word opened = Cells::add(h, first_);
            Word e = kAffine ? Cells::decay_or(e_[k], extend_, opened) : opened;
            f = kAffine ? Cells::decay_or(f, extend_, opened) : opened;
            if constexpr (kSteps == Steps::kMasked) {
                h = Cells::select(mask, h, h_[k]);
                e = Cells::select(mask, e, e_[k]);
            }
            h_[k] = h;
            e_[k] = e;
            if constexpr (kLocal && kSteps == Steps::kPlain) {
                if (k % 2 == 1) {
                    best = Cells::max3(best, pending, h);
                } else if (k == kWords - 1) {
                    best = Cells::max3(best, h, h);
                } else {
                    pending = h;
                }
            }
            if constexpr (kSteps == Steps::kTracked) {
#pragma unroll
                for (int half = 0; half < Cells::kRowsPerWord; ++half) {
                    const Place here{column - half, lane_ * kRows + half * kWords + k};
                    const bool found = base_ + Cells::row(h, half) == task.target;
                    if (found && (task.place.column < 0 || here.before(task.place))) {
                        task.place = here;
                    }
                }
            }
        }
        f_ = f;
        if constexpr (kSteps == Steps::kMasked) {
            write_last_row(task, column);
        }
    }

    SWS_DEVICE void write_last_row(const Task& task, int column) const {
        const int row = task.rows - 1 - lane_ * kRows;
        if (task.last_row == nullptr || row < 0 || row >= kRows) {
            return;
        }
        const int half = row / kWords;
        const int at = column - half;
        if (at >= 0 && at < task.columns) {
#pragma unroll
            for (int k = 0; k < kWords; ++k) {
                if (k == row % kWords) {
                    task.last_row[at] = base_ + Cells::row(h_[k], half);
                }
            }
        }
    }

    int lane_;
    int base_;
    Word first_;   // minus a gap's first letter
    Word extend_;  // minus each further one
    Scores scores_;
    Word h_[kWords];
    Word e_[kWords];
    Word f_;   // of the last word
    Word up_;  // H above the first word, a column back
};

}  // namespace swsearch
