// A warp for each subject, the query in partitions whose H and E stay in registers: the partitioned vectorized kernel of
// CUDASW++ 2.0 (Liu, Schmidt, Maskell 2010).
//
// A partition is 32 stripes of kVectors rows, striped as in striped.cuh; but a lane keeps its rows' H and E in registers
// while the warp goes through all columns of the subject, and only then takes the next partition. Between two partitions
// stand, for each column, H of the upper one's last row and the F that the lower one's first row takes.
//
// That F is right although the lazy loop stops early. Where the loop stops, what is left of it is in no lane better than
// the gap that the pass over the column opened from H at that row, so F of every later row of the stripe is the pass's own;
// F of the last row is the larger of what the pass and each full round of the loop left there. As every H is right, so is
// the F that it hands on.
//
// What differs from 2010: H and E are 32-bit registers, exact to 2^31 - 1 less the largest score, where 16 bits had to do;
// lanes exchange by shuffles; the 32 columns at hand of what stands between partitions lie in the lanes, a column each, so
// that global memory is read and written 32 columns at a time.

#pragma once

#include "kernels/striped.cuh"

namespace swsearch {

// Best score of one partition against one subject, of this lane.
// texels: this lane's texel of profile column 0; the next column's lies 32 texels on. boundary: H and F of every subject
// column, in place; `reads` and `writes` say whether a partition lies above and below.
template <int kOpen, int kExtend, int kVectors>
SWS_DEVICE int align_partition(u64 texture, int texels, const u32* residues, int length, uint2* boundary, bool reads,
                               bool writes) {
    static_assert(kVectors >= 1 && kVectors <= kTexelVectors, "a lane reads one texel a column");
    constexpr int kFirst = kOpen + kExtend;
    constexpr int kLastLane = kWarpSize - 1;
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    int h[kVectors] = {};
    int e[kVectors] = {};
    int best = 0;
    int corner = 0;  // H of the row above the partition, one column before
    for (int begin = 0; begin < length; begin += kWarpSize) {
        const bool mine = begin + lane < length;
        const uint2 above = reads && mine ? boundary[begin + lane] : uint2{0, 0};
        uint2 below = {0, 0};
        const int n_words = (length - begin + 3) / 4;
        const u32 word = lane < 8 && lane < n_words ? profile_columns(residues[begin / 4 + lane]) : 0;
        const int n_columns = length - begin < kWarpSize ? length - begin : kWarpSize;
        for (int column = 0; column < n_columns; ++column) {
            const u32 code = byte_of(__shfl_sync(kWholeWarp, word, column / 4), column % 4);
            const uint4 texel = texture_element(texture, texels + static_cast<int>(code) * kWarpSize);
            const int above_h = static_cast<int>(__shfl_sync(kWholeWarp, above.x, column));
            const int above_f = static_cast<int>(__shfl_sync(kWholeWarp, above.y, column));
            int diagonal = from_above(h[kVectors - 1]);
            if (lane == 0) {
                diagonal = corner;
            }
            corner = above_h;
            int f = lane == 0 ? above_f : 0;
#pragma unroll
            for (int i = 0; i < kVectors; ++i) {
                const u32 four = i < 4 ? texel.x : i < 8 ? texel.y : i < 12 ? texel.z : texel.w;
                const int left = h[i];
                h[i] = __vimax3_s32_relu(diagonal + score_of(four, i % 4), e[i], f);
                diagonal = left;
                best = larger(best, h[i]);
                const int opened = h[i] - kFirst;
                e[i] = __viaddmax_s32_relu(e[i], -kExtend, opened);
                f = __viaddmax_s32_relu(f, -kExtend, opened);
            }
            int handed_on = f;  // in the last lane: F for the row below the partition
            bool busy = true;
            while (busy) {
                f = from_above(f);
#pragma unroll
                for (int i = 0; i < kVectors; ++i) {
                    if (busy) {
                        busy = __any_sync(kWholeWarp, f > h[i] || f - kExtend > larger(h[i] - kFirst, 0));
                    }
                    if (busy) {
                        h[i] = larger(h[i], f);
                        f = larger(f - kExtend, 0);
                    }
                }
                if (busy) {
                    handed_on = larger(handed_on, f);
                }
            }
            if (writes) {
                const u32 last_h = __shfl_sync(kWholeWarp, static_cast<u32>(h[kVectors - 1]), kLastLane);
                const u32 last_f = __shfl_sync(kWholeWarp, static_cast<u32>(handed_on), kLastLane);
                below = lane == column ? uint2{last_h, last_f} : below;
            }
        }
        if (writes && mine) {
            boundary[begin + lane] = below;
        }
    }
    return best;
}

// texture: texel (partition * 32 + column) * 32 + lane has the scores of a lane's rows.
// boundary: `boundary_stride` columns for each warp of the grid; null where there is one partition.
template <int kOpen, int kExtend, int kVectors>
SWS_DEVICE void score_partitioned(u64 texture, int n_partitions, const SubjectQueue& subjects, uint2* boundary,
                                  u32 boundary_stride, int* scores, u32* counter) {
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize;
    uint2* const own = n_partitions > 1 ? boundary + static_cast<u64>(warp) * boundary_stride : nullptr;
    for (;;) {
        const u32 turn = next_turn(counter);
        if (turn >= subjects.n_subjects) {
            return;
        }
        const u32 place = subjects.place(turn);
        int best = 0;
        for (int partition = 0; partition < n_partitions; ++partition) {
            const int found = align_partition<kOpen, kExtend, kVectors>(
                texture, partition * 32 * kWarpSize + lane, subjects.words(place),
                static_cast<int>(subjects.lengths[place]), own, partition > 0, partition + 1 < n_partitions);
            best = larger(best, found);
        }
        best = best_of_warp(best);
        if (lane == 0) {
            scores[place] = best;
        }
    }
}

}  // namespace swsearch
