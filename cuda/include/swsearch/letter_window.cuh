// The subject's letters that a warp's lanes are at: a window of 128 columns in shared memory, moved 32 at a time.
//
// Lanes are kLag columns apart, so they are at 32 * kLag columns at once. For each 32 columns every lane fetches one letter,
// a group ahead of its use, and writes it where all can read it. A lane reads four letters at a time with one load, four
// ahead of their use too. The load must be aligned; therefore the window is there in 4 / kLag copies, each shifted by kLag
// letters more.

#pragma once

#include "swsearch/platform.cuh"

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

    // shared: kSharedWords words, aligned to 8 bytes. letters: of the subject; code makes of each what is kept. Columns beside
    // the subject hold `fill`. Lane 0 begins at column `start`, a multiple of 32.
    SWS_DEVICE LetterWindow(u32* shared, const Letter* letters, int columns, u32 fill, Code code, int start, int lane)
        : window_(reinterpret_cast<Letter*>(shared)),
          letters_(letters),
          columns_(columns),
          column_(start - 3 * kWarpSize + lane),
          copy_(lane % kCopies),
          place_(start - kLag * lane + kLag * (lane % kCopies)),
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

    // The letter that the lane had before its first.
    SWS_DEVICE u32 letter_before() const {
        // The first four are read ahead, so the lane's place is at the second.
        return window_[copy_ * kWindowColumns + static_cast<int>(static_cast<u32>(place_ - 5) % kWindowColumns)];
    }

    // Makes 32 more columns readable, the ones after those that lane 0 comes to next.
    SWS_DEVICE void next_group(Code code) {
        __syncwarp();
        store(code);
        __syncwarp();
        fetch();
    }

    // The lane's next four letters.
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
        const Letter kept = static_cast<Letter>(inside() ? code(ahead_) : fill_);
#pragma unroll
        for (int copy = 0; copy < kCopies; ++copy) {
            window_[copy * kWindowColumns + static_cast<int>(static_cast<u32>(column_ + kLag * copy) % kWindowColumns)] = kept;
        }
        column_ += kWarpSize;
    }

    SWS_DEVICE void read() {
        const int at = copy_ * kWindowColumns + static_cast<int>(static_cast<u32>(place_) % kWindowColumns);
        if constexpr (kFourWords == 1) {
            four_ahead_[0] = *reinterpret_cast<const u32*>(window_ + at);
        } else {
            const uint2 two = *reinterpret_cast<const uint2*>(window_ + at);
            four_ahead_[0] = two.x;
            four_ahead_[1] = two.y;
        }
        place_ += 4;
    }

    Letter* window_;
    const Letter* letters_;
    int columns_;
    int column_;  // that this lane fetches
    int copy_;
    int place_;   // of the next four in the lane's copy
    u32 fill_;
    u32 ahead_ = 0;
    Four four_ahead_ = {};
};

}  // namespace swsearch
