// The diamond kernel: the scores of one or more pairs of long sequences, each of which is distributed over the complete
// GPU. The problems are local, global and semi-global alignment, edit distance and longest common subsequence. The
// recurrence is that of diamond.cuh. Inputs: the letters and the table of the pairs (Sweep). Outputs: in local problems
// each strip's best score and its diamond, in others H of the last rows and columns; on request, saved rows and lane
// states for a path.
//
// The method follows US patent 9,110,855 (docs/design/diamond.md, which explains how strips are taken, and why the
// kernel always makes progress). A warp computes the diamonds of a strip from left to right, and waits if the horizon
// above has not been written.
//
// Memory. The horizon (horizon.cuh) has an entry for each column, padded to complete diamonds. The strip below
// overwrites it in place, because it writes columns kDepth columns behind those that it reads. Memory grows with the
// lengths of the sequences, not with their product. The members of Sweep are described below.
//
// Ends. In local problems, each strip stores its best score and the state before the diamond that first reached it,
// from which locate_best.cu finds the position. A diamond's state is stored only if the diamond exceeds the strip's
// best score and reaches the best score known for the pair, so most diamonds store no state. In the other problems H of
// the last row and of the last column is stored, and the host chooses the end.
//
// Paths. A second sweep of some strips (trace_pairs, kEvery > 0) begins below a row that the first sweep saved: the
// host copies that row into the horizon. The strips then save their lowest rows and, at checkpoints, the states of
// their lanes.
//
// Exact scores and lengths: see diamond.cuh. Lengths are below 2^31.

#pragma once

#include "pairs/diamond.cuh"

namespace swsearch {

// One pair and its matrix, as swsearch/engine/cuda/pairs/diamond_launch.py lays it out.
struct SweepPair {
    u64 query;        // index of the first query letter
    u64 subject;      // byte offset of the first subject letter
    u64 horizon;      // index of its first column in the horizon, a multiple of 32
    u64 last_row;     // index in border_scores of H of the last row
    u64 last_column;  // index in border_scores of H of the last column
    u32 rows;
    u32 columns;
    u32 first_strip;  // number of strips of the pairs before it
    u32 unused;
};

// The parameters of a launch. "local" marks members that only local problems use.
struct Sweep {
    const SweepPair* pairs;
    u32 n_pairs;
    u32 n_strips;                   // of all pairs
    QueryLetters query;             // letters of all queries, each padded to complete strips
    const unsigned char* subjects;  // letters of all subjects: bytes, or 16-bit letters if they are compared
    PairCosts costs;
    int reach;                   // difference between a diamond's corner and its base (cells.cuh)
    u64* horizon;                // one entry per column, zero before the first launch
    int* best_known;             // local: for each pair, the best score reached so far; zero before the first launch
    u32* states;                 // local: for each strip, StateLayout::kWords words
    int* found;                  // local: for each strip, its best score or 0, and the diamond that reached it first
    int* border_scores;          // other problems: H of last rows and last columns
    const int* saved_row_index;  // for each strip, the index of its saved row, or -1; null if no row is saved
    u64* saved_rows;             // saved rows, with entries as in the horizon
    u32 saved_row_columns;       // entries from one saved row to the next
    u32 words_per_warp;          // words of shared memory
    u32* work_counter;           // next strip to compute
    u32* checkpoints;            // kEvery > 0: for each saved row, its strip's states at checkpoints; may be null
    u32 checkpoint_words;        // words of all checkpoints of a strip
};

// The largest value of all lanes, in all lanes.
SWS_DEVICE int shared_max(int value) {
#pragma unroll
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
        const int other = static_cast<int>(__shfl_xor_sync(kWholeWarp, static_cast<u32>(value), distance));
        value = value > other ? value : other;
    }
    return value;
}

// The layout of a strip's state in memory: the words of all lanes, [word][lane], then the horizon nodes above the
// diamond and above those diamonds after it in which the same score may still be reached in a smaller column.
template <class Lane>
struct StateLayout {
    static constexpr int kDiamonds = 1 + Lane::kDepth / kDiamondSteps;
    static constexpr int kAbove = Lane::kStateWords * kWarpSize;  // offset of the nodes
    static constexpr int kWords = kAbove + 2 * kDiamonds * kWarpSize;

    static SWS_DEVICE u64* above(u32* state, int diamond, int lane) {
        return reinterpret_cast<u64*>(state + kAbove) + diamond * kWarpSize + lane;
    }
};

// A diamond's base (cells.cuh): corner - reach, but at least 0 in local problems; 0 for cells with absolute scores.
// corner: H at the diamond's corner.
template <class Cells, bool kLocal>
SWS_DEVICE int base_below(int corner, int reach) {
    if (!Cells::kRelative) {
        return 0;
    }
    const int base = corner - reach;
    return kLocal && base < 0 ? 0 : base;
}

// The sweep of one strip.
//
// kEvery: 0 in a sweep that finds ends. Otherwise the sweep serves for a path only: it finds no ends, and strips whose
// rows are saved store their lanes' states before every kEvery-th diamond, from the kEvery-th on. kEvery is larger than
// Cells::kLag, so that all lanes have begun.
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
          best_known_(sweep.best_known + pair_number),
          state_(sweep.states + static_cast<u64>(strip) * Layout::kWords),
          lane_(static_cast<int>(threadIdx.x) % kWarpSize),
          strip_(static_cast<int>(strip - pair.first_strip)),
          above_(strip_ * Lane::kStripRows),
          columns_(static_cast<int>(pair.columns)),
          n_groups_((columns_ + kDiamondSteps - 1) / kDiamondSteps) {
        if (sweep.saved_row_index != nullptr && sweep.saved_row_index[strip] >= 0) {
            saved_row_ =
                sweep.saved_rows + static_cast<u64>(sweep.saved_row_index[strip]) * sweep.saved_row_columns + lane_;
            if constexpr (!kFindsEnds) {
                if (sweep.checkpoints != nullptr) {
                    const u64 offset = static_cast<u64>(sweep.saved_row_index[strip]) * sweep.checkpoint_words;
                    checkpoint_ = sweep.checkpoints + offset + lane_;
                }
            }
        }
    }

    // lowest_row: shared memory for StripLane. found: receives the strip's best score and its diamond. last_row:
    // receives H of the last row. last_column: receives H of the last column from this strip's first row on. rows:
    // number of rows of the matrix from this strip's first row on.
    SWS_DEVICE void run(const Scores& scores, u32* lowest_row, int* found, int* last_row, int* last_column, int rows) {
        const bool any_column = !kLocal && sweep_.costs.free_ends.has(kSubjectEnd);
        const bool writes_last_row = kFindsEnds && any_column && rows <= Lane::kStripRows;
        const WrittenRow written{writes_last_row ? last_row : nullptr, rows - 1};
        const int base = base_below<Cells, kLocal>(sweep_.costs.left_border(above_), sweep_.reach);
        Lane lane(scores, sweep_.costs, above_, base, lowest_row);
        const int n_diamonds = n_groups_ + Cells::kLag;
        for (int number = 0; number < n_diamonds; ++number) {
            const HorizonNode above = node_above(lane, number);
            if constexpr (!kFindsEnds) {
                if (checkpoint_ != nullptr && number > 0 && number % kEvery == 0 && number < n_groups_) {
                    save_state(lane);
                }
            }
            const int corner = __shfl_sync(kWholeWarp, above.h, 0);
            lane.enter(above, number < n_groups_ ? base_below<Cells, kLocal>(corner, sweep_.reach) : lane.base());
            if constexpr (kLocal && kFindsEnds) {
                const Lane before = lane;
                lane.run();
                record_best(lane, before, above, number);
            } else if constexpr (kLocal) {
                lane.run();
            } else {
                const int first_step = number * kDiamondSteps;
                const bool triangle = number < Cells::kLag || first_step + kDiamondSteps > columns_;
                if (triangle || writes_last_row) {
                    lane.run_at_border(first_step, columns_, written);
                } else {
                    lane.run();
                }
            }
            write_lowest_row(lane, number - Cells::kLag);
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
    // Waits for the row above a group of 32 columns and returns this lane's node of it. H of lane 0 is the diamond's
    // corner.
    SWS_DEVICE HorizonNode node_above(const Lane& lane, int group) {
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

    // Writes the strip's lowest row in a group of 32 columns to the horizon.
    SWS_DEVICE void write_lowest_row(const Lane& lane, int group) {
        __syncwarp();
        if (group >= 0) {
            const u64 entry = horizon_entry(lane.lowest(), strip_tag(strip_));
            const u64 column = static_cast<u64>(group) * kDiamondSteps;
            publish(horizon_ + column, entry);
            if (saved_row_ != nullptr) {
                saved_row_[column] = entry;
            }
        }
        __syncwarp();
    }

    // Saves the state of all lanes, [word][lane], as the next checkpoint.
    SWS_DEVICE void save_state(const Lane& lane) {
        u32 state[Lane::kStateWords];
        lane.save(state);
#pragma unroll
        for (int i = 0; i < Lane::kStateWords; ++i) {
            checkpoint_[i * kWarpSize] = state[i];
        }
        checkpoint_ += Lane::kStateWords * kWarpSize;
    }

    // Local problems: records a best score and saves the data from which its position is found. before: the lane's
    // state before the diamond. above: this lane's node above the diamond.
    SWS_DEVICE void record_best(const Lane& lane, const Lane& before, const HorizonNode& above, int number) {
        const int known = __shfl_sync(kWholeWarp, best_known_ahead_, 0);
        best_known_ahead_ = load_now(best_known_);  // used for the next diamond; it may be outdated
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
                atomicMax(best_known_, best_);
            }
        }
        const int since = number - best_diamond_;
        if (best_ > 0 && since < Layout::kDiamonds) {
            *Layout::above(state_, since, lane_) = horizon_entry(above, 0);
        }
    }

    const Sweep& sweep_;
    u64* horizon_;  // entry of this lane's column in the first group
    int* best_known_;
    u32* state_;
    u64* saved_row_ = nullptr;
    u32* checkpoint_ = nullptr;  // this lane's first word of the next checkpoint
    int lane_;
    int strip_;  // number of the strip in its pair
    int above_;  // rows above the strip
    int columns_;
    int n_groups_;   // groups of 32 columns
    u64 ahead_ = 0;  // this lane's entry of the next group, as last read
    int best_known_ahead_ = 0;
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

// The class that scores letters (pair_scores.cuh).
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

// The shared memory of a warp: the lowest row of a diamond, then the letter window and the table of its scores. The
// warps of a block are independent; they form a block only so that they are distributed over the four schedulers of a
// multiprocessor.
SWS_DEVICE u32* shared_of_warp(uint4* shared, const Sweep& sweep) {
    return reinterpret_cast<u32*>(shared) + threadIdx.x / kWarpSize * sweep.words_per_warp;
}

// shared: the warp's shared memory. kCompared: letters are compared; else a table scores them.
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
                 shared, sweep.found + static_cast<u64>(strip) * 2, sweep.border_scores + pair.last_row,
                 sweep.border_scores + pair.last_column + above, static_cast<int>(pair.rows - above));
    }
}

}  // namespace swsearch
