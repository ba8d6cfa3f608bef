// The ends of an alignment that may be free: the letters before its start or after its end then cost nothing. The
// kernels for pairs take a set of them as an int of flags; swsearch/engine/pair_arrays.py has the same numbers.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

enum FreeEnd { kQueryStart = 1, kQueryEnd = 2, kSubjectStart = 4, kSubjectEnd = 8 };

struct FreeEnds {
    int flags;

    SWS_DEVICE bool has(FreeEnd end) const { return (flags & end) != 0; }
};

}  // namespace swsearch
