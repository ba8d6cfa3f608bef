// Entry of the kernel that compares windows where they meet (kernels/joints.cuh). No compile-time constants.

#include "kernels/joints.cuh"

SWS_KERNEL(128, 1)
compare_joints(const swsearch::u32* entries, const uint4* words, swsearch::u32 n_windows,
               swsearch::u32 units_a_joint, int* differs) {
    swsearch::compare_joints(entries, words, n_windows, units_a_joint, differs);
}
