// Vectors of SSE4.1: 16 bytes.

#pragma once

#include <immintrin.h>

#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

struct Sse41 {
    using V = __m128i;
    static constexpr int kBytes = 16;
    static V load(const void* from) { return _mm_loadu_si128(static_cast<const V*>(from)); }
    static void store(void* to, V a) { _mm_storeu_si128(static_cast<V*>(to), a); }
    static V splat8(int8_t x) { return _mm_set1_epi8(x); }
    static V splat16(int16_t x) { return _mm_set1_epi16(x); }
    static V splat32(int32_t x) { return _mm_set1_epi32(x); }
    static V add8(V a, V b) { return _mm_adds_epi8(a, b); }
    static V sub8(V a, V b) { return _mm_subs_epi8(a, b); }
    static V max8(V a, V b) { return _mm_max_epi8(a, b); }
    static V add16(V a, V b) { return _mm_adds_epi16(a, b); }
    static V sub16(V a, V b) { return _mm_subs_epi16(a, b); }
    static V max16(V a, V b) { return _mm_max_epi16(a, b); }
    static V add32(V a, V b) { return _mm_add_epi32(a, b); }
    static V sub32(V a, V b) { return _mm_sub_epi32(a, b); }
    static V max32(V a, V b) { return _mm_max_epi32(a, b); }
    static bool any_greater8(V a, V b) { return _mm_movemask_epi8(_mm_cmpgt_epi8(a, b)) != 0; }
    static bool any_greater16(V a, V b) { return _mm_movemask_epi8(_mm_cmpgt_epi16(a, b)) != 0; }
    static bool any_greater32(V a, V b) { return _mm_movemask_epi8(_mm_cmpgt_epi32(a, b)) != 0; }
    static V shift8(V a, int8_t x) { return _mm_insert_epi8(_mm_slli_si128(a, 1), x, 0); }
    static V shift16(V a, int16_t x) { return _mm_insert_epi16(_mm_slli_si128(a, 2), x, 0); }
    static V shift32(V a, int32_t x) { return _mm_insert_epi32(_mm_slli_si128(a, 4), x, 0); }
    // A byte shuffle knows 16 places, and its bit 7 gives zero: bit 4 of the code, moved there, chooses between halves.
    static V look_up(const int8_t* row, V codes) {
        const V low = load(row);
        const V high = load(row + 16);
        const V place = _mm_and_si128(codes, splat8(15));
        const V upper = _mm_slli_epi16(codes, 3);
        return _mm_blendv_epi8(_mm_shuffle_epi8(low, place), _mm_shuffle_epi8(high, place), upper);
    }
    static V load_half(const void* from) { return _mm_loadl_epi64(static_cast<const V*>(from)); }
    static V load_quarter(const void* from) { return _mm_loadu_si32(from); }
    static V widen16(V a) { return _mm_cvtepi8_epi16(a); }
    static V widen32(V a) { return _mm_cvtepi8_epi32(a); }
    static void keep_order(V& a, V& b) { asm volatile("" : "+x"(a), "+x"(b)); }
    static V load_parts(const uint8_t* const* rows, uint32_t first) { return load(rows[0] + first); }
    static V unpack_low(V a, V b) { return _mm_unpacklo_epi8(a, b); }
    static V unpack_high(V a, V b) { return _mm_unpackhi_epi8(a, b); }
};

}  // namespace
}  // namespace swsearch::score
