// The horizon: H and F of the lowest row that is done in each column, in global memory, handed from strip to strip.
//
// An entry is 64 bits: H, how much less the F is that the row below may take (0 to a gap's first cost), and the number of
// the strip that wrote it. Entries are written and read whole, so a reader that finds the number it waits for has the
// values that belong to it: no flag, no fence, and no memory but this is shared while a sweep runs. Numbers are taken
// modulo 2^16: an entry is never older than the strips that run at a time.

#pragma once

#include "swsearch/platform.cuh"

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
