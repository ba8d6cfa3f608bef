// How a strip waits for the one above where both are worked on at a time, by two warps of a block.
//
// Each warp counts the columns that it has left for the strip below, in a number of its own: the strip's number in the upper
// half, its columns in the lower, so that the count only grows while the warp goes from strip to strip of a subject.

#pragma once

#include "swsearch/platform.cuh"

namespace swsearch {

// The strip above was finished before: nothing to wait for, nothing to tell.
struct Finished {
    SWS_DEVICE void wait_for(int) {}
    SWS_DEVICE void have_left(int) {}
};

class StripSync {
   public:
    // above, own: the counts of the warps that have the strip above and this one, or null where nobody waits; number: this
    // strip's.
    SWS_DEVICE StripSync(const u64* above, u64* own, int number)
        : above_(above), own_(own), number_(static_cast<u64>(static_cast<u32>(number)) << 32) {}

    // Returns when the strip above has left its first `columns` columns; all lanes of the warp call it together.
    SWS_DEVICE void wait_for(int columns) {
        const u64 wanted = number_ - kNextStrip + static_cast<u32>(columns);
        if (above_ == nullptr) {
            return;
        }
        // The fence waits for all that the warp has asked memory for, so it stays out of the way where nothing is new.
        if (__any_sync(kWholeWarp, seen_ < wanted)) {
            do {
                let_others_run();
                seen_ = look_in_block(above_);
            } while (__any_sync(kWholeWarp, seen_ < wanted));
            __threadfence_block();
        }
    }

    // Tells the strip below of `columns` columns; the lane that wrote them calls it. It is enough to tell now and then.
    SWS_DEVICE void have_left(int columns) {
        if (own_ != nullptr && columns > 0 && columns % kTold == 0) {
            show_in_block(own_, number_ + static_cast<u32>(columns));
        }
    }

    // Tells it of all columns.
    SWS_DEVICE void finish() {
        if (own_ != nullptr) {
            show_in_block(own_, number_ + 0xFFFFFFFFu);
        }
    }

   private:
    static constexpr int kTold = 16;
    static constexpr u64 kNextStrip = 1ull << 32;

    const u64* above_;
    u64* own_;
    u64 number_;
    u64 seen_ = 0;
};

}  // namespace swsearch
