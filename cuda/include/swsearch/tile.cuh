// The shape of a tile, and how a strip of the query profile lies in memory for it.
//
// A group of kGroup lanes of a warp aligns one subject with a strip of kRows query rows; each lane holds kWords words of H
// and of E in registers. What the two halves of a word are is the pairing:
//
//   kRowBlocks   one query. Lane l owns rows l * 2 * kWords and on; the low halves are the first kWords of them, at
//                column j, the high halves the other kWords, at column j - 1. Lanes are two columns apart.
//   kTwoQueries  two queries of like length, row for row, low and high. Lanes are one column apart.
//   kSingle      one query, one 32-bit score a word. Lanes are one column apart.
//
// A strip of the profile is an array of 16-byte units: for each chunk of four words, for each residue column, for each of
// kSlots lanes, the chunk's four words. Eight lanes side by side then read eight different groups of four banks, whatever
// the residue of each (groups of four lanes have their words twice). A last chunk of one or two words is stored as
// narrow as it is; one of three takes four.

#pragma once

#include "swsearch/platform.cuh"

namespace swsearch {

enum class Pairing { kRowBlocks, kTwoQueries, kSingle };

template <int kGroupLanes, int kLaneWords, int kResidueColumns, Pairing kHalves>
struct Tile {
    static constexpr int kGroup = kGroupLanes;
    static constexpr int kWords = kLaneWords;
    static constexpr int kColumns = kResidueColumns;
    static constexpr Pairing kPairing = kHalves;

    static constexpr int kLag = kPairing == Pairing::kRowBlocks ? 2 : 1;
    // Steps from a column's entry in the first row to its exit from the last one.
    static constexpr int kDepth = kLag * kGroup - 1;
    static constexpr int kRows = kGroup * kWords * (kPairing == Pairing::kRowBlocks ? 2 : 1);
    static constexpr int kGroupsPerWarp = kWarpSize / kGroup;
    // 32-bit words of the boundary between strips for each column: H and F, in one word where 16 bits hold each.
    static constexpr int kBoundaryWords = kPairing == Pairing::kRowBlocks ? 1 : 2;

    static constexpr int kSlots = kGroup < 8 ? 8 : kGroup;
    static constexpr int kFullChunks = kWords / 4;
    static constexpr int kRest = kWords % 4;
    static constexpr int kRestWidth = kRest == 3 ? 4 : kRest;
    static constexpr int kChunkUnits = kColumns * kSlots;
    static constexpr int kRestUnits = (kChunkUnits * kRestWidth + 3) / 4;
    static constexpr int kStripUnits = kChunkUnits * kFullChunks + kRestUnits;

    static_assert(kGroup == 4 || kGroup == 8 || kGroup == 16 || kGroup == 32, "a group divides a warp");
    static_assert(kWords >= 1 && kColumns >= 1 && kColumns <= 32, "a tile has words and residue columns");
};

// A lane's words of one residue column, read from shared memory a chunk at a time.
template <class Shape>
class ScoreColumn {
   public:
    // strip: the staged profile; slot: the lane's; code: the residue's column.
    SWS_DEVICE ScoreColumn(const uint4* strip, int slot, u32 code)
        : full_(strip + slot + code * Shape::kSlots),
          rest_(reinterpret_cast<const u32*>(strip + Shape::kChunkUnits * Shape::kFullChunks) +
                (slot + code * Shape::kSlots) * Shape::kRestWidth) {}

    // Words of one chunk; of a last one that is not full, the first kRest.
    template <class Word>
    SWS_DEVICE void load(int chunk, Word (&words)[4]) const {
        uint4 four = {0, 0, 0, 0};
        if (chunk < Shape::kFullChunks) {
            four = full_[chunk * Shape::kChunkUnits];
        } else if (Shape::kRestWidth == 4) {
            four = *reinterpret_cast<const uint4*>(rest_);
        } else if (Shape::kRestWidth == 2) {
            const uint2 two = *reinterpret_cast<const uint2*>(rest_);
            four.x = two.x;
            four.y = two.y;
        } else {
            four.x = *rest_;
        }
        words[0] = static_cast<Word>(four.x);
        words[1] = static_cast<Word>(four.y);
        words[2] = static_cast<Word>(four.z);
        words[3] = static_cast<Word>(four.w);
    }

   private:
    const uint4* full_;
    const u32* rest_;
};

// Where a profile is read from when a block stages a strip of it.
struct ProfileSource {
    const uint4* memory;
    u64 texture;
};

// Copies units first to first + count of the profile to shared memory, `threads` threads together.
template <bool kTexture>
SWS_DEVICE void stage_strip(uint4* strip, const ProfileSource& profile, int first, int count, int thread, int threads) {
    for (int unit = thread; unit < count; unit += threads) {
        strip[unit] = kTexture ? texture_element(profile.texture, first + unit) : profile.memory[first + unit];
    }
}

}  // namespace swsearch
