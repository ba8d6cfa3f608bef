// A warp for each subject, as one vector of 32 lanes over a striped query: the basic vectorized kernel of CUDASW++ 2.0
// (Liu, Schmidt, Maskell 2010), which carries Farrar's striped method (Bioinformatics 23:156, 2007) to a warp.
//
// The query is cut into 32 stripes of n_vectors rows, one a lane: vector i holds row lane * n_vectors + i of every stripe.
// A column is done vector after vector; within a lane F runs down its stripe, and what passes from the end of one stripe to
// the beginning of the next is left out at first. The lazy loop then carries it on: F of each stripe's end goes to the
// lane below, again vector after vector, until a vote says that no lane has anything left that its stripe does not have
// from its own cells already. That is the case as soon as F - extend is at most H - open - extend in every lane, for H as
// it was before the loop: the pass over the column opened a gap there that is at least as good from there on.
//
// E need not hear of what the lazy loop raises. An H that F made and E goes on from is a gap in one sequence next to a gap in
// the other; taken in the other order it costs the same and is found.
//
// H and E of all rows lie in global memory, a vector side by side, as 16 bits each (cell_store.cuh). What differs from
// 2010: the shift from lane to lane is a shuffle and the vote an instruction, where shared memory did both; a texel holds
// the scores of 16 vectors; recurrence and best score are in 32 bits, so a score that 16 bits cannot hold is seen.

#pragma once

#include "swsearch/cell_store.cuh"
#include "swsearch/platform.cuh"
#include "swsearch/subject_queue.cuh"

namespace swsearch {

constexpr int kTexelVectors = 16;

// The larger of two.
SWS_DEVICE int larger(int a, int b) { return a > b ? a : b; }

// A value from the lane above; 0 in the first lane.
SWS_DEVICE int from_above(int value) {
    const int moved = __shfl_up_sync(kWholeWarp, value, 1, kWarpSize);
    return threadIdx.x % kWarpSize == 0 ? 0 : moved;
}

// The best of all lanes, in all lanes.
SWS_DEVICE int best_of_warp(int best) {
#pragma unroll
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
        best = larger(best, __shfl_xor_sync(kWholeWarp, best, distance));
    }
    return best;
}

// One column: all vectors of the query against one residue. Returns the best H seen by this lane.
// cells: vector 0's cell of this lane; the next vector's lies 32 cells on. texels: of this residue, this lane's first one.
template <int kOpen, int kExtend, class Cell>
SWS_DEVICE int striped_column(u64 texture, int texels, int n_vectors, typename Cell::Stored* cells, bool first_column,
                              int best) {
    constexpr int kFirst = kOpen + kExtend;
    const int last = n_vectors - 1;
    int diagonal = from_above(first_column ? 0 : Cell::h(cells[last * kWarpSize]));
    int f = 0;
    for (int begin = 0; begin < n_vectors; begin += kTexelVectors) {
        const uint4 texel = texture_element(texture, texels + begin / kTexelVectors * kWarpSize);
#pragma unroll
        for (int part = 0; part < kTexelVectors; part += 4) {
            if (begin + part < n_vectors) {
                const u32 four = part < 4 ? texel.x : part < 8 ? texel.y : part < 12 ? texel.z : texel.w;
                typename Cell::Stored* const here = cells + (begin + part) * kWarpSize;
                typename Cell::Stored before[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    before[i] = first_column ? Cell::zero() : here[i * kWarpSize];
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (begin + part + i < n_vectors) {
                        const int e = Cell::e(before[i]);
                        const int h = __vimax3_s32_relu(diagonal + score_of(four, i), e, f);
                        diagonal = Cell::h(before[i]);
                        best = larger(best, h);
                        const int opened = h - kFirst;
                        f = __viaddmax_s32_relu(f, -kExtend, opened);
                        here[i * kWarpSize] = Cell::pack(h, __viaddmax_s32_relu(e, -kExtend, opened));
                    }
                }
            }
        }
    }
    // F that enters a stripe is at most the best H less a gap, so the lazy loop raises no best score.
    for (;;) {
        f = from_above(f);
        for (int vector = 0; vector < n_vectors; ++vector) {
            typename Cell::Stored* const here = cells + vector * kWarpSize;
            const int h = Cell::h(*here);
            if (!__any_sync(kWholeWarp, f > h || f - kExtend > larger(h - kFirst, 0))) {
                return best;
            }
            *here = Cell::pack(larger(h, f), Cell::e(*here));
            f = larger(f - kExtend, 0);
        }
    }
}

// cells: n_vectors, rounded up to a multiple of 4, times 32 for each warp of the grid.
// texture: texel (column * n_texels + vector / 16) * 32 + lane has the scores of 16 vectors.
template <int kOpen, int kExtend, class Cell>
SWS_DEVICE void score_striped(u64 texture, int n_vectors, const SubjectQueue& subjects, typename Cell::Stored* cells,
                              int* scores, u32* counter) {
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize;
    const int n_texels = (n_vectors + kTexelVectors - 1) / kTexelVectors;
    typename Cell::Stored* const own =
        cells + static_cast<u64>(warp) * static_cast<u64>((n_vectors + 3) / 4 * 4) * kWarpSize + lane;
    for (;;) {
        const u32 turn = next_turn(counter);
        if (turn >= subjects.n_subjects) {
            return;
        }
        const u32 place = subjects.place(turn);
        const u32* const residues = subjects.words(place);
        const int length = static_cast<int>(subjects.lengths[place]);
        int best = 0;
        u32 codes = 0;
        for (int column = 0; column < length; ++column) {
            codes = column % 4 == 0 ? profile_columns(residues[column / 4]) : codes >> 8;
            const int texels = static_cast<int>(codes & 31u) * n_texels * kWarpSize + lane;
            best = striped_column<kOpen, kExtend, Cell>(texture, texels, n_vectors, own, column == 0, best);
        }
        best = best_of_warp(best);
        if (lane == 0) {
            scores[place] = best;
        }
    }
}

}  // namespace swsearch
