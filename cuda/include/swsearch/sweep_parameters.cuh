// Parameters of the kernels that work on a sweep, and the Sweep (kernels/sweep.cuh) made of them: an entry takes numbers and
// addresses alone, each as its own parameter.

#pragma once

#define SWS_SWEEP_PARAMETERS                                                                                              \
    const swsearch::SweepPair *pairs, swsearch::u32 n_pairs, swsearch::u32 n_strips, const unsigned char *classes,        \
        const signed char *lines, int n_columns, const unsigned short *letters, int match, int mismatch,                 \
        const unsigned char *subjects, int open, int extend, int query_free, int subject_free, int reach,                \
        swsearch::u64 *horizon, int *known, swsearch::u32 *states, int *found, int *lasts, const int *kept_place,        \
        swsearch::u64 *kept, swsearch::u32 kept_columns, swsearch::u32 words_a_warp, swsearch::u32 *work_counter

#define SWS_SWEEP_VALUES                                                                                                 \
    pairs, n_pairs, n_strips, QueryLetters{classes, lines, letters, n_columns, match, mismatch}, subjects,               \
        PairCosts{open, extend, query_free != 0, subject_free != 0}, reach, horizon, known, states, found, lasts,        \
        kept_place, kept, kept_columns, work_counter
