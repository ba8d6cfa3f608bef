// The gap costs of a kernel: constants of its code or, in a generic kernel, arguments of its launch.
//
// Every entry of this folder has the parameters SWS_GAP_PARAMETERS and passes SWS_GAP_COSTS to its function. If
// SWS_GAP_OPEN and SWS_GAP_EXTEND are defined, the costs are these constants, and the arguments are not read. Generic
// kernels are compiled without them: one serves all gap costs, at the price of a few registers.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

// A gap of k residues costs open + k * extend; both are at least 0.
struct GapCosts {
    int open;
    int extend;

    // The cost of a gap of one residue.
    SWS_DEVICE int first() const { return open + extend; }
};

}  // namespace swsearch

#define SWS_GAP_PARAMETERS [[maybe_unused]] int gap_open, [[maybe_unused]] int gap_extend

#if defined(SWS_GAP_OPEN)
#define SWS_GAP_COSTS (::swsearch::GapCosts{SWS_GAP_OPEN, SWS_GAP_EXTEND})
#else
#define SWS_GAP_COSTS (::swsearch::GapCosts{gap_open, gap_extend})
#endif
