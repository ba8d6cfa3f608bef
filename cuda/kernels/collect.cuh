// Picks the subjects whose score is at least a limit: those to score again, and those to hand to the host.
//
// One thread a subject of a range, or of an earlier list. The list's order is that in which warps finish, different from
// run to run; what is done with it is not (scores are written at the subject's place, and the host sorts).

#pragma once

#include "swsearch/platform.cuh"

namespace swsearch {

// places: n_candidates earlier places, or null for first to first + n_candidates - 1. listed, n_listed: the list and its
// length, to which the kernel appends. listed_scores: the scores beside them, or null.
SWS_DEVICE void collect_at_least(const int* scores, const u32* places, u32 first, u32 n_candidates, int limit,
                                 u32* listed, int* listed_scores, u32* n_listed) {
    const u32 stride = gridDim.x * blockDim.x;
    for (u32 candidate = blockIdx.x * blockDim.x + threadIdx.x; candidate < n_candidates; candidate += stride) {
        const u32 place = places == nullptr ? first + candidate : places[candidate];
        const int score = scores[place];
        if (score >= limit) {
            const u32 entry = atomicAdd(n_listed, 1u);
            listed[entry] = place;
            if (listed_scores != nullptr) {
                listed_scores[entry] = score;
            }
        }
    }
}

}  // namespace swsearch
