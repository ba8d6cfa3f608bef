// Computes a histogram of the scores: the number of subjects with each score. From it the host determines the score of
// the N-th best subject without downloading the scores. Input: an int32 score per subject. Output: a u32 count per bin.
//
// Each thread counts every (threads of the grid)-th subject. Each block counts in shared memory, then adds its counts
// to those in global memory. Scores beyond the last bin are counted in the last bin. Scores are at least 0, and there
// are fewer than 2^31 subjects.

#include "common/platform.cuh"

namespace swsearch {

struct CountParameters {
    const int* scores;  // n_subjects scores
    u32 n_subjects;
    u32 n_bins;
    u32* counts;  // n_bins words, 0 before the launch
};

// block_counts: n_bins words of shared memory.
SWS_DEVICE void count_scores(u32* block_counts, const CountParameters& parameters) {
    const u32 n_bins = parameters.n_bins;
    for (u32 bin = threadIdx.x; bin < n_bins; bin += blockDim.x) {
        block_counts[bin] = 0;
    }
    __syncthreads();
    const u32 stride = gridDim.x * blockDim.x;
    for (u32 subject = blockIdx.x * blockDim.x + threadIdx.x; subject < parameters.n_subjects; subject += stride) {
        const u32 score = static_cast<u32>(parameters.scores[subject]);
        atomicAdd(block_counts + (score < n_bins ? score : n_bins - 1), 1u);
    }
    __syncthreads();
    for (u32 bin = threadIdx.x; bin < n_bins; bin += blockDim.x) {
        if (block_counts[bin] != 0) {
            atomicAdd(parameters.counts + bin, block_counts[bin]);
        }
    }
}

}  // namespace swsearch

// The entry has no compile-time constants.
SWS_KERNEL(256, 1)
count_scores(SWS_PARAMETERS swsearch::CountParameters parameters) {
    SWS_DYNAMIC_SHARED(swsearch::u32, block_counts);
    swsearch::count_scores(block_counts, parameters);
}
