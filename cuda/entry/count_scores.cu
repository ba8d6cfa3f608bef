// Entry of the kernel that counts subjects by score (kernels/count_scores.cuh). Input: the int32 score of every
// subject. Output: a histogram with n_bins counts. It has no compile-time constants.

#include "kernels/count_scores.cuh"

SWS_KERNEL(256, 1)
count_scores(const int* scores, swsearch::u32 n_subjects, swsearch::u32 n_bins, swsearch::u32* counts) {
    SWS_DYNAMIC_SHARED(swsearch::u32, block_counts);
    swsearch::count_scores(block_counts, scores, n_subjects, n_bins, counts);
}
