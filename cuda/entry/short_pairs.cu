// Entry of the kernel that aligns many short pairs (kernels/short_pairs.cuh). Inputs: the 16-bit letters of all pairs,
// their offsets and lengths, and the scoring. Outputs: a ShortResult per pair and, with a path, the runs of all pairs.
//
// Compile-time constants: SWS_ROWS (query rows per lane: 8 or 16); SWS_AFFINE, SWS_LOCAL, SWS_TABLE and SWS_PATH (0 or
// 1); SWS_THREADS and SWS_BLOCKS (threads per block, minimum of blocks per multiprocessor). Shared memory: the table's
// 1,024 bytes if SWS_TABLE is 1, else none.

#include "kernels/short_pairs.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
short_pairs(const unsigned short* query, const unsigned short* subject, const uint4* jobs,
            const swsearch::u64* decisions_start, const swsearch::u32* runs_start, const swsearch::u32* order,
            swsearch::u32 n_pairs, const signed char* table, int match, int mismatch, int gap_open, int gap_extend,
            int query_free, int subject_free, swsearch::u32* decisions, swsearch::u32* walked, uint2* boundary,
            swsearch::u32 boundary_stride, swsearch::ShortResult* results, swsearch::u32* all_runs,
            swsearch::u32* n_all_runs, swsearch::u32* counter) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(signed char, shared_table);
    const ShortPairs pairs = {query, subject, jobs, decisions_start, runs_start, n_pairs};
    const ShortScoring scoring = {table, match, mismatch, gap_open, gap_extend};
    const ShortEnds ends = {query_free != 0, subject_free != 0};
    align_short_pairs<SWS_ROWS, SWS_AFFINE != 0, SWS_LOCAL != 0, SWS_TABLE != 0, SWS_PATH != 0>(
        pairs, order, scoring, ends, shared_table, decisions, walked, boundary, boundary_stride, results, all_runs,
        n_all_runs, counter);
}
