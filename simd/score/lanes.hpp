// The number types of scores in the kernels of simd/score: biased, saturating numbers of 8 or 16 bits, or ordinary ones
// of 32 bits.
//
// docs/design/cpu-engine.md describes biased numbers, of which the largest marks a lane whose score must be computed
// again in a wider type.
//
// 32 bits represent any score: it is at most 127 times the query's length, and the bindings refuse queries of more than
// 2^24 residues. In this type E and F may be negative, but never by more than the cost of a gap's first residue.

#pragma once

#include "common/vectors.hpp"
#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

// The forms for Intel's processors (docs/design/cpu-engine.md, "The limits of the processor"): with kOnePort, a part of
// the maxima are computed by a comparison and a blend. With kWraps, of 8 bits, there is room below 0 for all
// subtractions, which therefore need not saturate: 0 is stored as kRoom - 128, and what must not be below 0 is raised
// to it (at_least_zero). The scores that bounds add do not saturate either; docs/design/bound.md proves that a number
// that could wrap is above the largest bound that the kernel reports. open + 2 * extend is at most kRoom / 2.
template <class T, bool kOnePort = false, bool kWraps = false>
struct ScoreLanes : Lanes<T> {
    using typename Lanes<T>::V;
    using Lanes<T>::kLanes;
    static_assert(!kWraps || sizeof(T) == 1, "lanes of 8 bits only");
    static constexpr bool kBiased = sizeof(T) < 4;
    static constexpr int32_t kRoom = kWraps ? kWrappingRoom : 0;
    static constexpr int32_t kZero = (sizeof(T) == 1 ? -128 : sizeof(T) == 2 ? -32768 : 0) + kRoom;
    static constexpr int32_t kLargest = (sizeof(T) == 1 ? 255 : sizeof(T) == 2 ? 65535 : 2147483647) - kRoom;
    // The smallest bound that is reported as kSaturated.
    static constexpr int32_t kLargestBound = kLargest - (kWraps ? kWrappingHighest : 0);
    static constexpr int32_t kPadding = kWraps ? -kWrappingRoom / 2 : -128;
    static constexpr int32_t kMaxGap = sizeof(T) == 1 ? 127 : 32767;
    // The largest cost that can be subtracted at a time. With 32 bits it exceeds any score, and it is subtracted only
    // from numbers that are at least 0.
    static constexpr int32_t kMaxCost = sizeof(T) == 4 ? 2147483646 : kMaxGap;

    static V zero() { return Lanes<T>::splat(kZero); }
    static V cost(int32_t value) { return Lanes<T>::splat(value); }
    static V add_score(V a, V b) {
        if constexpr (kBiased) {
            return Lanes<T>::add_saturating(a, b);
        } else {
            return Lanes<T>::max(Lanes<T>::add(a, b), zero());
        }
    }
    static V subtract(V a, V b) {
        if constexpr (kBiased && !kWraps) {
            return Lanes<T>::subtract_saturating(a, b);
        } else {
            return Lanes<T>::subtract(a, b);
        }
    }
    // The score of a pair as bounds add it.
    static int8_t raised(int8_t score) { return kWraps && score < kPadding ? static_cast<int8_t>(kPadding) : score; }
    static V add_raised(V a, V raised_score) {
        if constexpr (kWraps) {
            return Lanes<T>::add(a, raised_score);
        } else {
            return add_score(a, raised_score);
        }
    }
    // max(a, 0) of a number that is below 0 only if subtractions do not saturate.
    static V at_least_zero(V a) {
        if constexpr (kWraps) {
            return Lanes<T>::max(a, zero());
        } else {
            return a;
        }
    }
    // A maximum that leaves the port of the saturating operations free, if there is only one.
    static V max_apart(V a, V b) {
        if constexpr (kOnePort) {
            return Lanes<T>::select(Lanes<T>::greater(b, a), b, a);
        } else {
            return Lanes<T>::max(a, b);
        }
    }
    static bool saturated(V a) { return kBiased && Lanes<T>::any_greater(a, Lanes<T>::splat(kZero + kLargest - 1)); }
    static V shift(V a) { return Lanes<T>::shift_in(a, static_cast<T>(kZero)); }
    static void values(V a, int32_t* to) {
        T lanes[kLanes];
        Lanes<T>::store(lanes, a);
        for (int i = 0; i < kLanes; ++i) {
            to[i] = kBiased && lanes[i] == kZero + kLargest ? kSaturated : lanes[i] - kZero;
        }
    }
};

// A cost of any size. The cost that can be subtracted at a time is limited, so a larger one is subtracted in parts. Of
// a cost that no number exceeds, only this fact is stored (out_of_range).
template <class Lane>
class LargeCost {
    using V = typename Lane::V;

   public:
    explicit LargeCost(int64_t cost) : out_of_range_(cost >= Lane::kLargest) {
        for (V& part : parts_) {
            const int64_t taken = cost < Lane::kMaxCost ? cost : Lane::kMaxCost;
            part = Lane::cost(static_cast<int32_t>(taken));
            cost -= taken;
        }
    }
    bool out_of_range() const { return out_of_range_; }
    V subtracted_from(V a) const {
        for (const V& part : parts_) {
            a = Lane::subtract(a, part);
        }
        return a;
    }

   private:
    bool out_of_range_;
    V parts_[Lane::kLargest / Lane::kMaxCost + 1];
};

}  // namespace
}  // namespace swsearch::score
