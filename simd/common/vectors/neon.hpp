// Vectors of NEON (AArch64): 16 bytes. vectors.hpp describes each function.

#pragma once

#include <arm_neon.h>

#include "common/vectors/compiled.hpp"

namespace swsearch {
namespace {

struct Register {
    using V = int8x16_t;
};

struct Vectors : CompiledVectors<Register> {
    static constexpr int kRegisters = 32;

    static int16x8_t words(V a) { return vreinterpretq_s16_s8(a); }
    static int32x4_t ints(V a) { return vreinterpretq_s32_s8(a); }
    static V bytes(int16x8_t a) { return vreinterpretq_s8_s16(a); }
    static V bytes(int32x4_t a) { return vreinterpretq_s8_s32(a); }

    template <class T>
    static V add_saturating(V a, V b) {
        BY_NARROW_LANE(vqaddq_s8(a, b), bytes(vqaddq_s16(words(a), words(b))))
    }
    template <class T>
    static V subtract_saturating(V a, V b) {
        BY_NARROW_LANE(vqsubq_s8(a, b), bytes(vqsubq_s16(words(a), words(b))))
    }
    template <class T>
    static V max(V a, V b) {
        BY_LANE(vmaxq_s8(a, b), bytes(vmaxq_s16(words(a), words(b))), bytes(vmaxq_s32(ints(a), ints(b))))
    }
    template <class T>
    static bool any_greater(V a, V b) {
        return vmaxvq_u8(vreinterpretq_u8_s8(greater<T>(a, b))) != 0;
    }
    template <class T>
    static V select(V mask, V yes, V no) {
        return vbslq_s8(vreinterpretq_u8_s8(mask), yes, no);
    }
    template <class T>
    static V shift_in(V a, T x) {
        return vextq_s8(splat<T>(x), a, 16 - sizeof(T));
    }
    template <class T, int kBy>
    static V shift_up(V a) {
        return vextq_s8(vdupq_n_s8(0), a, 16 - kBy * static_cast<int>(sizeof(T)));
    }
    template <class T>
    static T last(V a) {
        BY_LANE(vgetq_lane_s8(a, 15), vgetq_lane_s16(words(a), 7), vgetq_lane_s32(ints(a), 3))
    }
    template <class T>
    static int32_t largest(V a) {
        BY_LANE(vmaxvq_s8(a), vmaxvq_s16(words(a)), vmaxvq_s32(ints(a)))
    }
    template <class T>
    static V widen(V a) {
        const int16x8_t wide = vmovl_s8(vget_low_s8(a));
        BY_LANE(a, bytes(wide), bytes(vmovl_s16(vget_low_s16(wide))))
    }
    template <class T>
    static V load_bytes(const int8_t* from) {
        BY_LANE(load(from), widen<T>(vcombine_s8(vld1_s8(from), vdup_n_s8(0))),
                widen<T>(splat<int32_t>(load_four(from))))
    }
    static int32_t load_four(const int8_t* from) {
        int32_t four;
        __builtin_memcpy(&four, from, sizeof four);
        return four;
    }

    static V add_products(V sum, V a, V b) {
        const int32x4_t low = vmull_s16(vget_low_s16(words(a)), vget_low_s16(words(b)));
        return bytes(vaddq_s32(ints(sum), vpaddq_s32(low, vmull_high_s16(words(a), words(b)))));
    }
    static V shuffle(V table, V index) { return vqtbl1q_s8(table, vreinterpretq_u8_s8(index)); }
    static V first_of_parts(V first, V others) { return vcopyq_laneq_s8(others, 0, first, 0); }
    using Codes = uint8x16_t;
    static Codes codes_of(V codes) { return vandq_u8(vreinterpretq_u8_s8(codes), vdupq_n_u8(31)); }
    static V look_up(const int8_t* row, Codes codes) {
        const int8x16x2_t both = {{vld1q_s8(row), vld1q_s8(row + 16)}};
        return vqtbl2q_s8(both, codes);
    }
    static V unpack_low(V a, V b) { return vzip1q_s8(a, b); }
    static V unpack_high(V a, V b) { return vzip2q_s8(a, b); }
};

}  // namespace
}  // namespace swsearch
