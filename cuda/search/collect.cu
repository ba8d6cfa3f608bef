// Lists the subjects whose score is at least a limit: those to score again, and those to return to the host. Input: an
// int32 score per subject. Output: the subjects' indices and, optionally, their scores.
//
// Each thread tests every (threads of the grid)-th candidate, from the last to the first, so that the longest of the
// listed subjects are about the first to be scored again. The order of the list depends on which warps finish first and
// differs from run to run; the results do not, because scores are stored by subject and the host sorts.
// Scores are compared as 32-bit integers; there are fewer than 2^31 subjects. Without a list the kernel only counts.

#include "common/platform.cuh"

namespace swsearch {

// scores: indexed by subject. The candidates are the subjects first to first + n_candidates - 1. listed, n_listed: the
// list, with space for all candidates, or null, and its length, to which the kernel appends. listed_scores: the scores of the
// listed subjects in the same order, or null.
SWS_DEVICE void collect_at_least(const int* scores, u32 first, u32 n_candidates, int limit, u32* listed,
                                 int* listed_scores, u32* n_listed) {
    const u32 stride = gridDim.x * blockDim.x;
    for (u32 index = blockIdx.x * blockDim.x + threadIdx.x; index < n_candidates; index += stride) {
        const u32 subject = first + n_candidates - 1 - index;
        const int score = scores[subject];
        if (score >= limit) {
            const u32 entry = atomicAdd(n_listed, 1u);
            if (listed != nullptr) {
                listed[entry] = subject;
            }
            if (listed_scores != nullptr) {
                listed_scores[entry] = score;
            }
        }
    }
}

}  // namespace swsearch

// The entry has no compile-time constants.
SWS_KERNEL(256, 1)
collect_at_least(const int* scores, swsearch::u32 first, swsearch::u32 n_candidates, int limit, swsearch::u32* listed,
                 int* listed_scores, swsearch::u32* n_listed) {
    swsearch::collect_at_least(scores, first, n_candidates, limit, listed, listed_scores, n_listed);
}
