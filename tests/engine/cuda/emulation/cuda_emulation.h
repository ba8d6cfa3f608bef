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

// Runs a grid to its end; each thread calls `invoke(kernel, args)`. Returns 0, or 1 if no fiber can continue because
// threads wait at different barriers.
int run(void (*invoke)(void (*)(), void**), void (*kernel)(), void** args, unsigned grid, unsigned block,
        std::size_t shared_bytes, bool reversed);

template <std::size_t... I>
struct Indices {};
template <std::size_t N, std::size_t... I>
struct IndicesUpTo : IndicesUpTo<N - 1, N - 1, I...> {};
template <std::size_t... I>
struct IndicesUpTo<0, I...> {
    using type = Indices<I...>;
};

template <class... Args, std::size_t... I>
void call(void (*kernel)(Args...), void** args, Indices<I...>) {
    kernel(*static_cast<Args*>(args[I])...);
}

// Launches a kernel with an array of pointers to its arguments, as for cuLaunchKernel.
template <class... Args>
int launch(void (*kernel)(Args...), void** args, unsigned grid, unsigned block, std::size_t shared_bytes,
           bool reversed) {
    const auto invoke = [](void (*one)(), void** values) {
        call(reinterpret_cast<void (*)(Args...)>(one), values, typename IndicesUpTo<sizeof...(Args)>::type{});
    };
    return run(invoke, reinterpret_cast<void (*)()>(kernel), args, grid, block, shared_bytes, reversed);
}

// Half precision. Every finite pattern is a multiple of 2^-24, so a double represents it and any sum or product
// exactly. `half_values` has the value of each pattern.
extern const float* const half_values;

inline double from_half(unsigned pattern) { return half_values[pattern & 0xFFFF]; }

inline unsigned to_half(double value) {
    if (value != value) return 0x7FFF;
    std::uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    const unsigned sign = bits >> 63 ? 0x8000 : 0;
    const double magnitude = __builtin_fabs(value);
    if (magnitude >= 65520.0) return sign | 0x7C00;
    if (magnitude < 0x1p-14) {
        // The pattern is the number of multiples of 2^-24, which is the unit in the last place of numbers from 2^28 on:
        // the sum is rounded to it, to nearest, ties to even.
        const double rounded = magnitude + 0x1p28;
        __builtin_memcpy(&bits, &rounded, sizeof bits);
        return sign | static_cast<unsigned>(bits & 0x7FF);
    }
    // The double's exponent and the upper ten bits of its fraction, rounded to nearest, ties to even. A carry out of
    // the fraction correctly increments the exponent.
    constexpr int kDropped = 52 - 10;
    __builtin_memcpy(&bits, &magnitude, sizeof bits);
    bits += (std::uint64_t{1} << (kDropped - 1)) - 1 + ((bits >> kDropped) & 1);
    return sign | static_cast<unsigned>((bits >> kDropped) - (std::uint64_t{1023 - 15} << 10));
}

template <class Operation>
[[gnu::always_inline]] inline unsigned by_halves(Operation operation) {
    return operation(0) | (operation(16) << 16);
}

inline unsigned half_at(unsigned word, int shift) { return (word >> shift) & 0xFFFF; }
inline int short_at(unsigned word, int shift) { return static_cast<std::int16_t>(half_at(word, shift)); }

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
    return emulation::by_halves([=](int at) {
        return emulation::half_at(a, at) < emulation::half_at(b, at) ? emulation::half_at(a, at)
                                                                     : emulation::half_at(b, at);
    });
}

inline unsigned __vadd2(unsigned a, unsigned b) {
    return emulation::by_halves(
        [=](int at) { return (emulation::half_at(a, at) + emulation::half_at(b, at)) & 0xFFFF; });
}

inline unsigned __vmaxs2(unsigned a, unsigned b) {
    using emulation::short_at;
    return emulation::by_halves([=](int at) {
        return static_cast<unsigned>(short_at(a, at) > short_at(b, at) ? short_at(a, at) : short_at(b, at)) & 0xFFFF;
    });
}

inline unsigned __vimax3_s16x2(unsigned a, unsigned b, unsigned c) {
    using emulation::short_at;
    return emulation::by_halves([=](int at) {
        const int ab = short_at(a, at) > short_at(b, at) ? short_at(a, at) : short_at(b, at);
        return static_cast<unsigned>(ab > short_at(c, at) ? ab : short_at(c, at)) & 0xFFFF;
    });
}

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

inline void __threadfence() {}
inline void __threadfence_block() {}

namespace swsearch {

inline unsigned half2_fma(unsigned a, unsigned b, unsigned c) {
    using namespace emulation;
    return by_halves([=](int at) {
        return to_half(from_half(half_at(a, at)) * from_half(half_at(b, at)) + from_half(half_at(c, at)));
    });
}

inline unsigned half2_add(unsigned a, unsigned b) {
    using namespace emulation;
    return by_halves([=](int at) {
        const unsigned x = half_at(a, at), y = half_at(b, at);
        if ((x & 0x8000) == 0 && (y & 0x8000) == 0 && x + y < 0x800) return x + y;
        return to_half(from_half(x) + from_half(y));
    });
}

inline unsigned half2_max(unsigned a, unsigned b) {
    using namespace emulation;
    return by_halves([=](int at) {
        const double x = from_half(half_at(a, at)), y = from_half(half_at(b, at));
        if (x == y) return half_at(a, at) & half_at(b, at);  // +0 rather than -0
        return x > y ? half_at(a, at) : half_at(b, at);
    });
}

inline unsigned half2_fma_relu(unsigned a, unsigned b, unsigned c) { return half2_max(half2_fma(a, b, c), 0); }

inline unsigned half2_fma_saturated(unsigned a, unsigned b, unsigned c) {
    using namespace emulation;
    constexpr unsigned one = 0x3C00;
    const unsigned sum = half2_fma_relu(a, b, c);
    return by_halves([=](int at) { return half_at(sum, at) < one ? half_at(sum, at) : one; });
}

// Each byte of the result is `operation` of the signed bytes of a and b.
template <class Operation>
[[gnu::always_inline]] inline unsigned by_bytes(unsigned a, unsigned b, Operation operation) {
    unsigned found = 0;
    for (int at = 0; at < 32; at += 8) {
        const int x = static_cast<std::int8_t>(a >> at), y = static_cast<std::int8_t>(b >> at);
        found |= (static_cast<unsigned>(operation(x, y)) & 0xFF) << at;
    }
    return found;
}

inline unsigned bytes_add(unsigned a, unsigned b) {
    return by_bytes(a, b, [](int x, int y) { return x + y < -128 ? -128 : x + y > 127 ? 127 : x + y; });
}

inline unsigned bytes_max(unsigned a, unsigned b) {
    return by_bytes(a, b, [](int x, int y) { return x > y ? x : y; });
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

inline unsigned load_if(bool wanted, const unsigned* address, unsigned otherwise) {
    return wanted ? *address : otherwise;
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
