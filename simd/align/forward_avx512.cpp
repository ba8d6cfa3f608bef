// The forward pass for AVX-512 F, BW and VL: 32 or 16 lanes. Compiled for them and called only where the machine has them.

#if defined(__x86_64__)

#include <immintrin.h>

#include "align/striped.hpp"

namespace swsearch::align {
namespace {

struct Lanes16 {
    using Vector = __m512i;
    static constexpr int count = 32;
    static constexpr bool narrow = true;
    static Vector set(std::int32_t value) { return _mm512_set1_epi16(static_cast<short>(value)); }
    static Vector add(Vector a, Vector b) { return _mm512_add_epi16(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm512_sub_epi16(a, b); }
    static Vector max(Vector a, Vector b) { return _mm512_max_epi16(a, b); }
    static bool any_greater(Vector a, Vector b) { return _mm512_cmpgt_epi16_mask(a, b) != 0; }
    static Vector shift_in_zero(Vector a) {  // the last word of each lane of 128 bits from the lane below it
        const __m512i below = _mm512_maskz_shuffle_i64x2(0xFC, a, a, 0x90);
        return _mm512_alignr_epi8(a, below, 14);
    }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scores)));
    }
    static std::int32_t largest(Vector a) {  // of values from 0 up: the smallest distance to 32767
        const __m256i half = _mm256_max_epi16(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
        const __m128i quarter = _mm_max_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
        const __m128i distance = _mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(32767), quarter));
        return 32767 - _mm_extract_epi16(distance, 0);
    }
};

struct Lanes32 {
    using Vector = __m512i;
    static constexpr int count = 16;
    static constexpr bool narrow = false;
    static Vector set(std::int32_t value) { return _mm512_set1_epi32(value); }
    static Vector add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
    static Vector max(Vector a, Vector b) { return _mm512_max_epi32(a, b); }
    static bool any_greater(Vector a, Vector b) { return _mm512_cmpgt_epi32_mask(a, b) != 0; }
    static Vector shift_in_zero(Vector a) { return _mm512_maskz_alignr_epi32(0xFFFE, a, a, 15); }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scores)));
    }
    static std::int32_t largest(Vector a) {
        const __m256i whole = _mm256_max_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
        __m128i half = _mm_max_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
        half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4E));
        half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xB1));
        return _mm_cvtsi128_si32(half);
    }
};

}  // namespace

const ForwardKernels forward_avx512 = {"avx512", striped_columns<Lanes16>, Lanes16::count, striped_columns<Lanes32>,
                                       Lanes32::count};

}  // namespace swsearch::align

#endif
