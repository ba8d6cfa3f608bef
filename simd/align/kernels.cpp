// The kernels of the forward pass for one instruction set: Gotoh's recurrence for the local score of one query and one
// subject, with the query striped over the lanes. They store the column in which the best score is reached first.
//
// The striped layout is that of M. Farrar, Striped Smith-Waterman speeds database searches six times over other SIMD
// implementations, Bioinformatics 23:156, 2007.
//
// Query row r is in lane r / segments of vector r % segments. A column is computed in one pass over its vectors,
// followed by a correction loop in which F passes from each lane to the next. E is computed from the final H of the
// previous column, so that a gap that consumes the subject may follow one that consumes the query.
//
// Exactness: all values are above -first - extend, so wrapping arithmetic is exact as long as H is at most kNarrowLimit
// in 16-bit lanes, and in 32-bit lanes for all lengths that the forward pass accepts. Rows past the query score -128:
// they are below all rows of the query, so they change none of them, and they never have the best score.

#include "align/kernel.hpp"
#include "common/vectors.hpp"

namespace swsearch::align {
namespace {

template <class Value>
void striped_columns(ForwardState& state, size_t from, size_t to) {
    using Lane = Lanes<Value>;
    using V = typename Lane::V;
    const size_t segments = state.segments;
    const V first = Lane::splat(state.first);
    const V extend = Lane::splat(state.extend);
    const V zero = Lane::splat(0);
    V* const e_column = static_cast<V*>(state.e);

    for (size_t column = from; column < to; ++column) {
        const int8_t* scores = state.profile + (state.subject[column] & 31u) * segments * Lane::kLanes;
        const V* const before = static_cast<const V*>(state.h[state.last]);
        const int target = free_column(state);
        V* const now = static_cast<V*>(state.h[target]);

        V diagonal = Lane::shift_in(before[segments - 1], 0);
        V f = zero;
        V top = zero;
        for (size_t t = 0; t < segments; ++t) {
            const V left = before[t];
            const V e = Lane::max(Lane::subtract(e_column[t], extend), Lane::subtract(left, first));
            e_column[t] = e;
            V h = Lane::add(diagonal, Lane::load_bytes(scores + t * Lane::kLanes));
            h = Lane::max(Lane::max(h, zero), Lane::max(e, f));
            now[t] = h;
            top = Lane::max(top, h);
            f = Lane::max(Lane::subtract(f, extend), Lane::subtract(h, first));
            diagonal = left;
        }
        // F from the lane above has an effect only while it is greater than 0 and than the F that this lane's own H
        // opened. It never increases `top`, because it is less than the H from which it opened. The test uses H as it
        // was before the loop: with linear gaps an increased H opens exactly the F that extends the gap, so a test
        // against the increased H would end the loop too early.
        for (int lane = 0; lane < Lane::kLanes; ++lane) {
            f = Lane::shift_in(f, 0);
            size_t t = 0;
            for (; t < segments; ++t) {
                const V h = now[t];
                now[t] = Lane::max(h, f);
                f = Lane::subtract(f, extend);
                if (!Lane::any_greater(f, Lane::max(Lane::subtract(h, first), zero))) break;
            }
            if (t < segments) break;
        }
        if (!finish_column<Value>(state, column, target, Lane::largest(top))) return;
    }
}

}  // namespace

extern const Kernels SWSEARCH_KERNELS;
const Kernels SWSEARCH_KERNELS = {striped_columns<int16_t>, Lanes<int16_t>::kLanes, striped_columns<int32_t>,
                                  Lanes<int32_t>::kLanes};

}  // namespace swsearch::align
