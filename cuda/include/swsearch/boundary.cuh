// What one strip of the query hands to the next: H and F of its last row, for every subject column, in global memory.
//
// One array serves all strips in place: the first lane reads column j a whole tile depth before the last lane writes it.
// Row blocks pack H (low) and F (high) of a column in one word; the other pairings have a word of H, then one of F.

#pragma once

#include "swsearch/platform.cuh"
#include "swsearch/tile.cuh"

namespace swsearch {

template <class Shape>
struct BoundaryColumn {
    u32 h;
    u32 f;
};

// Four columns of a subject's boundary, read as whole 16-byte units.
template <class Shape>
class BoundaryQuad {
   public:
    SWS_DEVICE BoundaryQuad() : first_{0, 0, 0, 0}, second_{0, 0, 0, 0} {}

    // place: the first column, a multiple of 4. A subject's boundary is as long as its residues, padding included.
    SWS_DEVICE void load(const u32* boundary, int place) {
        const uint4* units = reinterpret_cast<const uint4*>(boundary + static_cast<u64>(place) * Shape::kBoundaryWords);
        first_ = units[0];
        if (Shape::kBoundaryWords == 2) {
            second_ = units[1];
        }
    }

    SWS_DEVICE void clear() {
        first_ = {0, 0, 0, 0};
        second_ = {0, 0, 0, 0};
    }

    // H and F of column `place` + `which`. Of row blocks each stands in the high half, the low one is of no meaning:
    // that is the half a lane takes from its neighbour above.
    SWS_DEVICE BoundaryColumn<Shape> column(int which) const {
        if (Shape::kBoundaryWords == 1) {
            const u32 packed = which == 0 ? first_.x : which == 1 ? first_.y : which == 2 ? first_.z : first_.w;
            return {packed << 16, packed};
        }
        const uint4& pair = which < 2 ? first_ : second_;
        return which % 2 == 0 ? BoundaryColumn<Shape>{pair.x, pair.y} : BoundaryColumn<Shape>{pair.z, pair.w};
    }

   private:
    uint4 first_;
    uint4 second_;
};

// Writes the last row's H and F of one column; of row blocks their high halves.
template <class Shape>
SWS_DEVICE void store_boundary(u32* boundary, int place, u32 h, u32 f) {
    if (Shape::kBoundaryWords == 1) {
        boundary[place] = permute_bytes(h, f, 0x7632u);
    } else {
        *reinterpret_cast<uint2*>(boundary + 2 * static_cast<u64>(place)) = uint2{h, f};
    }
}

}  // namespace swsearch
