// The subjects of a launch in the order in which warps score them: the arrays of the packed database, and an optional
// list of the subjects to score. A warp takes the next turn, a number that determines its subject, from a counter.
// Kernels with a warp for each subject share its loop and the exchange of values between lanes.
//
// The database is sorted by ascending length, so turns begin at its end: the longest subjects begin first, and the
// shortest fill the end of a launch. A list of subjects is also sorted by length.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

struct SubjectQueue {
    const u32* residues;  // packed residues, four per word, 16-byte aligned
    const u64* starts;    // byte of each subject's first residue, a multiple of 16
    const u32* lengths;   // residues of each subject
    const u32* listed;    // indices of the subjects to score, or null for subjects 0 to n_subjects - 1
    u32 n_subjects;       // number of subjects to score

    // The index of the subject of turn `turn`, which is below n_subjects.
    SWS_DEVICE u32 subject(u32 turn) const {
        const u32 entry = n_subjects - 1 - turn;
        return listed == nullptr ? entry : listed[entry];
    }

    SWS_DEVICE const u32* words(u32 subject) const { return residues + starts[subject] / 4; }
};

// The warp's next turn, the same in all lanes. All lanes call it together.
SWS_DEVICE u32 next_turn(u32* counter) {
    u32 turn = 0;
    if (threadIdx.x % kWarpSize == 0) {
        turn = atomicAdd(counter, 1u);
    }
    return __shfl_sync(kWholeWarp, turn, 0);
}

// The larger of two.
SWS_DEVICE int larger(int a, int b) { return a > b ? a : b; }

// Scores all subjects, one warp for each. `best_of_lane` is called by all lanes of a warp with the index of a subject,
// and returns the best score that the lane has found.
template <class BestOfLane>
SWS_DEVICE void score_by_warps(const SubjectQueue& subjects, u32* counter, int* scores, BestOfLane best_of_lane) {
    for (u32 turn = next_turn(counter); turn < subjects.n_subjects; turn = next_turn(counter)) {
        const u32 subject = subjects.subject(turn);
        int best = best_of_lane(subject);
#pragma unroll
        for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
            best = larger(best, __shfl_xor_sync(kWholeWarp, best, distance));
        }
        if (threadIdx.x % kWarpSize == 0) {
            scores[subject] = best;
        }
    }
}

// The value of the lane above; 0 in the first lane.
SWS_DEVICE int from_above(int value) {
    const int moved = __shfl_up_sync(kWholeWarp, value, 1, kWarpSize);
    return threadIdx.x % kWarpSize == 0 ? 0 : moved;
}

// Scores of a lane in a texel, one byte each.
constexpr int kTexelVectors = 16;

// Profile columns of the four residues of a word, lowest byte first: (byte + 1) & 31, as in subject.cuh.
SWS_DEVICE u32 profile_columns(u32 residues) { return (residues + 0x01010101u) & 0x1F1F1F1Fu; }

// Byte `which` of a word, as an unsigned number and as a signed score.
SWS_DEVICE u32 byte_of(u32 word, int which) { return permute_bytes(word, 0, 0x4440u + static_cast<u32>(which)); }
SWS_DEVICE int score_of(u32 word, int which) {
    return static_cast<int>(permute_bytes(word, 0, 0x8880u + 0x1111u * static_cast<u32>(which)));
}

}  // namespace swsearch
