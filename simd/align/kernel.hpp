// The interface of the kernels of the forward pass: plain records that the pass and the translation units of the
// instruction sets (common/vectors.hpp) exchange. Input: a striped profile and a subject. Outputs: columns of H, and
// the best score with its column.

#pragma once

#include <stddef.h>
#include <stdint.h>

namespace swsearch::align {

// The state of one forward pass, between calls that each compute some columns.
struct ForwardState {
    const int8_t* profile;  // striped for the kernel's lanes: [32][segments][lanes]; row r is lane r / segments
    size_t segments;
    const uint8_t* subject;
    int32_t first;   // cost of a gap's first residue
    int32_t extend;  // cost of each further one
    void* h;         // successive columns of H, striped, that before column `begin` first; aligned to 64 bytes
    size_t begin;
    void* e;  // E of the last column; aligned to 64 bytes
    // In a column with barred pairs, which is computed alone: the largest value in their rows and 0 in the others,
    // striped; otherwise null.
    const void* barred;
    int32_t best;
    size_t best_column;  // the first column that reached `best`, 0-based
    bool overflow;       // the lanes were too narrow: this state is invalid
};

// Computes columns from to to - 1.
using ForwardKernel = void (*)(ForwardState& state, size_t from, size_t to);

// Kernels with lanes of 16 bits (narrow), which set `overflow` as soon as a score exceeds them, and of 32 bits (wide).
struct Kernels {
    ForwardKernel narrow;
    int narrow_lanes;
    ForwardKernel wide;
    int wide_lanes;
};

// Largest score for which 16-bit lanes are exact: one more column adds at most 127.
constexpr int32_t kNarrowLimit = 32767 - 127;

// Whether these gap costs fit 16-bit lanes: E is never below -first, and one more step must not wrap.
constexpr bool narrow_gaps(int32_t first, int32_t extend) { return first + extend <= 32000; }

// The index of a row in the arrays of a striped state.
constexpr size_t striped_index(size_t row, size_t segments, size_t lanes) {
    return row % segments * lanes + row / segments;
}

}  // namespace swsearch::align
