// The forward pass one cell at a time, and the choice among the kernels.

#include <cstring>

#include "align/scalar_column.hpp"

namespace swsearch::align {
namespace {

// One lane, so `segments` is the query's length.
template <class Value>
void scalar_columns(ForwardState& state, std::size_t from, std::size_t to) {
    const auto place = [](std::size_t row) { return row; };
    const auto barred = [](std::size_t) { return false; };
    for (std::size_t column = from; column < to; ++column) {
        if (!scalar_column<Value>(state, column, state.segments, place, barred)) return;
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
