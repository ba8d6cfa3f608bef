// Entry of the kernel for verified windows of long subjects (intra_task.cuh, checkpoints.cuh).
//
// Compile-time constants: those of intra_task. Parameters: those of intra_task, with windows as listed subjects, and
// the members of Checkpoints (checkpoints.cuh). The start and the length of a window lie within a longer
// subject. Outputs: the int32 score of each window, its states at checkpoints, and the votes on the checkpoints.

#include "search/intra_task.cuh"

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
score_windows(const uint4* profile, swsearch::u64 texture, int n_strips, const swsearch::u32* residues,
              const swsearch::u64* starts, const swsearch::u32* lengths, const swsearch::u32* listed,
              const swsearch::u32* n_listed, swsearch::u32 least, swsearch::u32 most, swsearch::u32* boundary,
              swsearch::u32 boundary_stride, swsearch::u64* counters, int team_size, int* scores,
              swsearch::u32* work_counter, const swsearch::u32* before, const swsearch::u32* entries,
              const swsearch::u32* steps, swsearch::u32* checkpoint_words, swsearch::u64* reached, swsearch::u32* agreed, SWS_GAP_PARAMETERS) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strips);
    const SubjectList subjects{residues, starts, lengths, listed, n_listed, least, most};
    using Shape = Tile<kWarpSize, SWS_WORDS, SWS_COLUMNS, Pairing::SWS_PAIRING>;
    swsearch::intra_task<SWS_ARITHMETIC, Shape, Edges::SWS_EDGES, SWS_TEXTURE != 0>(
        strips, ProfileSource{profile, texture}, n_strips, subjects, SWS_GAP_COSTS, boundary, boundary_stride, counters,
        team_size, scores, work_counter, Checkpoints{before, entries, steps, checkpoint_words, reached, agreed});
}
