// Vectors of NEON (AArch64): 16 bytes.

#pragma once

#include <arm_neon.h>

#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

struct Neon {
    using V = int8x16_t;
    static constexpr int kBytes = 16;
    static int16x8_t as16(V a) { return vreinterpretq_s16_s8(a); }
    static int32x4_t as32(V a) { return vreinterpretq_s32_s8(a); }
    static V from16(int16x8_t a) { return vreinterpretq_s8_s16(a); }
    static V from32(int32x4_t a) { return vreinterpretq_s8_s32(a); }
    static V load(const void* from) { return vld1q_s8(static_cast<const int8_t*>(from)); }
    static void store(void* to, V a) { vst1q_s8(static_cast<int8_t*>(to), a); }
    static V splat8(int8_t x) { return vdupq_n_s8(x); }
    static V splat16(int16_t x) { return from16(vdupq_n_s16(x)); }
    static V splat32(int32_t x) { return from32(vdupq_n_s32(x)); }
    static V add8(V a, V b) { return vqaddq_s8(a, b); }
    static V sub8(V a, V b) { return vqsubq_s8(a, b); }
    static V max8(V a, V b) { return vmaxq_s8(a, b); }
    static V add16(V a, V b) { return from16(vqaddq_s16(as16(a), as16(b))); }
    static V sub16(V a, V b) { return from16(vqsubq_s16(as16(a), as16(b))); }
    static V max16(V a, V b) { return from16(vmaxq_s16(as16(a), as16(b))); }
    static V add32(V a, V b) { return from32(vaddq_s32(as32(a), as32(b))); }
    static V sub32(V a, V b) { return from32(vsubq_s32(as32(a), as32(b))); }
    static V max32(V a, V b) { return from32(vmaxq_s32(as32(a), as32(b))); }
    static bool any_greater8(V a, V b) { return vmaxvq_u8(vcgtq_s8(a, b)) != 0; }
    static bool any_greater16(V a, V b) { return vmaxvq_u16(vcgtq_s16(as16(a), as16(b))) != 0; }
    static bool any_greater32(V a, V b) { return vmaxvq_u32(vcgtq_s32(as32(a), as32(b))) != 0; }
    static V shift8(V a, int8_t x) { return vextq_s8(splat8(x), a, 15); }
    static V shift16(V a, int16_t x) { return vextq_s8(splat16(x), a, 14); }
    static V shift32(V a, int32_t x) { return vextq_s8(splat32(x), a, 12); }
    static V look_up(const int8_t* row, V codes) {
        const int8x16x2_t both = {{vld1q_s8(row), vld1q_s8(row + 16)}};
        return vqtbl2q_s8(both, vandq_u8(vreinterpretq_u8_s8(codes), vdupq_n_u8(31)));
    }
    static V load_half(const void* from) {
        return vcombine_s8(vld1_s8(static_cast<const int8_t*>(from)), vdup_n_s8(0));
    }
    static V load_quarter(const void* from) {
        int32_t bytes;
        __builtin_memcpy(&bytes, from, sizeof bytes);
        return splat32(bytes);
    }
    static V widen16(V a) { return from16(vmovl_s8(vget_low_s8(a))); }
    static V widen32(V a) { return from32(vmovl_s16(vget_low_s16(vmovl_s8(vget_low_s8(a))))); }
    static void keep_order(V&, V&) {}
    static V load_parts(const uint8_t* const* rows, uint32_t first) { return load(rows[0] + first); }
    static V unpack_low(V a, V b) { return vzip1q_s8(a, b); }
    static V unpack_high(V a, V b) { return vzip2q_s8(a, b); }
};

}  // namespace
}  // namespace swsearch::score
