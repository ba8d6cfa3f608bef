// The gap costs of a kernel: constants of its code or, in a generic kernel, arguments of its launch.
//
// The entries that score have the parameters SWS_GAP_PARAMETERS and pass SWS_GAP_COSTS to their function. SWS_GAP_OPEN and
// SWS_GAP_EXTEND are numbers, and the arguments are then not read; or they are the names of the parameters, gap_open and
// gap_extend, in a generic kernel, which serves all gap costs.

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

#define SWS_GAP_COSTS (::swsearch::GapCosts{SWS_GAP_OPEN, SWS_GAP_EXTEND})
