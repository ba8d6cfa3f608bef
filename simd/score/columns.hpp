// Transposes the residues of a batch for the kernel for many subjects. Input: the residues of each subject, one byte
// each, contiguous in memory. Output: columns of residues, one byte per subject.
//
// The kernel needs the same column of all subjects in adjacent bytes. Therefore blocks of 16 columns are transposed,
// for as many subjects at a time as a vector has bytes.
//
// A batch reads from as many memory regions as it has subjects, which are more than the hardware prefetcher of a
// processor can follow. Each block therefore prefetches the bytes that are needed a few blocks later.

#pragma once

#include "common/transpose.hpp"
#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

// The subjects of a batch, transposed block by block. Lanes without a residue contain code 31.
template <int kLanes>
class Columns {
   public:
    // Bytes of one transposed column: one per lane, but at least those of a vector.
    static constexpr int kStride = kLanes < Vectors::kBytes ? Vectors::kBytes : kLanes;

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
    void transpose(uint32_t first, uint8_t* columns) const {
        if (first + kBlockColumns <= shortest_) {
            for (int lane = 0; lane < kStride; lane += Vectors::kBytes) {
                transpose_blocks(rows_ + lane, first, columns + lane, kStride);
                for (int i = 0; i < Vectors::kBytes; ++i) {
                    __builtin_prefetch(rows_[lane + i] + first + 32);
                }
            }
            return;
        }
        alignas(16) uint8_t gathered[Vectors::kBytes][kBlockColumns];
        for (int lane = 0; lane < kStride; lane += Vectors::kBytes) {
            const uint8_t* rows[Vectors::kBytes];
            for (int i = 0; i < Vectors::kBytes; ++i) {
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
            transpose_blocks(rows, 0, columns + lane, kStride);
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
