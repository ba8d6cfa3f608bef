// Vectors of AVX-512 (F, BW, VL, DQ): 64 bytes. vectors.hpp describes each function. With VBMI, scores are looked up by
// a single byte permutation; with VNNI, products are added by a single instruction.

#pragma once

#include <immintrin.h>

#include "common/vectors/compiled.hpp"

namespace swsearch {
namespace {

struct Register {
    using V = __m512i;
};

struct Vectors : CompiledVectors<Register> {
    static __mmask64 mask_of(int8_t);
    static __mmask32 mask_of(int16_t);
    static __mmask16 mask_of(int32_t);
    template <class T>
    using Mask = decltype(mask_of(T{}));  // one bit per lane
    static constexpr int kRegisters = 32;

    template <class T>
    static V add_saturating(V a, V b) {
        BY_NARROW_LANE(_mm512_adds_epi8(a, b), _mm512_adds_epi16(a, b))
    }
    template <class T>
    static V subtract_saturating(V a, V b) {
        BY_NARROW_LANE(_mm512_subs_epi8(a, b), _mm512_subs_epi16(a, b))
    }
    template <class T>
    static V max(V a, V b) {
        BY_LANE(_mm512_max_epi8(a, b), _mm512_max_epi16(a, b), _mm512_max_epi32(a, b))
    }
    template <class T>
    static Mask<T> equal(V a, V b) {
        BY_LANE(_mm512_cmpeq_epi8_mask(a, b), _mm512_cmpeq_epi16_mask(a, b), _mm512_cmpeq_epi32_mask(a, b))
    }
    template <class T>
    static Mask<T> greater(V a, V b) {
        BY_LANE(_mm512_cmpgt_epi8_mask(a, b), _mm512_cmpgt_epi16_mask(a, b), _mm512_cmpgt_epi32_mask(a, b))
    }
    template <class T>
    static bool any_greater(V a, V b) {
        return greater<T>(a, b) != 0;
    }
    template <class T>
    static V select(Mask<T> mask, V yes, V no) {
        BY_LANE(_mm512_mask_blend_epi8(mask, no, yes), _mm512_mask_blend_epi16(mask, no, yes),
                _mm512_mask_blend_epi32(mask, no, yes))
    }
    template <class T>
    static V shift_in(V a, T x) {
        if constexpr (sizeof(T) == 1) {
            return _mm512_alignr_epi8(a, _mm512_alignr_epi32(a, splat<T>(x), 12), 15);
        } else if constexpr (sizeof(T) == 2) {
            const V lower = _mm512_set_epi16(30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12,
                                             11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0);
            return _mm512_mask_permutexvar_epi16(splat<T>(x), 0xFFFFFFFEu, lower, a);
        } else {
            return _mm512_alignr_epi32(a, splat<T>(x), 15);
        }
    }
    template <class T, int kBy>
    static V shift_up(V a) {
        constexpr int kInts = kBy * static_cast<int>(sizeof(T)) / 4;
        if constexpr (kInts == 0) {
            return shift_in<T>(a, 0);
        } else {
            return _mm512_alignr_epi32(a, _mm512_setzero_si512(), 16 - kInts);
        }
    }
    template <class T>
    static T last(V a) {
        const __m128i high = _mm512_extracti32x4_epi32(a, 3);
        BY_LANE(static_cast<T>(_mm_extract_epi8(high, 15)), static_cast<T>(_mm_extract_epi16(high, 7)),
                _mm_extract_epi32(high, 3))
    }
    template <class T>
    static int32_t largest(V a) {
        const __m256i low = _mm512_castsi512_si256(a);
        const __m256i high = _mm512_extracti64x4_epi64(a, 1);
        if constexpr (sizeof(T) == 2) {  // the smallest distance to 32767
            const __m256i half = _mm256_max_epi16(low, high);
            const __m128i part = _mm_max_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
            return 32767 - _mm_extract_epi16(_mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(32767), part)), 0);
        } else {
            const __m256i half = _mm256_max_epi32(low, high);
            __m128i part = _mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
            part = _mm_max_epi32(part, _mm_shuffle_epi32(part, 0x4E));
            return _mm_cvtsi128_si32(_mm_max_epi32(part, _mm_shuffle_epi32(part, 0xB1)));
        }
    }
    template <class T>
    static V widen(V a) {
        BY_LANE(a, _mm512_cvtepi8_epi16(_mm512_castsi512_si256(a)), _mm512_cvtepi8_epi32(_mm512_castsi512_si128(a)))
    }
    template <class T>
    static V load_bytes(const int8_t* from) {
        BY_LANE(load(from), _mm512_cvtepi8_epi16(load_half(from)), _mm512_cvtepi8_epi32(load_part(from)))
    }

    static V add_products(V sum, V a, V b) {
#if defined(__AVX512VNNI__)
        return _mm512_dpwssd_epi32(sum, a, b);
#else
        return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
    }
    static V shuffle(V table, V index) { return _mm512_shuffle_epi8(table, index); }
    static V first_of_parts(V first, V others) { return _mm512_mask_blend_epi8(0x0001'0001'0001'0001u, others, first); }
#if defined(__AVX512VBMI__)
    using Codes = V;
    static Codes codes_of(V codes) { return codes; }
    static V look_up(const int8_t* row, Codes codes) {
        return _mm512_permutexvar_epi8(codes, _mm512_broadcast_i64x4(load_half(row)));
    }
#else
    struct Codes {
        V index;          // in the half of a row
        __mmask64 upper;  // the codes of the upper half
    };
    static Codes codes_of(V codes) {
        return {_mm512_and_si512(codes, splat<int8_t>(15)), _mm512_test_epi8_mask(codes, splat<int8_t>(16))};
    }
    static V look_up(const int8_t* row, const Codes& codes) {
        const V low = _mm512_broadcast_i32x4(load_part(row));
        const V high = _mm512_broadcast_i32x4(load_part(row + 16));
        return _mm512_mask_shuffle_epi8(shuffle(low, codes.index), codes.upper, high, codes.index);
    }
#endif
    template <class Byte>
    static __m128i load_part(const Byte* from) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    }
    static __m256i load_half(const int8_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
    template <class Byte>
    static V load_parts(const Byte* const* rows, size_t offset) {
        const auto part = [&](int i) { return load_part(rows[16 * i] + offset); };
        const V low = _mm512_inserti32x4(_mm512_castsi128_si512(part(0)), part(1), 1);
        return _mm512_inserti32x4(_mm512_inserti32x4(low, part(2), 2), part(3), 3);
    }
    static V unpack_low(V a, V b) { return _mm512_unpacklo_epi8(a, b); }
    static V unpack_high(V a, V b) { return _mm512_unpackhi_epi8(a, b); }
};

}  // namespace
}  // namespace swsearch
