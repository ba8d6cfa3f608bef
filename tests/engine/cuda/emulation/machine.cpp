// The implementation of cuda_emulation.h: fibers, their scheduler, and the values of half precision. It is compiled once and linked
// with every kernel.

#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda_emulation.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
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

// The suspended state of a fiber: where it continues, and its stack.
//
// Fibers are switched by GCC's built-in setjmp and longjmp. `swapcontext` makes a system call for the signal mask
// each time, which took most of the time of an emulated shuffle. Under the address sanitizer, `swapcontext` and the
// library's `longjmp` also discard the sanitizer's records of a complete stack.
struct Context {
    void* place[5];
    ucontext_t first{};
    bool is_first = false;
    const void* stack = nullptr;
    std::size_t stack_bytes = 0;
    void* fake_stack = nullptr;

    void begin_at(void (*function)(), char* memory) {
        getcontext(&first);
        first.uc_stack.ss_sp = memory;
        first.uc_stack.ss_size = kStackBytes;
        first.uc_link = nullptr;
        makecontext(&first, function, 0);
        is_first = true;
        stack = memory;
        stack_bytes = kStackBytes;
    }

    // Returns when another context switches to this one.
    void switch_to(Context& other, [[maybe_unused]] bool for_ever = false) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(for_ever ? nullptr : &fake_stack, other.stack, other.stack_bytes);
#endif
        leave_for(other);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
    }

    // Called first by a new fiber, to which `from` has switched.
    static void begun([[maybe_unused]] Context& from) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(nullptr, &from.stack, &from.stack_bytes);
#endif
    }

  private:
    NOT_SANITIZED void leave_for(Context& other) {
        if (__builtin_setjmp(place) == 0) other.take_over();
    }

    NOT_SANITIZED void take_over() {
        if (!is_first) __builtin_longjmp(place, 1);
        is_first = false;
        setcontext(&first);
    }
};

// Stacks for the fibers of a grid. They are kept for the next grid: with new stacks, the system would clear their pages
// at every launch.
class Stacks {
  public:
    char* take() {
        if (used_ == stacks_.size()) stacks_.emplace_back(new char[kStackBytes]);
        char* const stack = stacks_[used_++].get();
#if defined(__SANITIZE_ADDRESS__)
        __asan_unpoison_memory_region(stack, kStackBytes);  // a fiber never returns from its first frames
#endif
        return stack;
    }

    void take_back_all() { used_ = 0; }

  private:
    std::vector<std::unique_ptr<char[]>> stacks_;
    std::size_t used_ = 0;
};

Stacks stacks;

struct Fiber : Place {
    Context context;
    Meeting* warp = nullptr;
    Meeting* whole_block = nullptr;
    const Meeting* waits_for = nullptr;
    unsigned waits_in_round = 0;
    bool done = false;

    bool can_go_on() const {
        return waits_for == nullptr || waits_for->round != waits_in_round || waits_for->is_complete();
    }
};

Context scheduler;
void (*invoke_kernel)(void (*)(), void**);
void (*kernel_of_grid)();
void** arguments;

Fiber& self() { return const_cast<Fiber&>(static_cast<const Fiber&>(*running)); }

void fiber_main() {
    Context::begun(scheduler);
    invoke_kernel(kernel_of_grid, arguments);
    Fiber& fiber = self();
    fiber.done = true;
    // A thread that returns is no longer a member of its collectives, so threads that wait there need not wait for it.
    --fiber.warp->members;
    --fiber.whole_block->members;
    fiber.context.switch_to(scheduler, true);
}

void meet(Meeting& meeting) {
    const unsigned round = meeting.round;
    ++meeting.arrived;
    while (meeting.round == round) {
        if (meeting.is_complete()) {
            meeting.arrived = 0;
            ++meeting.round;
            return;
        }
        Fiber& fiber = self();
        fiber.waits_for = &meeting;
        fiber.waits_in_round = round;
        give_way();
        fiber.waits_for = nullptr;
    }
}

unsigned rounds_of(const std::vector<Meeting>& meetings) {
    unsigned rounds = 0;
    for (const Meeting& meeting : meetings) rounds += meeting.round;
    return rounds;
}

}  // namespace

void give_way() { self().context.switch_to(scheduler); }

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

int run(void (*invoke)(void (*)(), void**), void (*kernel)(), void** args, unsigned grid, unsigned block,
        std::size_t shared_bytes, bool reversed) {
    invoke_kernel = invoke;
    kernel_of_grid = kernel;
    arguments = args;
    grid_dim = dim3{grid};
    block_dim = dim3{block};
    const unsigned warps_a_block = (block + kWarp - 1) / kWarp;
    stacks.take_back_all();
    std::vector<Fiber> fibers(static_cast<std::size_t>(grid) * block);
    std::vector<Meeting> warps(static_cast<std::size_t>(grid) * warps_a_block);
    std::vector<Meeting> blocks(grid);
    std::vector<std::unique_ptr<uint4[]>> shared(grid);
    for (unsigned b = 0; b < grid; ++b) {
        shared[b].reset(new uint4[(shared_bytes + 15) / 16]);
        std::memset(static_cast<void*>(shared[b].get()), 0xA5, (shared_bytes + 15) / 16 * 16);
        for (unsigned t = 0; t < block; ++t) {
            Fiber& fiber = fibers[static_cast<std::size_t>(b) * block + t];
            fiber.thread.x = t;
            fiber.block.x = b;
            fiber.shared = reinterpret_cast<char*>(shared[b].get());
            fiber.warp = &warps[static_cast<std::size_t>(b) * warps_a_block + t / kWarp];
            fiber.whole_block = &blocks[b];
            ++fiber.warp->members;
            ++fiber.whole_block->members;
            fiber.context.begin_at(fiber_main, stacks.take());
        }
    }
    std::size_t left = fibers.size();
    unsigned idle_rounds = 0;
    while (left > 0) {
        const std::size_t before = left;
        const unsigned rounds = rounds_of(warps) + rounds_of(blocks);
        for (std::size_t i = 0; i < fibers.size(); ++i) {
            Fiber& fiber = fibers[reversed ? fibers.size() - 1 - i : i];
            if (fiber.done || !fiber.can_go_on()) continue;
            running = &fiber;
            scheduler.switch_to(fiber.context);
            if (fiber.done) --left;
        }
        const bool idle = rounds == rounds_of(warps) + rounds_of(blocks) && before == left;
        idle_rounds = idle ? idle_rounds + 1 : 0;
        if (idle_rounds > 2) return 1;
    }
    return 0;
}

namespace {

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

const std::vector<float> all_halves = values_of_halves();

}  // namespace

const float* const half_values = all_halves.data();

}  // namespace emulation
