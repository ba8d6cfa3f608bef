// The diamond steps for SSE4.1: 16, 8 or 4 lanes of four rows. Compiled with -msse4.1, called only where the machine has it.

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>

#include "pair/diamond.hpp"

namespace swsearch::pair {
namespace {

struct Lanes8 {
    using Vector = __m128i;
    using Mask = __m128i;
    using Lane = std::int8_t;
    static constexpr bool saturating = true;
    static constexpr int count = 16;
    static constexpr int rows = 4;
    static Vector set(std::int32_t value) { return _mm_set1_epi8(static_cast<char>(value)); }
    static Vector load(const Lane* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
    static void store(Lane* to, Vector a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), a); }
    static Vector add(Vector a, Vector b) { return _mm_adds_epi8(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm_subs_epi8(a, b); }
    static Vector max(Vector a, Vector b) { return _mm_max_epi8(a, b); }
    static Vector difference(Vector a, Vector b) { return _mm_xor_si128(a, b); }
    static Vector look_up(Vector table, Vector place) { return _mm_shuffle_epi8(table, place); }
    static Vector first_of_each_16(Vector one, Vector others) { return select(_mm_cvtsi32_si128(0xFF), one, others); }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm_blendv_epi8(no, yes, mask); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {
        const Vector lane = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const auto within = [](std::ptrdiff_t x) { return std::int32_t(std::clamp<std::ptrdiff_t>(x, -1, count)); };
        return _mm_cmpgt_epi8(lane, set(within(below))) & _mm_cmpgt_epi8(set(within(up_to) + 1), lane);
    }
    static Vector shift_in(Vector a, Lane value) { return _mm_alignr_epi8(a, _mm_set1_epi8(value), 15); }
    static Lane last(Vector a) { return static_cast<Lane>(_mm_extract_epi8(a, 15)); }
    static Vector load_scores(const std::int8_t* scores) { return load(scores); }
};

struct Lanes16 {
    using Vector = __m128i;
    using Mask = __m128i;
    using Lane = std::int16_t;
    static constexpr bool saturating = false;
    static constexpr int count = 8;
    static constexpr int rows = 4;
    static Vector set(std::int32_t value) { return _mm_set1_epi16(static_cast<short>(value)); }
    static Vector load(const Lane* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
    static void store(Lane* to, Vector a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), a); }
    static Vector add(Vector a, Vector b) { return _mm_add_epi16(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm_sub_epi16(a, b); }
    static Vector max(Vector a, Vector b) { return _mm_max_epi16(a, b); }
    static Mask equal(Vector a, Vector b) { return _mm_cmpeq_epi16(a, b); }
    static Mask greater(Vector a, Vector b) { return _mm_cmpgt_epi16(a, b); }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm_blendv_epi8(no, yes, mask); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {  // lanes over `below`, up to `up_to`
        const Vector lane = _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7);
        const auto within = [](std::ptrdiff_t x) { return std::int32_t(std::clamp<std::ptrdiff_t>(x, -1, count)); };
        return greater(lane, set(within(below))) & greater(set(within(up_to) + 1), lane);
    }
    static Vector shift_in(Vector a, Lane value) { return _mm_alignr_epi8(a, _mm_set1_epi16(value), 14); }
    static Lane last(Vector a) { return static_cast<Lane>(_mm_extract_epi16(a, 7)); }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scores)));
    }
};

struct Lanes32 {
    using Vector = __m128i;
    using Mask = __m128i;
    using Lane = std::int32_t;
    static constexpr bool saturating = false;
    static constexpr int count = 4;
    static constexpr int rows = 4;
    static Vector set(std::int32_t value) { return _mm_set1_epi32(value); }
    static Vector load(const Lane* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
    static void store(Lane* to, Vector a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), a); }
    static Vector add(Vector a, Vector b) { return _mm_add_epi32(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm_sub_epi32(a, b); }
    static Vector max(Vector a, Vector b) { return _mm_max_epi32(a, b); }
    static Mask equal(Vector a, Vector b) { return _mm_cmpeq_epi32(a, b); }
    static Mask greater(Vector a, Vector b) { return _mm_cmpgt_epi32(a, b); }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm_blendv_epi8(no, yes, mask); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {
        const Vector lane = _mm_setr_epi32(0, 1, 2, 3);
        const auto within = [](std::ptrdiff_t x) { return std::int32_t(std::clamp<std::ptrdiff_t>(x, -1, count)); };
        return greater(lane, set(within(below))) & greater(set(within(up_to) + 1), lane);
    }
    static Vector shift_in(Vector a, Lane value) { return _mm_alignr_epi8(a, _mm_set1_epi32(value), 12); }
    static Lane last(Vector a) { return _mm_extract_epi32(a, 3); }
    static Vector load_scores(const std::int8_t* scores) { return _mm_cvtepi8_epi32(_mm_loadu_si32(scores)); }
};

// Scores of 16 lines.
struct Lines16 {
    using Vector = __m128i;
    static constexpr std::size_t blocks = 1;
    static Vector load(const std::int8_t* const* lines) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(lines[0]));
    }
    static Vector low(Vector a, Vector b) { return _mm_unpacklo_epi8(a, b); }
    static Vector high(Vector a, Vector b) { return _mm_unpackhi_epi8(a, b); }
    static void store(std::int8_t* to, Vector a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), a); }
};

}  // namespace

const Kernels kernels_sse41 = {"sse41", width_of_bytes<Lanes8, Lines16>(), width_of<Lanes16, Lines16>(), width_of<Lanes32, Lines16>()};

}  // namespace swsearch::pair

#endif
