// What one strip of the query hands to the next: H and F of its last row, for every subject column, in global memory.
//
// A strip could write where it reads, since the first lane needs column j a whole tile depth before the last lane writes
// it. With groups of a few lanes both fall into one cache line then, and a store soon after a load that misses this line
// holds up the multiprocessor's whole memory pipeline (seen as a third of the speed in some tiles, by where the compiler
// put the loads). So strips of the inter-task kernel read one array and write another, in turns. (Those of windows do as
// well, since they follow each other too closely for one.) Row blocks pack H (low)
// and F (high) of a column in one word, as the lanes hand them on; the other pairings have a word of H, then one of F.
//
// Columns are read and written in rounds of four, also where the subject ends within a round: what the padding columns hold
// is the recurrence's own, and no larger than what was there before.

#pragma once

#include "swsearch/arithmetic.cuh"
#include "swsearch/platform.cuh"
#include "swsearch/tile.cuh"

namespace swsearch {

constexpr int kColumnsPerRound = 4;

// Columns of a subject, the padding of its last round included.
SWS_DEVICE u32 whole_rounds(int columns) {
    return static_cast<u32>(columns + kColumnsPerRound - 1) / kColumnsPerRound * kColumnsPerRound;
}

// Which boundaries a strip has. kReadsPair: row blocks below a strip of two queries, whose longer one, the high half, they
// go on with.
enum class Edges { kNone, kOwn, kReadsPair };

// Where the boundaries of a subject are: arrays for whole databases or single subjects, and the round in them that is the
// subject's first. (One number and two addresses that all subjects share take fewer registers than two of its own.)
struct EdgePlace {
    const u32* above;
    u32* below;
    u32 first_round;
};

// The boundary above a strip, as a group's first lane reads it: a round before its use, since a column is done sooner than
// memory answers (3 % of the speed of 26 words, a fifth of that of 8). In other lanes, and where there is no strip above,
// it is zero. Past the last round it stays what it was: H and F below then are no larger than in the columns before, so no
// best score is touched. (Of windows that go on, the round read ahead may be one that nobody wrote: checkpoints.cuh tells why it
// is not used.)
//
// kFirst: the first column that the strip above leaves, if that is not its own first one; those before it are zero.
template <class Shape, Edges kEdges, int kFirst>
class BoundaryAbove {
   public:
    // columns: how many there are, in whole rounds; 0 in lanes that shall have none.
    SWS_DEVICE BoundaryAbove(const EdgePlace& edges, u32 columns) : columns_(static_cast<int>(columns)) {
#pragma unroll
        for (int column = kFirst > 0 ? kFirst : 0; column < kColumnsPerRound; ++column) {
            load(edges, 0, column);
        }
    }

    // Takes column `column` of the round that begins at `step`: H and F, or both in the first word for row blocks.
    SWS_DEVICE void take(const EdgePlace& edges, int step, int column, u32 (&words)[2]) {
        const u32(&now)[2] = ahead_[column];
        words[0] = kEdges == Edges::kReadsPair ? permute_bytes(now[0], now[1], kHighHalves) : now[0];
        words[1] = now[1];
        load(edges, step + kColumnsPerRound, column);
    }

   private:
    static constexpr int kWords = kEdges == Edges::kReadsPair ? 2 : Shape::kBoundaryWords;

    SWS_DEVICE void load(const EdgePlace& edges, int step, int column) {
        const u32 round = edges.first_round + static_cast<u32>(step) / kColumnsPerRound;
        const u32* const address =
            words_from(edges.above, (static_cast<long long>(round) * kColumnsPerRound + column) * kWords);
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

}  // namespace swsearch
