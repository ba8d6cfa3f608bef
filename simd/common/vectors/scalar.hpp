// Vectors without an instruction set: 16 bytes, on every processor. The tests compare the other vectors with them.
// vectors.hpp describes each function.

#pragma once

#include "common/vectors/compiled.hpp"

#if defined(__has_builtin)
#define SWSEARCH_HAS_SHUFFLEVECTOR __has_builtin(__builtin_shufflevector)  // Clang, and GCC from 12 on
#else
#define SWSEARCH_HAS_SHUFFLEVECTOR 0
#endif

namespace swsearch {
namespace {

struct Register {
    typedef int8_t V __attribute__((vector_size(16)));  // an alias declaration cannot have this attribute
};

struct Vectors : CompiledVectors<Register> {
    static constexpr int kRegisters = 16;

    // A sum overflows if its sign differs from that of both terms; it is then the limit on the side of a.
    template <class T>
    static V add_saturating(V a, V b) {
        const V sum = add<T>(a, b);
        return select<T>(negative<T>((a ^ sum) & (b ^ sum)), limit<T>(a), sum);
    }
    template <class T>
    static V subtract_saturating(V a, V b) {
        const V difference = subtract<T>(a, b);
        return select<T>(negative<T>((a ^ b) & (a ^ difference)), limit<T>(a), difference);
    }
    template <class T>
    static V max(V a, V b) {
        const Of<T> x = as<T>(a);
        const Of<T> y = as<T>(b);
        return (V)(x > y ? x : y);
    }
    template <class T>
    static bool any_greater(V a, V b) {
        const Of<int64_t> any = as<int64_t>(greater<T>(a, b));
        return (any[0] | any[1]) != 0;
    }
    template <class T>
    static V select(V mask, V yes, V no) {
        return (mask & yes) | (~mask & no);
    }
    template <class T>
    static V shift_in(V a, T x) {
#if SWSEARCH_HAS_SHUFFLEVECTOR
        const Of<T> first = as<T>(splat<T>(x));
        const Of<T> lanes = as<T>(a);
        BY_LANE(__builtin_shufflevector(first, lanes, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30),
                (V)__builtin_shufflevector(first, lanes, 7, 8, 9, 10, 11, 12, 13, 14),
                (V)__builtin_shufflevector(first, lanes, 3, 4, 5, 6))
#else
        T lanes[1 + kLanes<T>];
        lanes[0] = x;
        store(lanes + 1, a);
        return load(lanes);
#endif
    }
    template <class T, int kBy>
    static V shift_up(V a) {
        int8_t lanes[2 * kBytes] = {};
        store(lanes + kBytes, a);
        return load(lanes + kBytes - kBy * static_cast<int>(sizeof(T)));
    }
    template <class T>
    static T last(V a) {
        return as<T>(a)[kLanes<T> - 1];
    }
    template <class T>
    static int32_t largest(V a) {
        const Of<T> lanes = as<T>(a);
        T result = lanes[0];
        for (int i = 1; i < kLanes<T>; ++i) {
            result = result > lanes[i] ? result : lanes[i];
        }
        return result;
    }
    template <class T>
    static V widen(V a) {
        return load_bytes<T>(reinterpret_cast<const int8_t*>(&a));
    }
    template <class T>
    static V load_bytes(const int8_t* from) {
        typename VectorOf<int8_t, kLanes<T>>::type few;
        __builtin_memcpy(&few, from, sizeof few);
        return (V) __builtin_convertvector(few, Of<T>);
    }

    static V add_products(V sum, V a, V b) {
        const auto low = [](V x) { return as<int32_t>(as<uint32_t>(x) << 16) >> 16; };
        const auto high = [](V x) { return as<int32_t>(x) >> 16; };
        const Of<int32_t> products = low(a) * low(b) + high(a) * high(b);
        return add<int32_t>(sum, (V)products);
    }
    static V shuffle(V table, V index) {
        int8_t values[kBytes];
        int8_t indices[kBytes];
        store(values, table);
        store(indices, index);
        return each([&](int i) { return values[indices[i] & 15]; });
    }
    static V first_of_parts(V first, V others) {
        others[0] = first[0];
        return others;
    }
    using Codes = V;
    static Codes codes_of(V codes) { return codes & splat<int8_t>(31); }
    static V look_up(const int8_t* row, Codes codes) {
        int8_t indices[kBytes];
        store(indices, codes);
        return each([&](int i) { return row[indices[i]]; });
    }
#if SWSEARCH_HAS_SHUFFLEVECTOR
    static V unpack_low(V a, V b) {
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    }
    static V unpack_high(V a, V b) {
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
#else
    static V unpack_low(V a, V b) {
        return each([&](int i) { return i % 2 == 0 ? a[i / 2] : b[i / 2]; });
    }
    static V unpack_high(V a, V b) {
        return each([&](int i) { return i % 2 == 0 ? a[8 + i / 2] : b[8 + i / 2]; });
    }
#endif

   private:
    template <class T>
    static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
    // The vector whose byte i is function(i).
    template <class Function>
    static V each(const Function& function) {
        int8_t bytes[kBytes];
        for (int i = 0; i < kBytes; ++i) {
            bytes[i] = static_cast<int8_t>(function(i));
        }
        return load(bytes);
    }
    template <class T>
    static V negative(V a) {
        return (V)(as<T>(a) < Of<T>{});
    }
    // The largest number, in lanes where a is negative the smallest.
    template <class T>
    static V limit(V a) {
        return negative<T>(a) ^ splat<T>((int32_t{1} << (8 * sizeof(T) - 1)) - 1);
    }
};

}  // namespace
}  // namespace swsearch

#undef SWSEARCH_HAS_SHUFFLEVECTOR
