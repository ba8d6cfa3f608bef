// What one strip of the query hands to the next: H and F of its last row, for every subject column, in global memory.
//
// A strip could write where it reads, since the first lane needs column j a whole tile depth before the last lane writes
// it. With groups of a few lanes both fall into one cache line then, and a store soon after a load that misses this line
// holds up the multiprocessor's whole memory pipeline (seen as a third of the speed in some tiles, by where the compiler
// put the loads). So strips of the inter-task kernel read one array and write another, in turns. Row blocks pack H (low) and F (high) of a column in one word, as the lanes hand them on; the other pairings have a word of
// H, then one of F.

#pragma once

#include "swsearch/platform.cuh"
#include "swsearch/tile.cuh"

namespace swsearch {

constexpr int kColumnsPerRound = 4;

// The boundary above a strip as a group reads it: the words of a round's columns lie in the group's lanes, one a lane
// where it has enough of them, and come to the first lane by a shuffle. (Held by the first lane alone they would take
// 8 to 16 registers of every lane.) They are asked for a round before their use.
template <class Shape>
class BoundaryAbove {
   public:
    // columns: how many there are; 0 where there is no strip above.
    SWS_DEVICE BoundaryAbove(const u32* boundary, int columns, int lane)
        : boundary_(boundary), words_(columns * Shape::kBoundaryWords), place_(lane) {
        load();
    }

    // Goes on to the next round.
    SWS_DEVICE void advance() {
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            now_[i] = ahead_[i];
        }
        place_ += kRoundWords;
        load();
    }

    // Word `which` of column `column` of this round, in every lane; all lanes of the warp call this together. Zero beyond
    // the last column.
    SWS_DEVICE u32 word(int column, int which) const {
        const int place = column * Shape::kBoundaryWords + which;
        return __shfl_sync(kWholeWarp, now_[place / Shape::kGroup], place % Shape::kGroup, Shape::kGroup);
    }

   private:
    static constexpr int kRoundWords = kColumnsPerRound * Shape::kBoundaryWords;
    static constexpr int kHeld = (kRoundWords + Shape::kGroup - 1) / Shape::kGroup;

    SWS_DEVICE void load() {
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const int place = place_ + i * Shape::kGroup;
            ahead_[i] = load_if(place < words_, words_from(boundary_, place), 0);
        }
    }

    const u32* boundary_;
    int words_;
    int place_;
    u32 now_[kHeld] = {};
    u32 ahead_[kHeld];
};

}  // namespace swsearch
