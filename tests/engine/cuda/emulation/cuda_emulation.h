// An emulation of a CUDA device on one thread of the host: blocks, barriers, warp shuffles, shared memory and the
// instructions that the kernels use, so that an ordinary compiler and its sanitizers can test the kernels' own sources.
//
// Every CUDA thread is a fiber with a stack of its own (machine.cpp). A fiber runs until it reaches a collective
// operation (shuffle, vote, barrier), then the next fiber runs. All blocks of a grid run concurrently. The order in
// which fibers run can be reversed: a kernel whose result depends on the order has a race. The shared memory of a
// block is a heap block of exactly the size of the launch, so the address sanitizer detects an access outside it.
// Each intrinsic returns what NVIDIA's documentation says, independently of how the kernels use it.
//
// Every kernel compiles this header, and most of the time was spent on headers, so it includes only the integer types
// of the standard library.

#pragma once

#include <cstddef>
#include <cstdint>

struct alignas(16) uint4 {
    unsigned int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned int x, y;
};
struct dim3 {
    unsigned int x = 1, y = 1, z = 1;
};

namespace emulation {

constexpr int kWarp = 32;

// The indices of a thread, and its block's shared memory.
struct Place {
    dim3 thread, block;
    char* shared = nullptr;
};

extern const Place* running;
extern dim3 block_dim, grid_dim;

// Suspends the calling fiber so that the others run.
void give_way();

void meet_block();
void meet_warp();

// Returns the values of all lanes of the warp. They are valid until the next collective operation.
const unsigned* gather(unsigned value);

inline unsigned exchange(unsigned value, int from) { return gather(value)[from]; }

template <class T>
T* dynamic_shared() {
    return reinterpret_cast<T*>(running->shared);
}

// Runs a grid to its end; each thread calls `invoke(kernel, parameters)`. Returns 0, or 1 if no fiber can continue
// because threads wait at different barriers.
int run(void (*invoke)(void (*)(), const void*), void (*kernel)(), const void* parameters, unsigned grid,
        unsigned block, std::size_t shared_bytes, bool reversed);

// Launches a kernel with its packed parameters, as cuLaunchKernel does. Returns 2 if they are not of the kernel's size.
template <class Parameters>
int launch(void (*kernel)(Parameters), const void* parameters, std::size_t n_bytes, unsigned grid, unsigned block,
           std::size_t shared_bytes, bool reversed) {
    if (n_bytes != sizeof(Parameters)) return 2;
    const auto invoke = [](void (*one)(), const void* given) {
        reinterpret_cast<void (*)(Parameters)>(one)(*static_cast<const Parameters*>(given));
    };
    return run(invoke, reinterpret_cast<void (*)()>(kernel), parameters, grid, block, shared_bytes, reversed);
}

// The halves of a word as a vector: an operation of all of them is one instruction of the host.
using Shorts = short __attribute__((vector_size(4)));
using Halves = unsigned short __attribute__((vector_size(4)));

inline unsigned larger_shorts(unsigned a, unsigned b) {
    return unsigned(Shorts(a) > Shorts(b) ? Shorts(a) : Shorts(b));
}

inline unsigned smaller_shorts(unsigned a, unsigned b) {
    return unsigned(Shorts(a) < Shorts(b) ? Shorts(a) : Shorts(b));
}

inline unsigned sum_of_halves(unsigned a, unsigned b) { return unsigned(Halves(a) + Halves(b)); }

// Numbers in the form of sign and magnitude as two's complements.
inline Halves twos_complement(unsigned word) {
    const Halves sign = Halves(Shorts(word) >> 15);
    return (Halves(word & 0x7FFF7FFF) ^ sign) - sign;
}

// The sum of two words of half precision if it is that of integers: below 2^11 times 2^-24, both the terms and the sums
// are their patterns' lower bits (arithmetic.cuh). Returns whether it is.
inline bool add_integers(unsigned a, unsigned b, unsigned& sum) {
    constexpr unsigned kNoIntegers = 0x78007800;
    const Halves signed_sum = twos_complement(a) + twos_complement(b);
    const unsigned magnitude = larger_shorts(unsigned(signed_sum), unsigned(-signed_sum));
    sum = magnitude | (unsigned(signed_sum) & 0x80008000) | (a & b & 0x80008000);  // -0 is the sum of -0 and -0 only
    return ((a | b | magnitude) & kNoIntegers) == 0;
}

// The product of finite numbers and factors that are 1, -1, 0 or -0. Returns whether all are such factors.
inline bool multiply_by_ones(unsigned a, unsigned factors, unsigned& product) {
    const unsigned magnitudes = factors & 0x7FFF7FFF;
    const unsigned ones = (magnitudes >> 10) & 0x00010001;
    product = (a & ones * 0x7FFF) | ((a ^ factors) & 0x80008000);
    return magnitudes == ones * 0x3C00;
}

// Half precision, for any numbers.
unsigned fma_of_any(unsigned a, unsigned b, unsigned c);
unsigned add_of_any(unsigned a, unsigned b);
unsigned max_of_any(unsigned a, unsigned b);

}  // namespace emulation

#define threadIdx (emulation::running->thread)
#define blockIdx (emulation::running->block)
#define blockDim (emulation::block_dim)
#define gridDim (emulation::grid_dim)

inline void __syncthreads() { emulation::meet_block(); }
inline void __syncwarp() { emulation::meet_warp(); }

template <class T>
T __shfl_sync(unsigned, T value, int from, int width = emulation::kWarp) {
    const int lane = static_cast<int>(threadIdx.x) % emulation::kWarp;
    return static_cast<T>(emulation::exchange(static_cast<unsigned>(value), lane / width * width + from % width));
}

template <class T>
T __shfl_up_sync(unsigned, T value, unsigned distance, int width) {
    const int lane = static_cast<int>(threadIdx.x) % emulation::kWarp;
    const int from = lane - static_cast<int>(distance);
    return static_cast<T>(emulation::exchange(static_cast<unsigned>(value), from < lane / width * width ? lane : from));
}

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    const int lane = static_cast<int>(threadIdx.x) % emulation::kWarp;
    return static_cast<T>(emulation::exchange(static_cast<unsigned>(value), lane ^ mask));
}

inline bool __any_sync(unsigned, bool vote) {
    const unsigned* const votes = emulation::gather(vote);
    for (int lane = 0; lane < emulation::kWarp; ++lane) {
        if (votes[lane] != 0) return true;
    }
    return false;
}

inline bool __all_sync(unsigned mask, bool vote) { return !__any_sync(mask, !vote); }

template <class T>
T atomicMax(T* address, T value) {
    const T before = *address;
    if (value > before) *address = value;
    return before;
}

inline unsigned atomicAdd(unsigned* address, unsigned value) {
    const unsigned before = *address;
    *address = before + value;
    return before;
}

inline unsigned __vminu2(unsigned a, unsigned b) {
    using emulation::Halves;
    return unsigned(Halves(a) < Halves(b) ? Halves(a) : Halves(b));
}

inline unsigned __vadd2(unsigned a, unsigned b) { return emulation::sum_of_halves(a, b); }
inline unsigned __vmaxs2(unsigned a, unsigned b) { return emulation::larger_shorts(a, b); }
inline unsigned __vimax3_s16x2(unsigned a, unsigned b, unsigned c) { return __vmaxs2(__vmaxs2(a, b), c); }

inline unsigned __vimax3_s16x2_relu(unsigned a, unsigned b, unsigned c) {
    return __vimax3_s16x2(__vimax3_s16x2(a, b, c), 0, 0);
}

inline unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) { return __vmaxs2(__vadd2(a, b), c); }
inline unsigned __viaddmax_s16x2_relu(unsigned a, unsigned b, unsigned c) {
    return __vimax3_s16x2(__vadd2(a, b), c, 0);
}

inline int __vimax3_s32(int a, int b, int c) { return a > b ? (a > c ? a : c) : (b > c ? b : c); }
inline int __vimax3_s32_relu(int a, int b, int c) { return __vimax3_s32(__vimax3_s32(a, b, c), 0, 0); }
inline int __viaddmax_s32(int a, int b, int c) {
    const int sum = static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
    return sum > c ? sum : c;
}
inline int __viaddmax_s32_relu(int a, int b, int c) { return __vimax3_s32_relu(__viaddmax_s32(a, b, c), 0, 0); }

// Floating-point numbers: the compiler must not fuse a product and a sum (emulated_device.py).
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }

inline unsigned __float_as_uint(float value) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float __uint_as_float(unsigned bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

inline void __threadfence() {}
inline void __threadfence_block() {}

namespace swsearch {

inline unsigned half2_fma(unsigned a, unsigned b, unsigned c) {
    using namespace emulation;
    unsigned product, sum;
    if (multiply_by_ones(a, b, product) && add_integers(product, c, sum) && (a & 0x40004000) == 0) return sum;
    return fma_of_any(a, b, c);
}

inline unsigned half2_add(unsigned a, unsigned b) {
    unsigned sum;
    return emulation::add_integers(a, b, sum) ? sum : emulation::add_of_any(a, b);
}

inline unsigned half2_max(unsigned a, unsigned b) {
    // As integers, patterns are in the order of their numbers if no two are negative and none is infinite or no number.
    if ((a & b & 0x80008000) == 0 && ((a | b) & 0x40004000) == 0) return emulation::larger_shorts(a, b);
    return emulation::max_of_any(a, b);
}

inline unsigned half2_fma_relu(unsigned a, unsigned b, unsigned c) { return half2_max(half2_fma(a, b, c), 0); }

inline unsigned half2_fma_saturated(unsigned a, unsigned b, unsigned c) {
    constexpr unsigned ones = 0x3C003C00;
    return emulation::smaller_shorts(half2_fma_relu(a, b, c), ones);  // no pattern is negative
}

inline unsigned add_low_products(unsigned numbers, unsigned bytes, unsigned sum) {
    for (int i = 0; i < 2; ++i) {
        const int number = static_cast<short>(numbers >> (16 * i) & 0xFFFF);
        const int byte = static_cast<int>(bytes >> (8 * i) & 255);
        sum += static_cast<unsigned>(number * byte);
    }
    return sum;
}

inline unsigned add_high_products(unsigned numbers, unsigned bytes, unsigned sum) {
    return add_low_products(numbers, bytes >> 16, sum);
}

inline unsigned permute_bytes(unsigned low, unsigned high, unsigned selector) {
    const std::uint64_t bytes = low | (static_cast<std::uint64_t>(high) << 32);
    unsigned chosen = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned nibble = (selector >> (4 * i)) & 15;
        unsigned byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7))) & 255;
        if (nibble & 8) byte = byte & 128 ? 255 : 0;
        chosen |= byte << (8 * i);
    }
    return chosen;
}

inline unsigned long long look_in_block(const unsigned long long* address) { return *address; }
inline void show_in_block(unsigned long long* address, unsigned long long value) { *address = value; }
inline void let_others_run() {}

inline void load_pair_over(bool wanted, const unsigned* address, unsigned& first, unsigned& second) {
    if (!wanted) return;
    const uint2 pair = *reinterpret_cast<const uint2*>(address);
    first = pair.x, second = pair.y;
}

inline void load_over(bool wanted, const unsigned* address, unsigned& value) {
    if (wanted) value = *address;
}

inline void store_if(bool wanted, unsigned* address, unsigned value) {
    if (wanted) *address = value;
}

inline void store_pair_if(bool wanted, unsigned* address, unsigned first, unsigned second) {
    if (wanted) *reinterpret_cast<uint2*>(address) = uint2{first, second};
}

// A thread that waits for a value calls nap, so that the other threads run before it reads the value again.
inline void publish(unsigned long long* address, unsigned long long value) { *address = value; }
inline unsigned long long look_at(const unsigned long long* address) { return *address; }
inline int load_now(const int* address) { return *address; }
inline void nap() { emulation::give_way(); }

inline uint4 texture_element(unsigned long long texture, int index) {
    return reinterpret_cast<const uint4*>(static_cast<std::uintptr_t>(texture))[index];
}

}  // namespace swsearch
