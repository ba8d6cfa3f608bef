// A CUDA device small enough to read: blocks, barriers, warp shuffles, shared memory and the instructions the kernels use,
// on one thread of the host, so that the kernels' own sources run under an ordinary compiler and its sanitizers.
//
// Every CUDA thread is a fiber with a stack of its own. A fiber runs until it meets a collective (shuffle, barrier), then
// the next one runs; all blocks of a grid are in flight together. The order in which fibers run can be reversed: a
// kernel whose result depends on it has a race. Shared memory is one heap block a CUDA block, of exactly the size of the
// launch, so that the address sanitizer sees an access beside it. Values follow NVIDIA's documentation of each
// intrinsic, not the kernels' use of them.

#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

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
constexpr std::size_t kStackBytes = 256 * 1024;

// A collective of a warp or block: it completes when every member has come, and keeps the values of two rounds, since
// a fast member may enter the next round before a slow one has read this one.
struct Meeting {
    int members = 0;
    int arrived = 0;
    unsigned round = 0;
    unsigned values[2][kWarp] = {};
};

struct Fiber {
    ucontext_t context{};
    std::unique_ptr<char[]> stack;
    dim3 thread, block;
    Meeting* warp = nullptr;
    Meeting* whole_block = nullptr;
    char* shared = nullptr;
    bool done = false;
    void* fake_stack = nullptr;
};

struct Machine {
    ucontext_t scheduler{};
    Fiber* running = nullptr;
    dim3 block_dim, grid_dim;
    std::function<void()> kernel;
    const void* scheduler_stack = nullptr;
    std::size_t scheduler_stack_bytes = 0;
    void* scheduler_fake_stack = nullptr;
};

inline Machine& machine() {
    static Machine instance;
    return instance;
}

inline void start_switch([[maybe_unused]] void** save, [[maybe_unused]] const void* stack,
                         [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(save, stack, bytes);
#endif
}

inline void finish_switch([[maybe_unused]] void* fake, [[maybe_unused]] const void** stack,
                          [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, stack, bytes);
#endif
}

// Lets the other fibers run.
inline void give_way() {
    Machine& m = machine();
    Fiber* const self = m.running;
    start_switch(self->done ? nullptr : &self->fake_stack, m.scheduler_stack, m.scheduler_stack_bytes);
    swapcontext(&self->context, &m.scheduler);
    finish_switch(self->fake_stack, &m.scheduler_stack, &m.scheduler_stack_bytes);
}

inline void fiber_main() {
    Machine& m = machine();
    finish_switch(nullptr, &m.scheduler_stack, &m.scheduler_stack_bytes);
    m.kernel();
    Fiber* const self = m.running;
    self->done = true;
    // A thread that returns leaves its collectives: those that wait are complete without it.
    --self->warp->members;
    --self->whole_block->members;
    give_way();
}

inline void meet(Meeting& meeting) {
    const unsigned round = meeting.round;
    ++meeting.arrived;
    while (meeting.round == round) {
        if (meeting.arrived >= meeting.members) {
            meeting.arrived = 0;
            ++meeting.round;
            return;
        }
        give_way();
    }
}

// The values of all lanes of the warp; to be read before the next collective.
inline const unsigned* gather(unsigned value) {
    Fiber* const self = machine().running;
    Meeting& warp = *self->warp;
    unsigned* const values = warp.values[warp.round % 2];
    values[self->thread.x % kWarp] = value;
    meet(warp);
    return values;
}

inline unsigned exchange(unsigned value, int from) { return gather(value)[from]; }

template <class T>
T* dynamic_shared() {
    return reinterpret_cast<T*>(machine().running->shared);
}

inline void prepare(Fiber& fiber) {
    fiber.stack.reset(new char[kStackBytes]);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
}

// Runs a grid to its end. Returns 0, or 1 when no fiber can go on: threads wait at different barriers.
inline int run(std::function<void()> kernel, unsigned grid, unsigned block, std::size_t shared_bytes, bool reversed) {
    Machine& m = machine();
    m.kernel = std::move(kernel);
    m.grid_dim = dim3{grid};
    m.block_dim = dim3{block};
    std::vector<Fiber> fibers(static_cast<std::size_t>(grid) * block);
    std::vector<Meeting> warps(static_cast<std::size_t>(grid) * ((block + kWarp - 1) / kWarp));
    std::vector<Meeting> blocks(grid);
    std::vector<std::unique_ptr<uint4[]>> shared(grid);
    for (unsigned b = 0; b < grid; ++b) {
        shared[b].reset(new uint4[(shared_bytes + 15) / 16]);
        std::memset(static_cast<void*>(shared[b].get()), 0xA5, (shared_bytes + 15) / 16 * 16);
        for (unsigned t = 0; t < block; ++t) {
            Fiber& fiber = fibers[static_cast<std::size_t>(b) * block + t];
            fiber.thread.x = t;
            fiber.block.x = b;
            fiber.warp = &warps[static_cast<std::size_t>(b) * ((block + kWarp - 1) / kWarp) + t / kWarp];
            fiber.whole_block = &blocks[b];
            ++fiber.warp->members;
            ++fiber.whole_block->members;
            fiber.shared = reinterpret_cast<char*>(shared[b].get());
            prepare(fiber);
        }
    }
    std::size_t left = fibers.size();
    unsigned idle_rounds = 0;
    while (left > 0) {
        std::size_t before = left;
        unsigned progress = 0;
        for (const Meeting& w : warps) progress += w.round;
        for (const Meeting& b : blocks) progress += b.round;
        for (std::size_t i = 0; i < fibers.size(); ++i) {
            Fiber& fiber = fibers[reversed ? fibers.size() - 1 - i : i];
            if (fiber.done) continue;
            m.running = &fiber;
            start_switch(&m.scheduler_fake_stack, fiber.stack.get(), kStackBytes);
            swapcontext(&m.scheduler, &fiber.context);
            finish_switch(m.scheduler_fake_stack, nullptr, nullptr);
            if (fiber.done) --left;
        }
        for (const Meeting& w : warps) progress -= w.round;
        for (const Meeting& b : blocks) progress -= b.round;
        idle_rounds = progress == 0 && before == left ? idle_rounds + 1 : 0;
        if (idle_rounds > 2) return 1;
    }
    return 0;
}

template <class... Args, std::size_t... I>
void call(void (*kernel)(Args...), void** args, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_reference_t<Args>*>(args[I])...);
}

// Launches a kernel with an array of pointers to its arguments, as cuLaunchKernel takes them.
template <class... Args>
int launch(void (*kernel)(Args...), void** args, unsigned grid, unsigned block, std::size_t shared_bytes, bool reversed) {
    return run([=] { call(kernel, args, std::index_sequence_for<Args...>{}); }, grid, block, shared_bytes, reversed);
}

// Half precision: every finite pattern is a multiple of 2^-24, so a double holds it and any sum or product exactly.
inline double from_half(unsigned pattern) {
    const int exponent = (pattern >> 10) & 31;
    const int fraction = pattern & 1023;
    const double magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                             : exponent == 0 ? std::ldexp(fraction, -24)
                                             : std::ldexp(1024 + fraction, exponent - 25);
    return pattern & 0x8000 ? -magnitude : magnitude;
}

inline unsigned to_half(double value) {
    if (std::isnan(value)) return 0x7FFF;
    const unsigned sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(value);
    if (magnitude >= 65520.0) return sign | 0x7C00;
    if (magnitude == 0.0) return sign;
    int exponent;
    std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, 0.5 <= m < 1
    const int step = exponent - 11 > -24 ? exponent - 11 : -24;
    const double rounded = std::nearbyint(std::ldexp(magnitude, -step));  // round to nearest, ties to even
    const double result = std::ldexp(rounded, step);
    std::frexp(result, &exponent);
    if (exponent - 11 < -24) return sign | static_cast<unsigned>(std::ldexp(result, 24));
    return sign | (static_cast<unsigned>(exponent + 14) << 10) |
           (static_cast<unsigned>(std::ldexp(result, 11 - exponent)) & 1023);
}

template <class Operation>
unsigned by_halves(Operation operation) {
    return operation(0) | (operation(16) << 16);
}

inline unsigned half_at(unsigned word, int shift) { return (word >> shift) & 0xFFFF; }
inline int short_at(unsigned word, int shift) { return static_cast<std::int16_t>(half_at(word, shift)); }

}  // namespace emulation

#define threadIdx (emulation::machine().running->thread)
#define blockIdx (emulation::machine().running->block)
#define blockDim (emulation::machine().block_dim)
#define gridDim (emulation::machine().grid_dim)

inline void __syncthreads() { emulation::meet(*emulation::machine().running->whole_block); }
inline void __syncwarp() { emulation::meet(*emulation::machine().running->warp); }

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
        return emulation::half_at(a, at) < emulation::half_at(b, at) ? emulation::half_at(a, at) : emulation::half_at(b, at);
    });
}

inline unsigned __vadd2(unsigned a, unsigned b) {
    return emulation::by_halves([=](int at) { return (emulation::half_at(a, at) + emulation::half_at(b, at)) & 0xFFFF; });
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

inline unsigned load_if(bool wanted, const unsigned* address, unsigned otherwise) { return wanted ? *address : otherwise; }

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

// A thread that waits for a value lets the others run before it looks again.
inline void publish(unsigned long long* address, unsigned long long value) { *address = value; }
inline unsigned long long look_at(const unsigned long long* address) { return *address; }
inline int load_now(const int* address) { return *address; }
inline void nap() { emulation::give_way(); }

inline uint4 texture_element(unsigned long long texture, int place) {
    return reinterpret_cast<const uint4*>(static_cast<std::uintptr_t>(texture))[place];
}

}  // namespace swsearch
