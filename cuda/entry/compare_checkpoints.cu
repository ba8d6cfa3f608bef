// Entry of the kernel that compares the states of neighbouring windows at their common checkpoint
// (kernels/checkpoints.cuh). Input: the saved states. Output: the int differs[w] is 1 if the states of window w and of
// the window before it differ. It has no compile-time constants.

#include "kernels/checkpoints.cuh"

SWS_KERNEL(128, 1)
compare_checkpoints(const swsearch::u32* entries, const uint4* words, swsearch::u32 n_windows,
                    swsearch::u32 units_per_checkpoint, int* differs) {
    swsearch::compare_checkpoints(entries, words, n_windows, units_per_checkpoint, differs);
}
