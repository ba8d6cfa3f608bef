// The best local score of each subject, one thread per subject: the optimized SIMT kernel of CUDASW++ 2.0 (Liu,
// Schmidt, Maskell 2010).
//
// Inputs: the profile as a texture (score_subject gives its layout) and the packed subjects. Output: an int32 score per
// subject.
//
// Threads and cells. A thread computes the matrix of its pair in cell blocks of 16 query rows by 4 subject columns,
// from the top to the bottom of four columns, then of the next four. Warps take subjects by means of a counter, 32 at a
// time, the longest first.
//
// Memory. A word contains four residues, or four scores (the sequential query profile: the scores of four consecutive
// query rows against one residue), so one read of each serves 16 cells. H and E of a block's last column are stored in
// global memory for the block to its right, one cell for each query row and thread; the cells of a warp's threads are
// adjacent. H and F of a block's last row stay in registers for the block below.
//
// Differences from 2010: a texel has 128 bits, so the profile is read 16 rows at a time; the recurrence runs in
// 32-bit registers, with fused add-and-maximum instructions if the device has them (compute capability 9.0 and later);
// warps take subjects by means of a counter instead of one launch for each group of subjects.
//
// Scores are exact as far as the cells are (cell_store.cuh). Subjects are shorter than 2^31. Rows past the query's end
// and columns past the subject's end score -128, so H only decreases there.

#include "history/cell_store.cuh"
#include "history/subject_queue.cuh"

namespace swsearch {

constexpr int kBlockColumns = 4;
constexpr int kTexelRows = 16;
constexpr int kCodes = 32;  // columns of the profile, one for each residue code

// Returns the best score of one subject. texture: texel block * 32 + column has the scores of the block's 16 rows.
// n_blocks: number of cell blocks of 16 rows of the query. residues, length: the subject, padded to complete words.
// cells: this thread's cell of row 0; those of the next rows follow at a distance of `stride` cells. They need not be
// initialised.
template <int kOpen, int kExtend, class Cell>
SWS_DEVICE int score_subject(u64 texture, int n_blocks, const u32* residues, int length, typename Cell::Stored* cells,
                             u32 stride) {
    int best = 0;
    for (int column = 0; column < length; column += kBlockColumns) {
        const u32 codes = profile_columns(residues[column / 4]);
        const bool leftmost = column == 0;
        int above[kBlockColumns] = {};
        int f[kBlockColumns] = {};
        int corner = 0;  // H of the row above, one column before the block
        for (int block = 0; block < n_blocks; ++block) {
            uint4 texel[kBlockColumns];
            typename Cell::Stored left[kTexelRows];
            typename Cell::Stored* const here = cells + static_cast<u64>(block * kTexelRows) * stride;
#pragma unroll
            for (int c = 0; c < kBlockColumns; ++c) {
                texel[c] = texture_element(texture, block * kCodes + static_cast<int>(byte_of(codes, c)));
            }
#pragma unroll
            for (int row = 0; row < kTexelRows; ++row) {
                left[row] = leftmost ? Cell::zero() : here[static_cast<u64>(row) * stride];
            }
#pragma unroll
            for (int row = 0; row < kTexelRows; ++row) {
                const int left_h = Cell::h(left[row]);
                int e = Cell::e(left[row]);
                int diagonal = corner;
                int pending = 0;  // H of an even column, compared together with the next column's
#pragma unroll
                for (int c = 0; c < kBlockColumns; ++c) {
                    const u32 four = row < 4 ? texel[c].x : row < 8 ? texel[c].y : row < 12 ? texel[c].z : texel[c].w;
                    const int h = __vimax3_s32_relu(diagonal + score_of(four, row % 4), e, f[c]);
                    diagonal = above[c];
                    above[c] = h;
                    const int opened = h - (kOpen + kExtend);
                    e = __viaddmax_s32_relu(e, -kExtend, opened);
                    f[c] = __viaddmax_s32_relu(f[c], -kExtend, opened);
                    if (c % 2 == 0) {
                        pending = h;
                    } else {
                        best = __vimax3_s32(best, pending, h);
                    }
                }
                corner = left_h;
                here[static_cast<u64>(row) * stride] = Cell::pack(above[kBlockColumns - 1], e);
            }
        }
    }
    return best;
}

template <class Cell>
struct SimtParameters {
    u64 texture;   // the query's int8 scores: 16 rows per texel, 32 residue columns per block of rows
    int n_blocks;  // blocks of 16 query rows (not CUDA blocks)
    SubjectQueue subjects;
    typename Cell::Stored* cells;  // one for each of the n_blocks * 16 rows and each thread of the grid
    int* scores;   // by subject; one that left 16 bits in a NarrowCell is computed again with WideCell by the host
    u32* counter;  // 0 before the launch
};

template <int kOpen, int kExtend, class Cell>
SWS_DEVICE void score_simt(const SimtParameters<Cell>& parameters) {
    const SubjectQueue& subjects = parameters.subjects;
    const u32 stride = gridDim.x * blockDim.x;
    typename Cell::Stored* const own = parameters.cells + blockIdx.x * blockDim.x + threadIdx.x;
    for (;;) {
        const u32 turn = next_turn(parameters.counter) * kWarpSize;
        if (turn >= subjects.n_subjects) {
            return;
        }
        const u32 mine = turn + threadIdx.x % kWarpSize;
        if (mine < subjects.n_subjects) {
            const u32 subject = subjects.subject(mine);
            parameters.scores[subject] =
                score_subject<kOpen, kExtend, Cell>(parameters.texture, parameters.n_blocks, subjects.words(subject),
                                                    static_cast<int>(subjects.lengths[subject]), own, stride);
        }
    }
}

}  // namespace swsearch

// Compile-time constants of the entry: SWS_CELL (NarrowCell or WideCell), SWS_GAP_OPEN, SWS_GAP_EXTEND, SWS_THREADS
// (threads per block), SWS_BLOCKS (minimum number of resident blocks per multiprocessor).
SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
simt(SWS_PARAMETERS swsearch::SimtParameters<swsearch::SWS_CELL> parameters) {
    swsearch::score_simt<SWS_GAP_OPEN, SWS_GAP_EXTEND, swsearch::SWS_CELL>(parameters);
}
