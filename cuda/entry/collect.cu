// Entry of the kernel that lists subjects by score (kernels/collect.cuh). Input: the int32 score of every subject.
// Output: the indices and scores of the subjects that score at least `limit`. It has no compile-time constants.

#include "kernels/collect.cuh"

SWS_KERNEL(256, 1)
collect_at_least(const int* scores, swsearch::u32 first, swsearch::u32 n_candidates, int limit, swsearch::u32* listed,
                 int* listed_scores, swsearch::u32* n_listed) {
    swsearch::collect_at_least(scores, first, n_candidates, limit, listed, listed_scores, n_listed);
}
