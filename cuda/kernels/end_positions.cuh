// Where the best score of a listed subject is reached: the row of the query and the column of the subject.
//
// The score is known, from an exact kernel; so a cell is an end where its H is the score, and a lane need only look at each
// word of H that it makes. Of several such cells the end is the one in the smallest column and, in this column, in the
// smallest row (docs/design/traceback.md). A place is one number that grows by column, then by row; memory keeps the largest
// complement, so that zeros say that there is none, and the order in which strips and lanes find ends changes nothing.
//
// H in a padding column or row is below the best score, which is above 0: padding scores -128 and a gap costs something.

#pragma once

#include "kernels/strip.cuh"

namespace swsearch {

// scores: of each subject the best score, above 0; ends: of each subject the complement of (column << 32 | row), counted from
// 0, zero before the launch.
struct WantedEnds {
    const int* scores;
    u64* ends;
};

// Looks for cells of a known score while a lane aligns its rows of a strip.
template <class Shape>
class AtEnds {
   public:
    static constexpr bool kRows = true;
    static constexpr bool kRounds = false;

    SWS_DEVICE AtEnds(const WantedEnds& wanted, u32 subject, int strip, int lane)
        : score_(kRowBlocks ? both_halves(static_cast<u32>(wanted.scores[subject]))
                            : static_cast<u32>(wanted.scores[subject])),
          end_(wanted.ends + subject),
          first_row_(strip * Shape::kRows + lane * Shape::kRows / Shape::kGroup),
          lag_(Shape::kLag * lane) {}

    // h: H of the lane's word k, made in a step; of row blocks the high half's row is kWords further down, a column behind.
    template <class Word>
    SWS_DEVICE void row(int k, int step, Word h) {
        const u32 differs = static_cast<u32>(h) ^ score_;
        if constexpr (kRowBlocks) {
            if ((differs & 0xFFFFu) == 0) {
                found(k, step);
            }
            if (differs >> 16 == 0) {
                found(k + Shape::kWords, step - 1);
            }
        } else if (differs == 0) {
            found(k, step);
        }
    }

   private:
    static_assert(Shape::kPairing != Pairing::kTwoQueries, "the ends of one query");
    static constexpr bool kRowBlocks = Shape::kPairing == Pairing::kRowBlocks;

    // Seldom called: atomics cost nothing.
    SWS_DEVICE void found(int row, int step) {
        const u64 column = static_cast<u64>(static_cast<u32>(step - lag_));
        atomicMax(end_, ~(column << 32 | static_cast<u64>(static_cast<u32>(first_row_ + row))));
    }

    u32 score_;
    u64* end_;
    int first_row_;
    int lag_;
};

}  // namespace swsearch
