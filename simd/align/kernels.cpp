// The kernels of the forward pass for one instruction set: Gotoh's recurrence for the local score of one query and one
// subject, with the query striped over the lanes (docs/design/traceback.md, which has the source). They store the
// column in which the best score is reached first.
//
// Query row r is in lane r / segments of vector r % segments. A column is computed in one pass over its vectors, in
// which F begins anew in each lane, followed by a second one that adds the F from the lanes above.
//
// Exactness: all values of the first pass are above -first - extend, and the second pass ends before its F is below the
// negative of the largest H, so wrapping arithmetic is exact as long as H is at most kNarrowLimit in 16-bit lanes, and
// in 32-bit lanes for all lengths that the forward pass accepts. Rows past the query score -128:
// they are below all rows of the query, so they change none of them, and they never have the best score.

#include "align/kernel.hpp"
#include "common/vectors.hpp"

namespace swsearch::align {
namespace {

// A cost, or the largest value of a lane if it is greater: no F exceeds it.
template <class Value>
int32_t largest_or(int64_t cost) {
    constexpr int64_t kLargest = (int64_t{1} << (8 * sizeof(Value) - 1)) - 1;
    return static_cast<int32_t>(cost < kLargest ? cost : kLargest);
}

// The F that enters each lane from any lane above, from the F of at least 0 that enters it from the lane above. F that
// opened from an increased H would be no greater than the F that increased it, so each lane only passes on, at
// `lane_cost`, what enters it.
template <class Lane, int kBy = 1>
typename Lane::V from_all_lanes(typename Lane::V f, int64_t lane_cost) {
    if constexpr (kBy < Lane::kLanes) {
        const int64_t cost = kBy * lane_cost;
        const typename Lane::V above = Lane::template shift_up<kBy>(f);
        f = Lane::max(f, Lane::subtract(above, Lane::splat(largest_or<typename Lane::Value>(cost))));
        return from_all_lanes<Lane, 2 * kBy>(f, lane_cost);
    } else {
        return f;
    }
}

template <class Value, bool kBarred>
void columns(ForwardState& state, size_t from, size_t to) {
    using Lane = Lanes<Value>;
    using V = typename Lane::V;
    const size_t segments = state.segments;
    const V first = Lane::splat(state.first);
    const V extend = Lane::splat(state.extend);
    const V zero = Lane::splat(0);
    V* const e_column = static_cast<V*>(state.e);
    const V* const barred = static_cast<const V*>(state.barred);
    const int64_t lane_cost = static_cast<int64_t>(segments) * state.extend;
    const V across = Lane::splat(largest_or<Value>(lane_cost));  // greater F reaches the lane after the next one

    for (size_t column = from; column < to; ++column) {
        const int8_t* scores = state.profile + (state.subject[column] & 31u) * segments * Lane::kLanes;
        const V* const before = static_cast<const V*>(state.h) + (column - state.begin) * segments;
        V* const now = static_cast<V*>(state.h) + (column - state.begin + 1) * segments;

        V diagonal = Lane::shift_in(before[segments - 1], 0);
        V f = zero;
        V top = zero;
        for (size_t t = 0; t < segments; ++t) {
            const V left = before[t];
            const V e = Lane::max(Lane::subtract(e_column[t], extend), Lane::subtract(left, first));
            e_column[t] = e;
            V h = Lane::add(diagonal, Lane::load_bytes(scores + t * Lane::kLanes));
            if constexpr (kBarred) h = Lane::subtract(Lane::max(h, zero), barred[t]);  // 0 or less, unwrapped
            h = Lane::max(Lane::max(h, zero), Lane::max(e, f));
            now[t] = h;
            top = Lane::max(top, h);
            f = Lane::max(Lane::subtract(f, extend), Lane::subtract(h, first));
            diagonal = left;
        }
        // F from the lanes above has an effect only while it is greater than 0 and than the F that this lane's own H
        // opened. It never increases `top`, because it is less than the H from which it opened. The test uses H as it
        // was before the loop: with linear gaps an increased H opens exactly the F that extends the gap, so a test
        // against the increased H would end the loop too early.
        f = Lane::max(Lane::shift_in(f, 0), zero);
        if (Lane::any_greater(f, across)) f = from_all_lanes<Lane>(f, lane_cost);
        for (size_t t = 0; t < segments; ++t) {
            const V h = now[t];
            now[t] = Lane::max(h, f);
            f = Lane::subtract(f, extend);
            if (!Lane::any_greater(f, Lane::max(Lane::subtract(h, first), zero))) break;
        }
        const int32_t largest = Lane::largest(top);
        if (largest <= state.best) continue;
        state.best = largest;
        state.best_column = column;
        state.overflow = sizeof(Value) == 2 && largest > kNarrowLimit;
        if (state.overflow) return;
    }
}

template <class Value>
void striped_columns(ForwardState& state, size_t from, size_t to) {
    state.barred == nullptr ? columns<Value, false>(state, from, to) : columns<Value, true>(state, from, to);
}

}  // namespace

extern const Kernels SWSEARCH_KERNELS;
const Kernels SWSEARCH_KERNELS = {striped_columns<int16_t>, Lanes<int16_t>::kLanes, striped_columns<int32_t>,
                                  Lanes<int32_t>::kLanes};

}  // namespace swsearch::align
