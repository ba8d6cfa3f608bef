// The gap costs of a kernel: constants of its code (SWS_GAP_OPEN, SWS_GAP_EXTEND) or, if these are negative, parameters
// of its launch. Parameters serve all scoring schemes, but take registers and their ports, and so 6 to 9 % more time.

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

// The gap costs by which a kernel scores. open, extend: its constants. given: those of its launch.
SWS_DEVICE GapCosts gap_costs(int open, int extend, const GapCosts& given) {
    return open < 0 ? given : GapCosts{open, extend};
}

}  // namespace swsearch
