// What the score kernels take and give: plain records between the search and the translation units of the instruction
// sets (common/vectors.hpp).

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/profile.hpp"

namespace swsearch::score {

constexpr int kColumnsPerPass = 4;  // subject columns that go down the query together
constexpr int kBlockColumns = 16;   // subject columns that are transposed together
constexpr int32_t kSaturated = -1;  // in place of a score that left its lane's range
constexpr int kMaxLanes = 128;      // subjects of one call: two vectors of 64 bytes
constexpr int kBlockRows = 2048;    // query rows whose H and E stay in the second-level cache
constexpr int kProfileRows = 32;    // of a larger table the scores are looked up in the loop

// Scores below floor are of no use to the caller.
struct Query : Profile {
    int32_t floor;
};

struct Subject {
    const uint8_t* residues;
    uint32_t length;
};

// How a kernel learns that it should stop, and where it counts its work. Both are read and written atomically.
struct Control {
    const int32_t* stop;   // non-zero: return soon, without valid scores
    uint64_t* cells;       // computed so far; the kernel for one subject adds to it while it runs
};

enum Width { kBits8 = 0, kBits16 = 1, kBits32 = 2, kWidths = 3 };

// Scores n subjects, at most Kernels::lanes of the same width, against several queries: one of any length, or more that
// have the same table and gap costs and together at most kBlockRows rows. The scratch memory is aligned to 64 bytes and
// has the size that the kernel's scratch function returns. scores[q * n + i] is exact or kSaturated; the kernel for
// bounds writes a number that the score does not exceed, or kSaturated.
using ManyKernel = void (*)(const Query* queries, int n_queries, const Subject*, int n, uint8_t* scratch,
                            int32_t* scores, const Control&);
using ManyScratch = size_t (*)(const Query* queries, int n_queries, uint32_t longest);
// Scores one subject, with the query in the lanes.
using OneKernel = void (*)(const Query&, const Subject&, uint8_t* scratch, int32_t* score, const Control&);
using OneScratch = size_t (*)(const Query&);

struct Kernels {
    int lanes[kWidths];         // subjects of one call of many
    int vector_lanes[kWidths];  // lanes of one vector
    int32_t max_gap[kWidths];   // largest open + extend that the width can hold
    int32_t largest[kWidths];   // smallest score that it cannot tell from a higher one
    ManyKernel many[kWidths];
    ManyScratch many_scratch[kWidths];
    ManyKernel bound;  // of 8 bits, with the lanes and the scratch memory of many
    OneKernel one[kWidths];
    OneScratch one_scratch[kWidths];
};

}  // namespace swsearch::score
