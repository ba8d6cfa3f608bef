// Entry of the kernel that compares the states of windows where they meet (kernels/checkpoints.cuh). It has no
// compile-time constants.

#include "kernels/checkpoints.cuh"

SWS_KERNEL(128, 1)
compare_checkpoints(const swsearch::u32* entries, const uint4* words, swsearch::u32 n_windows,
                    swsearch::u32 units_per_checkpoint, int* differs) {
    swsearch::compare_checkpoints(entries, words, n_windows, units_per_checkpoint, differs);
}
