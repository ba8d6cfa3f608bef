// Vectors of AVX2: 32 bytes. vectors.hpp describes each function.

#pragma once

#include <immintrin.h>

#include "common/vectors/compiled.hpp"

namespace swsearch {
namespace {

struct Register {
    using V = __m256i;
};

struct Vectors : CompiledVectors<Register> {
    static constexpr int kRegisters = 16;

    template <class T>
    static V add_saturating(V a, V b) {
        BY_NARROW_LANE(_mm256_adds_epi8(a, b), _mm256_adds_epi16(a, b))
    }
    template <class T>
    static V subtract_saturating(V a, V b) {
        BY_NARROW_LANE(_mm256_subs_epi8(a, b), _mm256_subs_epi16(a, b))
    }
    template <class T>
    static V max(V a, V b) {
        BY_LANE(_mm256_max_epi8(a, b), _mm256_max_epi16(a, b), _mm256_max_epi32(a, b))
    }
    template <class T>
    static bool any_greater(V a, V b) {
        return _mm256_movemask_epi8(greater<T>(a, b)) != 0;
    }
    template <class T>
    static V select(V mask, V yes, V no) {
        return _mm256_blendv_epi8(no, yes, mask);
    }
    template <class T>
    static V shift_in(V a, T x) {
        return _mm256_alignr_epi8(a, _mm256_permute2x128_si256(a, splat<T>(x), 0x02), 16 - sizeof(T));
    }
    template <class T, int kBy>
    static V shift_up(V a) {
        constexpr int kBytesUp = kBy * static_cast<int>(sizeof(T));
        const V low_half_up = _mm256_permute2x128_si256(a, a, 0x08);
        if constexpr (kBytesUp == 16) {
            return low_half_up;
        } else {
            return _mm256_alignr_epi8(a, low_half_up, 16 - kBytesUp);
        }
    }
    template <class T>
    static T last(V a) {
        const __m128i high = _mm256_extracti128_si256(a, 1);
        BY_LANE(static_cast<T>(_mm_extract_epi8(high, 15)), static_cast<T>(_mm_extract_epi16(high, 7)),
                _mm_extract_epi32(high, 3))
    }
    template <class T>
    static int32_t largest(V a) {
        const __m128i low = _mm256_castsi256_si128(a);
        const __m128i high = _mm256_extracti128_si256(a, 1);
        if constexpr (sizeof(T) == 2) {  // the smallest distance to 32767
            const __m128i distance = _mm_sub_epi16(_mm_set1_epi16(32767), _mm_max_epi16(low, high));
            return 32767 - _mm_extract_epi16(_mm_minpos_epu16(distance), 0);
        } else {
            __m128i half = _mm_max_epi32(low, high);
            half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4E));
            return _mm_cvtsi128_si32(_mm_max_epi32(half, _mm_shuffle_epi32(half, 0xB1)));
        }
    }
    template <class T>
    static V widen(V a) {
        BY_LANE(a, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(a)), _mm256_cvtepi8_epi32(_mm256_castsi256_si128(a)))
    }
    template <class T>
    static V load_bytes(const int8_t* from) {
        BY_LANE(load(from), _mm256_cvtepi8_epi16(load_part(from)),
                _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))))
    }

    static V add_products(V sum, V a, V b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
    static V shuffle(V table, V index) { return _mm256_shuffle_epi8(table, index); }
    static V first_of_parts(V first, V others) {
        return select<int8_t>(_mm256_broadcastsi128_si256(_mm_cvtsi32_si128(0xFF)), first, others);
    }
    // A byte shuffle indexes 16 bytes by the lower four bits, and writes 0 where bit 7 is set.
    struct Codes {
        V low, high;  // the indices in the halves of a row; bit 7 is set in those of the other half
    };
    static Codes codes_of(V codes) {
        const V code = _mm256_and_si256(codes, splat<int8_t>(31));
        return {add<int8_t>(code, splat<int8_t>(128 - 16)), subtract<int8_t>(code, splat<int8_t>(16))};
    }
    static V look_up(const int8_t* row, const Codes& codes) {
        const V low = _mm256_broadcastsi128_si256(load_part(row));
        const V high = _mm256_broadcastsi128_si256(load_part(row + 16));
        return _mm256_or_si256(shuffle(low, codes.low), shuffle(high, codes.high));
    }
    template <class Byte>
    static __m128i load_part(const Byte* from) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    }
    template <class Byte>
    static V load_parts(const Byte* const* rows, size_t offset) {
        return _mm256_inserti128_si256(_mm256_castsi128_si256(load_part(rows[0] + offset)),
                                       load_part(rows[16] + offset), 1);
    }
    static V unpack_low(V a, V b) { return _mm256_unpacklo_epi8(a, b); }
    static V unpack_high(V a, V b) { return _mm256_unpackhi_epi8(a, b); }
    static void keep_order(V& a, V& b) { asm volatile("" : "+x"(a), "+x"(b)); }
};

}  // namespace
}  // namespace swsearch
