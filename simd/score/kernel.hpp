// The interface of the score kernels: plain records that the search and the translation units of the instruction sets
// (common/vectors.hpp) exchange. Inputs: queries and the residues of subjects. Output: an
// int32 score per query and subject.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/profile.hpp"

namespace swsearch::score {

constexpr int kColumnsPerPass = 4;  // subject columns that are computed in one pass over the query rows
constexpr int kBlockColumns = 16;   // subject columns that are transposed together
constexpr int32_t kSaturated = -1;  // replaces a score that exceeded its lane's range
constexpr int kMaxLanes = 128;      // subjects of one call: two vectors of 64 bytes
constexpr int kBlockRows = 2040;    // query rows whose H and E stay in the second-level cache; complete bands
constexpr int kMaxBandRows = 8;     // query rows of a band of the upper bound (docs/design/bound.md)
// For kernels whose additions wrap (lanes.hpp): room below 0, and the highest score of a pair.
constexpr int kWrappingRoom = 48;
constexpr int kWrappingHighest = 24;
constexpr int kProfileRows = 32;  // table rows of the score profile; in larger tables the loop looks up the scores

using Query = Profile;

struct Subject {
    const uint8_t* residues;
    uint32_t length;
};

// The request to stop and the counter of cells of a kernel. Both are read and written atomically.
struct Control {
    const int32_t* stop;  // if not zero, the kernel returns soon, without valid scores
    uint64_t* cells;      // cells computed so far; the kernel for one subject adds to it while it runs
};

// The kernels for bounds, by the rows of a band: the fewer operations a kernel needs, the more subjects reach the
// floor. With one row the cells are exact, and only their maximum is omitted.
constexpr int kBandSizes[] = {6, 4, 1};
constexpr int kBoundKernels = 3;

enum Width { kBits8 = 0, kBits16 = 1, kBits32 = 2, kWidths = 3 };

// Scores n subjects, at most Kernels::lanes of the kernel's width, against several queries: one query of any length, or
// several that have the same table and gap costs and together at most kBlockRows rows. The scratch memory is aligned to
// 64 bytes and has the size that the kernel's scratch function returns. scores[q * n + i] is exact or kSaturated; the
// kernels for bounds write an upper bound of the score, or kSaturated.
using ManyKernel = void (*)(const Query* queries, int n_queries, const Subject*, int n, uint8_t* scratch,
                            int32_t* scores, const Control&);
using ManyScratch = size_t (*)(const Query* queries, int n_queries, uint32_t longest);
// Scores one subject, with the query in the lanes.
using OneKernel = void (*)(const Query&, const Subject&, uint8_t* scratch, int32_t* score, const Control&);
using OneScratch = size_t (*)(const Query&);

struct Kernels {
    int lanes[kWidths];             // maximum number of subjects of one call of `many`
    int vector_lanes[kWidths];      // lanes of one vector
    int32_t max_gap[kWidths];       // largest open + extend that the width can represent
    int32_t largest[kWidths];       // smallest score that the width cannot distinguish from a higher one
    int32_t largest_many[kWidths];  // smallest score that `many` reports as kSaturated; at most the former
    ManyKernel many[kWidths];
    ManyScratch many_scratch[kWidths];
    ManyKernel bounds[kBoundKernels];      // of 8 bits, with the lanes and the scratch memory of `many`
    int32_t largest_bound[kBoundKernels];  // smallest bound that is reported as kSaturated
    OneKernel one[kWidths];
    OneScratch one_scratch[kWidths];
    // The same kernels for Intel's processors (lanes.hpp), or null: for all queries, and those whose additions wrap,
    // for queries that fit them.
    const Kernels* one_port;
    const Kernels* wrapping;
};

}  // namespace swsearch::score
