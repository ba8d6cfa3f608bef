// Entry of the partitioned kernel of CUDASW++ 2.0, which stores H and E of a query partition in registers
// (kernels/partitioned.cuh). Inputs: the profile as a texture and the packed subjects. Output: the int32 score of each
// subject. boundary is a buffer of the kernel.
//
// Compile-time constants: SWS_VECTORS (rows per lane, 1 to 16); SWS_GAP_OPEN; SWS_GAP_EXTEND; SWS_THREADS and
// SWS_BLOCKS (threads per block, minimum of blocks per multiprocessor).

#include "kernels/partitioned.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
partitioned(swsearch::u64 texture, int n_partitions, const swsearch::u32* residues, const swsearch::u64* starts,
            const swsearch::u32* lengths, const swsearch::u32* listed, swsearch::u32 n_subjects, uint2* boundary,
            swsearch::u32 boundary_stride, int* scores, swsearch::u32* counter) {
    using namespace swsearch;
    score_partitioned<SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_VECTORS>(
        texture, n_partitions, SubjectQueue{residues, starts, lengths, listed, n_subjects}, boundary, boundary_stride,
        scores, counter);
}
