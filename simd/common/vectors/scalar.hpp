// Vectors without an instruction set: arrays of 16 bytes and loops over their lanes, which the compiler translates to
// the instructions of its target. They run on every processor, and the tests compare the other vectors with them.
// vectors.hpp describes each function.

#pragma once

namespace swsearch {
namespace {

struct Vectors {
    static constexpr int kBytes = 16;
    static constexpr int kRegisters = 16;
    struct V {
        alignas(16) int8_t bytes[kBytes];
    };
    template <class T>
    using Mask = V;

    // The vector whose lane i is function(i).
    template <class T, class Function>
    static V each(const Function& function) {
        T lanes[kBytes / sizeof(T)];
        for (int i = 0; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            lanes[i] = static_cast<T>(function(i));
        }
        return load(lanes);
    }
    template <class T>
    struct LanesOf {
        T lane[kBytes / sizeof(T)];
        explicit LanesOf(const V& a) { __builtin_memcpy(lane, a.bytes, kBytes); }
        T operator[](int i) const { return lane[i]; }
    };
    template <class T, class Function>
    static V each_pair(const V& a, const V& b, const Function& function) {
        const LanesOf<T> x(a);
        const LanesOf<T> y(b);
        return each<T>([&](int i) { return function(x[i], y[i]); });
    }
    template <class T>
    static int32_t clamped(int32_t x) {
        constexpr int32_t kLargest = static_cast<int32_t>((int64_t{1} << (8 * sizeof(T) - 1)) - 1);
        return x > kLargest ? kLargest : x < -kLargest - 1 ? -kLargest - 1 : x;
    }

    static V load(const void* from) {
        V result;
        __builtin_memcpy(result.bytes, from, kBytes);
        return result;
    }
    static void store(void* to, const V& a) { __builtin_memcpy(to, a.bytes, kBytes); }
    template <class T>
    static V splat(int32_t x) {
        return each<T>([&](int) { return x; });
    }
    template <class T>
    static V add(const V& a, const V& b) {
        return each_pair<T>(a, b, [](T x, T y) { return x + y; });
    }
    template <class T>
    static V subtract(const V& a, const V& b) {
        return each_pair<T>(a, b, [](T x, T y) { return x - y; });
    }
    template <class T>
    static V add_saturating(const V& a, const V& b) {
        return each_pair<T>(a, b, [](T x, T y) { return clamped<T>(x + y); });
    }
    template <class T>
    static V subtract_saturating(const V& a, const V& b) {
        return each_pair<T>(a, b, [](T x, T y) { return clamped<T>(x - y); });
    }
    template <class T>
    static V max(const V& a, const V& b) {
        return each_pair<T>(a, b, [](T x, T y) { return x > y ? x : y; });
    }
    template <class T>
    static V equal(const V& a, const V& b) {
        return each_pair<T>(a, b, [](T x, T y) { return -(x == y); });
    }
    template <class T>
    static V greater(const V& a, const V& b) {
        return each_pair<T>(a, b, [](T x, T y) { return -(x > y); });
    }
    template <class T>
    static bool any_greater(const V& a, const V& b) {
        const LanesOf<T> x(a);
        const LanesOf<T> y(b);
        bool any = false;
        for (int i = 0; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            any |= x[i] > y[i];
        }
        return any;
    }
    template <class T>
    static V select(const V& mask, const V& yes, const V& no) {
        return each<int8_t>([&](int i) { return (mask.bytes[i] & yes.bytes[i]) | (~mask.bytes[i] & no.bytes[i]); });
    }
    template <class T>
    static V shift_in(const V& a, T x) {
        const LanesOf<T> lanes(a);
        return each<T>([&](int i) { return i == 0 ? x : lanes[i - 1]; });
    }
    template <class T>
    static T last(const V& a) { return LanesOf<T>(a)[kBytes / sizeof(T) - 1]; }
    template <class T>
    static int32_t largest(const V& a) {
        const LanesOf<T> lanes(a);
        T result = lanes[0];
        for (int i = 1; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            result = result > lanes[i] ? result : lanes[i];
        }
        return result;
    }
    template <class T>
    static V widen(const V& a) {
        return each<T>([&](int i) { return a.bytes[i]; });
    }
    template <class T>
    static V load_bytes(const int8_t* from) {
        return each<T>([&](int i) { return from[i]; });
    }

    static V exclusive_or(const V& a, const V& b) {
        return each_pair<int8_t>(a, b, [](int8_t x, int8_t y) { return x ^ y; });
    }
    static V shuffle(const V& table, const V& index) {
        return each<int8_t>([&](int i) { return table.bytes[index.bytes[i] & 15]; });
    }
    static V first_of_parts(const V& first, const V& others) {
        return each<int8_t>([&](int i) { return i == 0 ? first.bytes[0] : others.bytes[i]; });
    }
    static V look_up(const int8_t* row, const V& codes) {
        return each<int8_t>([&](int i) { return row[codes.bytes[i] & 31]; });
    }
    template <class Byte>
    static V load_parts(const Byte* const* rows, size_t offset) { return load(rows[0] + offset); }
    static V unpack_low(const V& a, const V& b) {
        return each<int8_t>([&](int i) { return i % 2 == 0 ? a.bytes[i / 2] : b.bytes[i / 2]; });
    }
    static V unpack_high(const V& a, const V& b) {
        return each<int8_t>([&](int i) { return i % 2 == 0 ? a.bytes[8 + i / 2] : b.bytes[8 + i / 2]; });
    }
    static void keep_order(V&, V&) {}
};

}  // namespace
}  // namespace swsearch
