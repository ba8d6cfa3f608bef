// Score arithmetic: one type for each way to hold scores in a 32-bit word, all with the same members, so that the
// recurrence reads the same for each.
//
//   type      scores a word   exact while every score is at most   how
//   FastPair  2               2,047                                fp16 sums of small integers, 16-bit integer maxima
//   ShortPair 2               32,767 - largest profile score       16-bit integers
//   Wide      1               2^31 - 1 - largest profile score     32-bit integers
//
// FastPair rests on a property of half precision: the bit patterns 0x0000 to 0x07FF are the integers 0 to 2,047 times
// 2^-24 (subnormals and the first binade have the same step), so an fp16 addition of two such patterns is the exact
// integer sum and runs on the multiply-add units, which leaves the integer unit to the maxima, the scarce resource. A
// negative addend has the sign bit and the magnitude. A negative sum is then a pattern of 0x8000 or more, a very negative
// 16-bit integer, and every maximum here is also one with zero. A sum beyond 2,047 rounds but never below 2,048, and
// maxima only grow; so a best score of at most 2,047 says that nothing was rounded, and one above it that the subject is
// to be scored again in a wider type.

#pragma once

#include "swsearch/platform.cuh"

namespace swsearch {

// Addends with the sign kept apart from the magnitude, as fp16 has it.
SWS_CONSTANT u32 sign_magnitude(int value) { return value < 0 ? 0x8000u | static_cast<u32>(-value) : static_cast<u32>(value); }

SWS_CONSTANT u32 both_halves(u32 half) { return half | (half << 16); }

// Selector that makes one word of the high halves of two.
constexpr u32 kHighHalves = 0x7632u;

// 1.0 in one half or both: factors that let a multiply-add take that half of a word alone.
constexpr u32 kHalfOneLow = 0x00003C00u;
constexpr u32 kHalfOneHigh = 0x3C000000u;
constexpr u32 kHalfOnes = 0x3C003C00u;

struct FastPair {
    using Word = u32;
    static constexpr bool kPair = true;

    // A constant addend in the form `add` takes.
    static SWS_CONSTANT Word addend(int value) { return both_halves(sign_magnitude(value)); }

    static SWS_DEVICE Word add(Word a, Word b) { return half2_add(a, b); }

    // a with the low (high) half of b added to its low (high) half.
    static SWS_DEVICE Word add_low(Word a, Word b) { return half2_fma(b, kHalfOneLow, a); }
    static SWS_DEVICE Word add_high(Word a, Word b) { return half2_fma(b, kHalfOneHigh, a); }

#if defined(SWS_HALF_MAXIMA)
    // Ampere and Ada have no 16-bit integer maxima, but fp16 ones, which order these patterns the same way.
    static SWS_DEVICE Word max3_floor(Word a, Word b, Word c) { return half2_max(half2_max(a, b), c); }
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return half2_max(half2_max(a, b), c); }

    template <int kStep>
    static SWS_DEVICE Word decay_or(Word a, Word b) {
        return half2_max(half2_fma_relu(a, kHalfOnes, addend(-kStep)), b);
    }
#else
    // max(a, b, c, 0)
    static SWS_DEVICE Word max3_floor(Word a, Word b, Word c) { return __vimax3_s16x2_relu(a, b, c); }

    // max(a, b, c) of words that are not negative.
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return __vimax3_s16x2(a, b, c); }

    // max(a - kStep, b, 0)
    template <int kStep>
    static SWS_DEVICE Word decay_or(Word a, Word b) {
        return __viaddmax_s16x2_relu(a, both_halves(static_cast<u32>(-kStep) & 0xFFFFu), b);
    }
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

    template <int kStep>
    static SWS_DEVICE Word decay_or(Word a, Word b) {
        return __viaddmax_s16x2_relu(a, addend(-kStep), b);
    }
};

struct Wide {
    using Word = int;
    static constexpr bool kPair = false;

    static SWS_CONSTANT Word addend(int value) { return value; }
    static SWS_DEVICE Word add(Word a, Word b) { return a + b; }
    static SWS_DEVICE Word max3_floor(Word a, Word b, Word c) { return __vimax3_s32_relu(a, b, c); }
    static SWS_DEVICE Word max3(Word a, Word b, Word c) { return __vimax3_s32(a, b, c); }

    template <int kStep>
    static SWS_DEVICE Word decay_or(Word a, Word b) {
        return __viaddmax_s32_relu(a, -kStep, b);
    }
};

}  // namespace swsearch
