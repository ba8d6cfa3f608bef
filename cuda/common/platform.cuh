// The operations that differ between a GPU (nvcc or NVRTC) and the emulation under an ordinary C++ compiler. Each has
// one name, so that both compile the same kernel sources.
//
// An entry has one parameter, a structure with the qualifiers SWS_PARAMETERS. The host packs it by the NumPy type of
// the same members in swsearch/engine/cuda/runtime/parameters.py.
//
// No header is included on the device side: NVRTC needs none, and a kernel is compiled from the files of this project
// alone.

#pragma once

#if defined(__CUDACC__)

#define SWS_DEVICE __device__ __forceinline__
#define SWS_CONSTANT __host__ __device__ constexpr
#define SWS_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define SWS_PARAMETERS const __grid_constant__
#define SWS_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

#else

#include "cuda_emulation.h"

#define SWS_DEVICE inline
#define SWS_CONSTANT constexpr
#define SWS_KERNEL(threads, blocks) extern "C" void
#define SWS_PARAMETERS const
#define SWS_DYNAMIC_SHARED(type, name) type* const name = emulation::dynamic_shared<type>()

#endif

namespace swsearch {

using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 kWholeWarp = 0xFFFFFFFFu;
constexpr int kWarpSize = 32;

// An address plus `words` words. The result may lie outside the array as long as it is not dereferenced.
template <class Word>
SWS_DEVICE Word* words_from(Word* address, long long words) {
    return reinterpret_cast<Word*>(reinterpret_cast<u64>(address) + static_cast<u64>(words) * sizeof(Word));
}

#if defined(__CUDACC__)

// a + b of pairs of half-precision numbers; subnormals are not flushed to zero.
SWS_DEVICE u32 half2_add(u32 a, u32 b) {
    u32 sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

// a * b + c of pairs of half-precision numbers, rounded once; subnormals are not flushed to zero.
SWS_DEVICE u32 half2_fma(u32 a, u32 b, u32 c) {
    u32 sum;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

// a * b + c of pairs of half-precision numbers, limited to 0 … 1.
SWS_DEVICE u32 half2_fma_saturated(u32 a, u32 b, u32 c) {
    u32 sum;
    asm("fma.rn.sat.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

#if __CUDA_ARCH__ >= 800

// max(a * b + c, 0) of pairs of half-precision numbers.
SWS_DEVICE u32 half2_fma_relu(u32 a, u32 b, u32 c) {
    u32 sum;
    asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

// The larger of each pair; +0 is larger than -0.
SWS_DEVICE u32 half2_max(u32 a, u32 b) {
    u32 larger;
    asm("max.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

#endif

// Selects four of the eight bytes of low and high by the nibbles of selector, lowest first. A nibble with its top bit
// set gives eight copies of the byte's sign bit. (The documentation of `__byte_perm` does not promise this.)
SWS_DEVICE u32 permute_bytes(u32 low, u32 high, u32 selector) {
    u32 chosen;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(chosen) : "r"(low), "r"(high), "r"(selector));
    return chosen;
}

// sum + a0 * b0 + a1 * b1, where a are the halves of `numbers` as signed numbers, and b two bytes of `bytes`: the lower
// ones, or the upper ones.
SWS_DEVICE u32 add_low_products(u32 numbers, u32 bytes, u32 sum) {
    u32 result;
    asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(numbers), "r"(bytes), "r"(sum));
    return result;
}

SWS_DEVICE u32 add_high_products(u32 numbers, u32 bytes, u32 sum) {
    u32 result;
    asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(numbers), "r"(bytes), "r"(sum));
    return result;
}

// Loads and stores that are executed only if `wanted` is true; other loads leave their destination unchanged. They are
// predicated instructions, so the inner loop has no branch; around a branch the compiler copies a lane's complete state
// from register to register.
SWS_DEVICE void load_over(bool wanted, const u32* address, u32& value) {
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; @p ld.global.u32 %0, [%2]; }"
                 : "+r"(value)
                 : "r"(static_cast<int>(wanted)), "l"(address)
                 : "memory");
}

SWS_DEVICE void load_pair_over(bool wanted, const u32* address, u32& first, u32& second) {
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.v2.u32 {%0, %1}, [%3]; }"
                 : "+r"(first), "+r"(second)
                 : "r"(static_cast<int>(wanted)), "l"(address)
                 : "memory");
}

SWS_DEVICE void store_if(bool wanted, u32* address, u32 value) {
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p st.global.u32 [%1], %2; }" ::"r"(static_cast<int>(wanted)),
                 "l"(address), "r"(value)
                 : "memory");
}

SWS_DEVICE void store_pair_if(bool wanted, u32* address, u32 first, u32 second) {
    asm volatile(
        "{ .reg .pred p; setp.ne.s32 p, %0, 0; @p st.global.v2.u32 [%1], {%2, %3}; }" ::"r"(static_cast<int>(wanted)),
        "l"(address), "r"(first), "r"(second)
        : "memory");
}

// Reads a number that another warp of the block may change.
SWS_DEVICE u64 look_in_block(const u64* address) { return *const_cast<const volatile u64*>(address); }

// Changes such a number. The other warps of the block see the change only after all earlier writes of this thread.
SWS_DEVICE void show_in_block(u64* address, u64 value) {
    __threadfence_block();
    *const_cast<volatile u64*>(address) = value;
}

// Called in the loop of a warp that waits for another warp of its block.
SWS_DEVICE void let_others_run() { __nanosleep(40); }

// Writes, and reads, 64 bits for which a thread of any multiprocessor may wait. The access is atomic and orders no
// other memory access.
SWS_DEVICE void publish(u64* address, u64 value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

SWS_DEVICE u64 look_at(const u64* address) {
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

// Reads the current value of a number that other threads may increase. The access orders no other memory access.
SWS_DEVICE int load_now(const int* address) {
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

// Pauses the calling thread for some 60 ns, so that other warps of the multiprocessor run.
SWS_DEVICE void nap() { asm volatile("nanosleep.u32 60;"); }

// One element of a texture over linear memory of uint4.
SWS_DEVICE uint4 texture_element(u64 texture, int index) {
    uint4 element;
    asm("tex.1d.v4.u32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
        : "=r"(element.x), "=r"(element.y), "=r"(element.z), "=r"(element.w)
        : "l"(texture), "r"(index));
    return element;
}

#endif

}  // namespace swsearch
