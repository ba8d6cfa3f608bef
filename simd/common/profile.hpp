// The scores of a query and the residues of subjects, as kernels and bindings pass them: plain records, whose arrays
// belong to the caller.

#pragma once

#include <stddef.h>
#include <stdint.h>

namespace swsearch {

constexpr size_t kAminoAcids = 20;
constexpr int kCodes = 32;  // columns of a table row; a subject byte & 31 is its column

// Position i of the query scores table[rows[i] * 32 + (residue & 31)]. A gap of k residues costs open + k * extend.
struct Profile {
    const int32_t* rows;
    const int8_t* table;
    int32_t length;
    int32_t n_rows;  // number of rows of the table
    int32_t open;
    int32_t extend;
};

// Subject i consists of the `lengths[i]` bytes from residues + starts[i] on, one per residue.
struct Subjects {
    const uint8_t* residues;
    const uint64_t* starts;
    const uint32_t* lengths;
    uint32_t n;
};

}  // namespace swsearch
