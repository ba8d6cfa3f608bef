// NarrowCells and WideCells: the score types of the diamond kernels, as template arguments. Each defines how H, E and F
// of a lane's query rows are stored in 32-bit words, and the operations on these words (add, maximum, pack, unpack).
//
// Used by diamond.cuh, pair_scores.cuh and the entries with SWS_CELLS. The host chooses the type for each launch
// (swsearch/engine/cuda/pairs/diamond_plan.py), and refuses pairs whose scores could exceed the limits of wide cells.
//
//   type         rows per word   scores                            exact
//   NarrowCells  2               16 bits, relative to a base       if the scores of a diamond fit 16 bits
//   WideCells    1               32 bits, absolute                 up to 2^30, in local problems up to 2^31 - 2^16
//
// docs/design/diamond.md ("On a GPU", 16 bits) defines the base, which lies a reach below the score at the diamond's
// corner, and why the maximum with zero of the hardware instructions then changes no H.
//
// The two rows of a narrow word are kWords rows and one column apart: the low half is at column j, the high half at
// column j - 1, and neighbouring lanes are two columns apart. Therefore the halves are independent of each other, and a
// lane needs only values that its neighbour computed in an earlier step.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

struct NarrowCells {
    using Word = u32;
    static constexpr int kRowsPerWord = 2;
    static constexpr int kLag = 2;        // columns by which a lane lags behind the lane above
    static constexpr int kEdgeWords = 1;  // 32-bit words that store H and F of one node
    static constexpr bool kRelative = true;

    static SWS_DEVICE Word both(int value) {
        return (static_cast<u32>(value) & 0xFFFFu) | (static_cast<u32>(value) << 16);
    }
    static SWS_DEVICE Word pair(int low, int high) {
        return (static_cast<u32>(low) & 0xFFFFu) | (static_cast<u32>(high) << 16);
    }
    static SWS_DEVICE int row(Word word, int half) { return static_cast<int>(word << (16 - 16 * half)) >> 16; }

    static SWS_DEVICE Word add(Word a, Word b) { return __vadd2(a, b); }
    static SWS_DEVICE Word max(Word a, Word b) { return __vmaxs2(a, b); }
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return __vimax3_s16x2(a, b, c); }
    // max(a + b, c)
    static SWS_DEVICE Word add_max(Word a, Word b, Word c) { return __viaddmax_s16x2(a, b, c); }
    // max(a + b, c, 0)
    static SWS_DEVICE Word add_max_floor(Word a, Word b, Word c) { return __viaddmax_s16x2_relu(a, b, c); }

    // H and F of this lane's last row, at the column that the first row of the lane below computes next.
    static SWS_DEVICE void edge_below(Word h, Word f, u32 (&edge)[1]) { edge[0] = permute_bytes(h, f, 0x7632u); }
    static SWS_DEVICE void edge_of(int h, int f, u32 (&edge)[1]) { edge[0] = pair(h, f); }
    static SWS_DEVICE int edge_h(const u32 (&edge)[1]) { return row(edge[0], 0); }
    static SWS_DEVICE int edge_f(const u32 (&edge)[1]) { return row(edge[0], 1); }
    // H and F above a lane's first word: from the lane above for the low half, from its own low half for the high half.
    static SWS_DEVICE Word take_h(const u32 (&edge)[1], Word last_h) { return permute_bytes(edge[0], last_h, 0x5410u); }
    static SWS_DEVICE Word take_f(const u32 (&edge)[1], Word last_f) { return permute_bytes(edge[0], last_f, 0x5432u); }

    // A mask with all bits set in the halves whose column lies in the matrix. column: that of the low half.
    static SWS_DEVICE Word inside(int column, int columns) {
        return (static_cast<u32>(column) < static_cast<u32>(columns) ? 0x0000FFFFu : 0u) |
               (static_cast<u32>(column - 1) < static_cast<u32>(columns) ? 0xFFFF0000u : 0u);
    }
    static SWS_DEVICE Word select(Word mask, Word a, Word b) { return (a & mask) | (b & ~mask); }
};

template <bool kLocal>
struct WideCells {
    using Word = int;
    static constexpr int kRowsPerWord = 1;
    static constexpr int kLag = 1;
    static constexpr int kEdgeWords = 2;
    static constexpr bool kRelative = false;

    static SWS_DEVICE Word both(int value) { return value; }
    static SWS_DEVICE Word pair(int low, int) { return low; }
    static SWS_DEVICE int row(Word word, int) { return word; }

    static SWS_DEVICE Word add(Word a, Word b) { return a + b; }
    static SWS_DEVICE Word max(Word a, Word b) { return a > b ? a : b; }
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return __vimax3_s32(a, b, c); }
    static SWS_DEVICE Word add_max(Word a, Word b, Word c) { return __viaddmax_s32(a, b, c); }
    static SWS_DEVICE Word add_max_floor(Word a, Word b, Word c) {
        return kLocal ? __viaddmax_s32_relu(a, b, c) : __viaddmax_s32(a, b, c);
    }

    static SWS_DEVICE void edge_below(Word h, Word f, u32 (&edge)[2]) {
        edge[0] = static_cast<u32>(h);
        edge[1] = static_cast<u32>(f);
    }
    static SWS_DEVICE void edge_of(int h, int f, u32 (&edge)[2]) { edge_below(h, f, edge); }
    static SWS_DEVICE int edge_h(const u32 (&edge)[2]) { return static_cast<int>(edge[0]); }
    static SWS_DEVICE int edge_f(const u32 (&edge)[2]) { return static_cast<int>(edge[1]); }
    static SWS_DEVICE Word take_h(const u32 (&edge)[2], Word) { return static_cast<int>(edge[0]); }
    static SWS_DEVICE Word take_f(const u32 (&edge)[2], Word) { return static_cast<int>(edge[1]); }

    static SWS_DEVICE Word inside(int column, int columns) {
        return static_cast<u32>(column) < static_cast<u32>(columns) ? -1 : 0;
    }
    static SWS_DEVICE Word select(Word mask, Word a, Word b) { return (a & mask) | (b & ~mask); }
};

}  // namespace swsearch
