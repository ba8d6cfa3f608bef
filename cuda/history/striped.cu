// The best local score of each subject, one warp per subject: the basic vectorized kernel of CUDASW++ 2.0 (Liu,
// Schmidt, Maskell 2010), which adapts Farrar's striped method (Bioinformatics 23:156, 2007) to a warp. Inputs: the
// striped profile as a texture (score_striped gives its layout) and the packed subjects. Output: an int32 score per
// subject.
//
// Threads and cells. The query is divided into 32 stripes of n_vectors rows, one stripe per lane: vector i contains row
// i of every stripe, which is query row lane * n_vectors + i. The warp computes a column vector after vector, then the
// next column. Warps take subjects by means of a counter, the longest first.
//
// Lazy F. Within a lane F passes from row to row of its stripe; the F that passes from the end of one stripe to the
// beginning of the next is ignored at first. The lazy loop then includes it: F of each stripe's end is sent to the lane
// below and passed on, again vector after vector, until a vote shows that no lane can change a value. That is the case
// as soon as F - extend is at most H - open - extend in every lane, for H before the loop: the pass over the column
// opened a gap there, which is at least as good from there on. E need not be updated after the lazy loop. An H that
// comes from F and is continued by E is a gap in one sequence next to a gap in the other; in the other order it costs
// the same, and that order is found.
//
// Memory. H and E of all rows are stored in global memory, 16 or 32 bits each (cell_store.cuh); the cells of a vector
// are adjacent. The profile is also striped; rows past the query's end and column 0 score -128.
//
// Differences from 2010: a vector is shifted by a shuffle and the vote is one instruction, both of which used shared
// memory; a texel contains the scores of 16 vectors; the recurrence and the best score have 32 bits.
//
// Scores are exact as far as the cells are (cell_store.cuh). Subjects are shorter than 2^31.

#include "history/cell_store.cuh"
#include "history/subject_queue.cuh"

namespace swsearch {

// Computes one column: all vectors of the query against one residue. Returns the larger of `best` and this lane's
// best H. texels: index of this lane's first texel of the residue's column; the next texel's is 32 larger. cells:
// this lane's cell of vector 0; those of the next vectors follow at a distance of 32 cells. They need not be
// initialised before the first column.
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
    // The F that enters a stripe is at most the best H less the cost of a gap, so the lazy loop cannot increase the
    // best score.
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

template <class Cell>
struct StripedParameters {
    // Texel (column * n_texels + vector / 16) * 32 + lane contains the scores of 16 vectors; n_texels is n_vectors /
    // 16, rounded up.
    u64 texture;
    int n_vectors;  // rows per lane
    SubjectQueue subjects;
    typename Cell::Stored* cells;  // for each warp of the grid, 32 * (n_vectors rounded up to a multiple of 4)
    int* scores;                   // indexed by subject
    u32* counter;                  // 0 before the launch
};

template <int kOpen, int kExtend, class Cell>
SWS_DEVICE void score_striped(const StripedParameters<Cell>& parameters) {
    const SubjectQueue& subjects = parameters.subjects;
    const int n_vectors = parameters.n_vectors;
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize;
    const int n_texels = (n_vectors + kTexelVectors - 1) / kTexelVectors;
    typename Cell::Stored* const own =
        parameters.cells + static_cast<u64>(warp) * static_cast<u64>((n_vectors + 3) / 4 * 4) * kWarpSize + lane;
    score_by_warps(subjects, parameters.counter, parameters.scores, [&](u32 subject) {
        const u32* const residues = subjects.words(subject);
        const int length = static_cast<int>(subjects.lengths[subject]);
        int best = 0;
        u32 codes = 0;
        for (int column = 0; column < length; ++column) {
            codes = column % 4 == 0 ? profile_columns(residues[column / 4]) : codes >> 8;
            const int texels = static_cast<int>(codes & 31u) * n_texels * kWarpSize + lane;
            best = striped_column<kOpen, kExtend, Cell>(parameters.texture, texels, n_vectors, own, column == 0, best);
        }
        return best;
    });
}

}  // namespace swsearch

// Compile-time constants of the entry: SWS_CELL (NarrowCell or WideCell); SWS_GAP_OPEN; SWS_GAP_EXTEND; SWS_THREADS and
// SWS_BLOCKS (threads per block, minimum of blocks per multiprocessor).
SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
striped(SWS_PARAMETERS swsearch::StripedParameters<swsearch::SWS_CELL> parameters) {
    swsearch::score_striped<SWS_GAP_OPEN, SWS_GAP_EXTEND, swsearch::SWS_CELL>(parameters);
}
