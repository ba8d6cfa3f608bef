// Verified windows of long subjects: this file saves the states of the lanes at the columns where two windows meet, and
// compares the states, which proves that the later window is exact. The kernel itself is in intra_task.cuh and uses the
// CheckpointObserver of this file; the exact scores and lengths are those given there. The inputs and outputs are the
// members of Checkpoints.
//
// Method. Each column of a subject depends on the column before it. To score windows of a subject at the same time,
// each window except the first begins some columns early, with zeros in place of the state before it. Zeros are a lower
// bound: no cell of a window is larger than the same cell of the subject. Alignments that end in background sequence
// are short, so within a few hundred columns a window has, cell for cell, the same values as the window before it. From
// there on both are the same function of the same values. A window therefore saves the state of its lanes at a
// checkpoint some columns after its beginning, and the window before it ends there and compares the states. If the
// states are equal and the earlier window is exact, so is the later one. (In terms of max-plus algebra, the map that
// the columns between the two points define has converged to a constant: Maleki, Musuvathi, Mytkowicz 2014.)
//
// Extension. If the states differ, an alignment may cross the checkpoint. The earlier window is then extended to the
// next of a few checkpoints, until the states are equal. It reads the later window's states from memory: the windows of
// a subject are scheduled from the last to the first, so the window that another one waits for began earlier. All
// strips must agree at a checkpoint, so extension requires a warp for each strip. Without these warps, or if the states
// still differ at the last checkpoint, a window saves its state at its end; compare_checkpoints then compares the
// states, and the host scores longer windows.
//
// Votes. Strips reach a checkpoint in order, from the first to the last, so a strip that finds that all strips agree
// may end before the strips below it, all of which have voted by then. Those strips check the votes after every round,
// and find the agreement before they use boundary columns that they have read ahead and that the ended strip never
// wrote. This is correct only because they check every round and read no more than one round ahead.
//
// Slant. Neighbouring lanes are one or more columns apart. Their states are compared after the same step, not at the
// same column, that is, along the slant at which windows are cut (column_range.cuh). Windows begin at multiples of a
// round, so the same lanes of two windows are at the same columns.

#pragma once

#include "search/strip.cuh"

namespace swsearch {

// Number of checkpoints at which two windows may meet, columns from one to the next, and columns from the first to
// the last.
constexpr int kCheckpoints = 4;
constexpr int kCheckpointStride = 64;
constexpr int kExtensionColumns = (kCheckpoints - 1) * kCheckpointStride;
static_assert(kCheckpoints <= 4, "a word has a byte for the votes on each checkpoint");

// Words that a lane saves at a checkpoint: H and E of its rows, H above its first row, and H and F of its last row.
template <class Shape>
constexpr int kCheckpointWords = 2 * Shape::kWords + 3;

// The windows of a launch. All numbers of columns are multiples of 4.
struct Checkpoints {
    // For each window, the subject's columns before its first one.
    const u32* before;
    // For each window, its columns before the first checkpoint that it shares with the window before; 0 if there is no
    // such window. The array has one entry more than there are windows.
    const u32* entries;
    // For each window, its columns before the first checkpoint that it shares with the next window, or enough columns
    // for all lanes to pass the subject's end (column_range.cuh). Where windows are extended, at least
    // kExtensionColumns more than the window's entry, so that the window reaches every checkpoint at which the window
    // before it may wait.
    const u32* steps;
    // For each window, its states at each of the kCheckpoints checkpoints with the window before, then its state at its
    // end. A state has, for each strip, kCheckpointWords words of each lane: [strip][word][lane].
    u32* words;
    // For each strip of each window, the number of checkpoints whose states it has saved; 0 before the launch. Null if
    // windows are not extended.
    u64* reached;
    // For each window, a word with a byte for each checkpoint that it shares with the next window: the number of strips
    // whose states are equal there; 0 before the launch.
    u32* agreed;
};

// Saves a lane's state at the checkpoints of a window, and ends the window where its state equals that of the next
// window.
template <class Shape>
class CheckpointObserver {
   public:
    static constexpr bool kObservesWords = false;
    static constexpr bool kObservesRounds = true;

    SWS_DEVICE CheckpointObserver(const Checkpoints& checkpoints, u32 window, int strip, int n_strips, int lane)
        : checkpoints_(checkpoints),
          window_(window),
          strip_(strip),
          n_strips_(n_strips),
          lane_(lane),
          due_(next_due(0)) {}

    // columns: number of steps computed so far. Returns the total number of steps to compute.
    template <class Word>
    SWS_DEVICE int round(int columns, int n_steps, const Word (&diagonal_h)[Shape::kWords],
                         const Word (&e)[Shape::kWords], Word corner, Word last_h, Word last_f) {
        if (columns != due_) {
            return n_steps;
        }
        const auto for_each_word = [&](auto use) {
#pragma unroll
            for (int k = 0; k < Shape::kWords; ++k) {
                use(2 * k, static_cast<u32>(diagonal_h[k]));
                use(2 * k + 1, static_cast<u32>(e[k]));
            }
            use(2 * Shape::kWords, static_cast<u32>(corner));
            use(2 * Shape::kWords + 1, static_cast<u32>(last_h));
            use(2 * Shape::kWords + 2, static_cast<u32>(last_f));
        };
        const auto save = [&](int index) {
            u32* const saved = words_of(window_, index);
            for_each_word([saved](int number, u32 word) { saved[number * kWarpSize] = word; });
        };
        const int past_entry = columns - entry();
        if (has_checkpoint(past_entry)) {
            save(past_entry / kCheckpointStride);
            if (checkpoints_.reached != nullptr) {
                __threadfence();
                __syncwarp();
                if (lane_ == 0) {
                    __threadfence();  // also covers the other lanes' writes, which the barrier put before it
                    publish(reached_by(window_), static_cast<u64>(past_entry / kCheckpointStride + 1));
                }
            }
        }
        const int past_end = columns - end();
        if (past_end == 0) {
            save(kCheckpoints);
        }
        if (past_end >= 0 && checkpoints_.reached != nullptr && checkpoints_.entries[window_ + 1] != 0) {
            u32 agrees = 0;
            if (past_end % kCheckpointStride == 0) {
                const int checkpoint = past_end / kCheckpointStride;
                const u64* const reached = reached_by(window_ + 1);
                while (__any_sync(kWholeWarp, look_at(reached) <= static_cast<u64>(checkpoint))) {
                    nap();
                }
                __threadfence();
                const u32* const other = words_of(window_ + 1, checkpoint);
                u32 difference = 0;
                for_each_word(
                    [other, &difference](int number, u32 word) { difference |= other[number * kWarpSize] ^ word; });
                agrees = __any_sync(kWholeWarp, difference != 0) ? 0 : 1u << (8 * checkpoint);
            }
            n_steps = all_agree(agrees) || past_end == kExtensionColumns ? columns : columns + kColumnsPerRound;
        }
        due_ = next_due(columns);
        return n_steps;
    }

   private:
    static constexpr u32 kStripWords = kCheckpointWords<Shape> * kWarpSize;

    SWS_DEVICE int entry() const { return static_cast<int>(checkpoints_.entries[window_]); }
    SWS_DEVICE int end() const { return static_cast<int>(checkpoints_.steps[window_]); }

    // Whether there is a checkpoint with the window before, `past_entry` columns after the first one.
    SWS_DEVICE bool has_checkpoint(int past_entry) const {
        return entry() != 0 && past_entry >= 0 && past_entry <= last_checkpoint() &&
               past_entry % kCheckpointStride == 0;
    }
    SWS_DEVICE int last_checkpoint() const { return checkpoints_.reached != nullptr ? kExtensionColumns : 0; }

    // The next number of columns after which this observer has work to do.
    SWS_DEVICE int next_due(int columns) const {
        const int at_end = columns < end() ? end() : columns + kColumnsPerRound;
        const int past_entry = columns - entry();
        if (entry() == 0 || past_entry >= last_checkpoint()) {
            return at_end;
        }
        const int at_checkpoint =
            past_entry < 0 ? entry() : columns + kCheckpointStride - past_entry % kCheckpointStride;
        return at_checkpoint < at_end ? at_checkpoint : at_end;
    }

    // Adds this strip's vote and returns whether all strips agree at some checkpoint. agrees: 1 in the byte of the
    // checkpoint at which this strip agrees, or 0.
    SWS_DEVICE bool all_agree(u32 agrees) const {
        u32* const counts = checkpoints_.agreed + window_;
        u32 agreed = 0;
        if (lane_ == 0) {
            agreed = agrees != 0 ? atomicAdd(counts, agrees) + agrees
                                 : static_cast<u32>(load_now(reinterpret_cast<const int*>(counts)));
        }
        agreed = __shfl_sync(kWholeWarp, agreed, 0);
        bool all = false;
#pragma unroll
        for (int checkpoint = 0; checkpoint < kCheckpoints; ++checkpoint) {
            all |= (agreed >> (8 * checkpoint) & 0xFFu) == static_cast<u32>(n_strips_);
        }
        return all;
    }

    SWS_DEVICE u64* reached_by(u32 window) const {
        return checkpoints_.reached + static_cast<u64>(window) * static_cast<u32>(n_strips_) + static_cast<u32>(strip_);
    }

    // This lane's first word of the state that the strip of a window saves at a checkpoint, or at the end for
    // kCheckpoints.
    SWS_DEVICE u32* words_of(u32 window, int index) const {
        const u64 strips =
            (static_cast<u64>(window) * (kCheckpoints + 1) + static_cast<u32>(index)) * static_cast<u32>(n_strips_);
        return checkpoints_.words + (strips + static_cast<u32>(strip_)) * kStripWords + static_cast<u32>(lane_);
    }

    Checkpoints checkpoints_;
    u32 window_;
    int strip_;
    int n_strips_;
    int lane_;
    int due_;
};

}  // namespace swsearch
