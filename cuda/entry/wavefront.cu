// The __global__ function `wavefront`: one anti-diagonal of 16 by 16 tiles of a global alignment with linear gaps, score
// only (Needleman-Wunsch; kernels/wavefront.cuh). swsearch/engine/cuda/pairs/wavefront.py compiles this file and launches it
// once per anti-diagonal, in order. The kernel serves for comparison with the others.
//
// In:     query, subject   `rows` and `columns` letters, 16 bits each
//         match, mismatch, indel   scores of equal and of different letters, and of a letter in a gap
//         wave, first, n_tiles   the anti-diagonal, the tile row of its first tile, and its number of tiles
// In/out: bottom, right, corners   H at the borders of the finished tiles, from one launch to the next
// Out:    result   the score, written by the launch that computes the last cell
//
// Compile-time constant: SWS_THREADS (threads per block), a multiple of 32.

#include "kernels/wavefront.cuh"

SWS_KERNEL(SWS_THREADS, 1)
wavefront(const unsigned short* query, const unsigned short* subject, int rows, int columns, int match, int mismatch,
          int indel, int wave, int first, int n_tiles, int* bottom, int* right, int* corners, int* result) {
    swsearch::wavefront_tile({query, subject, rows, columns}, {match, mismatch, indel}, wave, first, n_tiles, bottom,
                             right, corners, result);
}
