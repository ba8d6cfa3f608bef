// The implementation of cuda_emulation.h: fibers, their scheduler, and the values of half precision. It is compiled
// once and linked with every kernel.

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda_emulation.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {

const Place* running = nullptr;
dim3 block_dim, grid_dim;

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

// A collective operation of a warp or block. It completes when every member has arrived. It stores the values of two
// rounds, since a fast member may enter the next round before a slow one has read the values of this round.
struct Meeting {
    int members = 0;
    int arrived = 0;
    unsigned round = 0;
    unsigned values[2][kWarp] = {};

    bool is_complete() const { return arrived >= members; }
};

#if defined(__SANITIZE_ADDRESS__)
#define NOT_SANITIZED __attribute__((noinline, no_sanitize_address))
#else
#define NOT_SANITIZED __attribute__((noinline))
#endif

// A stack, and where its function continues.
//
// Contexts are switched by GCC's built-in setjmp and longjmp. `swapcontext` makes a system call for the signal mask
// each time. Under the address sanitizer, `swapcontext` and the library's `longjmp` also discard the sanitizer's
// records of a complete stack.
class Context {
   public:
    Context() = default;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    // Makes a stack; the first switch to this context calls a function there, which must not return.
    void begin_at(void (*function)()) {
        // Stacks of one size begin at the same distance from a page. Without the offset, all threads of a warp would
        // have their frames in the same few sets of the cache.
        static std::size_t n_stacks = 0;
        const std::size_t bytes = kStackBytes - n_stacks++ * 9 % 64 * 64;
        memory_.reset(new char[bytes]);
        bottom_ = memory_.get();
        bytes_ = bytes;
        first_.reset(new ucontext_t{});
        getcontext(first_.get());
        first_->uc_stack.ss_sp = memory_.get();
        first_->uc_stack.ss_size = bytes;
        first_->uc_link = nullptr;
        makecontext(first_.get(), function, 0);
        place_[2] = memory_.get() + bytes - 256;
    }

    // Returns when another context switches to this one.
    void switch_to(Context& other) {
#if defined(__SANITIZE_ADDRESS__)
        left_ = this;
        void* fake_stack = nullptr;
        __sanitizer_start_switch_fiber(&fake_stack, other.bottom_, other.bytes_);
        leave_for(other);
        begun(fake_stack);
#else
        leave_for(other);
#endif
    }

    // Called first by the function of a new context.
    static void begun([[maybe_unused]] void* fake_stack = nullptr) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(fake_stack, &left_->bottom_, &left_->bytes_);
#endif
    }

    // Loads the frames with which this context will continue into the cache.
    void prefetch() const {
        const char* const frames = static_cast<const char*>(place_[2]);
        for (int line = 0; line < 4; ++line) __builtin_prefetch(frames + 64 * line);
    }

   private:
    // One function for both ends of a switch: every call is followed by its return, so the processor predicts where
    // returns lead. A mispredicted return costs as much as all the rest.
    NOT_SANITIZED void leave_for(Context& other) {
        if (__builtin_setjmp(place_) != 0) return;
        if (other.first_ == nullptr) __builtin_longjmp(other.place_, 1);
        other.begin();
    }

    NOT_SANITIZED void begin() {
        static ucontext_t first;
        first = *first_;
        first_.reset();
        setcontext(&first);
    }

    static Context* left_;  // the context that was switched from last

    void* place_[5];  // frame pointer, address, stack pointer
    std::unique_ptr<ucontext_t> first_;
    const void* bottom_ = nullptr;
    std::size_t bytes_ = 0;
    std::unique_ptr<char[]> memory_;  // none for the host's own stack
};

[[maybe_unused]] Context* Context::left_ = nullptr;

// A thread of a grid. It remains for the next grid, which so needs neither new stacks, whose pages the system would
// clear, nor new contexts.
struct Fiber : Place {
    const Meeting* waits_for = nullptr;
    unsigned waits_in_round = 0;
    bool done = false;
    Meeting* warp = nullptr;
    Meeting* whole_block = nullptr;
    Context context;

    bool can_go_on() const {
        return waits_for == nullptr || waits_for->round != waits_in_round || waits_for->is_complete();
    }
};

std::vector<std::unique_ptr<Fiber>> fibers;
Context host;
void (*invoke_kernel)(void (*)(), const void*);
void (*kernel_of_grid)();
const void* parameters_of_grid;

// The fibers of the grid in the order of their turns. Fibers that have ended are removed after each pass.
std::vector<Fiber*> turns;
std::size_t next_turn = 0;
// Completed meetings and ended fibers, all of them and those before this pass. Passes in which fibers only wait for
// values of others increase neither.
unsigned long advances = 0, advances_before = 0;
unsigned idle_passes = 0;

Fiber& self() { return const_cast<Fiber&>(static_cast<const Fiber&>(*running)); }

// Returns whether any fiber has turns in another pass: some have not ended, and they do not wait for each other.
bool begin_pass() {
    turns.erase(std::remove_if(turns.begin(), turns.end(), [](const Fiber* fiber) { return fiber->done; }),
                turns.end());
    next_turn = 0;
    idle_passes = advances == advances_before ? idle_passes + 1 : 0;
    advances_before = advances;
    return !turns.empty() && idle_passes <= 2;
}

// Switches from a context to the next fiber that can continue, or to the host at the end of the grid.
void leave(Context& context) {
    while (next_turn < turns.size() || begin_pass()) {
        Fiber& fiber = *turns[next_turn++];
        if (fiber.done || !fiber.can_go_on()) continue;
        if (next_turn < turns.size()) turns[next_turn]->context.prefetch();
        running = &fiber;
        if (&fiber.context != &context) context.switch_to(fiber.context);
        return;
    }
    context.switch_to(host);
}

void fiber_main() {
    Context::begun();
    for (;;) {
        invoke_kernel(kernel_of_grid, parameters_of_grid);
        Fiber& fiber = self();
        fiber.done = true;
        ++advances;
        // A thread that returns is no longer a member of its collectives, so threads that wait there need not wait for
        // it.
        --fiber.warp->members;
        --fiber.whole_block->members;
        leave(fiber.context);  // returns in the next grid
    }
}

void meet(Meeting& meeting) {
    const unsigned round = meeting.round;
    ++meeting.arrived;
    while (meeting.round == round) {
        if (meeting.is_complete()) {
            meeting.arrived = 0;
            ++meeting.round;
            ++advances;
            return;
        }
        Fiber& fiber = self();
        fiber.waits_for = &meeting;
        fiber.waits_in_round = round;
        give_way();
        fiber.waits_for = nullptr;
    }
}

}  // namespace

void give_way() { leave(self().context); }

void meet_block() { meet(*self().whole_block); }

void meet_warp() { meet(*self().warp); }

const unsigned* gather(unsigned value) {
    Fiber& fiber = self();
    Meeting& warp = *fiber.warp;
    unsigned* const values = warp.values[warp.round % 2];
    values[fiber.thread.x % kWarp] = value;
    meet(warp);
    return values;
}

int run(void (*invoke)(void (*)(), const void*), void (*kernel)(), const void* parameters, unsigned grid,
        unsigned block, std::size_t shared_bytes, bool reversed) {
    invoke_kernel = invoke;
    kernel_of_grid = kernel;
    parameters_of_grid = parameters;
    grid_dim = dim3{grid};
    block_dim = dim3{block};
    const unsigned warps_a_block = (block + kWarp - 1) / kWarp;
    const std::size_t n_threads = static_cast<std::size_t>(grid) * block;
    while (fibers.size() < n_threads) {
        fibers.emplace_back(new Fiber);
        fibers.back()->context.begin_at(fiber_main);
    }
    std::vector<Meeting> warps(static_cast<std::size_t>(grid) * warps_a_block);
    std::vector<Meeting> blocks(grid);
    std::vector<std::unique_ptr<uint4[]>> shared(grid);
    turns.resize(n_threads);
    for (unsigned b = 0; b < grid; ++b) {
        shared[b].reset(new uint4[(shared_bytes + 15) / 16]);
        std::memset(static_cast<void*>(shared[b].get()), 0xA5, (shared_bytes + 15) / 16 * 16);
        for (unsigned t = 0; t < block; ++t) {
            const std::size_t i = static_cast<std::size_t>(b) * block + t;
            Fiber& fiber = *fibers[i];
            fiber.thread.x = t;
            fiber.block.x = b;
            fiber.shared = reinterpret_cast<char*>(shared[b].get());
            fiber.done = false;
            fiber.waits_for = nullptr;
            fiber.warp = &warps[static_cast<std::size_t>(b) * warps_a_block + t / kWarp];
            fiber.whole_block = &blocks[b];
            ++fiber.warp->members;
            ++fiber.whole_block->members;
            turns[reversed ? n_threads - 1 - i : i] = &fiber;
        }
    }
    next_turn = 0;
    idle_passes = 0;
    advances_before = advances;
    leave(host);
    if (turns.empty()) return 0;
    fibers.clear();  // they will never continue
    return 1;
}

namespace {

// Half precision. Every finite pattern is a multiple of 2^-24, so a double represents it and any sum or product
// exactly.
std::vector<float> values_of_halves() {
    std::vector<float> all(1 << 16);
    for (unsigned each = 0; each < all.size(); ++each) {
        const int exponent = (each >> 10) & 31;
        const int fraction = each & 1023;
        const double magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                                 : exponent == 0 ? std::ldexp(fraction, -24)
                                                 : std::ldexp(1024 + fraction, exponent - 25);
        all[each] = static_cast<float>(each & 0x8000 ? -magnitude : magnitude);
    }
    return all;
}

const std::vector<float> half_values = values_of_halves();

double from_half(unsigned pattern) { return half_values[pattern & 0xFFFF]; }

unsigned to_half(double value) {
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
unsigned by_halves(Operation operation) {
    return operation(0) | (operation(16) << 16);
}

unsigned half_at(unsigned word, int shift) { return (word >> shift) & 0xFFFF; }

}  // namespace

unsigned fma_of_any(unsigned a, unsigned b, unsigned c) {
    return by_halves([=](int at) {
        return to_half(from_half(half_at(a, at)) * from_half(half_at(b, at)) + from_half(half_at(c, at)));
    });
}

unsigned add_of_any(unsigned a, unsigned b) {
    return by_halves([=](int at) { return to_half(from_half(half_at(a, at)) + from_half(half_at(b, at))); });
}

unsigned max_of_any(unsigned a, unsigned b) {
    return by_halves([=](int at) {
        const double x = from_half(half_at(a, at)), y = from_half(half_at(b, at));
        if (x == y) return half_at(a, at) & half_at(b, at);  // +0 rather than -0
        return x > y ? half_at(a, at) : half_at(b, at);
    });
}

}  // namespace emulation
