// Vectors of AVX-512BW: 64 bytes; with VBMI a byte permute of 64 places looks scores up at once.

#pragma once

#include "score/isa_sse.hpp"

namespace swsearch::score {
namespace {

struct Avx512 {
    using V = __m512i;
    static constexpr int kBytes = 64;
    static V load(const void* from) { return _mm512_loadu_si512(from); }
    static void store(void* to, V a) { _mm512_storeu_si512(to, a); }
    static V splat8(int8_t x) { return _mm512_set1_epi8(x); }
    static V splat16(int16_t x) { return _mm512_set1_epi16(x); }
    static V splat32(int32_t x) { return _mm512_set1_epi32(x); }
    static V add8(V a, V b) { return _mm512_adds_epi8(a, b); }
    static V sub8(V a, V b) { return _mm512_subs_epi8(a, b); }
    static V max8(V a, V b) { return _mm512_max_epi8(a, b); }
    static V add16(V a, V b) { return _mm512_adds_epi16(a, b); }
    static V sub16(V a, V b) { return _mm512_subs_epi16(a, b); }
    static V max16(V a, V b) { return _mm512_max_epi16(a, b); }
    static V add32(V a, V b) { return _mm512_add_epi32(a, b); }
    static V sub32(V a, V b) { return _mm512_sub_epi32(a, b); }
    static V max32(V a, V b) { return _mm512_max_epi32(a, b); }
    static bool any_greater8(V a, V b) { return _mm512_cmpgt_epi8_mask(a, b) != 0; }
    static bool any_greater16(V a, V b) { return _mm512_cmpgt_epi16_mask(a, b) != 0; }
    static bool any_greater32(V a, V b) { return _mm512_cmpgt_epi32_mask(a, b) != 0; }
    // Each quarter's neighbour is the quarter below it; the lowest quarter's is nothing.
    static V below(V a) { return _mm512_maskz_shuffle_i32x4(0xFFF0, a, a, _MM_SHUFFLE(2, 1, 0, 0)); }
    static V shift8(V a, int8_t x) { return _mm512_mask_set1_epi8(_mm512_alignr_epi8(a, below(a), 15), 1, x); }
    static V shift16(V a, int16_t x) { return _mm512_mask_set1_epi16(_mm512_alignr_epi8(a, below(a), 14), 1, x); }
    static V shift32(V a, int32_t x) { return _mm512_mask_set1_epi32(_mm512_alignr_epi8(a, below(a), 12), 1, x); }
    static V look_up(const int8_t* row, V codes) {
        const V low = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)));
        const V high = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 16)));
        const V place = _mm512_and_si512(codes, splat8(15));
        const __mmask64 upper = _mm512_test_epi8_mask(codes, splat8(16));
        return _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(low, place), upper, high, place);
    }
    static V load_half(const void* from) {
        return _mm512_castsi256_si512(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
    }
    static V load_quarter(const void* from) {
        return _mm512_castsi128_si512(_mm_loadu_si128(static_cast<const __m128i*>(from)));
    }
    static V widen16(V a) { return _mm512_cvtepi8_epi16(_mm512_castsi512_si256(a)); }
    static V widen32(V a) { return _mm512_cvtepi8_epi32(_mm512_castsi512_si128(a)); }
    static void keep_order(V&, V&) {}
    static V load_parts(const uint8_t* const* rows, uint32_t first) {
        const auto part = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[16 * i] + first)); };
        const V one = _mm512_inserti32x4(_mm512_castsi128_si512(part(0)), part(1), 1);
        return _mm512_inserti32x4(_mm512_inserti32x4(one, part(2), 2), part(3), 3);
    }
    static V unpack_low(V a, V b) { return _mm512_unpacklo_epi8(a, b); }
    static V unpack_high(V a, V b) { return _mm512_unpackhi_epi8(a, b); }
};

#if defined(__AVX512VBMI__)
struct Avx512Vbmi : Avx512 {
    static V look_up(const int8_t* row, V codes) {
        const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
        return _mm512_permutexvar_epi8(codes, _mm512_broadcast_i64x4(half));
    }
};
#endif

}  // namespace
}  // namespace swsearch::score
