// Lists the subjects whose score is at least a limit: those to score again, and those to return to the host. Input: an
// int32 score per subject. Output: the subjects' indices and, optionally, their scores.
//
// A block tests a piece of consecutive candidates at a time, and appends those of a piece together. Pieces are taken
// from the last to the first. So neighbours in the list have similar lengths, and the longest subjects are about the
// first. The order of the list depends on which blocks finish first and differs from run to run; the results do not,
// because scores are stored by subject and the host sorts. Scores are compared as 32-bit integers; there are fewer than
// 2^31 subjects. Without a list the kernel only counts.

#include "common/platform.cuh"

namespace swsearch {

constexpr u32 kCandidatesPerThread = 4;  // in a piece

// Data that the threads of a block share: the number of listed candidates of the piece, and the first one's entry.
struct ListedPiece {
    u32 n_listed;
    u32 first_entry;
};

struct CollectParameters {
    const int* scores;  // indexed by subject
    u32 first;          // the candidates are the subjects first to first + n_candidates - 1
    u32 n_candidates;
    int limit;
    u32* listed;         // the list, with space for all candidates, or null
    int* listed_scores;  // the scores of the listed subjects in the same order, or null
    u32* n_listed;       // the length of the list, to which the kernel adds
};

SWS_DEVICE void collect_at_least(ListedPiece* piece, const CollectParameters& parameters) {
    const u32 first = parameters.first;
    const u32 n_candidates = parameters.n_candidates;
    const int limit = parameters.limit;
    const u32 piece_size = blockDim.x * kCandidatesPerThread;
    for (u32 begin = blockIdx.x * piece_size; begin < n_candidates; begin += gridDim.x * piece_size) {
        if (threadIdx.x == 0) {
            piece->n_listed = 0;
        }
        __syncthreads();
        u32 places[kCandidatesPerThread];  // within the listed candidates of the piece
        int score[kCandidatesPerThread];
#pragma unroll
        for (u32 i = 0; i < kCandidatesPerThread; ++i) {
            const u32 index = begin + i * blockDim.x + threadIdx.x;
            score[i] = index < n_candidates ? parameters.scores[first + n_candidates - 1 - index] : limit - 1;
            places[i] = score[i] >= limit ? atomicAdd(&piece->n_listed, 1u) : 0;
        }
        __syncthreads();
        if (threadIdx.x == 0 && piece->n_listed > 0) {
            piece->first_entry = atomicAdd(parameters.n_listed, piece->n_listed);
        }
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < kCandidatesPerThread; ++i) {
            if (score[i] >= limit && parameters.listed != nullptr) {
                const u32 entry = piece->first_entry + places[i];
                parameters.listed[entry] = first + n_candidates - 1 - (begin + i * blockDim.x + threadIdx.x);
                if (parameters.listed_scores != nullptr) {
                    parameters.listed_scores[entry] = score[i];
                }
            }
        }
        __syncthreads();
    }
}

}  // namespace swsearch

// The entry has no compile-time constants.
SWS_KERNEL(256, 1)
collect(SWS_PARAMETERS swsearch::CollectParameters parameters) {
    SWS_DYNAMIC_SHARED(swsearch::ListedPiece, piece);
    swsearch::collect_at_least(piece, parameters);
}
