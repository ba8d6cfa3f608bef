// What the kernels take and give: plain records between the dispatcher and the translation units of the instruction sets.
//
// The kernels' translation units are each compiled for one instruction set. They see this header, their vectors and the
// kernel templates, all with internal linkage and without the C++ library, so that no inline function compiled for a
// wider processor can be picked by the linker for code that runs everywhere.

#pragma once

#include <stddef.h>
#include <stdint.h>

namespace swsearch::score {

constexpr int kCodes = 32;          // letters of a table row; a subject byte & 31 is its column
constexpr int kColumnsPerPass = 4;  // subject columns that go down the query together
constexpr int kBlockColumns = 16;   // subject columns that are transposed together
constexpr int32_t kSaturated = -1;  // in place of a score that left its lane's range
constexpr int kMaxLanes = 128;      // subjects of one call: two vectors of 64 bytes
constexpr int kBlockRows = 2048;    // query rows whose H and E stay in the second-level cache
constexpr int kProfileRows = 32;    // a table with more rows is looked up in the loop

// A query: position i scores table[rows[i] * 32 + (residue & 31)]. A gap of k residues costs open + k * extend. Scores
// below floor are of no use to the caller.
struct Query {
    const int32_t* rows;
    const int8_t* table;
    int32_t length;
    int32_t n_rows;
    int32_t open;
    int32_t extend;
    int32_t floor;
};

struct Subject {
    const uint8_t* residues;
    uint32_t length;
};

// How a kernel hears that it should stop and says what it has done. Both are read and written atomically.
struct Control {
    const int32_t* stop;   // non-zero: return soon, scores are then worth nothing
    uint64_t* cells;       // cells done so far; the kernel for one subject adds to it as it goes
};

enum Width { kBits8 = 0, kBits16 = 1, kBits32 = 2, kWidths = 3 };

// Scores n subjects, at most Kernels::lanes of the same width, against several queries: one of any length, or more that
// have the same table and gap costs and at most kBlockRows rows together. scratch is aligned to 64 bytes and has as many
// bytes as the kernel's scratch function says. scores[q * n + i] is exact or kSaturated; the kernel for bounds gives a
// number that the score does not exceed, or kSaturated.
using ManyKernel = void (*)(const Query* queries, int n_queries, const Subject*, int n, uint8_t* scratch,
                            int32_t* scores, const Control&);
using ManyScratch = size_t (*)(const Query* queries, int n_queries, uint32_t longest);
// Scores one subject with the query in the lanes.
using OneKernel = void (*)(const Query&, const Subject&, uint8_t* scratch, int32_t* score, const Control&);
using OneScratch = size_t (*)(const Query&);

struct Kernels {
    const char* name;
    int lanes[kWidths];        // subjects of one call of many
    int vector_lanes[kWidths]; // lanes of one vector
    int32_t max_gap[kWidths];  // largest open + extend that the width can hold
    int32_t largest[kWidths];  // smallest score that it cannot tell from a higher one
    ManyKernel many[kWidths];
    ManyScratch many_scratch[kWidths];
    ManyKernel bound;  // of 8 bits, with the lanes and the scratch of many
    OneKernel one[kWidths];
    OneScratch one_scratch[kWidths];
};

#if defined(__x86_64__) || defined(_M_X64)
extern const Kernels kernels_avx512vbmi;
extern const Kernels kernels_avx512bw;
extern const Kernels kernels_avx2;
extern const Kernels kernels_sse41;
#endif
#if defined(__aarch64__)
extern const Kernels kernels_neon;
#endif
extern const Kernels kernels_scalar;

}  // namespace swsearch::score
