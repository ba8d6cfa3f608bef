// The boundary between two strips of the query: H and F of a strip's last row, for every subject column, in global
// memory. A strip writes it through BoundaryBelow for the strip below, which reads it through BoundaryAbove.
//
// Row blocks pack H (low half) and F (high half) of a column in one word, the form in which lanes exchange them. The
// other pairings have a word of H, then a word of F. Columns are read and written in rounds of four, even if the
// subject ends within a round; the padding columns then contain the values of the recurrence there, which are no larger
// than those of the columns before them.
//
// A strip could overwrite the boundary that it reads, because the first lane reads column j a complete tile depth
// before the last lane writes it. But with groups of a few lanes both accesses fall into one cache line, and a store
// soon after a load that misses this line stalls the complete memory pipeline of the multiprocessor (some tiles lost a
// third of their speed, depending on the position of the loads in the compiled code). Therefore the strips of the
// inter-task kernel read one array and write another, alternately.

#pragma once

#include "common/platform.cuh"
#include "search/arithmetic.cuh"
#include "search/subject.cuh"
#include "search/tile.cuh"

namespace swsearch {

// The boundaries of a strip: none, its own, or those of a pair. kReadsPair: the strip above computes two queries, and
// this strip continues the longer one in row blocks. The values of that query are the high halves of the words above.
enum class Edges { kNone, kOwn, kReadsPair };

// The location of a subject's boundaries. One index and two addresses that all subjects share take fewer registers than
// two addresses for each subject.
struct BoundaryLocation {
    const u32* above;  // array that the strip reads, of a complete database or of one subject
    u32* below;        // array that the strip writes, of the same extent
    u32 first_round;   // index in both arrays of the subject's first round of four columns
};

// The boundary above a strip, as the first lane of a group reads it: one round ahead of its use, because a column
// takes less time than a memory access (reading it late costs 3 % of the speed with 26 words per lane, a fifth with 8).
// In other lanes, and if there is no strip above, the boundary is zero. After the last round the words retain their
// last values: H and F below them are then no larger than in the columns before, so no best score changes.
template <class Shape, Edges kEdges>
class BoundaryAbove {
   public:
    // columns: length of the boundary in columns, a multiple of a round; 0 in lanes that do not read it.
    SWS_DEVICE BoundaryAbove(const BoundaryLocation& boundary, u32 columns) : columns_(static_cast<int>(columns)) {
#pragma unroll
        for (int column = 0; column < kColumnsPerRound; ++column) {
            load(boundary, 0, column);
        }
    }

    // Returns column `column` of the round that begins at `step`, and loads the same column of the next round. words:
    // H and F; for row blocks, both in the first word.
    SWS_DEVICE void take(const BoundaryLocation& boundary, int step, int column, u32 (&words)[2]) {
        const u32(&now)[2] = ahead_[column];
        words[0] = kEdges == Edges::kReadsPair ? permute_bytes(now[0], now[1], kHighHalves) : now[0];
        words[1] = now[1];
        load(boundary, step + kColumnsPerRound, column);
    }

   private:
    static constexpr int kWords = kEdges == Edges::kReadsPair ? 2 : Shape::kBoundaryWords;

    SWS_DEVICE void load(const BoundaryLocation& boundary, int step, int column) {
        const u32 round = boundary.first_round + static_cast<u32>(step) / kColumnsPerRound;
        const u32* const address =
            words_from(boundary.above, (static_cast<long long>(round) * kColumnsPerRound + column) * kWords);
        u32(&words)[2] = ahead_[column];
        if constexpr (kWords == 2) {
            load_pair_over(step < columns_, address, words[0], words[1]);
        } else {
            load_over(step < columns_, address, words[0]);
        }
    }

    int columns_;
    u32 ahead_[kColumnsPerRound][2] = {};
};

// The boundary below a strip, as the last lane of a group writes it.
template <class Shape>
class BoundaryBelow {
   public:
    // columns: length of the boundary in columns, a multiple of a round; 0 in lanes that do not write it.
    SWS_DEVICE explicit BoundaryBelow(u32 columns) : columns_(columns) {}

    // Begins the round of four steps from `step` on. Before the boundary's first column the address is invalid and is
    // not used.
    SWS_DEVICE void begin_round(const BoundaryLocation& boundary, int step) {
        const u32 round = boundary.first_round + static_cast<u32>(step) / kColumnsPerRound;
        words_ = words_from(boundary.below,
                            (static_cast<long long>(round) * kColumnsPerRound + kFirst) * Shape::kBoundaryWords);
    }

    // Writes H and F of the lane's last row after step `column` of the round that begins at `step`.
    SWS_DEVICE void put(int step, int column, u32 h, u32 f) const {
        // The first written column is one past a multiple of four: three columns of a step belong to one round of the
        // boundary, the fourth to the next.
        static_assert((kFirst - 1) % kColumnsPerRound == 0, "lanes lie whole rounds deep");
        const int first = column < kColumnsPerRound - 1 ? 0 : kColumnsPerRound - 1;
        const bool wanted = static_cast<u32>(step + kFirst + first) < columns_;
        if constexpr (Shape::kPairing == Pairing::kTwoBlocks) {
            store_if(wanted, words_from(words_, column), permute_bytes(h, f, kHighHalves));
        } else {
            store_pair_if(wanted, words_from(words_, 2 * column), h, f);
        }
    }

   private:
    static constexpr int kFirst = SubjectColumns<Shape>::kFirstWritten;

    u32 columns_;
    u32* words_ = nullptr;
};

}  // namespace swsearch
