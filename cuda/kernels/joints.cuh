// Windows of long subjects that are proven to be exact: what lanes hold where two windows meet, and whether it is the same.
//
// A subject's columns are a chain, so windows of it are scored side by side, each but the first begun some columns early
// with zeros in place of what came before. Zeros are a lower bound: no cell is larger than the subject's own. Alignments
// that end in background sequence are short, and within a few hundred columns a window holds, cell for cell, what the one
// before it held there. From then on the two are the same function of the same values. So a window keeps what its lanes
// hold when they reach the joint, once as the window that ends there and once as the one that begins; if both are equal, and
// the earlier window is right, so is the later one. (In other words the columns between the two points, as a map of
// max-plus algebra, have converged to a constant: Maleki, Musuvathi, Mytkowicz 2014.) Where they differ, an alignment
// may reach across, and the host asks for longer windows.
//
// Lanes are columns apart, and they are compared after the same step rather than the same column: a slanted cut through the
// matrix, like the horizon of diamonds. Both windows begin at multiples of a round, so their lanes lie alike.

#pragma once

#include "kernels/strip.cuh"

namespace swsearch {

// Words that a lane keeps at a joint: H and E of its rows, H above them, and what it hands on.
template <class Shape>
constexpr int kJointWords = 2 * Shape::kWords + 3;

// entries, exits: of each window, the columns before the joint that it begins at and before the one that it ends at; 0 where
// there is none. words: of each window kJointWords x lanes for each strip at its entry, then the same at its exit.
struct Joints {
    const u32* entries;
    const u32* exits;
    u32* words;
};

// Keeps a lane's state at the joints of a window.
template <class Shape>
class AtJoints {
   public:
    static constexpr bool kRows = false;
    static constexpr bool kRounds = true;

    SWS_DEVICE AtJoints(const Joints& joints, u32 window, int strip, int n_strips, int lane)
        : entry_(static_cast<int>(joints.entries[window])),
          exit_(static_cast<int>(joints.exits[window])),
          state_(joints.words + (static_cast<u64>(window) * 2 * static_cast<u32>(n_strips) + static_cast<u32>(strip)) *
                                    kStripWords + static_cast<u32>(lane)),
          to_exit_(static_cast<u32>(n_strips) * kStripWords) {}

    template <class Word>
    SWS_DEVICE void round(int columns, const Word (&kept)[Shape::kWords], const Word (&e)[Shape::kWords], Word corner,
                          Word last_h, Word last_f) {
        if (columns != entry_ && columns != exit_) {
            return;
        }
        u32* const to = columns == entry_ ? state_ : state_ + to_exit_;
#pragma unroll
        for (int k = 0; k < Shape::kWords; ++k) {
            to[2 * k * kWarpSize] = static_cast<u32>(kept[k]);
            to[(2 * k + 1) * kWarpSize] = static_cast<u32>(e[k]);
        }
        to[2 * Shape::kWords * kWarpSize] = static_cast<u32>(corner);
        to[(2 * Shape::kWords + 1) * kWarpSize] = static_cast<u32>(last_h);
        to[(2 * Shape::kWords + 2) * kWarpSize] = static_cast<u32>(last_f);
    }

   private:
    static constexpr u32 kStripWords = kJointWords<Shape> * kWarpSize;

    int entry_;
    int exit_;
    u32* state_;
    u32 to_exit_;
};

// Sets differs[w] where window w does not hold at its entry what window w - 1 held at its exit; a warp a window.
SWS_DEVICE void compare_joints(const u32* entries, const u32* words, u32 n_windows, u32 words_a_joint, int* differs) {
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize;
    const u32 n_warps = gridDim.x * blockDim.x / kWarpSize;
    const u32 lane = threadIdx.x % kWarpSize;
    for (u32 window = warp; window < n_windows; window += n_warps) {
        u32 unlike = 0;
        if (entries[window] != 0) {
            const u32* const entry = words + static_cast<u64>(window) * 2 * words_a_joint;
            const u32* const exit = entry - words_a_joint;
            for (u32 word = lane; word < words_a_joint; word += kWarpSize) {
                unlike |= entry[word] ^ exit[word];
            }
        }
        if (__any_sync(kWholeWarp, unlike != 0) && lane == 0) {
            differs[window] = 1;
        }
    }
}

}  // namespace swsearch
