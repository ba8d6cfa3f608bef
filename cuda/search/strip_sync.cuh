// Synchronisation between two strips of a query that two warps of a block compute at the same time.
//
// Each warp has a 64-bit counter of its own in memory, by which it reports the columns that it has written for the
// strip below: the upper 32 bits are the number of its strip, the lower 32 bits the number of columns. Therefore the
// counter only increases while the warp proceeds from strip to strip of a subject.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

// No synchronisation: the strip above was complete before this one began.
struct NoSync {
    SWS_DEVICE void wait_for(int) {}
    SWS_DEVICE void report(int) {}
};

class StripSync {
   public:
    // above, own: counters of the warps that compute the strip above and this strip; null if no synchronisation is
    // needed. number: the number of this strip.
    SWS_DEVICE StripSync(const u64* above, u64* own, int number)
        : above_(above), own_(own), number_(static_cast<u64>(static_cast<u32>(number)) << 32) {}

    // Returns when the strip above has written its first `columns` columns. All lanes of the warp call it together.
    SWS_DEVICE void wait_for(int columns) {
        const u64 wanted = number_ - kNextStrip + static_cast<u32>(columns);
        if (above_ == nullptr) {
            return;
        }
        // The fence waits for every outstanding memory access of the warp, so it is omitted if the columns are known to
        // be written.
        if (__any_sync(kWholeWarp, seen_ < wanted)) {
            do {
                let_others_run();
                seen_ = look_in_block(above_);
            } while (__any_sync(kWholeWarp, seen_ < wanted));
            __threadfence_block();
        }
    }

    // Reports to the strip below that `columns` columns have been written. The lane that wrote them calls this
    // function. Only every kReportInterval-th column is reported, which is sufficient.
    SWS_DEVICE void report(int columns) {
        if (own_ != nullptr && columns > 0 && columns % kReportInterval == 0) {
            show_in_block(own_, number_ + static_cast<u32>(columns));
        }
    }

    // Reports that all columns have been written.
    SWS_DEVICE void finish() {
        if (own_ != nullptr) {
            show_in_block(own_, number_ + 0xFFFFFFFFu);
        }
    }

   private:
    static constexpr int kReportInterval = 16;
    static constexpr u64 kNextStrip = 1ull << 32;

    const u64* above_;
    u64* own_;
    u64 number_;
    u64 seen_ = 0;
};

}  // namespace swsearch
