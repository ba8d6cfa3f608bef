// The diamond steps in plain C++, for machines without the others, and the choice among them.

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "pair/diamond.hpp"

namespace swsearch::pair {
namespace {

template <class T, int n>
struct Array {
    T at[n];

    friend Array operator&(const Array& a, const Array& b) {
        Array result;
        for (int i = 0; i < n; ++i) result.at[i] = static_cast<T>(a.at[i] & b.at[i]);
        return result;
    }
};

// Loops that a compiler may turn into whatever vectors its target has.
template <class T, int n>
struct LanesOf {
    using Vector = Array<T, n>;
    using Mask = Array<T, n>;
    using Lane = T;
    static constexpr bool saturating = sizeof(T) == 1;
    static constexpr int count = n;
    static constexpr int rows = 4;

    template <class Function>
    static Vector each(Function function) {
        Vector result;
        for (int i = 0; i < n; ++i) result.at[i] = static_cast<T>(function(i));
        return result;
    }
    static std::int32_t held(std::int32_t value) {
        if constexpr (!saturating) return value;
        return std::clamp<std::int32_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    }
    static Vector set(std::int32_t value) {
        return each([&](int) { return value; });
    }
    static Vector load(const Lane* from) {
        Vector result;
        std::memcpy(result.at, from, sizeof result.at);
        return result;
    }
    static void store(Lane* to, const Vector& a) { std::memcpy(to, a.at, sizeof a.at); }
    static Vector add(const Vector& a, const Vector& b) {
        return each([&](int i) { return held(a.at[i] + b.at[i]); });
    }
    static Vector sub(const Vector& a, const Vector& b) {
        return each([&](int i) { return held(a.at[i] - b.at[i]); });
    }
    static Vector max(const Vector& a, const Vector& b) {
        return each([&](int i) { return std::max(a.at[i], b.at[i]); });
    }
    static Mask equal(const Vector& a, const Vector& b) {
        return each([&](int i) { return -(a.at[i] == b.at[i]); });
    }
    static Vector difference(const Vector& a, const Vector& b) {
        return each([&](int i) { return a.at[i] ^ b.at[i]; });
    }
    static Vector look_up(const Vector& table, const Vector& place) {
        return each([&](int i) { return table.at[place.at[i]]; });
    }
    static Vector first_of_each_16(const Vector& one, const Vector& others) {
        return each([&](int i) { return i % 16 == 0 ? one.at[i] : others.at[i]; });
    }
    static Mask greater(const Vector& a, const Vector& b) {
        return each([&](int i) { return -(a.at[i] > b.at[i]); });
    }
    static Vector select(const Mask& mask, const Vector& yes, const Vector& no) {
        return each([&](int i) { return mask.at[i] ? yes.at[i] : no.at[i]; });
    }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {  // lanes over `below`, up to `up_to`
        return each([&](int i) { return -(i > below && i <= up_to); });
    }
    static Vector shift_in(const Vector& a, Lane value) {
        return each([&](int i) { return i == 0 ? value : a.at[i - 1]; });
    }
    static Lane last(const Vector& a) { return a.at[n - 1]; }
    static Vector load_scores(const std::int8_t* scores) {
        return each([&](int i) { return scores[i]; });
    }
};

// Scores of 16 lines.
struct Lines {
    struct Vector {
        std::int8_t at[16];
    };
    static constexpr std::size_t blocks = 1;
    static Vector load(const std::int8_t* const* lines) {
        Vector a;
        std::memcpy(a.at, lines[0], sizeof a.at);
        return a;
    }
    static Vector woven(const std::int8_t* a, const std::int8_t* b) {
        Vector result;
        for (int i = 0; i < 8; ++i) {
            result.at[2 * i] = a[i];
            result.at[2 * i + 1] = b[i];
        }
        return result;
    }
    static Vector low(const Vector& a, const Vector& b) { return woven(a.at, b.at); }
    static Vector high(const Vector& a, const Vector& b) { return woven(a.at + 8, b.at + 8); }
    static void store(std::int8_t* to, const Vector& a) { std::memcpy(to, a.at, sizeof a.at); }
};

#if defined(__x86_64__)
bool runs_here(std::string_view name) {
    __builtin_cpu_init();
    if (name == "avx512") {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl");
    }
    if (name == "avx2") return __builtin_cpu_supports("avx2");
    if (name == "sse41") return __builtin_cpu_supports("sse4.1");
    return true;
}
#endif

}  // namespace

const Kernels kernels_scalar = {"scalar", width_of_bytes<LanesOf<std::int8_t, 16>, Lines>(), width_of<LanesOf<std::int16_t, 8>, Lines>(),
                                width_of<LanesOf<std::int32_t, 4>, Lines>()};

const Kernels* kernels_named(const char* name) {
    const std::string_view wanted(name);
#if defined(__x86_64__)
    for (const Kernels* kernels : {&kernels_avx512, &kernels_avx2, &kernels_sse41}) {
        if ((wanted == "auto" || wanted == kernels->name) && runs_here(kernels->name)) return kernels;
    }
#endif
    return wanted == "auto" || wanted == "scalar" ? &kernels_scalar : nullptr;
}

}  // namespace swsearch::pair
