// Entry of the partitioned kernel of CUDASW++ 2.0, which keeps a query partition in registers
// (kernels/partitioned.cuh).
//
// Compile-time constants: SWS_VECTORS (rows a lane, 1 to 16); SWS_GAP_OPEN; SWS_GAP_EXTEND; SWS_THREADS and
// SWS_BLOCKS (threads a block, minimum of blocks a multiprocessor).

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
