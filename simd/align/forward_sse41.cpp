// The forward pass for SSE4.1: 8 or 4 lanes. Compiled with -msse4.1 and called only where the machine has it.

#if defined(__x86_64__)

#include <immintrin.h>

#include "align/striped.hpp"

namespace swsearch::align {
namespace {

struct Lanes16 {
    using Vector = __m128i;
    static constexpr int count = 8;
    static constexpr bool narrow = true;
    static Vector set(std::int32_t value) { return _mm_set1_epi16(static_cast<short>(value)); }
    static Vector add(Vector a, Vector b) { return _mm_add_epi16(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm_sub_epi16(a, b); }
    static Vector max(Vector a, Vector b) { return _mm_max_epi16(a, b); }
    static bool any_greater(Vector a, Vector b) { return _mm_movemask_epi8(_mm_cmpgt_epi16(a, b)) != 0; }
    static Vector shift_in_zero(Vector a) { return _mm_slli_si128(a, 2); }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scores)));
    }
    static std::int32_t largest(Vector a) {  // of values from 0 up: the smallest distance to 32767
        const __m128i distance = _mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(32767), a));
        return 32767 - _mm_extract_epi16(distance, 0);
    }
};

struct Lanes32 {
    using Vector = __m128i;
    static constexpr int count = 4;
    static constexpr bool narrow = false;
    static Vector set(std::int32_t value) { return _mm_set1_epi32(value); }
    static Vector add(Vector a, Vector b) { return _mm_add_epi32(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm_sub_epi32(a, b); }
    static Vector max(Vector a, Vector b) { return _mm_max_epi32(a, b); }
    static bool any_greater(Vector a, Vector b) { return _mm_movemask_epi8(_mm_cmpgt_epi32(a, b)) != 0; }
    static Vector shift_in_zero(Vector a) { return _mm_slli_si128(a, 4); }
    static Vector load_scores(const std::int8_t* scores) { return _mm_cvtepi8_epi32(_mm_loadu_si32(scores)); }
    static std::int32_t largest(Vector a) {
        a = _mm_max_epi32(a, _mm_shuffle_epi32(a, 0x4E));
        a = _mm_max_epi32(a, _mm_shuffle_epi32(a, 0xB1));
        return _mm_cvtsi128_si32(a);
    }
};

}  // namespace

const ForwardKernels forward_sse41 = {"sse41", striped_columns<Lanes16>, Lanes16::count, striped_columns<Lanes32>,
                                      Lanes32::count};

}  // namespace swsearch::align

#endif
