// Sweeps whole matrices by diamonds: pairs of long sequences, or a few, each spread over the whole GPU.
//
// A matrix is cut into strips of query rows, a strip into diamonds of 32 steps (diamond.cuh). A diamond is ready when the
// one to its left is done and, in the strip above, the ones whose lowest row lies over it. A warp takes a strip and does
// its diamonds from left to right with the rightmost cells in registers, and waits where the strip above is not far
// enough; `finished` counts, for each strip, the groups of 32 columns whose lowest row is written. Strips are taken from a
// counter in order, so a strip waits only for one that a running warp has taken, and the kernel always gets on: as many
// blocks are started as fit the device at a time.
//
// The horizon is the lowest row of each strip: H and the F that the row below may take, for every column of a matrix,
// overwritten in place by the strip below, whose writes are kDepth columns behind its reads. Narrow cells have both in
// one word, relative to a base for each 32 columns. Memory grows with the lengths, not with their product.
//
// Ends. Local: for each strip the best score and its first place, which is looked for again only in diamonds that reach
// the best score known. Others: H of the last row and of the last column, from which the host picks.

#pragma once

#include "kernels/diamond.cuh"

namespace swsearch {

// One matrix, as swsearch/engine/cuda/sweep.py lays it out.
struct SweepPair {
    u64 query;        // place of the first query letter
    u64 subject;      // byte of the first subject letter
    u64 horizon;      // its first column in the horizon, a multiple of 32
    u64 last_row;     // where H of the last row goes, in 32-bit words
    u64 last_column;  // where H of the last column goes
    u32 rows;
    u32 columns;
    u32 first_strip;  // strips of the pairs before
    u32 unused;
};

struct Sweep {
    const SweepPair* pairs;
    u32 n_pairs;
    u32 n_strips;           // of all pairs
    QueryLetters query;
    const unsigned char* subjects;
    PairCosts costs;
    int reach;              // S: from a diamond's corner to its base
    u32* horizon;
    int* bases;             // of 32 columns of the horizon each
    u32* finished;          // of each strip, zero at the start
    int* known;             // of each pair, the best score reached so far (local)
    int* found;             // of each strip: best score, its column and row (local)
    int* lasts;             // last rows and columns (others)
    const int* kept_place;  // of each strip, the number of the row kept for it, or -1; null where none is kept
    u32* kept;              // kept rows as the horizon holds them
    int* kept_bases;
    u32 kept_columns;       // from row to row, a multiple of 32
    u32* work_counter;
};

SWS_DEVICE int shared_max(int value) {
#pragma unroll
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
        const int other = static_cast<int>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(value), distance));
        value = value > other ? value : other;
    }
    return value;
}

// The first of the lanes' places that are any (column not negative).
SWS_DEVICE Place first_place(Place place) {
#pragma unroll
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
        const Place other{static_cast<int>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(place.column), distance)),
                          static_cast<int>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(place.row), distance))};
        if (other.column >= 0 && (place.column < 0 || other.before(place))) {
            place = other;
        }
    }
    return place;
}

template <class Cells, class Scores, int kWords, bool kLocal, bool kAffine>
class StripSweep {
   public:
    using Lane = StripLane<Cells, Scores, kWords, kLocal, kAffine>;
    using Task = typename Lane::Task;

    SWS_DEVICE StripSweep(const Sweep& sweep, const SweepPair& pair, u32 pair_number, u32 strip)
        : sweep_(sweep),
          pair_(pair),
          strip_(strip),
          pair_number_(pair_number),
          lane_(static_cast<int>(threadIdx.x) % kWarpSize),
          first_row_(static_cast<int>(strip - pair.first_strip) * Lane::kStripRows),
          n_groups_(static_cast<int>((pair.columns + kDiamondSteps - 1) / kDiamondSteps)) {
        if (sweep.kept_place != nullptr && sweep.kept_place[strip] >= 0) {
            kept_row_ = sweep.kept_place[strip];
        }
    }

    SWS_DEVICE void run(const Scores& scores) {
        const int columns = static_cast<int>(pair_.columns);
        const bool last_strip = first_row_ + Lane::kStripRows >= static_cast<int>(pair_.rows);
        const bool captures = !kLocal && sweep_.costs.subject_free && last_strip;
        Lane lane(scores, sweep_.costs, first_row_, start_base());
        Task task;
        task.columns = columns;
        task.rows = static_cast<int>(pair_.rows) - first_row_;
        task.last_row = captures ? sweep_.lasts + pair_.last_row : nullptr;
        int bar = 1;  // a diamond that reaches less has no end worth knowing
        int best = 0;
        Place place{0, 0};
        const int n_diamonds = n_groups_ + Cells::kLag;
        for (int number = 0; number < n_diamonds; ++number) {
            task.first_step = number * kDiamondSteps;
            enter(lane, task, number);
            leave_to(lane, task, number - Cells::kLag);
            if constexpr (kLocal) {
                const Lane before = lane;
                lane.template run<Steps::kPlain>(task);
                if (__any_sync(kWholeWarp, task.reached >= bar)) {
                    bar = shared_max(task.reached);
                    const int known = static_cast<int>(
                        __shfl_sync(kWholeWarp, static_cast<u32>(load_now(sweep_.known + pair_number_)), 0));
                    if (bar >= known) {
                        task.target = bar;
                        lane = before;
                        lane.template run<Steps::kTracked>(task);
                        const Place first = first_place(task.place);
                        if (bar > best || first.before(place)) {
                            best = bar;
                            place = first;
                        }
                        if (lane_ == 0) {
                            atomicMax(sweep_.known + pair_number_, bar);
                        }
                    }
                }
            } else {
                const bool triangle = number < Cells::kLag || task.first_step + kDiamondSteps > columns;
                if (triangle || captures) {
                    lane.template run<Steps::kMasked>(task);
                } else {
                    lane.template run<Steps::kPlain>(task);
                }
            }
            if (lane_ == 0 && number >= Cells::kLag) {
                store_release(sweep_.finished + strip_, static_cast<u32>(number - Cells::kLag + 1));
            }
        }
        if constexpr (kLocal) {
            if (lane_ == 0) {
                int* const found = sweep_.found + static_cast<u64>(strip_) * 3;
                found[0] = best;
                found[1] = place.column + 1;
                found[2] = first_row_ + place.row + 1;
            }
        } else {
            lane.write_column(sweep_.lasts + pair_.last_column + first_row_, task.rows);
        }
    }

   private:
    SWS_DEVICE int start_base() const {
        return Cells::kRelative ? base_for(sweep_.costs.left_border(first_row_)) : 0;
    }

    SWS_DEVICE int base_for(int corner) const {
        const int base = corner - sweep_.reach;
        return kLocal && base < 0 ? 0 : base;
    }

    // Waits for the row above a diamond, and takes it: H and F of 32 columns, one a lane, relative to a base for the diamond.
    SWS_DEVICE void enter(Lane& lane, Task& task, int group) {
        if (group >= n_groups_) {
#pragma unroll
            for (int i = 0; i < Cells::kEdgeWords; ++i) {
                task.top[i] = 0;  // lane 0 is past the last column
            }
            return;
        }
        const u64 column = pair_.horizon + static_cast<u64>(group) * kDiamondSteps;
        int base = 0;
        if (first_row_ == 0) {
            const int h = sweep_.costs.top_border(group * kDiamondSteps + lane_ + 1);
            base = Cells::kRelative ? base_for(sweep_.costs.top_border(group * kDiamondSteps + 1)) : 0;
            Cells::edge_of(h - base, h - base - sweep_.costs.open - sweep_.costs.extend, task.top);
        } else {
            while (load_acquire(sweep_.finished + strip_ - 1) <= static_cast<u32>(group)) {
                nap();
            }
            const u32* const from = sweep_.horizon + (column + static_cast<u64>(lane_)) * Cells::kEdgeWords;
#pragma unroll
            for (int i = 0; i < Cells::kEdgeWords; ++i) {
                task.top[i] = load_if(true, from + i, 0);
            }
            if (Cells::kRelative) {
                const int above = load_now(sweep_.bases + column / kDiamondSteps);
                const int corner = static_cast<int>(
                    __shfl_sync(kWholeWarp, static_cast<u32>(above + Cells::edge_h(task.top)), 0));
                base = base_for(corner);
                Cells::shift_edge(task.top, above - base);
            }
        }
        if (Cells::kRelative) {
            lane.rebase(base);
        }
    }

    // Says where the lowest row of a group of columns goes.
    SWS_DEVICE void leave_to(const Lane& lane, Task& task, int group) {
        task.below = nullptr;
        task.kept = nullptr;
        if (group < 0) {
            return;
        }
        // What the strip below reads was relative to this diamond's base when lane 0 heard of it.
        const u64 column = pair_.horizon + static_cast<u64>(group) * kDiamondSteps;
        task.below = sweep_.horizon + column * Cells::kEdgeWords;
        u64 kept_column = 0;
        if (kept_row_ >= 0) {
            kept_column = static_cast<u64>(kept_row_) * sweep_.kept_columns + static_cast<u64>(group) * kDiamondSteps;
            task.kept = sweep_.kept + kept_column * Cells::kEdgeWords;
        }
        if (Cells::kRelative && lane_ == 0) {
            sweep_.bases[column / kDiamondSteps] = lane.base();
            if (kept_row_ >= 0) {
                sweep_.kept_bases[kept_column / kDiamondSteps] = lane.base();
            }
        }
    }

    const Sweep& sweep_;
    const SweepPair& pair_;
    u32 strip_;
    u32 pair_number_;
    int lane_;
    int first_row_;
    int n_groups_;  // of 32 columns
    int kept_row_ = -1;
};

// The pair that a strip belongs to.
SWS_DEVICE u32 pair_of(const Sweep& sweep, u32 strip) {
    u32 first = 0;
    u32 last = sweep.n_pairs;
    while (last - first > 1) {
        const u32 middle = first + (last - first) / 2;
        if (sweep.pairs[middle].first_strip <= strip) {
            first = middle;
        } else {
            last = middle;
        }
    }
    return first;
}

// kCompared: letters are compared; else a table scores them.
template <class Cells, int kWords, bool kLocal, bool kAffine, bool kCompared>
SWS_DEVICE void sweep_pairs(u32* shared, const Sweep& sweep) {
    for (;;) {
        u32 strip = 0;
        if (threadIdx.x % kWarpSize == 0) {
            strip = atomicAdd(sweep.work_counter, 1u);
        }
        strip = __shfl_sync(kWholeWarp, strip, 0);
        if (__all_sync(kWholeWarp, strip >= sweep.n_strips)) {
            return;
        }
        const u32 number = pair_of(sweep, strip);
        const SweepPair pair = sweep.pairs[number];
        const int lane = static_cast<int>(threadIdx.x % kWarpSize);
        const int columns = static_cast<int>(pair.columns);
        constexpr int kStripRows = kWords * Cells::kRowsPerWord * kWarpSize;
        const u64 first_letter = pair.query + static_cast<u64>(strip - pair.first_strip) * kStripRows;
        if constexpr (kCompared) {
            using Scores = ComparedScores<Cells, kWords>;
            StripSweep<Cells, Scores, kWords, kLocal, kAffine>(sweep, pair, number, strip)
                .run(Scores(shared, sweep.query, sweep.query.letters + first_letter, sweep.subjects + pair.subject,
                            columns, lane));
        } else {
            using Scores = TableScores<Cells, kWords>;
            StripSweep<Cells, Scores, kWords, kLocal, kAffine>(sweep, pair, number, strip)
                .run(Scores(shared, sweep.query, sweep.query.classes + first_letter, sweep.subjects + pair.subject,
                            columns, lane));
        }
    }
}

}  // namespace swsearch
