// A warp for each subject of a list, all strips of the query one after another: for subjects that are scored again in a
// wider type, and for those so long that a group of lanes alone would keep a whole launch waiting.
//
// Warps are persistent and take the list's entries from a counter. Each stages a strip in its own part of the block's
// shared memory, aligns it, and goes on to the next strip; the boundary between them is the warp's own stretch of global
// memory, `boundary_stride` columns long. Several warps share a block only to stand together on few multiprocessors, where
// they displace few blocks of the inter-task kernel beside them.

#pragma once

#include "kernels/strip.cuh"

namespace swsearch {

struct SubjectList {
    const u32* residues;
    const u64* starts;
    const u32* lengths;
    const u32* places;    // subjects to score, by their place in starts and lengths
    const u32* n_places;  // how many, counted on the device
};

template <class Arithmetic, class Shape, int kOpen, int kExtend, bool kTexture>
SWS_DEVICE void score_list(uint4* strips, const ProfileSource& profile, int n_strips, const SubjectList& subjects,
                           u32* boundary, u32 boundary_stride, int* scores, u32* work_counter) {
    static_assert(Shape::kGroup == kWarpSize, "a warp works on one subject");
    const u32 n_places = *subjects.n_places;
    const u32 warp = threadIdx.x / kWarpSize;
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    uint4* const strip = strips + warp * Shape::kStripUnits;
    u32* edge = nullptr;
    if (n_strips > 1) {
        edge = boundary + static_cast<u64>(blockIdx.x * (blockDim.x / kWarpSize) + warp) * boundary_stride *
                              Shape::kBoundaryWords;
    }
    for (;;) {
        u32 item = 0;
        if (lane == 0) {
            item = atomicAdd(work_counter, 1u);
        }
        item = __shfl_sync(kWholeWarp, item, 0);
        if (__all_sync(kWholeWarp, item >= n_places)) {
            return;
        }
        const u32 place = subjects.places[item];
        const int length = static_cast<int>(subjects.lengths[place]);
        int score = 0;
        for (int number = 0; number < n_strips; ++number) {
            // Every lane is past the last strip, and what its last lane wrote to the boundary is seen by the first.
            __syncwarp();
            stage_strip<kTexture>(strip, profile, number * Shape::kStripUnits, Shape::kStripUnits, lane, kWarpSize);
            __syncwarp();
            const auto best = align_strip<Arithmetic, Shape, kOpen, kExtend, false, Edges::kOwn>(
                strip, subjects.residues + subjects.starts[place] / 4, length, EdgePlace{edge, edge, 0}, number > 0,
                number + 1 < n_strips);
            const int found = single_score<Arithmetic>(best);
            score = found > score ? found : score;
        }
        if (lane == 0) {
            scores[place] = score;
        }
    }
}

}  // namespace swsearch
