// Vectors without an instruction set: arrays of 16 bytes and loops over them. Runs everywhere and judges the others.

#pragma once

#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

struct Scalar {
    static constexpr int kBytes = 16;
    struct V {
        alignas(16) uint8_t bytes[kBytes];
    };

    template <class T>
    static T get(const V& a, int lane) {
        T value;
        __builtin_memcpy(&value, a.bytes + static_cast<size_t>(lane) * sizeof(T), sizeof(T));
        return value;
    }
    template <class T>
    static void set(V& a, int lane, T value) {
        __builtin_memcpy(a.bytes + static_cast<size_t>(lane) * sizeof(T), &value, sizeof(T));
    }
    template <class T>
    static V splat(T x) {
        V result;
        for (int i = 0; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            set<T>(result, i, x);
        }
        return result;
    }
    template <class T>
    static V max(const V& a, const V& b) {
        V result;
        for (int i = 0; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            const T x = get<T>(a, i);
            const T y = get<T>(b, i);
            set<T>(result, i, x > y ? x : y);
        }
        return result;
    }
    // a + sign * b, held between the smallest and the largest T.
    template <class T, int kSign>
    static V saturating(const V& a, const V& b) {
        constexpr int64_t kLargest = (int64_t{1} << (8 * sizeof(T) - 1)) - 1;
        V result;
        for (int i = 0; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            int64_t sum = int64_t{get<T>(a, i)} + kSign * int64_t{get<T>(b, i)};
            sum = sum > kLargest ? kLargest : sum;
            sum = sum < -kLargest - 1 ? -kLargest - 1 : sum;
            set<T>(result, i, static_cast<T>(sum));
        }
        return result;
    }
    template <class T>
    static bool any_greater(const V& a, const V& b) {
        for (int i = 0; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            if (get<T>(a, i) > get<T>(b, i)) {
                return true;
            }
        }
        return false;
    }
    template <class T>
    static V shift(const V& a, T x) {
        V result;
        set<T>(result, 0, x);
        for (int i = 1; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            set<T>(result, i, get<T>(a, i - 1));
        }
        return result;
    }
    template <class T>
    static V widen(const V& a) {
        V result;
        for (int i = 0; i < kBytes / static_cast<int>(sizeof(T)); ++i) {
            set<T>(result, i, static_cast<T>(get<int8_t>(a, i)));
        }
        return result;
    }

    static V load(const void* from) {
        V result;
        __builtin_memcpy(result.bytes, from, kBytes);
        return result;
    }
    static void store(void* to, const V& a) { __builtin_memcpy(to, a.bytes, kBytes); }
    static V splat8(int8_t x) { return splat<int8_t>(x); }
    static V splat16(int16_t x) { return splat<int16_t>(x); }
    static V splat32(int32_t x) { return splat<int32_t>(x); }
    static V add8(const V& a, const V& b) { return saturating<int8_t, 1>(a, b); }
    static V sub8(const V& a, const V& b) { return saturating<int8_t, -1>(a, b); }
    static V max8(const V& a, const V& b) { return max<int8_t>(a, b); }
    static V add16(const V& a, const V& b) { return saturating<int16_t, 1>(a, b); }
    static V sub16(const V& a, const V& b) { return saturating<int16_t, -1>(a, b); }
    static V max16(const V& a, const V& b) { return max<int16_t>(a, b); }
    static V add32(const V& a, const V& b) { return saturating<int32_t, 1>(a, b); }
    static V sub32(const V& a, const V& b) { return saturating<int32_t, -1>(a, b); }
    static V max32(const V& a, const V& b) { return max<int32_t>(a, b); }
    static bool any_greater8(const V& a, const V& b) { return any_greater<int8_t>(a, b); }
    static bool any_greater16(const V& a, const V& b) { return any_greater<int16_t>(a, b); }
    static bool any_greater32(const V& a, const V& b) { return any_greater<int32_t>(a, b); }
    static V shift8(const V& a, int8_t x) { return shift<int8_t>(a, x); }
    static V shift16(const V& a, int16_t x) { return shift<int16_t>(a, x); }
    static V shift32(const V& a, int32_t x) { return shift<int32_t>(a, x); }
    static V look_up(const int8_t* row, const V& codes) {
        V result;
        for (int i = 0; i < kBytes; ++i) {
            set<int8_t>(result, i, row[codes.bytes[i] & (kCodes - 1)]);
        }
        return result;
    }
    static V load_half(const void* from) {
        V result{};
        __builtin_memcpy(result.bytes, from, kBytes / 2);
        return result;
    }
    static V load_quarter(const void* from) {
        V result{};
        __builtin_memcpy(result.bytes, from, kBytes / 4);
        return result;
    }
    static V widen16(const V& a) { return widen<int16_t>(a); }
    static V widen32(const V& a) { return widen<int32_t>(a); }
    static void keep_order(V&, V&) {}
    static V load_parts(const uint8_t* const* rows, uint32_t first) { return load(rows[0] + first); }
    template <int kHalf>
    static V unpack(const V& a, const V& b) {
        V result;
        for (int i = 0; i < kBytes / 2; ++i) {
            result.bytes[2 * i] = a.bytes[kHalf + i];
            result.bytes[2 * i + 1] = b.bytes[kHalf + i];
        }
        return result;
    }
    static V unpack_low(const V& a, const V& b) { return unpack<0>(a, b); }
    static V unpack_high(const V& a, const V& b) { return unpack<kBytes / 2>(a, b); }
};

}  // namespace
}  // namespace swsearch::score
