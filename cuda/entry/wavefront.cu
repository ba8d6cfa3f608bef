// Entry of the block wavefront (kernels/wavefront.cuh), which computes one anti-diagonal of tiles. Inputs: 16-bit
// letters of both sequences and the borders of the tiles before it. Outputs: the borders of these tiles and, in the
// last launch, the global score. Compile-time constant: SWS_THREADS, a multiple of 32.

#include "kernels/wavefront.cuh"

SWS_KERNEL(SWS_THREADS, 1)
wavefront(const unsigned short* query, const unsigned short* subject, int rows, int columns, int match, int mismatch,
          int indel, int wave, int first, int n_tiles, int* bottom, int* right, int* corners, int* result) {
    swsearch::wavefront_tile({query, subject, rows, columns}, {match, mismatch, indel}, wave, first, n_tiles, bottom,
                             right, corners, result);
}
