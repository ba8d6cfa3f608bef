// Opens launches whose work depends on a number that the device has counted, such as the length of a list. Input: the
// number. Output: the work counters of the launches, which the host has set so high that their blocks find no work; they
// become 0 if the number is in a range. So the host need not know the number, and the kernels themselves need no test of
// it, which would cost them registers.
//
// One block; each thread sets every (threads of the block)-th counter.

#include "common/platform.cuh"

namespace swsearch {

SWS_DEVICE void open_counters(const u32* number, u32 least, u32 most, u32* counters, u32 n_counters) {
    if (*number >= least && *number <= most) {
        for (u32 index = threadIdx.x; index < n_counters; index += blockDim.x) {
            counters[index] = 0;
        }
    }
}

}  // namespace swsearch

// The entry has no compile-time constants.
SWS_KERNEL(32, 1)
open_counters(const swsearch::u32* number, swsearch::u32 least, swsearch::u32 most, swsearch::u32* counters,
              swsearch::u32 n_counters) {
    swsearch::open_counters(number, least, most, counters, n_counters);
}
