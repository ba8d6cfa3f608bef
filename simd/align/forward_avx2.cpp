// The forward pass for AVX2: 16 or 8 lanes. Compiled with -mavx2 and called only where the machine has it.

#if defined(__x86_64__)

#include <immintrin.h>

#include "align/striped.hpp"

namespace swsearch::align {
namespace {

struct Lanes16 {
    using Vector = __m256i;
    static constexpr int count = 16;
    static constexpr bool narrow = true;
    static Vector set(std::int32_t value) { return _mm256_set1_epi16(static_cast<short>(value)); }
    static Vector add(Vector a, Vector b) { return _mm256_add_epi16(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm256_sub_epi16(a, b); }
    static Vector max(Vector a, Vector b) { return _mm256_max_epi16(a, b); }
    static bool any_greater(Vector a, Vector b) { return _mm256_movemask_epi8(_mm256_cmpgt_epi16(a, b)) != 0; }
    static Vector shift_in_zero(Vector a) {
        return _mm256_alignr_epi8(a, _mm256_permute2x128_si256(a, a, 0x08), 14);
    }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scores)));
    }
    static std::int32_t largest(Vector a) {  // of values from 0 up: the smallest distance to 32767
        const __m128i half = _mm_max_epi16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
        const __m128i distance = _mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(32767), half));
        return 32767 - _mm_extract_epi16(distance, 0);
    }
};

struct Lanes32 {
    using Vector = __m256i;
    static constexpr int count = 8;
    static constexpr bool narrow = false;
    static Vector set(std::int32_t value) { return _mm256_set1_epi32(value); }
    static Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
    static Vector max(Vector a, Vector b) { return _mm256_max_epi32(a, b); }
    static bool any_greater(Vector a, Vector b) { return _mm256_movemask_epi8(_mm256_cmpgt_epi32(a, b)) != 0; }
    static Vector shift_in_zero(Vector a) {
        return _mm256_alignr_epi8(a, _mm256_permute2x128_si256(a, a, 0x08), 12);
    }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scores)));
    }
    static std::int32_t largest(Vector a) {
        __m128i half = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
        half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4E));
        half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xB1));
        return _mm_cvtsi128_si32(half);
    }
};

}  // namespace

const ForwardKernels forward_avx2 = {"avx2", striped_columns<Lanes16>, Lanes16::count, striped_columns<Lanes32>,
                                     Lanes32::count};

}  // namespace swsearch::align

#endif
