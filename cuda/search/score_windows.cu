// Entry of the kernel for verified windows of long subjects (intra_task.cuh, checkpoints.cuh).
//
// Compile-time constants: those of intra_task. The start and the length of a window lie within a longer subject.
// Outputs: the int32 score of each window, its states at checkpoints, and the votes on the checkpoints.

#include "search/intra_task.cuh"

namespace swsearch {

struct WindowsParameters {
    Checkpoints checkpoints;
    IntraTaskParameters windows;  // as listed subjects
};

}  // namespace swsearch

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
score_windows(SWS_PARAMETERS swsearch::WindowsParameters parameters) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strips);
    using Shape = Tile<kWarpSize, SWS_WORDS, Pairing::SWS_PAIRING>;
    swsearch::intra_task<SWS_ARITHMETIC, Shape, Edges::SWS_EDGES>(
        strips, parameters.windows, gap_costs(SWS_GAP_OPEN, SWS_GAP_EXTEND, parameters.windows.gap),
        parameters.checkpoints);
}
