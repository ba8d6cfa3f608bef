// Score arithmetic: one type for each representation of scores in a 32-bit word, with the sums and maxima of the
// recurrence. All have the same members, so the recurrence (strip.cuh) is written once.
//
//   type       scores per word   exact if every score is at most    method
//   FastPair   2                 2,047                              fp16 sums of small integers, 16-bit integer maxima
//   ShortPair  2                 32,767 - largest profile score     16-bit integers
//   Wide       1                 2^31 - 1 - largest profile score   32-bit integers
//
// An overflow is always detected: a best score above the limit means that the subject must be scored again in the next
// wider type.
//
// FastPair uses a property of half precision: the bit patterns 0x0000 to 0x07FF are the integers 0 to 2,047 times 2^-24
// (docs/design/cuda-engine.md, "Arithmetic"). A negative addend has the sign bit and the magnitude. A negative sum has
// a pattern of 0x8000 or more, which is a very negative 16-bit integer, and every maximum of a sum includes zero. A sum
// beyond 2,047 is rounded, but never to less than 2,048, and maxima only grow. Therefore a best score of at most 2,047
// proves that nothing was rounded.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

// An addend as sign bit and magnitude, the form of fp16.
SWS_CONSTANT u32 sign_magnitude(int value) {
    return value < 0 ? 0x8000u | static_cast<u32>(-value) : static_cast<u32>(value);
}

SWS_CONSTANT u32 both_halves(u32 half) { return half | (half << 16); }

// Selector of permute_bytes that joins the high halves of two words.
constexpr u32 kHighHalves = 0x7632u;

// 1.0 in one half or in both: as a factor of a multiply-add, it adds that half of a word only.
constexpr u32 kHalfOneLow = 0x00003C00u;
constexpr u32 kHalfOneHigh = 0x3C000000u;
constexpr u32 kHalfOnes = 0x3C003C00u;
constexpr u32 kHalfMinusOnes = 0xBC00BC00u;

struct FastPair {
    using Word = u32;
    static constexpr bool kPair = true;

    // A constant in the form that `add` takes.
    static SWS_CONSTANT Word addend(int value) { return both_halves(sign_magnitude(value)); }

    static SWS_DEVICE Word add(Word a, Word b) { return half2_add(a, b); }

    // Adds the low (high) half of b to the low (high) half of a; the other half of a is unchanged.
    static SWS_DEVICE Word add_low(Word a, Word b) { return half2_fma(b, kHalfOneLow, a); }
    static SWS_DEVICE Word add_high(Word a, Word b) { return half2_fma(b, kHalfOneHigh, a); }

#if defined(SWS_HALF_MAXIMA)
    // Ampere and Ada have no 16-bit integer maxima. Their fp16 maxima order these patterns in the same way.
    static SWS_DEVICE Word max3_floor(Word a, Word b, Word c) { return half2_max(half2_max(a, b), c); }
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return half2_max(half2_max(a, b), c); }
    static SWS_DEVICE Word max3_signed(Word a, Word b, Word c) { return max3(a, b, c); }
    static SWS_DEVICE Word max2(Word a, Word b) { return half2_max(a, b); }

    static SWS_CONSTANT Word decrement(int step) { return addend(-step); }
    static SWS_DEVICE Word decay_or(Word a, Word decrement, Word b) {
        return half2_max(half2_fma_relu(a, kHalfOnes, decrement), b);
    }
#elif defined(SWS_SATURATED_MAXIMA)
    // Turing has no fp16 maxima either, but sums that are limited to 0 … 1, and every exact score is far below 1, whose
    // pattern is 0x3C00: max(a, b) = b + max(a - b, 0). If b is not negative, the difference of scores up to 2,047 is
    // exact where it is positive; a result of 2,048 or more remains one, because a rounded difference is that large.
    static SWS_DEVICE Word max2(Word a, Word b) { return half2_add(b, half2_fma_saturated(b, kHalfMinusOnes, a)); }
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return max2(a, max2(b, c)); }
    static SWS_DEVICE Word max3_floor(Word a, Word b, Word c) { return max3(a, b, c); }
    static SWS_DEVICE Word max3_signed(Word a, Word b, Word c) {
        return max3(a, b, half2_fma_saturated(c, kHalfOnes, 0));
    }

    static SWS_CONSTANT Word decrement(int step) { return addend(-step); }
    static SWS_DEVICE Word decay_or(Word a, Word decrement, Word b) {
        return max2(b, half2_fma_saturated(a, kHalfOnes, decrement));
    }
#else
    // max(a, b, c, 0), where b and c are not negative.
    static SWS_DEVICE Word max3_floor(Word a, Word b, Word c) { return __vimax3_s16x2_relu(a, b, c); }

    // max(a, b, c) and max(a, b); the last argument is not negative.
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return __vimax3_s16x2(a, b, c); }
    static SWS_DEVICE Word max2(Word a, Word b) { return __vmaxs2(a, b); }

    // max(a, b, c), or if that is negative, a number from it to 0.
    static SWS_DEVICE Word max3_signed(Word a, Word b, Word c) { return __vimax3_s16x2_relu(a, b, c); }

    // A step in the form that `decay_or` takes, and max(a - step, b, 0).
    static SWS_CONSTANT Word decrement(int step) { return both_halves(static_cast<u32>(-step) & 0xFFFFu); }
    static SWS_DEVICE Word decay_or(Word a, Word decrement, Word b) { return __viaddmax_s16x2_relu(a, decrement, b); }
#endif
};

struct ShortPair {
    using Word = u32;
    static constexpr bool kPair = true;

    static SWS_CONSTANT Word addend(int value) { return both_halves(static_cast<u32>(value) & 0xFFFFu); }
    static SWS_DEVICE Word add(Word a, Word b) { return __vadd2(a, b); }
    static SWS_DEVICE Word add_low(Word a, Word b) { return __vadd2(a, b & 0x0000FFFFu); }
    static SWS_DEVICE Word add_high(Word a, Word b) { return __vadd2(a, b & 0xFFFF0000u); }
    static SWS_DEVICE Word max3_floor(Word a, Word b, Word c) { return __vimax3_s16x2_relu(a, b, c); }
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return __vimax3_s16x2(a, b, c); }

    static SWS_CONSTANT Word decrement(int step) { return addend(-step); }
    static SWS_DEVICE Word decay_or(Word a, Word decrement, Word b) { return __viaddmax_s16x2_relu(a, decrement, b); }
};

struct Wide {
    using Word = int;
    static constexpr bool kPair = false;

    static SWS_CONSTANT Word addend(int value) { return value; }
    static SWS_DEVICE Word add(Word a, Word b) { return a + b; }
    static SWS_DEVICE Word max3_floor(Word a, Word b, Word c) { return __vimax3_s32_relu(a, b, c); }
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return __vimax3_s32(a, b, c); }

    static SWS_CONSTANT Word decrement(int step) { return -step; }
    static SWS_DEVICE Word decay_or(Word a, Word decrement, Word b) { return __viaddmax_s32_relu(a, decrement, b); }
};

}  // namespace swsearch
