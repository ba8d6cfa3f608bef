// How many subjects have each score: what the host needs to know which score the N-th best subject has, without the scores.
//
// Each block counts in shared memory and adds its counts to those in global memory. Scores beyond the last bin count there.

#pragma once

#include "swsearch/platform.cuh"

namespace swsearch {

// block_counts: n_bins words of shared memory. scores: n_subjects scores, at least 0. counts: n_bins words, 0 at first.
SWS_DEVICE void count_scores(u32* block_counts, const int* scores, u32 n_subjects, u32 n_bins, u32* counts) {
    for (u32 bin = threadIdx.x; bin < n_bins; bin += blockDim.x) {
        block_counts[bin] = 0;
    }
    __syncthreads();
    const u32 stride = gridDim.x * blockDim.x;
    for (u32 place = blockIdx.x * blockDim.x + threadIdx.x; place < n_subjects; place += stride) {
        const u32 score = static_cast<u32>(scores[place]);
        atomicAdd(block_counts + (score < n_bins ? score : n_bins - 1), 1u);
    }
    __syncthreads();
    for (u32 bin = threadIdx.x; bin < n_bins; bin += blockDim.x) {
        if (block_counts[bin] != 0) {
            atomicAdd(counts + bin, block_counts[bin]);
        }
    }
}

}  // namespace swsearch
