// The score of a global alignment with linear gaps (Needleman-Wunsch), in tiles of 16 by 16 cells, one anti-diagonal of
// tiles per launch: the block wavefront of "Parallel gene sequence alignment" (2009). Inputs: two sequences of 16-bit
// letters and the costs. Output: the int32 score.
//
//     H(i, j) = max(H(i-1, j-1) + s(i, j), H(i-1, j) - indel, H(i, j-1) - indel)
//
// Threads and cells. 16 lanes compute a tile. Each lane computes one row, one column behind the lane above it, from
// which it receives H by a shuffle.
//
// Memory. Only the borders of the tiles are stored: one row of H as long as the subject, one column as long as the
// query, and a corner for each diagonal of tiles. Row and column are padded to complete tiles. Each tile overwrites the
// borders that it has read. Lengths need not be multiples of 16: a tile at the edge computes cells that are never read.
//
// In 2009 a block of threads stored its tile in shared memory, with a barrier after each of its 31 anti-diagonals, and
// the complete matrix was written to memory, in which 30,368 letters did not fit.
//
// Scores are exact if (rows + columns + 16) times the largest score or cost is below 2^30; the host refuses other
// pairs.

#include "common/platform.cuh"

namespace swsearch {

constexpr int kTileCells = 16;  // rows and columns of a tile

struct WavefrontPair {
    const unsigned short* query;    // `rows` letters, not padded
    const unsigned short* subject;  // `columns` letters, not padded
    int rows;
    int columns;
};

struct WavefrontCosts {
    int match;
    int mismatch;
    int indel;  // cost of a letter in a gap, at least 0
};

struct WavefrontParameters {
    WavefrontPair pair;
    WavefrontCosts costs;
    int wave;      // the anti-diagonal of tiles
    int first;     // the tile row of its first tile
    int n_tiles;   // its number of tiles
    int* bottom;   // H of the lowest row computed so far, by column
    int* right;    // H of the rightmost column computed so far, by row
    int* corners;  // H of the last cell so far on each diagonal of tiles, by tile column - tile row + tile rows - 1
    int* result;   // H of the last cell of the matrix, written by the launch that computes it
};

// Computes the tiles of an anti-diagonal. Group t of 16 lanes, counted over the grid, computes the tile in tile row a =
// first + t and tile column wave - a.
SWS_DEVICE void wavefront_tile(const WavefrontParameters& parameters) {
    const WavefrontPair& pair = parameters.pair;
    const WavefrontCosts& costs = parameters.costs;
    const int first = parameters.first;
    int* const bottom = parameters.bottom;
    int* const right = parameters.right;
    const int group = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / kTileCells;
    const int lane = static_cast<int>(threadIdx.x) % kTileCells;
    const bool has_tile = group < parameters.n_tiles;
    const int a = has_tile ? first + group : first;  // tile row
    const int b = parameters.wave - a;               // tile column
    const int row = a * kTileCells + lane;
    const int own_column = b * kTileCells + lane;
    const int tile_rows = (pair.rows + kTileCells - 1) / kTileCells;
    int* const stored_corner = parameters.corners + (b - a + tile_rows - 1);

    const u32 query_letter = row < pair.rows ? pair.query[row] : 0;
    const u32 subject_letter = own_column < pair.columns ? pair.subject[own_column] : 0;
    const int above = a == 0 ? -(own_column + 1) * costs.indel : bottom[own_column];
    int h = b == 0 ? -(row + 1) * costs.indel : right[row];  // the cell to the left
    const int corner = a == 0 ? -b * kTileCells * costs.indel : b == 0 ? -row * costs.indel : *stored_corner;
    int diagonal = __shfl_up_sync(kWholeWarp, h, 1, kTileCells);
    if (lane == 0) {
        diagonal = corner;
    }
    for (int step = 0; step < 2 * kTileCells - 1; ++step) {
        const int column = step - lane;
        const int from_lane_above = __shfl_up_sync(kWholeWarp, h, 1, kTileCells);
        const int from_tile_above = __shfl_sync(kWholeWarp, above, step % kTileCells, kTileCells);
        const u32 letter = __shfl_sync(kWholeWarp, subject_letter, (step - lane) & (kTileCells - 1), kTileCells);
        if (column < 0 || column >= kTileCells) {
            continue;
        }
        const int up = lane == 0 ? from_tile_above : from_lane_above;
        const int matched = diagonal + (query_letter == letter ? costs.match : costs.mismatch);
        h = __vimax3_s32(matched, up - costs.indel, h - costs.indel);
        diagonal = up;
        const int matrix_column = b * kTileCells + column;
        if (has_tile && lane == kTileCells - 1) {
            bottom[matrix_column] = h;
        }
        if (has_tile && row == pair.rows - 1 && matrix_column == pair.columns - 1) {
            *parameters.result = h;
        }
    }
    if (has_tile) {
        right[row] = h;
        if (lane == kTileCells - 1) {
            *stored_corner = h;
        }
    }
}

}  // namespace swsearch

// The entry computes one anti-diagonal of tiles; swsearch/engine/cuda/history/wavefront.py launches it once for each,
// in order. The borders of the finished tiles are what one launch passes to the next. It serves for comparison with the
// other kernels.
//
// Compile-time constant: SWS_THREADS (threads per block), a multiple of 32.
SWS_KERNEL(SWS_THREADS, 1)
wavefront(SWS_PARAMETERS swsearch::WavefrontParameters parameters) { swsearch::wavefront_tile(parameters); }
