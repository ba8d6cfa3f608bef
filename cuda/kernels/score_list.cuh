// The subjects of a list, all strips of the query: for subjects that are scored again in a wider type, and for those so
// long that a group of lanes alone would keep a whole launch waiting.
//
// A warp holds a strip. Either each warp has a subject of its own and takes the strips one after another, or, where there
// are few subjects, the warps of a block have one together: warp w takes strips w, w + warps, ..., each as close behind
// the strip above as its columns come (order.cuh), so that a subject takes little longer than one strip of it.
//
// Blocks are persistent and take the list's entries from a counter. Each warp stages its strip in its own part of the
// block's shared memory. All strips of a subject hand on their boundary in one stretch of global memory, `boundary_stride`
// columns long: a column is read before it is written, and by the strip below only after that. `left` has a count for each
// warp of each block: how far it has come.
//
// Beside the scores something may be kept of each strip: of windows of long subjects, which are listed subjects as well, what
// joints.cuh compares; where the scores are known, their ends (ends.cuh).

#pragma once

#include "kernels/ends.cuh"
#include "kernels/joints.cuh"
#include "kernels/strip.cuh"
#include "swsearch/order.cuh"

namespace swsearch {

struct SubjectList {
    const u32* residues;
    const u64* starts;
    const u32* lengths;
    const u32* places;    // subjects to score, by their place in starts and lengths
    const u32* n_places;  // how many, counted on the device
};

// Nothing is kept of the strips but their scores.
struct ScoresAlone {};

// The watch of a strip of a subject.
template <class Shape>
SWS_DEVICE Unwatched watch_strip(const ScoresAlone&, u32, int, int, int) {
    return Unwatched();
}

template <class Shape>
SWS_DEVICE AtJoints<Shape> watch_strip(const Joints& joints, u32 place, int strip, int n_strips, int lane) {
    return AtJoints<Shape>(joints, place, strip, n_strips, lane);
}

template <class Shape>
SWS_DEVICE AtEnds<Shape> watch_strip(const WantedEnds& wanted, u32 place, int strip, int, int lane) {
    return AtEnds<Shape>(wanted, place, strip, lane);
}

// What the warps of a block share, behind their strips: in the room that a byte which is no residue would read.
struct ListBlock {
    u32 item;
    int score;
};

template <class Arithmetic, class Shape, int kOpen, int kExtend, bool kTexture, class Kept>
SWS_DEVICE void score_list(uint4* shared, const ProfileSource& profile, int n_strips, const SubjectList& subjects,
                           u32* boundary, u32 boundary_stride, u64* left, bool together, int* scores,
                           u32* work_counter, const Kept& kept) {
    static_assert(Shape::kGroup == kWarpSize, "a warp has a strip");
    static_assert(sizeof(ListBlock) <= sizeof(uint4), "kernels.py leaves as much room");
    const u32 n_places = *subjects.n_places;
    const int n_warps = static_cast<int>(blockDim.x / kWarpSize);
    ListBlock* const block = reinterpret_cast<ListBlock*>(shared + n_warps * Shape::kStripUnits);
    const int warp = static_cast<int>(threadIdx.x / kWarpSize);
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    uint4* const strip = shared + warp * Shape::kStripUnits;

    // The team that has a subject: the block's warps or this one alone; this warp's place in it, and the one above.
    const int team = together ? n_warps : 1;
    const int place_in_team = together ? warp : 0;
    u64* const counts = together ? left + blockIdx.x * static_cast<u32>(n_warps) : nullptr;
    const u64* const count_above = together ? counts + (warp + n_warps - 1) % n_warps : nullptr;
    u64* const count_own = together ? counts + warp : nullptr;
    const bool leader = lane == 0 && place_in_team == 0;
    u32* edge = nullptr;
    if (n_strips > 1) {
        const u32 number = together ? blockIdx.x : blockIdx.x * static_cast<u32>(n_warps) + static_cast<u32>(warp);
        edge = boundary + static_cast<u64>(number) * boundary_stride * Shape::kBoundaryWords;
    }

    for (;;) {
        u32 item = 0;
        if (leader) {
            item = atomicAdd(work_counter, 1u);
            if (together) {
                block->item = item;
                block->score = 0;
            }
        }
        if (together) {
            if (lane == 0) {
                show_in_block(count_own, 0);
            }
            __syncthreads();
            item = block->item;
        } else {
            item = __shfl_sync(kWholeWarp, item, 0);
        }
        if (__all_sync(kWholeWarp, item >= n_places)) {
            return;
        }
        const u32 place = subjects.places[item];
        const int length = static_cast<int>(subjects.lengths[place]);
        int score = 0;
        for (int number = place_in_team; number < n_strips; number += team) {
            __syncwarp();  // every lane is past the strip before
            stage_strip<kTexture>(strip, profile, number * Shape::kStripUnits, Shape::kStripUnits, lane, kWarpSize);
            __syncwarp();
            InOrder order(count_above, count_own, number);
            const auto best = align_strip<Arithmetic, Shape, kOpen, kExtend, false, Edges::kOwn>(
                strip, subjects.residues + subjects.starts[place] / 4, length, EdgePlace{edge, edge, 0}, number > 0,
                number + 1 < n_strips, order, watch_strip<Shape>(kept, place, number, n_strips, lane));
            if (lane == kWarpSize - 1) {
                order.finish();
            }
            const int found = single_score<Arithmetic>(best);
            score = found > score ? found : score;
        }
        if (together) {
            if (lane == 0) {
                atomicMax(&block->score, score);
            }
            __syncthreads();
            score = block->score;
        }
        if (leader) {
            scores[place] = score;
        }
        if (together) {
            __syncthreads();  // every warp is done with what the next subject resets
        }
    }
}

}  // namespace swsearch
