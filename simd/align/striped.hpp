// The striped forward kernel (Farrar 2007), for the lanes that `Lanes` describes. Included by one file an instruction
// set; everything is in an anonymous namespace, so that no function compiled for a newer machine replaces another.
//
// Query row r sits in lane r / segments of vector r % segments. A column is one pass down the vectors; F runs from one
// lane into the next in the correction loop after it. E is made from the finished H of the column before, so a gap that
// consumes the subject may follow one that consumes the query. All values lie above -first - extend, so plain wrapping
// arithmetic is exact while H stays within `narrow_limit`; 32-bit lanes are exact for all lengths that the caller lets in.
// Rows past the query score -128: they lie below every row of the query and cannot change it, nor reach its best score.

#pragma once

#include <cstddef>
#include <cstdint>

#include "align/forward.hpp"

namespace swsearch::align {
namespace {

template <class Lanes>
void striped_columns(ForwardState& state, std::size_t from, std::size_t to) {
    using Vector = typename Lanes::Vector;
    const std::size_t segments = state.segments;
    const Vector first = Lanes::set(state.first);
    const Vector extend = Lanes::set(state.extend);
    const Vector zero = Lanes::set(0);
    Vector* const e_column = static_cast<Vector*>(state.e);

    for (std::size_t column = from; column < to; ++column) {
        const std::int8_t* scores = state.profile + (state.subject[column] & 31u) * segments * Lanes::count;
        const Vector* const before = static_cast<const Vector*>(state.h[state.last]);
        int target = 0;
        while (target == state.last || target == state.kept) ++target;
        Vector* const now = static_cast<Vector*>(state.h[target]);

        Vector diagonal = Lanes::shift_in_zero(before[segments - 1]);
        Vector f = zero;
        Vector top = zero;
        for (std::size_t t = 0; t < segments; ++t) {
            const Vector left = before[t];
            const Vector e = Lanes::max(Lanes::sub(e_column[t], extend), Lanes::sub(left, first));
            e_column[t] = e;
            Vector h = Lanes::add(diagonal, Lanes::load_scores(scores + t * Lanes::count));
            h = Lanes::max(Lanes::max(h, zero), Lanes::max(e, f));
            now[t] = h;
            top = Lanes::max(top, h);
            f = Lanes::max(Lanes::sub(f, extend), Lanes::sub(h, first));
            diagonal = left;
        }
        // An F that comes from the lane above matters while it beats what this lane's own H opened, and 0. It never
        // raises `top`: it is less than the H it comes from. The test takes H as it was before, for with linear gaps a
        // raised H opens what F extends, and a test against it would stop too soon.
        for (int lane = 0; lane < Lanes::count; ++lane) {
            f = Lanes::shift_in_zero(f);
            std::size_t t = 0;
            for (; t < segments; ++t) {
                const Vector h = now[t];
                now[t] = Lanes::max(h, f);
                f = Lanes::sub(f, extend);
                if (!Lanes::any_greater(f, Lanes::max(Lanes::sub(h, first), zero))) break;
            }
            if (t < segments) break;
        }

        const std::int32_t column_best = Lanes::largest(top);
        if (state.column_best != nullptr) {
            std::int32_t& group = state.column_best[column >> state.shift];
            group = group > column_best ? group : column_best;
        }
        state.last = target;
        if (column_best > state.best) {
            state.best = column_best;
            state.best_column = column;
            state.kept = target;
            if (Lanes::narrow && column_best > narrow_limit) {
                state.overflow = true;
                return;
            }
        }
    }
}

}  // namespace
}  // namespace swsearch::align
