// How a strip waits for the one above where both are worked on at a time, by two warps of a block.
//
// Each warp counts the columns that it has left for the strip below in a number of its own in shared memory: the strip's
// number in the upper half, its columns in the lower, so that the count only grows while the warp goes from strip to strip.

#pragma once

#include "swsearch/platform.cuh"

namespace swsearch {

// The strip above was finished before: nothing to wait for, nothing to tell.
struct Finished {
    SWS_DEVICE void wait_for(int) const {}
    SWS_DEVICE void have_left(int) const {}
};

class InOrder {
   public:
    static constexpr u32 kEveryColumn = 0xFFFFFFFFu;

    // above, own: the counts of the warps that have the strip above and this one; number: this strip's.
    SWS_DEVICE InOrder(const volatile u64* above, volatile u64* own, int number) : above_(above), own_(own), number_(number) {}

    // Returns when the strip above has left its first `columns` columns; all lanes of the warp call it together.
    SWS_DEVICE void wait_for(int columns) const {
        const u64 wanted = count(number_ - 1, static_cast<u32>(columns));
        while (__any_sync(kWholeWarp, *above_ < wanted)) {
            let_others_run();
        }
        __threadfence_block();
    }

    // Tells the strip below of `columns` columns; the lane that wrote them calls it. Now and then is enough: a multiple of
    // kTold only.
    SWS_DEVICE void have_left(int columns) const {
        if (columns > 0 && columns % kTold == 0) {
            tell(static_cast<u32>(columns));
        }
    }

    SWS_DEVICE void tell(u32 columns) const {
        __threadfence_block();
        *own_ = count(number_, columns);
    }

   private:
    static constexpr int kTold = 16;

    static SWS_DEVICE u64 count(int number, u32 columns) {
        return static_cast<u64>(static_cast<u32>(number)) << 32 | columns;
    }

    const volatile u64* above_;
    volatile u64* own_;
    int number_;
};

}  // namespace swsearch
