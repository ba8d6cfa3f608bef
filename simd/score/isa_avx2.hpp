// Vectors of AVX2: 32 bytes.

#pragma once

#include "score/isa_sse.hpp"

namespace swsearch::score {
namespace {

struct Avx2 {
    using V = __m256i;
    static constexpr int kBytes = 32;
    static V load(const void* from) { return _mm256_loadu_si256(static_cast<const V*>(from)); }
    static void store(void* to, V a) { _mm256_storeu_si256(static_cast<V*>(to), a); }
    static V splat8(int8_t x) { return _mm256_set1_epi8(x); }
    static V splat16(int16_t x) { return _mm256_set1_epi16(x); }
    static V splat32(int32_t x) { return _mm256_set1_epi32(x); }
    static V add8(V a, V b) { return _mm256_adds_epi8(a, b); }
    static V sub8(V a, V b) { return _mm256_subs_epi8(a, b); }
    static V max8(V a, V b) { return _mm256_max_epi8(a, b); }
    static V add16(V a, V b) { return _mm256_adds_epi16(a, b); }
    static V sub16(V a, V b) { return _mm256_subs_epi16(a, b); }
    static V max16(V a, V b) { return _mm256_max_epi16(a, b); }
    static V add32(V a, V b) { return _mm256_add_epi32(a, b); }
    static V sub32(V a, V b) { return _mm256_sub_epi32(a, b); }
    static V max32(V a, V b) { return _mm256_max_epi32(a, b); }
    static bool any_greater8(V a, V b) { return _mm256_movemask_epi8(_mm256_cmpgt_epi8(a, b)) != 0; }
    static bool any_greater16(V a, V b) { return _mm256_movemask_epi8(_mm256_cmpgt_epi16(a, b)) != 0; }
    static bool any_greater32(V a, V b) { return _mm256_movemask_epi8(_mm256_cmpgt_epi32(a, b)) != 0; }
    // The upper half's neighbour is the lower half; the lower half's is nothing.
    static V below(V a) { return _mm256_permute2x128_si256(a, a, 0x08); }
    static V shift8(V a, int8_t x) { return _mm256_insert_epi8(_mm256_alignr_epi8(a, below(a), 15), x, 0); }
    static V shift16(V a, int16_t x) { return _mm256_insert_epi16(_mm256_alignr_epi8(a, below(a), 14), x, 0); }
    static V shift32(V a, int32_t x) { return _mm256_insert_epi32(_mm256_alignr_epi8(a, below(a), 12), x, 0); }
    static V look_up(const int8_t* row, V codes) {
        const V low = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)));
        const V high = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 16)));
        const V place = _mm256_and_si256(codes, splat8(15));
        const V upper = _mm256_slli_epi16(codes, 3);
        return _mm256_blendv_epi8(_mm256_shuffle_epi8(low, place), _mm256_shuffle_epi8(high, place), upper);
    }
    static V load_half(const void* from) {
        return _mm256_castsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(from)));
    }
    static V load_quarter(const void* from) {
        return _mm256_castsi128_si256(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
    }
    static V widen16(V a) { return _mm256_cvtepi8_epi16(_mm256_castsi256_si128(a)); }
    static V widen32(V a) { return _mm256_cvtepi8_epi32(_mm256_castsi256_si128(a)); }
    static void keep_order(V& a, V& b) { asm volatile("" : "+x"(a), "+x"(b)); }
    static V load_parts(const uint8_t* const* rows, uint32_t first) {
        const auto half = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[16 * i] + first)); };
        return _mm256_inserti128_si256(_mm256_castsi128_si256(half(0)), half(1), 1);
    }
    static V unpack_low(V a, V b) { return _mm256_unpacklo_epi8(a, b); }
    static V unpack_high(V a, V b) { return _mm256_unpackhi_epi8(a, b); }
};

}  // namespace
}  // namespace swsearch::score
