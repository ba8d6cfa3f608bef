// Windows of long subjects that are proven to be exact: what lanes hold where two windows meet, and whether it is the same.
//
// A subject's columns are a chain, so windows of it are scored side by side, each but the first begun some columns early
// with zeros in place of what came before. Zeros are a lower bound: no cell is larger than the subject's own. Alignments
// that end in background sequence are short, and within a few hundred columns a window holds, cell for cell, what the one
// before it held there. From then on the two are the same function of the same values. So a window keeps what its lanes
// hold at a checkpoint, some columns behind its begin. The window before ends there and compares: if both hold the same, and the
// earlier window is right, so is the later one. (In other words the columns between the two points, as a map of max-plus
// algebra, have converged to a constant: Maleki, Musuvathi, Mytkowicz 2014.)
//
// Where they differ, an alignment may reach across. The earlier window goes on then, to the next of a few checkpoints, until both
// hold the same. It meets the later one in memory: windows are handed out from a subject's last to its first, so the one that
// is waited for was begun before. All strips must agree on a checkpoint, so this needs a warp for each. Where they have none, or
// differ at the last checkpoint as well, windows keep what they hold at their end, and the host compares it and asks for longer
// ones.
//
// Strips come to a checkpoint from the first to the last, so one that sees that all agree may end before those below it, which
// have voted by then. They look after every round, and see it, before they use columns of the boundary that they have read
// ahead and that the ended strip never wrote. So they must look each round, and read no more than a round ahead.
//
// Lanes are columns apart, and they are compared after the same step rather than the same column: along the slant at which
// windows are cut (column_range.cuh). Windows begin at multiples of a round, so their lanes lie alike.

#pragma once

#include "kernels/strip.cuh"

namespace swsearch {

// Checkpoints at which two windows may meet, and columns from one to the next.
constexpr int kCheckpoints = 4;
constexpr int kCheckpointStride = 64;
constexpr int kFurtherColumns = (kCheckpoints - 1) * kCheckpointStride;
static_assert(kCheckpoints <= 4, "a word has a byte for the votes on each checkpoint");

// Words that a lane keeps at a checkpoint: H and E of its rows, H above them, and what it hands on.
template <class Shape>
constexpr int kCheckpointWords = 2 * Shape::kWords + 3;

// before: of each window, the subject's columns before its first one.
// entries: its columns before the first checkpoint with the window before, 0 where there is none; of one window more than there
// are. steps: its columns before the first checkpoint with the next one, or so many that all lanes come to the subject's end
// (column_range.cuh); where windows meet, kFurtherColumns more than its entry at least, so that it comes to all checkpoints at which the
// window before may wait for it. All are multiples of 4.
// words: of each window kCheckpointWords x lanes for each strip at each checkpoint with the window before, then the same at its end.
// reached: checkpoints that each strip of each window has kept, 0 before the launch; null if windows do not meet.
// agreed: of each window, for each checkpoint with the next one a byte: strips that hold the same; 0 before the launch.
struct Checkpoints {
    const u32* before;
    const u32* entries;
    const u32* steps;
    u32* words;
    u64* reached;
    u32* agreed;
};

// Keeps a lane's state at the checkpoints of a window, and lets the window end where it meets the next one.
template <class Shape>
class AtCheckpoints {
   public:
    static constexpr bool kRows = false;
    static constexpr bool kRounds = true;

    SWS_DEVICE AtCheckpoints(const Checkpoints& checkpoints, u32 window, int strip, int n_strips, int lane)
        : checkpoints_(checkpoints), window_(window), strip_(strip), n_strips_(n_strips), lane_(lane), due_(next_due(0)) {}

    // columns: steps that were done; returns how many shall be, `n_steps` or more.
    template <class Word>
    SWS_DEVICE int round(int columns, int n_steps, const Word (&kept)[Shape::kWords], const Word (&e)[Shape::kWords],
                         Word corner, Word last_h, Word last_f) {
        if (columns != due_) {
            return n_steps;
        }
        const auto each = [&](auto use) {
#pragma unroll
            for (int k = 0; k < Shape::kWords; ++k) {
                use(2 * k, static_cast<u32>(kept[k]));
                use(2 * k + 1, static_cast<u32>(e[k]));
            }
            use(2 * Shape::kWords, static_cast<u32>(corner));
            use(2 * Shape::kWords + 1, static_cast<u32>(last_h));
            use(2 * Shape::kWords + 2, static_cast<u32>(last_f));
        };
        const auto keep = [&](int place) {
            u32* const to = words_of(window_, place);
            each([to](int number, u32 word) { to[number * kWarpSize] = word; });
        };
        const int behind_entry = columns - entry();
        if (has_checkpoint(behind_entry)) {
            keep(behind_entry / kCheckpointStride);
            if (checkpoints_.reached != nullptr) {
                __threadfence();
                __syncwarp();
                if (lane_ == 0) {
                    __threadfence();  // for what the other lanes wrote, which the barrier ordered before
                    publish(reached_by(window_), static_cast<u64>(behind_entry / kCheckpointStride + 1));
                }
            }
        }
        const int behind_end = columns - end();
        if (behind_end == 0) {
            keep(kCheckpoints);
        }
        if (behind_end >= 0 && checkpoints_.reached != nullptr && checkpoints_.entries[window_ + 1] != 0) {
            u32 agrees = 0;
            if (behind_end % kCheckpointStride == 0) {
                const int checkpoint = behind_end / kCheckpointStride;
                const u64* const reached = reached_by(window_ + 1);
                while (__any_sync(kWholeWarp, look_at(reached) <= static_cast<u64>(checkpoint))) {
                    nap();
                }
                __threadfence();
                const u32* const other = words_of(window_ + 1, checkpoint);
                u32 unlike = 0;
                each([other, &unlike](int number, u32 word) { unlike |= other[number * kWarpSize] ^ word; });
                agrees = __any_sync(kWholeWarp, unlike != 0) ? 0 : 1u << (8 * checkpoint);
            }
            n_steps = all_agree(agrees) || behind_end == kFurtherColumns ? columns : columns + kColumnsPerRound;
        }
        due_ = next_due(columns);
        return n_steps;
    }

   private:
    static constexpr u32 kStripWords = kCheckpointWords<Shape> * kWarpSize;

    SWS_DEVICE int entry() const { return static_cast<int>(checkpoints_.entries[window_]); }
    SWS_DEVICE int end() const { return static_cast<int>(checkpoints_.steps[window_]); }

    // Whether there is a checkpoint with the window before so many columns behind the first one.
    SWS_DEVICE bool has_checkpoint(int behind) const {
        return entry() != 0 && behind >= 0 && behind <= last_checkpoint() && behind % kCheckpointStride == 0;
    }
    SWS_DEVICE int last_checkpoint() const { return checkpoints_.reached != nullptr ? kFurtherColumns : 0; }

    // The next columns after which something is to be done.
    SWS_DEVICE int next_due(int columns) const {
        const int at_end = columns < end() ? end() : columns + kColumnsPerRound;
        const int behind = columns - entry();
        if (entry() == 0 || behind >= last_checkpoint()) {
            return at_end;
        }
        const int at_checkpoint = behind < 0 ? entry() : columns + kCheckpointStride - behind % kCheckpointStride;
        return at_checkpoint < at_end ? at_checkpoint : at_end;
    }

    // Whether all strips agree on some checkpoint; `agrees`: 1 in the byte of one that this strip agrees on, or 0.
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

    SWS_DEVICE u32* words_of(u32 window, int place) const {
        const u64 strips = (static_cast<u64>(window) * (kCheckpoints + 1) + static_cast<u32>(place)) * static_cast<u32>(n_strips_);
        return checkpoints_.words + (strips + static_cast<u32>(strip_)) * kStripWords + static_cast<u32>(lane_);
    }

    Checkpoints checkpoints_;
    u32 window_;
    int strip_;
    int n_strips_;
    int lane_;
    int due_;
};

// Sets differs[w] where window w does not hold at its entry what window w - 1 held at its end; a block a window.
SWS_DEVICE void compare_checkpoints(const u32* entries, const uint4* words, u32 n_windows, u32 units_per_checkpoint, int* differs) {
    for (u32 window = blockIdx.x; window < n_windows; window += gridDim.x) {
        if (entries[window] == 0) {
            continue;
        }
        const uint4* const entry = words + static_cast<u64>(window) * (kCheckpoints + 1) * units_per_checkpoint;
        const uint4* const end = entry - units_per_checkpoint;
        u32 unlike = 0;
#pragma unroll 4
        for (u32 unit = threadIdx.x; unit < units_per_checkpoint; unit += blockDim.x) {
            const uint4 one = entry[unit];
            const uint4 other = end[unit];
            unlike |= (one.x ^ other.x) | (one.y ^ other.y) | (one.z ^ other.z) | (one.w ^ other.w);
        }
        if (unlike != 0) {
            differs[window] = 1;
        }
    }
}

}  // namespace swsearch
