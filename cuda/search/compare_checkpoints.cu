// Compares the states of neighbouring windows at their common checkpoint (checkpoints.cuh). Input: the saved states.
// Output: the int differs[w] is 1 if the states of window w and of the window before it differ. The entry has no
// compile-time constants.

#include "search/checkpoints.cuh"

namespace swsearch {

struct CompareCheckpointsParameters {
    const u32* entries;  // as in Checkpoints, and so are the words
    const uint4* words;
    u32 n_windows;
    u32 units_per_checkpoint;  // 16-byte units that the strips of a window save at a checkpoint
    int* differs;              // 0 before the launch
};

// Sets differs[w] to 1 if the state of window w at its first checkpoint differs from the state of window w - 1 at its
// end. A block compares one window at a time.
SWS_DEVICE void compare_checkpoints(const CompareCheckpointsParameters& parameters) {
    const u32 units_per_checkpoint = parameters.units_per_checkpoint;
    for (u32 window = blockIdx.x; window < parameters.n_windows; window += gridDim.x) {
        if (parameters.entries[window] == 0) {
            continue;
        }
        const uint4* const entry =
            parameters.words + static_cast<u64>(window) * (kCheckpoints + 1) * units_per_checkpoint;
        const uint4* const end = entry - units_per_checkpoint;
        u32 difference = 0;
#pragma unroll 4
        for (u32 unit = threadIdx.x; unit < units_per_checkpoint; unit += blockDim.x) {
            const uint4 one = entry[unit];
            const uint4 other = end[unit];
            difference |= (one.x ^ other.x) | (one.y ^ other.y) | (one.z ^ other.z) | (one.w ^ other.w);
        }
        if (difference != 0) {
            parameters.differs[window] = 1;
        }
    }
}

}  // namespace swsearch

SWS_KERNEL(128, 1)
compare_checkpoints(SWS_PARAMETERS swsearch::CompareCheckpointsParameters parameters) {
    swsearch::compare_checkpoints(parameters);
}
