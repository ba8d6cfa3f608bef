// Opens launches whose work depends on a number that the device has counted, such as the length of a list. Input: the
// number. Output: the work counters of the launches, which the host has set so high that their blocks find no work;
// they become 0 if the number is in a range. So the host need not know the number, and the kernels themselves need no
// test of it, which would cost them registers.
//
// One block; each thread sets every (threads of the block)-th counter.

#include "common/platform.cuh"

namespace swsearch {

struct OpenCountersParameters {
    const u32* number;
    u32 least, most;  // the counters become 0 if the number is one of these or between them
    u32* counters;
    u32 n_counters;
};

SWS_DEVICE void open_counters(const OpenCountersParameters& parameters) {
    if (*parameters.number >= parameters.least && *parameters.number <= parameters.most) {
        for (u32 index = threadIdx.x; index < parameters.n_counters; index += blockDim.x) {
            parameters.counters[index] = 0;
        }
    }
}

}  // namespace swsearch

// The entry has no compile-time constants.
SWS_KERNEL(32, 1)
open_counters(SWS_PARAMETERS swsearch::OpenCountersParameters parameters) { swsearch::open_counters(parameters); }
