// Entry of the kernel for the ends of best alignments (intra_task.cuh, end_positions.cuh).
//
// Compile-time constants: those of intra_task. Parameters: those of intra_task and two more. Input wanted: the known
// best score of each subject. Output ends: the complement of the first end of each subject, (column << 32 | row).
// Output scores: the best score that the kernel computes, by which the host detects a known score that is not the
// subject's best.

#include "search/intra_task.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
end_positions(const uint4* profile, swsearch::u64 texture, int n_strips, const swsearch::u32* residues,
              const swsearch::u64* starts, const swsearch::u32* lengths, const swsearch::u32* listed,
              const swsearch::u32* n_listed, swsearch::u32 least, swsearch::u32 most, swsearch::u32* boundary,
              swsearch::u32 boundary_stride, swsearch::u64* counters, int team_size, int* scores,
              swsearch::u32* work_counter, const int* wanted, swsearch::u64* ends, SWS_GAP_PARAMETERS) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strips);
    const SubjectList subjects{residues, starts, lengths, listed, n_listed, least, most};
    using Shape = Tile<kWarpSize, SWS_WORDS, SWS_COLUMNS, Pairing::SWS_PAIRING>;
    swsearch::intra_task<SWS_ARITHMETIC, Shape, Edges::SWS_EDGES, SWS_TEXTURE != 0>(
        strips, ProfileSource{profile, texture}, n_strips, subjects, SWS_GAP_COSTS, boundary, boundary_stride, counters,
        team_size, scores, work_counter, WantedEnds{wanted, ends});
}
