// One column of the forward pass, cell by cell: the recurrence as it stands in docs/design/traceback.md.
//
// Serves the scalar kernel, and in every other one the columns where some pairs of residues must not be aligned.

#pragma once

#include <cstddef>
#include <cstdint>

#include "align/forward.hpp"

namespace swsearch::align {

// `place(row)` is where a row lies in the state's arrays, `barred(row)` whether its pair with the column is not allowed;
// `rows` counts the rows of the arrays, those past the query among them. Returns false where 16 bits are too narrow.
template <class Value, class Place, class Barred>
bool scalar_column(ForwardState& state, std::size_t column, std::size_t rows, const Place& place, const Barred& barred) {
    Value* const e_column = static_cast<Value*>(state.e);
    const std::int8_t* scores = state.profile + (state.subject[column] & 31u) * rows;
    const Value* const before = static_cast<const Value*>(state.h[state.last]);
    int target = 0;
    while (target == state.last || target == state.kept) ++target;
    Value* const now = static_cast<Value*>(state.h[target]);
    std::int32_t diagonal = 0;
    std::int32_t f = 0;
    std::int32_t column_best = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t at = place(row);
        const std::int32_t left = before[at];
        const std::int32_t e_extended = e_column[at] - state.extend;
        const std::int32_t e = e_extended > left - state.first ? e_extended : left - state.first;
        e_column[at] = static_cast<Value>(e);
        std::int32_t h = barred(row) ? 0 : diagonal + scores[at];
        h = h > 0 ? h : 0;
        h = h > e ? h : e;
        h = h > f ? h : f;
        now[at] = static_cast<Value>(h);
        column_best = column_best > h ? column_best : h;
        f = f - state.extend > h - state.first ? f - state.extend : h - state.first;
        diagonal = left;
    }
    if (state.column_best != nullptr) {
        std::int32_t& group = state.column_best[column >> state.shift];
        group = group > column_best ? group : column_best;
    }
    state.last = target;
    if (column_best > state.best) {
        state.best = column_best;
        state.best_column = column;
        state.kept = target;
        if (sizeof(Value) == 2 && column_best > narrow_limit) {
            state.overflow = true;
            return false;
        }
    }
    return true;
}

}  // namespace swsearch::align
