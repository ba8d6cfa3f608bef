// The ends of best alignments (docs/design/cuda-engine.md): for each listed subject whose best score is known, the
// column of the subject and the row of the query at which an alignment of that score ends. The kernel is that of
// intra_task.cuh, with the EndObserver of this file. Input: the best scores. Output: one 64-bit position per subject.
//
// Memory stores the maximum of the complements of the positions, which are ordered by column, then by row. Therefore
// zero means that no end was found, and the result does not depend on the order in which strips and lanes find ends.
//
// H in a padding column or row is below the best score, which is above 0, because padding scores -128 and a gap has a
// cost.

#pragma once

#include "search/strip.cuh"

namespace swsearch {

// scores: the best score of each subject, above 0. ends: for each subject the complement of (column << 32 | row), both
// counted from 0; zero before the launch. Both are indexed by subject.
struct WantedEnds {
    const int* scores;
    u64* ends;
};

// Finds the cells of a known score among the rows that a lane aligns.
template <class Shape>
class EndObserver {
   public:
    static constexpr bool kObserves = true;

    SWS_DEVICE EndObserver(const WantedEnds& wanted, u32 subject, int strip, int lane)
        : score_(kTwoBlocks ? both_halves(static_cast<u32>(wanted.scores[subject]))
                            : static_cast<u32>(wanted.scores[subject])),
          end_(wanted.ends + subject),
          first_row_(strip * Shape::kRows + lane * Shape::kRows / Shape::kGroup),
          lag_(Shape::kLag * lane) {}

    // h: H of the lane's word k, computed in `step`. For row blocks, the row of the high half is kWords rows further
    // down and one column behind.
    template <class Word>
    SWS_DEVICE void word(int k, int step, Word h) {
        const u32 differs = static_cast<u32>(h) ^ score_;
        if constexpr (kTwoBlocks) {
            if ((differs & 0xFFFFu) == 0) {
                add_end(k, step);
            }
            if (differs >> 16 == 0) {
                add_end(k + Shape::kWords, step - 1);
            }
        } else if (differs == 0) {
            add_end(k, step);
        }
    }

   private:
    static_assert(Shape::kPairing != Pairing::kTwoQueries, "ends are those of one query");
    static constexpr bool kTwoBlocks = Shape::kPairing == Pairing::kTwoBlocks;

    // This function is called so seldom that the cost of the atomic operation is negligible.
    SWS_DEVICE void add_end(int row, int step) {
        const u64 column = static_cast<u64>(static_cast<u32>(step - lag_));
        atomicMax(end_, ~(column << 32 | static_cast<u64>(static_cast<u32>(first_row_ + row))));
    }

    u32 score_;
    u64* end_;
    int first_row_;
    int lag_;
};

}  // namespace swsearch
