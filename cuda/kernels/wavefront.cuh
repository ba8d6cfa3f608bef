// Needleman-Wunsch in tiles of 16 by 16 cells, an anti-diagonal of tiles a launch: the block wavefront of "Parallel gene
// sequence alignment" (2009).
//
//     H(i, j) = max(H(i-1, j-1) + s(i, j), H(i-1, j) - indel, H(i, j-1) - indel)
//
// A tile is worked on by 16 lanes, one a row, each a column behind the one above it. What differs from 2009: there a block
// of threads kept its tile in shared memory with a barrier for each of its 31 anti-diagonals, and the whole matrix was
// written out, so that 30,368 letters did not fit; here the neighbours' cells come by shuffles, and only the tiles' borders
// are kept: one row of H as long as the subject, one column as long as the query, and a corner for each diagonal of tiles,
// each overwritten by the tile that has read it. Lengths need not be multiples of 16: a tile at the edge computes cells that
// nothing reads.
//
// Exact while (rows + columns) times the largest score or cost stays below 2^30.

#pragma once

#include "swsearch/platform.cuh"

namespace swsearch {

constexpr int kTileCells = 16;  // rows and columns of a tile

struct WavefrontPair {
    const unsigned short* query;
    const unsigned short* subject;
    int rows;
    int columns;
};

struct WavefrontCosts {
    int match;
    int mismatch;
    int indel;  // what a letter in a gap costs, at least 0
};

// Tile `first + t` of tile anti-diagonal `wave`, t counting groups of 16 lanes over the grid: tile row a, tile column
// wave - a. bottom: H of the lowest row done in each column; right: H of the rightmost column done in each row; corners:
// H of the last cell of each diagonal of tiles, [tile column - tile row + tile rows - 1]; result: H of the last cell.
SWS_DEVICE void wavefront_tile(const WavefrontPair& pair, const WavefrontCosts& costs, int wave, int first, int n_tiles,
                               int* bottom, int* right, int* corners, int* result) {
    const int group = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / kTileCells;
    const int lane = static_cast<int>(threadIdx.x) % kTileCells;
    const bool real = group < n_tiles;
    const int a = real ? first + group : first;
    const int b = wave - a;
    const int row = a * kTileCells + lane;
    const int own_column = b * kTileCells + lane;
    const int tile_rows = (pair.rows + kTileCells - 1) / kTileCells;
    int* const corner_place = corners + (b - a + tile_rows - 1);

    const u32 query_letter = row < pair.rows ? pair.query[row] : 0;
    const u32 subject_letter = own_column < pair.columns ? pair.subject[own_column] : 0;
    const int above = a == 0 ? -(own_column + 1) * costs.indel : bottom[own_column];
    int h = b == 0 ? -(row + 1) * costs.indel : right[row];  // the cell to the left
    const int corner = a == 0 ? -b * kTileCells * costs.indel : b == 0 ? -row * costs.indel : *corner_place;
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
        const int at = b * kTileCells + column;
        if (real && lane == kTileCells - 1) {
            bottom[at] = h;
        }
        if (real && row == pair.rows - 1 && at == pair.columns - 1) {
            *result = h;
        }
    }
    if (real) {
        right[row] = h;
        if (lane == kTileCells - 1) {
            *corner_place = h;
        }
    }
}

}  // namespace swsearch
