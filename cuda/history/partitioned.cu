// The best local score of each subject, one warp per subject, with the query in partitions whose H and E stay in
// registers: the partitioned vectorized kernel of CUDASW++ 2.0 (Liu, Schmidt, Maskell 2010).
//
// Inputs: the profile as a texture (score_partitioned gives its layout) and the packed subjects. Output: an int32 score
// per subject.
//
// Threads and cells. A partition has 32 stripes of kVectors rows, one stripe per lane, as in striped.cu. A lane stores
// H and E of its rows in registers while the warp computes all columns of the subject, then the warp begins the next
// partition. Warps take subjects by means of a counter, the longest first.
//
// Boundary. Between two partitions, global memory contains, for each column, H of the upper partition's last row and
// the F that the lower partition's first row uses. This F is exact although the lazy loop stops early. At the row at
// which the loop stops, its current F is in no lane larger than the gap that the pass over the column opened from H at
// that row, so F of every later row of the stripe is that of the pass. F of the last row is the maximum of the values
// there from the pass and from each complete round of the loop. As every H is exact, so is the F below it.
//
// Differences from 2010: H and E are 32-bit registers instead of 16-bit ones; lanes exchange values by shuffles; the
// boundary is read and written 32 columns at a time, one column per lane.
//
// Scores are exact up to 2^31 - 1 less the largest profile score. Profile scores are at most 127, so a query of up to
// 16.9 million rows cannot exceed this limit. Subjects are shorter than 2^31. Rows past the query's end and column 0 of
// the profile score -128.

#include "history/subject_queue.cuh"

namespace swsearch {

// Returns this lane's best score of one partition against one subject. texels: index of this lane's texel of profile
// column 0; the next column's is 32 larger. residues, length: the subject, padded to complete words. boundary: H and F
// of every subject column, read from the partition above and overwritten in place for the partition below, if these
// exist.
template <int kOpen, int kExtend, int kVectors>
SWS_DEVICE int align_partition(u64 texture, int texels, const u32* residues, int length, uint2* boundary,
                               bool has_partition_above, bool has_partition_below) {
    static_assert(kVectors >= 1 && kVectors <= kTexelVectors, "a lane reads one texel a column");
    constexpr int kFirst = kOpen + kExtend;
    constexpr int kLastLane = kWarpSize - 1;
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    int h[kVectors] = {};
    int e[kVectors] = {};
    int best = 0;
    int corner = 0;  // H of the row above the partition, of the previous column
    for (int begin = 0; begin < length; begin += kWarpSize) {
        const bool has_column = begin + lane < length;
        const uint2 above = has_partition_above && has_column ? boundary[begin + lane] : uint2{0, 0};
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
            int outgoing_f = f;  // in the last lane, F of the row below the partition
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
                    outgoing_f = larger(outgoing_f, f);
                }
            }
            if (has_partition_below) {
                const u32 last_h = __shfl_sync(kWholeWarp, static_cast<u32>(h[kVectors - 1]), kLastLane);
                const u32 last_f = __shfl_sync(kWholeWarp, static_cast<u32>(outgoing_f), kLastLane);
                below = lane == column ? uint2{last_h, last_f} : below;
            }
        }
        if (has_partition_below && has_column) {
            boundary[begin + lane] = below;
        }
    }
    return best;
}

struct PartitionedParameters {
    u64 texture;  // texel (partition * 32 + column) * 32 + lane contains the scores of a lane's rows
    int n_partitions;
    SubjectQueue subjects;
    // boundary_stride columns, at least the longest subject's length, for each warp of the grid; need not be
    // initialised, and is null if there is one partition.
    uint2* boundary;
    u32 boundary_stride;
    int* scores;   // indexed by subject
    u32* counter;  // 0 before the launch
};

template <int kOpen, int kExtend, int kVectors>
SWS_DEVICE void score_partitioned(const PartitionedParameters& parameters) {
    const SubjectQueue& subjects = parameters.subjects;
    const int n_partitions = parameters.n_partitions;
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize;
    uint2* const own =
        n_partitions > 1 ? parameters.boundary + static_cast<u64>(warp) * parameters.boundary_stride : nullptr;
    score_by_warps(subjects, parameters.counter, parameters.scores, [&](u32 subject) {
        int best = 0;
        for (int partition = 0; partition < n_partitions; ++partition) {
            const int found = align_partition<kOpen, kExtend, kVectors>(
                parameters.texture, partition * 32 * kWarpSize + lane, subjects.words(subject),
                static_cast<int>(subjects.lengths[subject]), own, partition > 0, partition + 1 < n_partitions);
            best = larger(best, found);
        }
        return best;
    });
}

}  // namespace swsearch

// Compile-time constants of the entry: SWS_VECTORS (rows per lane, 1 to 16); SWS_GAP_OPEN; SWS_GAP_EXTEND; SWS_THREADS
// and SWS_BLOCKS (threads per block, minimum of blocks per multiprocessor).
SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
partitioned(SWS_PARAMETERS swsearch::PartitionedParameters parameters) {
    swsearch::score_partitioned<SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_VECTORS>(parameters);
}
