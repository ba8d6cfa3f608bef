// LetterWindow: gives each lane of a warp the next subject letters, from a window of 128 columns in shared memory.
//
// Used by the diamond kernels (pair_scores.cuh). In: the subject's letters in global memory (Letter is unsigned char or
// unsigned short). Out: next_four gives the calling lane its next four letters; next_group, called by all lanes,
// advances the window by 32 columns.
//
// Each lane is kLag (1 or 2) columns behind the lane above it, so the lanes read 32 * kLag columns at a time. For every
// 32 columns, each lane loads one letter from global memory into a register, 32 columns before it writes it to shared
// memory for all lanes. A lane also loads its four letters from shared memory one call before it returns them. This
// load must be aligned to four letters; therefore shared memory contains 4 / kLag copies of the window, each shifted by
// kLag more letters.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

constexpr int kWindowColumns = 128;

template <class Letter, int kLag>
class LetterWindow {
   public:
    static constexpr int kCopies = 4 / kLag;
    static constexpr int kSharedWords = kWindowColumns * kCopies * static_cast<int>(sizeof(Letter)) / 4;
    static constexpr int kFourWords = static_cast<int>(sizeof(Letter));
    using Four = u32[kFourWords];  // four letters, lowest bits first
    using Code = u32 (*)(u32);

    // shared: kSharedWords words, aligned to 8 bytes. letters: `columns` letters of the subject; the window holds
    // code(letter), and `fill` in columns outside the subject. start: first column of lane 0, a multiple of 32.
    SWS_DEVICE LetterWindow(u32* shared, const Letter* letters, int columns, u32 fill, Code code, int start, int lane)
        : window_(reinterpret_cast<Letter*>(shared)),
          letters_(letters),
          columns_(columns),
          column_(start - 3 * kWarpSize + lane),
          copy_(lane % kCopies),
          position_(start - kLag * lane + kLag * (lane % kCopies)),
          fill_(fill) {
#pragma unroll 1
        for (int group = 0; group < 4; ++group) {
            fetch();
            store(code);
        }
        fetch();
        __syncwarp();
        read();
    }

    // The letter one column before the lane's first.
    SWS_DEVICE u32 letter_before() const {
        // The first four letters have been read ahead, so position_ is already that of the second four.
        return window_[copy_ * kWindowColumns + static_cast<int>(static_cast<u32>(position_ - 5) % kWindowColumns)];
    }

    // Adds the 32 columns after those that lane 0 reads next.
    SWS_DEVICE void next_group(Code code) {
        __syncwarp();
        store(code);
        __syncwarp();
        fetch();
    }

    // Returns the lane's next four letters.
    SWS_DEVICE void next_four(Four& four) {
#pragma unroll
        for (int i = 0; i < kFourWords; ++i) {
            four[i] = four_ahead_[i];
        }
        read();
    }

   private:
    SWS_DEVICE bool inside() const { return static_cast<u32>(column_) < static_cast<u32>(columns_); }

    SWS_DEVICE void fetch() {
        if (inside()) {
            ahead_ = letters_[column_];
        }
    }

    SWS_DEVICE void store(Code code) {
        const Letter stored = static_cast<Letter>(inside() ? code(ahead_) : fill_);
#pragma unroll
        for (int copy = 0; copy < kCopies; ++copy) {
            const int offset = static_cast<int>(static_cast<u32>(column_ + kLag * copy) % kWindowColumns);
            window_[copy * kWindowColumns + offset] = stored;
        }
        column_ += kWarpSize;
    }

    SWS_DEVICE void read() {
        const int at = copy_ * kWindowColumns + static_cast<int>(static_cast<u32>(position_) % kWindowColumns);
        if constexpr (kFourWords == 1) {
            four_ahead_[0] = *reinterpret_cast<const u32*>(window_ + at);
        } else {
            const uint2 two = *reinterpret_cast<const uint2*>(window_ + at);
            four_ahead_[0] = two.x;
            four_ahead_[1] = two.y;
        }
        position_ += 4;
    }

    Letter* window_;
    const Letter* letters_;
    int columns_;
    int column_;    // column that this lane fetches next
    int copy_;      // copy that this lane reads
    int position_;  // position in that copy of the next four letters to read ahead
    u32 fill_;
    u32 ahead_ = 0;
    Four four_ahead_ = {};
};

}  // namespace swsearch
