// The parameters that all diamond kernels share (SWS_SWEEP_PARAMETERS), and the initializers of a Sweep
// (sweep.cuh) from these parameters (SWS_SWEEP_VALUES). The parameters of an entry are numbers and addresses,
// so the members of Sweep are separate parameters; the comments of Sweep describe them.

#pragma once

#define SWS_SWEEP_PARAMETERS                                                                                           \
    const swsearch::SweepPair *pairs, swsearch::u32 n_pairs, swsearch::u32 n_strips, const unsigned char *classes,     \
        const signed char *lines, int n_columns, const unsigned short *letters, int match, int mismatch,               \
        const unsigned char *subjects, int open, int extend, int free_ends, int reach,                                 \
        swsearch::u64 *horizon, int *best_known, swsearch::u32 *states, int *found, int *border_scores,                \
        const int *saved_row_index, swsearch::u64 *saved_rows, swsearch::u32 saved_row_columns,                        \
        swsearch::u32 words_a_warp, swsearch::u32 *work_counter

#define SWS_SWEEP_VALUES                                                                                               \
    pairs, n_pairs, n_strips, QueryLetters{classes, lines, letters, n_columns, match, mismatch}, subjects,             \
        PairCosts{open, extend, FreeEnds{free_ends}}, reach, horizon, best_known, states, found,                       \
        border_scores, saved_row_index, saved_rows, saved_row_columns, work_counter
