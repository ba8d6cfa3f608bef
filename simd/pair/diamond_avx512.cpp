// The diamond steps for AVX-512 F, BW and VL: 64, 32 or 16 lanes of eight rows. Called only where the machine has them.

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>

#include "pair/diamond.hpp"

namespace swsearch::pair {
namespace {

struct Lanes8 {
    using Vector = __m512i;
    using Mask = __mmask64;
    using Lane = std::int8_t;
    static constexpr bool saturating = true;
    static constexpr int count = 64;
    static constexpr int rows = 8;
    static Vector set(std::int32_t value) { return _mm512_set1_epi8(static_cast<char>(value)); }
    static Vector load(const Lane* from) { return _mm512_loadu_si512(from); }
    static void store(Lane* to, Vector a) { _mm512_storeu_si512(to, a); }
    static Vector add(Vector a, Vector b) { return _mm512_adds_epi8(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm512_subs_epi8(a, b); }
    static Vector max(Vector a, Vector b) { return _mm512_max_epi8(a, b); }
    static Vector difference(Vector a, Vector b) { return _mm512_xor_si512(a, b); }
    static Vector look_up(Vector table, Vector place) { return _mm512_shuffle_epi8(table, place); }
    static Vector first_of_each_16(Vector one, Vector others) {
        return _mm512_mask_blend_epi8(0x0001'0001'0001'0001u, others, one);
    }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm512_mask_blend_epi8(mask, no, yes); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {
        const auto bits = [](std::ptrdiff_t lane) {
            const std::ptrdiff_t n = std::clamp<std::ptrdiff_t>(lane + 1, 0, count);
            return n == 0 ? std::uint64_t{0} : ~std::uint64_t{0} >> (count - n);
        };
        return bits(up_to) & ~bits(below);
    }
    static Vector shift_in(Vector a, Lane value) {
        return _mm512_alignr_epi8(a, _mm512_alignr_epi32(a, _mm512_set1_epi8(value), 12), 15);
    }
    static Lane last(Vector a) {
        return static_cast<Lane>(_mm_extract_epi8(_mm512_extracti32x4_epi32(a, 3), 15));
    }
    static Vector load_scores(const std::int8_t* scores) { return _mm512_loadu_si512(scores); }
};

struct Lanes16 {
    using Vector = __m512i;
    using Mask = __mmask32;
    using Lane = std::int16_t;
    static constexpr bool saturating = false;
    static constexpr int count = 32;
    static constexpr int rows = 8;
    static Vector set(std::int32_t value) { return _mm512_set1_epi16(static_cast<short>(value)); }
    static Vector load(const Lane* from) { return _mm512_loadu_si512(from); }
    static void store(Lane* to, Vector a) { _mm512_storeu_si512(to, a); }
    static Vector add(Vector a, Vector b) { return _mm512_add_epi16(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm512_sub_epi16(a, b); }
    static Vector max(Vector a, Vector b) { return _mm512_max_epi16(a, b); }
    static Mask equal(Vector a, Vector b) { return _mm512_cmpeq_epi16_mask(a, b); }
    static Mask greater(Vector a, Vector b) { return _mm512_cmpgt_epi16_mask(a, b); }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm512_mask_blend_epi16(mask, no, yes); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {  // lanes over `below`, up to `up_to`
        const auto bits = [](std::ptrdiff_t lane) {
            const std::ptrdiff_t n = std::clamp<std::ptrdiff_t>(lane + 1, 0, count);
            return static_cast<std::uint32_t>((std::uint64_t{1} << n) - 1);
        };
        return bits(up_to) & ~bits(below);
    }
    static Vector shift_in(Vector a, Lane value) {
        const Vector lower = _mm512_set_epi16(30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12,
                                              11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0);
        return _mm512_mask_permutexvar_epi16(_mm512_set1_epi16(value), 0xFFFFFFFEu, lower, a);
    }
    static Lane last(Vector a) {
        return static_cast<Lane>(_mm_extract_epi16(_mm512_extracti32x4_epi32(a, 3), 7));
    }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scores)));
    }
};

struct Lanes32 {
    using Vector = __m512i;
    using Mask = __mmask16;
    using Lane = std::int32_t;
    static constexpr bool saturating = false;
    static constexpr int count = 16;
    static constexpr int rows = 8;
    static Vector set(std::int32_t value) { return _mm512_set1_epi32(value); }
    static Vector load(const Lane* from) { return _mm512_loadu_si512(from); }
    static void store(Lane* to, Vector a) { _mm512_storeu_si512(to, a); }
    static Vector add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
    static Vector max(Vector a, Vector b) { return _mm512_max_epi32(a, b); }
    static Mask equal(Vector a, Vector b) { return _mm512_cmpeq_epi32_mask(a, b); }
    static Mask greater(Vector a, Vector b) { return _mm512_cmpgt_epi32_mask(a, b); }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm512_mask_blend_epi32(mask, no, yes); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {
        const auto bits = [](std::ptrdiff_t lane) {
            return (1u << std::clamp<std::ptrdiff_t>(lane + 1, 0, count)) - 1u;
        };
        return static_cast<Mask>(bits(up_to) & ~bits(below));
    }
    static Vector shift_in(Vector a, Lane value) { return _mm512_alignr_epi32(a, _mm512_set1_epi32(value), 15); }
    static Lane last(Vector a) { return _mm_extract_epi32(_mm512_extracti32x4_epi32(a, 3), 3); }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scores)));
    }
};

// Scores of 64 lines, those 16 apart in the blocks of a vector.
struct Lines64 {
    using Vector = __m512i;
    static constexpr std::size_t blocks = 4;
    static __m128i block(const std::int8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
    static Vector load(const std::int8_t* const* lines) {
        Vector a = _mm512_castsi128_si512(block(lines[0]));
        a = _mm512_inserti32x4(a, block(lines[16]), 1);
        a = _mm512_inserti32x4(a, block(lines[32]), 2);
        return _mm512_inserti32x4(a, block(lines[48]), 3);
    }
    static Vector low(Vector a, Vector b) { return _mm512_unpacklo_epi8(a, b); }
    static Vector high(Vector a, Vector b) { return _mm512_unpackhi_epi8(a, b); }
    static void store(std::int8_t* to, Vector a) { _mm512_storeu_si512(to, a); }
};

}  // namespace

const Kernels kernels_avx512 = {"avx512", width_of_bytes<Lanes8, Lines64>(), width_of<Lanes16, Lines64>(), width_of<Lanes32, Lines64>()};

}  // namespace swsearch::pair

#endif
