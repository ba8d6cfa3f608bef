// The forward pass one cell at a time, and the choice among the kernels.

#include <cstring>

#include "align/forward.hpp"

namespace swsearch::align {
namespace {

// The recurrence as it stands in docs/design/traceback.md; one lane, so `segments` is the query's length.
template <class Value>
void scalar_columns(ForwardState& state, std::size_t from, std::size_t to) {
    const std::size_t rows = state.segments;
    Value* const e_column = static_cast<Value*>(state.e);
    for (std::size_t column = from; column < to; ++column) {
        const std::int8_t* scores = state.profile + (state.subject[column] & 31u) * rows;
        const Value* const before = static_cast<const Value*>(state.h[state.last]);
        int target = 0;
        while (target == state.last || target == state.kept) ++target;
        Value* const now = static_cast<Value*>(state.h[target]);
        std::int32_t diagonal = 0;
        std::int32_t f = 0;
        std::int32_t column_best = 0;
        for (std::size_t row = 0; row < rows; ++row) {
            const std::int32_t left = before[row];
            const std::int32_t e_extended = e_column[row] - state.extend;
            const std::int32_t e = e_extended > left - state.first ? e_extended : left - state.first;
            e_column[row] = static_cast<Value>(e);
            std::int32_t h = diagonal + scores[row];
            h = h > 0 ? h : 0;
            h = h > e ? h : e;
            h = h > f ? h : f;
            now[row] = static_cast<Value>(h);
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
                return;
            }
        }
    }
}

}  // namespace

const ForwardKernels forward_scalar = {"scalar", scalar_columns<std::int16_t>, 1, scalar_columns<std::int32_t>, 1};

const ForwardKernels* forward_kernels(const char* name) {
    const bool automatic = std::strcmp(name, "auto") == 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl");
    if (avx512 && (automatic || std::strcmp(name, "avx512") == 0)) return &forward_avx512;
    if (__builtin_cpu_supports("avx2") && (automatic || std::strcmp(name, "avx2") == 0)) return &forward_avx2;
    if (__builtin_cpu_supports("sse4.1") && (automatic || std::strcmp(name, "sse41") == 0)) return &forward_sse41;
#endif
    if (automatic || std::strcmp(name, "scalar") == 0) return &forward_scalar;
    return nullptr;
}

}  // namespace swsearch::align
