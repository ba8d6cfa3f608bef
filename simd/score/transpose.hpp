// Residues of a batch from one subject a row to one column a row: what the kernel for many subjects reads.
//
// Each subject's bytes lie in one stretch of memory, and the kernel wants the same column of all subjects side by side.
// Blocks of 16 columns are turned by byte unpacks, as many subjects at a time as a vector has bytes: a vector is loaded
// with 16 residues of one subject in each of its parts of 16 bytes, and four rounds of unpacking turn every part on
// its own, so that wide vectors need no more operations than narrow ones.
//
// A batch reads from as many places of memory as it has subjects, more than a processor's own prefetching follows, so
// each block asks for the bytes that are needed a few blocks later.

#pragma once

#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

// Turns 16 rows of 16 bytes in every part: rows[i * 16 + j] is part i's row j. Column c goes to to + c * step.
template <class Isa>
inline void transpose_block(const uint8_t* const* rows, uint32_t first, uint8_t* to, int step) {
    using V = typename Isa::V;
    V a[16];
    V b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        a[i] = Isa::load_parts(rows + i, first);
    }
    // Each round puts bytes 8 rows apart side by side, so that after four the columns are whole.
#pragma GCC unroll 4
    for (int round = 0; round < 4; ++round) {
        V* from = round % 2 == 0 ? a : b;
        V* into = round % 2 == 0 ? b : a;
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
            into[2 * i] = Isa::unpack_low(from[i], from[i + 8]);
            into[2 * i + 1] = Isa::unpack_high(from[i], from[i + 8]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        Isa::store(to + static_cast<ptrdiff_t>(i) * step, a[i]);
    }
}

// The subjects of a batch, turned block by block. Lanes without a residue hold code 31.
template <class Isa, int kLanes>
class Columns {
public:
    // Bytes of one turned column: all lanes, and at least a vector.
    static constexpr int kStride = kLanes < Isa::kBytes ? Isa::kBytes : kLanes;

    Columns(const Subject* subjects, int n) : subjects_(subjects), n_(n) {
        __builtin_memset(padding_, kCodes - 1, kBlockColumns);
        shortest_ = n < kStride ? 0 : subjects[0].length;
        for (int i = 0; i < n; ++i) {
            rows_[i] = subjects[i].residues;
            longest_ = subjects[i].length > longest_ ? subjects[i].length : longest_;
            shortest_ = subjects[i].length < shortest_ ? subjects[i].length : shortest_;
        }
    }

    uint32_t longest() const { return longest_; }

    // Writes columns first ... first + 15, each of kStride bytes.
    void turn(uint32_t first, uint8_t* columns) const {
        if (first + kBlockColumns <= shortest_) {
            for (int lane = 0; lane < kStride; lane += Isa::kBytes) {
                transpose_block<Isa>(rows_ + lane, first, columns + lane, kStride);
                for (int i = 0; i < Isa::kBytes; ++i) {
                    __builtin_prefetch(rows_[lane + i] + first + 32);
                }
            }
            return;
        }
        alignas(16) uint8_t gathered[Isa::kBytes][kBlockColumns];
        for (int lane = 0; lane < kStride; lane += Isa::kBytes) {
            const uint8_t* rows[Isa::kBytes];
            for (int i = 0; i < Isa::kBytes; ++i) {
                const uint32_t length = lane + i < n_ ? subjects_[lane + i].length : 0;
                if (length >= first + kBlockColumns) {
                    rows[i] = rows_[lane + i] + first;
                } else if (length <= first) {
                    rows[i] = padding_;
                } else {
                    __builtin_memcpy(gathered[i], padding_, kBlockColumns);
                    __builtin_memcpy(gathered[i], rows_[lane + i] + first, length - first);
                    rows[i] = gathered[i];
                }
            }
            transpose_block<Isa>(rows, 0, columns + lane, kStride);
        }
    }

private:
    const Subject* subjects_;
    int n_;
    uint32_t longest_ = 0;
    uint32_t shortest_;
    const uint8_t* rows_[kStride];
    alignas(16) uint8_t padding_[kBlockColumns];
};

}  // namespace
}  // namespace swsearch::score
