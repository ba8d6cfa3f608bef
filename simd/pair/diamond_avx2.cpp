// The diamond steps for AVX2: 32, 16 or 8 lanes of eight rows. Compiled with -mavx2 and called only where the machine has it.

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>

#include "pair/diamond.hpp"

namespace swsearch::pair {
namespace {

// Lane 0 takes the highest lane of `low`, the others the lane below them.
template <int bytes>
__m256i lanes_up(__m256i a, __m256i low) {
    return _mm256_alignr_epi8(a, _mm256_permute2x128_si256(a, low, 0x02), 16 - bytes);
}

struct Lanes8 {
    using Vector = __m256i;
    using Mask = __m256i;
    using Lane = std::int8_t;
    static constexpr bool saturating = true;
    static constexpr int count = 32;
    static constexpr int rows = 8;
    static Vector set(std::int32_t value) { return _mm256_set1_epi8(static_cast<char>(value)); }
    static Vector load(const Lane* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
    static void store(Lane* to, Vector a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a); }
    static Vector add(Vector a, Vector b) { return _mm256_adds_epi8(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm256_subs_epi8(a, b); }
    static Vector max(Vector a, Vector b) { return _mm256_max_epi8(a, b); }
    static Vector difference(Vector a, Vector b) { return _mm256_xor_si256(a, b); }
    static Vector look_up(Vector table, Vector place) { return _mm256_shuffle_epi8(table, place); }
    static Vector first_of_each_16(Vector one, Vector others) {
        return select(_mm256_broadcastsi128_si256(_mm_cvtsi32_si128(0xFF)), one, others);
    }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm256_blendv_epi8(no, yes, mask); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {
        const Vector lane = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                             22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
        const auto within = [](std::ptrdiff_t x) { return std::int32_t(std::clamp<std::ptrdiff_t>(x, -1, count)); };
        return _mm256_cmpgt_epi8(lane, set(within(below))) & _mm256_cmpgt_epi8(set(within(up_to) + 1), lane);
    }
    static Vector shift_in(Vector a, Lane value) { return lanes_up<1>(a, _mm256_set1_epi8(value)); }
    static Lane last(Vector a) { return static_cast<Lane>(_mm_extract_epi8(_mm256_extracti128_si256(a, 1), 15)); }
    static Vector load_scores(const std::int8_t* scores) { return load(scores); }
};

struct Lanes16 {
    using Vector = __m256i;
    using Mask = __m256i;
    using Lane = std::int16_t;
    static constexpr bool saturating = false;
    static constexpr int count = 16;
    static constexpr int rows = 8;
    static Vector set(std::int32_t value) { return _mm256_set1_epi16(static_cast<short>(value)); }
    static Vector load(const Lane* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
    static void store(Lane* to, Vector a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a); }
    static Vector add(Vector a, Vector b) { return _mm256_add_epi16(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm256_sub_epi16(a, b); }
    static Vector max(Vector a, Vector b) { return _mm256_max_epi16(a, b); }
    static Mask equal(Vector a, Vector b) { return _mm256_cmpeq_epi16(a, b); }
    static Mask greater(Vector a, Vector b) { return _mm256_cmpgt_epi16(a, b); }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm256_blendv_epi8(no, yes, mask); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {  // lanes over `below`, up to `up_to`
        const Vector lane = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const auto within = [](std::ptrdiff_t x) { return std::int32_t(std::clamp<std::ptrdiff_t>(x, -1, count)); };
        return greater(lane, set(within(below))) & greater(set(within(up_to) + 1), lane);
    }
    static Vector shift_in(Vector a, Lane value) { return lanes_up<2>(a, _mm256_set1_epi16(value)); }
    static Lane last(Vector a) { return static_cast<Lane>(_mm_extract_epi16(_mm256_extracti128_si256(a, 1), 7)); }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scores)));
    }
};

struct Lanes32 {
    using Vector = __m256i;
    using Mask = __m256i;
    using Lane = std::int32_t;
    static constexpr bool saturating = false;
    static constexpr int count = 8;
    static constexpr int rows = 8;
    static Vector set(std::int32_t value) { return _mm256_set1_epi32(value); }
    static Vector load(const Lane* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
    static void store(Lane* to, Vector a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a); }
    static Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
    static Vector max(Vector a, Vector b) { return _mm256_max_epi32(a, b); }
    static Mask equal(Vector a, Vector b) { return _mm256_cmpeq_epi32(a, b); }
    static Mask greater(Vector a, Vector b) { return _mm256_cmpgt_epi32(a, b); }
    static Vector select(Mask mask, Vector yes, Vector no) { return _mm256_blendv_epi8(no, yes, mask); }
    static Mask between(std::ptrdiff_t below, std::ptrdiff_t up_to) {
        const Vector lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const auto within = [](std::ptrdiff_t x) { return std::int32_t(std::clamp<std::ptrdiff_t>(x, -1, count)); };
        return greater(lane, set(within(below))) & greater(set(within(up_to) + 1), lane);
    }
    static Vector shift_in(Vector a, Lane value) { return lanes_up<4>(a, _mm256_set1_epi32(value)); }
    static Lane last(Vector a) { return _mm_extract_epi32(_mm256_extracti128_si256(a, 1), 3); }
    static Vector load_scores(const std::int8_t* scores) {
        return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scores)));
    }
};

// Scores of 32 lines, those 16 apart in the blocks of a vector.
struct Lines32 {
    using Vector = __m256i;
    static constexpr std::size_t blocks = 2;
    static __m128i block(const std::int8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
    static Vector load(const std::int8_t* const* lines) {
        return _mm256_inserti128_si256(_mm256_castsi128_si256(block(lines[0])), block(lines[16]), 1);
    }
    static Vector low(Vector a, Vector b) { return _mm256_unpacklo_epi8(a, b); }
    static Vector high(Vector a, Vector b) { return _mm256_unpackhi_epi8(a, b); }
    static void store(std::int8_t* to, Vector a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a); }
};

}  // namespace

const Kernels kernels_avx2 = {"avx2", width_of_bytes<Lanes8, Lines32>(), width_of<Lanes16, Lines32>(), width_of<Lanes32, Lines32>()};

}  // namespace swsearch::pair

#endif
