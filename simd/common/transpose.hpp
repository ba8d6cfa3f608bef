// Transposition of blocks of 16 rows of 16 bytes by unpack instructions. The number of blocks transposed at a time is
// the number of 16-byte parts of a vector.

#pragma once

#include "common/vectors.hpp"

namespace swsearch {
namespace {

// Row j of block i consists of the 16 bytes at rows[16 * i + j] + offset. Bytes c of all rows, in the order of the
// rows, are written to to + c * stride. Each block lies in one part of the vectors, so wide vectors need no more
// operations than narrow ones.
template <class Byte>
inline void transpose_blocks(const Byte* const* rows, size_t offset, Byte* to, ptrdiff_t stride) {
    using V = Vectors::V;
    V a[16];
    V b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        a[i] = Vectors::load_parts(rows + i, offset);
    }
    // Each round interleaves rows that are 8 apart. After four rounds the columns are complete and in order.
#pragma GCC unroll 4
    for (int round = 0; round < 4; ++round) {
        V* from = round % 2 == 0 ? a : b;
        V* into = round % 2 == 0 ? b : a;
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
            into[2 * i] = Vectors::unpack_low(from[i], from[i + 8]);
            into[2 * i + 1] = Vectors::unpack_high(from[i], from[i + 8]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        Vectors::store(to + i * stride, a[i]);
    }
}

}  // namespace
}  // namespace swsearch
