// Sweeps whole matrices by diamonds: pairs of long sequences, or many pairs, each spread over the whole GPU.
//
// A matrix is cut into strips of query rows, a strip into diamonds of 32 steps (diamond.cuh). A diamond is ready when the
// one to its left is done and, in the strip above, the ones whose lowest row lies over it. A warp takes a strip and does
// its diamonds from left to right with the rightmost cells in registers, and waits where the horizon above is not yet
// written. Strips are taken from a counter in order, so a strip waits only for one that a running warp has taken, and the
// kernel always gets on: no more blocks are started than fit the device at a time.
//
// The horizon (horizon.cuh) is overwritten in place by the strip below, whose writes are kDepth columns behind its reads.
// Memory grows with the lengths, not with their product.
//
// Ends. Local: for each strip the best score, and the state before the diamond that reached it first, from which
// locate.cuh finds the place. Only diamonds that exceed the strip's best and reach the best score known anywhere leave
// theirs, so most never do. Others: H of the last row and of the last column, from which the host picks.
//
// Paths. A second sweep of some strips begins below a row that the first one kept: the host puts it into the horizon as it
// was written. The strips then leave their lowest rows and, at checkpoints, the states of their lanes (kEvery).

#pragma once

#include "kernels/diamond.cuh"
#include "swsearch/sweep_parameters.cuh"

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
    int reach;              // from a diamond's corner to its base
    u64* horizon;           // zero at the start
    int* known;             // of each pair, the best score reached so far, zero at the start (local)
    u32* states;            // of each strip, StateLayout::kWords words (local)
    int* found;             // of each strip: best score, or 0; and the diamond that reached it first (local)
    int* lasts;             // last rows and columns (others)
    const int* kept_place;  // of each strip, the number of the row kept for it, or -1; null where none is kept
    u64* kept;              // kept rows, entries as the horizon's
    u32 kept_columns;       // from row to row
    u32* work_counter;
    u32* checkpoints = nullptr;  // of each kept row's strip, the lanes' states at checkpoints (kEvery > 0); may be null
    u32 checkpoint_words = 0;    // of all checkpoints of a strip
};

SWS_DEVICE int shared_max(int value) {
#pragma unroll
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
        const int other = static_cast<int>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(value), distance));
        value = value > other ? value : other;
    }
    return value;
}

// How the state of a strip lies in memory: words of all lanes side by side, then the nodes above the diamond and above those
// after it in which the same score may yet be reached in a smaller column.
template <class Lane>
struct StateLayout {
    static constexpr int kDiamonds = 1 + Lane::kDepth / kDiamondSteps;
    static constexpr int kAbove = Lane::kStateWords * kWarpSize;  // where the nodes begin
    static constexpr int kWords = kAbove + 2 * kDiamonds * kWarpSize;

    static SWS_DEVICE u64* above(u32* state, int diamond, int lane) {
        return reinterpret_cast<u64*>(state + kAbove) + diamond * kWarpSize + lane;
    }
};

// A diamond's base: below all of its scores; in local problems 0 where that is.
template <class Cells, bool kLocal>
SWS_DEVICE int base_below(int corner, int reach) {
    if (!Cells::kRelative) {
        return 0;
    }
    const int base = corner - reach;
    return kLocal && base < 0 ? 0 : base;
}

// kEvery: 0, or the sweep is for a path alone: it looks for no end, and strips whose rows are kept leave their lanes' states
// before every kEvery-th diamond, from the kEvery-th on; it is more than Cells::kLag, so that all lanes have begun.
template <class Cells, class Scores, int kWords, bool kLocal, bool kAffine, int kEvery = 0>
class StripSweep {
   public:
    using Lane = StripLane<Cells, Scores, kWords, kLocal, kAffine, (kEvery > 0)>;
    static constexpr bool kFindsEnds = kEvery == 0;
    static_assert(kFindsEnds || kEvery > Cells::kLag, "a checkpoint's lanes have all begun");
    using Layout = StateLayout<Lane>;

    SWS_DEVICE StripSweep(const Sweep& sweep, const SweepPair& pair, u32 pair_number, u32 strip)
        : sweep_(sweep),
          horizon_(sweep.horizon + pair.horizon + threadIdx.x % kWarpSize),
          known_(sweep.known + pair_number),
          state_(sweep.states + static_cast<u64>(strip) * Layout::kWords),
          lane_(static_cast<int>(threadIdx.x) % kWarpSize),
          strip_(static_cast<int>(strip - pair.first_strip)),
          above_(strip_ * Lane::kStripRows),
          columns_(static_cast<int>(pair.columns)),
          n_groups_((columns_ + kDiamondSteps - 1) / kDiamondSteps) {
        if (sweep.kept_place != nullptr && sweep.kept_place[strip] >= 0) {
            kept_ = sweep.kept + static_cast<u64>(sweep.kept_place[strip]) * sweep.kept_columns + lane_;
            if constexpr (!kFindsEnds) {
                if (sweep.checkpoints != nullptr) {
                    const u64 place = static_cast<u64>(sweep.kept_place[strip]) * sweep.checkpoint_words;
                    checkpoint_ = sweep.checkpoints + place + lane_;
                }
            }
        }
    }

    // found: where the strip's best score goes. last_column: where H of the last column goes from this strip's first row on.
    // rows: rows of the matrix from there on.
    SWS_DEVICE void run(const Scores& scores, u32* lowest_row, int* found, int* last_row, int* last_column, int rows) {
        const bool writes = kFindsEnds && !kLocal && sweep_.costs.subject_free && rows <= Lane::kStripRows;
        const WrittenRow written{writes ? last_row : nullptr, rows - 1};
        Lane lane(scores, sweep_.costs, above_, base_below<Cells, kLocal>(sweep_.costs.left_border(above_), sweep_.reach),
                  lowest_row);
        const int n_diamonds = n_groups_ + Cells::kLag;
        for (int number = 0; number < n_diamonds; ++number) {
            const HorizonNode above = wait(lane, number);
            if constexpr (!kFindsEnds) {
                if (checkpoint_ != nullptr && number > 0 && number % kEvery == 0 && number < n_groups_) {
                    leave_state(lane);
                }
            }
            const int corner = __shfl_sync(kWholeWarp, above.h, 0);
            lane.enter(above, number < n_groups_ ? base_below<Cells, kLocal>(corner, sweep_.reach) : lane.base());
            if constexpr (kLocal && kFindsEnds) {
                const Lane before = lane;
                lane.run();
                look(lane, before, above, number);
            } else if constexpr (kLocal) {
                lane.run();
            } else {
                const int first_step = number * kDiamondSteps;
                const bool triangle = number < Cells::kLag || first_step + kDiamondSteps > columns_;
                if (triangle || writes) {
                    lane.run_at_border(first_step, columns_, written);
                } else {
                    lane.run();
                }
            }
            leave(lane, number - Cells::kLag);
        }
        if constexpr (kLocal && kFindsEnds) {
            if (lane_ == 0) {
                found[0] = best_;
                found[1] = best_diamond_;
            }
        } else if constexpr (kFindsEnds) {
            lane.write_column(last_column, rows);
        }
    }

   private:
    // The row above a diamond, a column a lane, when it is there; lane 0's is the corner.
    SWS_DEVICE HorizonNode wait(const Lane& lane, int group) {
        if (group >= n_groups_) {
            return HorizonNode{lane.base(), lane.base()};  // lane 0 is past the last column
        }
        if (strip_ == 0) {
            const int h = sweep_.costs.top_border(group * kDiamondSteps + lane_ + 1);
            return HorizonNode{h, h - sweep_.costs.first()};
        }
        const u32 tag = strip_tag(strip_ - 1);
        u64 entry = ahead_;
        while (tag_of(entry) != tag) {
            nap();
            entry = look_at(horizon_ + static_cast<u64>(group) * kDiamondSteps);
        }
        __syncwarp();
        if (group + 1 < n_groups_) {
            ahead_ = look_at(horizon_ + static_cast<u64>(group + 1) * kDiamondSteps);
        }
        return node_of(entry);
    }

    // Hands the lowest row of a group of columns on.
    SWS_DEVICE void leave(const Lane& lane, int group) {
        __syncwarp();
        if (group >= 0) {
            const u64 entry = horizon_entry(lane.lowest(), strip_tag(strip_));
            const u64 column = static_cast<u64>(group) * kDiamondSteps;
            publish(horizon_ + column, entry);
            if (kept_ != nullptr) {
                kept_[column] = entry;
            }
        }
        __syncwarp();
    }

    // Leaves the state of all lanes, word by word, at the next checkpoint.
    SWS_DEVICE void leave_state(const Lane& lane) {
        u32 state[Lane::kStateWords];
        lane.save(state);
#pragma unroll
        for (int i = 0; i < Lane::kStateWords; ++i) {
            checkpoint_[i * kWarpSize] = state[i];
        }
        checkpoint_ += Lane::kStateWords * kWarpSize;
    }

    // Local: takes note of a best score, and leaves what is needed to find its place.
    SWS_DEVICE void look(const Lane& lane, const Lane& before, const HorizonNode& above, int number) {
        const int known = __shfl_sync(kWholeWarp, known_ahead_, 0);
        known_ahead_ = load_now(known_);  // used for the next diamond: it need not be new
        const int reached = lane.reached();
        if (__any_sync(kWholeWarp, reached > best_ && reached >= known)) {
            best_ = shared_max(reached);
            best_diamond_ = number;
            u32 state[Lane::kStateWords];
            before.save(state);
#pragma unroll
            for (int i = 0; i < Lane::kStateWords; ++i) {
                state_[i * kWarpSize + lane_] = state[i];
            }
            if (lane_ == 0) {
                atomicMax(known_, best_);
            }
        }
        const int since = number - best_diamond_;
        if (best_ > 0 && since < Layout::kDiamonds) {
            *Layout::above(state_, since, lane_) = horizon_entry(above, 0);
        }
    }

    const Sweep& sweep_;
    u64* horizon_;  // this lane's column of the first group
    int* known_;
    u32* state_;
    u64* kept_ = nullptr;
    u32* checkpoint_ = nullptr;  // this lane's word of the next one
    int lane_;
    int strip_;  // of the pair
    int above_;  // rows above the strip
    int columns_;
    int n_groups_;   // of 32 columns
    u64 ahead_ = 0;  // what this lane saw of the next group
    int known_ahead_ = 0;
    int best_ = 0;
    int best_diamond_ = 0;
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

template <bool kCompared>
struct ScoresFor {
    template <class Cells, int kWords>
    using Type = TableScores<Cells, kWords>;
};

template <>
struct ScoresFor<true> {
    template <class Cells, int kWords>
    using Type = ComparedScores<Cells, kWords>;
};

// What a warp works in: the lowest row of a diamond, then what its scores need. Warps of a block work on their own; they
// share one only so that they spread over the multiprocessor's four schedulers.
SWS_DEVICE u32* shared_of_warp(u32* shared, u32 words_a_warp) { return shared + threadIdx.x / kWarpSize * words_a_warp; }

// kCompared: letters are compared; else a table scores them.
template <class Cells, int kWords, bool kLocal, bool kAffine, bool kCompared, int kEvery = 0>
SWS_DEVICE void sweep_pairs(u32* shared, const Sweep& sweep) {
    using Scores = typename ScoresFor<kCompared>::template Type<Cells, kWords>;
    constexpr int kStripRows = kWords * Cells::kRowsPerWord * kWarpSize;
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    for (;;) {
        u32 strip = 0;
        if (lane == 0) {
            strip = atomicAdd(sweep.work_counter, 1u);
        }
        strip = __shfl_sync(kWholeWarp, strip, 0);
        if (__all_sync(kWholeWarp, strip >= sweep.n_strips)) {
            return;
        }
        const u32 number = pair_of(sweep, strip);
        const SweepPair pair = sweep.pairs[number];
        const u64 above = static_cast<u64>(strip - pair.first_strip) * kStripRows;
        StripSweep<Cells, Scores, kWords, kLocal, kAffine, kEvery>(sweep, pair, number, strip)
            .run(Scores(shared + kLowestRowWords, sweep.query, pair.query + above, sweep.subjects + pair.subject,
                        static_cast<int>(pair.columns), 0, lane),
                 shared, sweep.found + static_cast<u64>(strip) * 2, sweep.lasts + pair.last_row,
                 sweep.lasts + pair.last_column + above, static_cast<int>(pair.rows - above));
    }
}

}  // namespace swsearch
