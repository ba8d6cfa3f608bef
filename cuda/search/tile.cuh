// Tile, the shape of a strip of the query as a group of lanes computes it; the layout of a strip of the packed query
// profile, and the functions that read it.
//
// In: a packed profile (16-byte units in a texture over linear memory), which swsearch/engine/cuda/search/profile.py
// writes; Tile in swsearch/engine/cuda/runtime/kernels.py computes the same layout. Out: a strip in shared memory, and
// for each lane the words of its rows for one residue code.
//
// In this file, "column j" is a position of the subject, and "residue code" is an index into the profile (0 is
// padding).
//
// A group of kGroup lanes of a warp aligns one subject with a strip of kRows query rows. Each lane stores kWords words
// of H and of E in registers. The pairing determines the contents of a word:
//
//   kTwoBlocks   One query. Lane l has the 2 * kWords rows from l * 2 * kWords on: the low halves are the first kWords
//                of them, at column j, and the high halves the other kWords, at column j - 1. Lanes are two columns
//                apart.
//   kTwoQueries  Two queries of similar length, row for row, one in the low halves and one in the high halves. Lanes
//                are one column apart.
//   kOneScore    One query, one 32-bit score per word. Lanes are one column apart.
//
// A strip of the profile is an array of 16-byte units; a unit contains four words (a chunk) of one lane for one residue
// code. Units are ordered by chunk and, within a chunk, by lane (kSlots lanes have words of their own). Every 16
// consecutive units form a plane, and a plane contains, for each residue code, its 16 units: 256 bytes. Therefore the
// address of a lane's first chunk is one byte permutation of the residue code and the lane's slot, and all other
// chunks lie at constant distances from it. Eight neighbouring lanes read eight different groups of four banks,
// regardless of the residue of each (for this purpose groups of four lanes store their words twice). An incomplete last
// chunk takes the same space.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

enum class Pairing { kTwoBlocks, kTwoQueries, kOneScore };

// Columns of a profile: padding, and the letters of proteins, which are more than those of DNA.
constexpr int kProfileColumns = 28;

template <int kGroupLanes, int kLaneWords, Pairing kHalves>
struct Tile {
    static constexpr int kGroup = kGroupLanes;
    static constexpr int kWords = kLaneWords;
    static constexpr Pairing kPairing = kHalves;

    static constexpr int kLag = kPairing == Pairing::kTwoBlocks ? 2 : 1;
    // Steps between the computation of a column in the first row and in the last row.
    static constexpr int kDepth = kLag * kGroup - 1;
    static constexpr int kBlocks = kPairing == Pairing::kTwoBlocks ? 2 : 1;
    static constexpr int kRows = kGroup * kWords * kBlocks;
    static constexpr int kGroupsPerWarp = kWarpSize / kGroup;
    // 32-bit words per column of the boundary between strips. Row blocks have H and F, 16 bits each, in one word.
    static constexpr int kBoundaryWords = kPairing == Pairing::kTwoBlocks ? 1 : 2;

    static constexpr int kSlots = kGroup < 8 ? 8 : kGroup;
    static constexpr int kChunks = (kWords + 3) / 4;
    static constexpr int kPlaneUnits = 16 * kProfileColumns;
    static constexpr int kStripUnits = (kChunks * kSlots + 15) / 16 * kPlaneUnits;

    static_assert(kWords >= 1, "a tile has words");
    static_assert(kGroup == 4 || kGroup == 8 || kGroup == 16 || kGroup == 32, "a group divides a warp");
};

// A lane's view of a staged strip: the words of one residue column, read from shared memory a chunk at a time.
template <class Shape>
class StagedScores {
   public:
    // strip: the staged profile. slot: the slot of the lane.
    SWS_DEVICE StagedScores(const uint4* strip, int slot)
        : plane_(reinterpret_cast<const char*>(strip + slot / 16 * Shape::kPlaneUnits)),
          slot_offset_(static_cast<u32>(slot % 16) * 16) {}

    // The address of the residue column in byte `which` of `codes`.
    SWS_DEVICE const uint4* column(u32 codes, int which) const {
        const u32 offset = permute_bytes(codes, slot_offset_, 0x5504u | static_cast<u32>(which) << 4);
        return reinterpret_cast<const uint4*>(plane_ + offset);
    }

    // Loads the four words of one chunk of a column.
    template <class Word>
    static SWS_DEVICE void load(const uint4* column, int chunk, Word* words) {
        const int unit = chunk * Shape::kSlots;
        const uint4 four = column[unit / 16 * Shape::kPlaneUnits + unit % 16];
        words[0] = static_cast<Word>(four.x);
        words[1] = static_cast<Word>(four.y);
        words[2] = static_cast<Word>(four.z);
        words[3] = static_cast<Word>(four.w);
    }

   private:
    const char* plane_;
    u32 slot_offset_;
};

// Copies units first to first + count - 1 of the profile to shared memory. profile: the texture over it. `threads`
// threads call it together; `thread` is the calling thread's index among them.
SWS_DEVICE void stage_strip(uint4* strip, u64 profile, int first, int count, int thread, int threads) {
    for (int unit = thread; unit < count; unit += threads) {
        strip[unit] = texture_element(profile, first + unit);
    }
}

}  // namespace swsearch
