// The horizon: H and F below the lowest row that has been computed in each column, in global memory. Each strip of a
// sweep (sweep.cuh) reads it from the strip above and overwrites it for the strip below.
//
// An entry has 64 bits: H (bits 0 to 31), H - F for the F that the row below uses (bits 32 to 47; it lies between 0 and
// the cost of a gap's first letter, which the host limits to 32,766), and the tag of the strip that wrote the entry
// (bits 48 to 63). An entry is written and read in a single access, so a reader that finds the tag it waits for also
// has the values that belong to it. No flag or fence is needed, and warps share no other memory while a sweep runs.
// Tags are strip numbers plus 1, modulo 2^16, which is unambiguous: an entry is never older than the strips that run at
// the same time.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

struct HorizonNode {
    int h;
    int f;
};

SWS_DEVICE u32 strip_tag(int strip) { return static_cast<u32>(strip + 1) & 0xFFFFu; }

SWS_DEVICE u64 horizon_entry(const HorizonNode& node, u32 tag) {
    const u32 high = static_cast<u32>(node.h - node.f) | (tag << 16);
    return static_cast<u64>(static_cast<u32>(node.h)) | (static_cast<u64>(high) << 32);
}

SWS_DEVICE u32 tag_of(u64 entry) { return static_cast<u32>(entry >> 48); }

SWS_DEVICE HorizonNode node_of(u64 entry) {
    const int h = static_cast<int>(static_cast<u32>(entry));
    return HorizonNode{h, h - static_cast<int>(static_cast<u32>(entry >> 32) & 0xFFFFu)};
}

}  // namespace swsearch
