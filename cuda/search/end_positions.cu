// Entry of the kernel for the ends of best alignments (intra_task.cuh, end_positions.cuh).
//
// Compile-time constants: those of intra_task. Inputs: those of intra_task and the known best score of each subject.
// Outputs: the first end of each subject, and the best score that the kernel computes, by which the host detects a
// known score that is not the subject's best.

#include "search/intra_task.cuh"

namespace swsearch {

struct EndsParameters {
    IntraTaskParameters list;
    WantedEnds wanted;
};

}  // namespace swsearch

SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
end_positions(SWS_PARAMETERS swsearch::EndsParameters parameters) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(uint4, strips);
    using Shape = Tile<kWarpSize, SWS_WORDS, Pairing::SWS_PAIRING>;
    swsearch::intra_task<SWS_ARITHMETIC, Shape, Edges::SWS_EDGES>(
        strips, parameters.list, gap_costs(SWS_GAP_OPEN, SWS_GAP_EXTEND, parameters.list.gap), parameters.wanted);
}
