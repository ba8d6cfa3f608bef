// H and E of a query row as they are stored in global memory between two columns: 16 bits each in one word
// (NarrowCell), or 32 bits each in two words (WideCell). Each type packs and unpacks the two numbers.
//
// Both are at least 0 in local alignment. The recurrence itself is computed in 32 bits, so a score that exceeds 16 bits
// is detected as a best score above 65,535, regardless of how its storage changes later cells. The host then scores the
// subject again with WideCell, which is exact up to 2^31 - 1 less the largest profile score.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

struct NarrowCell {
    using Stored = u32;
    static SWS_DEVICE Stored pack(int h, int e) {
        return permute_bytes(static_cast<u32>(h), static_cast<u32>(e), 0x5410u);
    }
    static SWS_DEVICE int h(Stored cell) { return static_cast<int>(cell & 0xFFFFu); }
    static SWS_DEVICE int e(Stored cell) { return static_cast<int>(cell >> 16); }
    static SWS_DEVICE Stored zero() { return 0; }
};

struct WideCell {
    using Stored = uint2;
    static SWS_DEVICE Stored pack(int h, int e) { return uint2{static_cast<u32>(h), static_cast<u32>(e)}; }
    static SWS_DEVICE int h(Stored cell) { return static_cast<int>(cell.x); }
    static SWS_DEVICE int e(Stored cell) { return static_cast<int>(cell.y); }
    static SWS_DEVICE Stored zero() { return uint2{0, 0}; }
};

}  // namespace swsearch
