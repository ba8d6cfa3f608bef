// Finds the position at which each listed strip of a local sweep (sweep.cuh) reaches its best score: the smallest
// column, then the smallest row. Inputs: the states that the sweep saved, and the numbers of the listed strips. Output:
// an int column and row per listed strip.
//
// Threads and cells. A warp takes a strip of the list, restores the state that the sweep saved (StateLayout), and
// computes that diamond and the following ones again, this time with a comparison of every cell. A diamond begins
// kDepth columns further left in the last lane than in the first. Therefore the score may be reached in a smaller
// column in the kDepth / 32 diamonds after the one that reached it first, but in no later diamond.
//
// The list contains strips that have the best score of their pair. The pointers and the limits of exact scores and
// lengths are those of sweep.cuh and diamond.cuh.

#include "pairs/sweep.cuh"

namespace swsearch {

// The smallest value of all lanes, in all lanes.
SWS_DEVICE int shared_min(int value) { return -shared_max(-value); }

struct LocateParameters {
    Sweep sweep;
    const u32* strips;  // the n_strips listed strips
    u32 n_strips;
    int* positions;  // for each of them column and row, counted from 1
};

// shared: the warp's shared memory.
template <class Cells, int kWords, bool kAffine, bool kCompared>
SWS_DEVICE void locate_best(u32* shared, const LocateParameters& parameters) {
    const Sweep& sweep = parameters.sweep;
    using Scores = typename ScoresFor<kCompared>::template Type<Cells, kWords>;
    using Lane = StripLane<Cells, Scores, kWords, true, kAffine>;
    using Layout = StateLayout<Lane>;
    const int lane_number = static_cast<int>(threadIdx.x % kWarpSize);
    const u32 item = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize;
    if (__all_sync(kWholeWarp, item >= parameters.n_strips)) {
        return;
    }
    const u32 strip = parameters.strips[item];
    const SweepPair pair = sweep.pairs[pair_of(sweep, strip)];
    const u64 above = static_cast<u64>(strip - pair.first_strip) * Lane::kStripRows;
    const int columns = static_cast<int>(pair.columns);
    const int n_groups = (columns + kDiamondSteps - 1) / kDiamondSteps;
    const int score = sweep.found[static_cast<u64>(strip) * 2];
    const int first = sweep.found[static_cast<u64>(strip) * 2 + 1];
    u32* const words = sweep.states + static_cast<u64>(strip) * Layout::kWords;

    Lane lane(Scores(shared + kLowestRowWords, sweep.query, pair.query + above, sweep.subjects + pair.subject, columns,
                     first * kDiamondSteps, lane_number),
              sweep.costs, static_cast<int>(above), 0, shared);
    u32 state[Lane::kStateWords];
#pragma unroll
    for (int i = 0; i < Lane::kStateWords; ++i) {
        state[i] = words[i * kWarpSize + lane_number];
    }
    lane.restore(state);
    int column = 0;
    int row = 0;
    bool found = false;
    for (int since = 0; since < Layout::kDiamonds && first + since < n_groups + Cells::kLag; ++since) {
        HorizonNode node{lane.base(), lane.base()};
        int base = lane.base();
        if (first + since < n_groups) {
            node = node_of(*Layout::above(words, since, lane_number));
            base = base_below<Cells, true>(__shfl_sync(kWholeWarp, node.h, 0), sweep.reach);
        }
        lane.enter(node, base);
        const int position = shared_min(lane.find(score));
        if (position != Lane::kNotFound) {
            const int found_column = position / Lane::kStripRows - Lane::kDepth + (first + since) * kDiamondSteps;
            const int found_row = position % Lane::kStripRows;
            if (!found || found_column < column || (found_column == column && found_row < row)) {
                found = true;
                column = found_column;
                row = found_row;
            }
        }
    }
    if (lane_number == 0) {
        parameters.positions[2 * item] = column + 1;
        parameters.positions[2 * item + 1] = static_cast<int>(above) + row + 1;
    }
}

}  // namespace swsearch

// The entry writes an int column and row, counted from 1, for each listed strip. Compile-time constants: those of
// sweep_pairs.cu, with the values of the sweep that saved the states. SWS_LOCAL is 1.
SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
locate_best(SWS_PARAMETERS swsearch::LocateParameters parameters) {
    using namespace swsearch;
    static_assert(SWS_LOCAL, "only local problems may end at any cell");
    SWS_DYNAMIC_SHARED(uint4, shared);
    swsearch::locate_best<SWS_CELLS, SWS_WORDS, SWS_AFFINE != 0, SWS_COMPARED != 0>(
        shared_of_warp(shared, parameters.sweep), parameters);
}
