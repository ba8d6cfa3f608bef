// Vectors of SSE4.1: 16 bytes. vectors.hpp describes each function.

#pragma once

#include <immintrin.h>

#include "common/vectors/compiled.hpp"

namespace swsearch {
namespace {

struct Register {
    using V = __m128i;
};

struct Vectors : CompiledVectors<Register> {
    static constexpr int kRegisters = 16;

    template <class T>
    static V add_saturating(V a, V b) {
        BY_NARROW_LANE(_mm_adds_epi8(a, b), _mm_adds_epi16(a, b))
    }
    template <class T>
    static V subtract_saturating(V a, V b) {
        BY_NARROW_LANE(_mm_subs_epi8(a, b), _mm_subs_epi16(a, b))
    }
    template <class T>
    static V max(V a, V b) {
        BY_LANE(_mm_max_epi8(a, b), _mm_max_epi16(a, b), _mm_max_epi32(a, b))
    }
    template <class T>
    static bool any_greater(V a, V b) {
        return _mm_movemask_epi8(greater<T>(a, b)) != 0;
    }
    template <class T>
    static V select(V mask, V yes, V no) {
        return _mm_blendv_epi8(no, yes, mask);
    }
    template <class T>
    static V shift_in(V a, T x) {
        return _mm_alignr_epi8(a, splat<T>(x), 16 - sizeof(T));
    }
    template <class T, int kBy>
    static V shift_up(V a) {
        return _mm_slli_si128(a, kBy * static_cast<int>(sizeof(T)));
    }
    template <class T>
    static T last(V a) {
        BY_LANE(static_cast<T>(_mm_extract_epi8(a, 15)), static_cast<T>(_mm_extract_epi16(a, 7)),
                _mm_extract_epi32(a, 3))
    }
    template <class T>
    static int32_t largest(V a) {
        if constexpr (sizeof(T) == 2) {  // the smallest distance to 32767
            return 32767 - _mm_extract_epi16(_mm_minpos_epu16(_mm_sub_epi16(splat<T>(32767), a)), 0);
        } else {
            a = _mm_max_epi32(a, _mm_shuffle_epi32(a, 0x4E));
            return _mm_cvtsi128_si32(_mm_max_epi32(a, _mm_shuffle_epi32(a, 0xB1)));
        }
    }
    template <class T>
    static V widen(V a) {
        BY_LANE(a, _mm_cvtepi8_epi16(a), _mm_cvtepi8_epi32(a))
    }
    template <class T>
    static V load_bytes(const int8_t* from) {
        BY_LANE(load(from), widen<T>(_mm_loadl_epi64(reinterpret_cast<const V*>(from))), widen<T>(_mm_loadu_si32(from)))
    }

    static V add_products(V sum, V a, V b) { return _mm_add_epi32(sum, _mm_madd_epi16(a, b)); }
    static V shuffle(V table, V index) { return _mm_shuffle_epi8(table, index); }
    static V first_of_parts(V first, V others) { return select<int8_t>(_mm_cvtsi32_si128(0xFF), first, others); }
    // A byte shuffle indexes 16 bytes by the lower four bits, and writes 0 where bit 7 is set.
    struct Codes {
        V low, high;  // the indices in the halves of a row; bit 7 is set in those of the other half
    };
    static Codes codes_of(V codes) {
        const V code = _mm_and_si128(codes, splat<int8_t>(31));
        return {add<int8_t>(code, splat<int8_t>(128 - 16)), subtract<int8_t>(code, splat<int8_t>(16))};
    }
    static V look_up(const int8_t* row, const Codes& codes) {
        return _mm_or_si128(shuffle(load(row), codes.low), shuffle(load(row + 16), codes.high));
    }
    static V unpack_low(V a, V b) { return _mm_unpacklo_epi8(a, b); }
    static V unpack_high(V a, V b) { return _mm_unpackhi_epi8(a, b); }
    static void keep_order(V& a, V& b) { asm volatile("" : "+x"(a), "+x"(b)); }
};

}  // namespace
}  // namespace swsearch
