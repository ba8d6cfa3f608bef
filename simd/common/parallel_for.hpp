// Loops that run on several threads, and the Observer, by which a caller reads their progress and requests that they
// stop.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace swsearch {

// Thrown in a worker that was requested to stop; the thread that requested it has the reason.
struct Stopped {};

// Counts the cells computed so far, and stores the request to stop. Both members are read and written atomically; they
// are plain numbers because kernels that use no C++ library access them by their addresses.
struct Observer {
    std::int32_t stop = 0;
    std::uint64_t cells = 0;

    void request_stop() { __atomic_store_n(&stop, 1, __ATOMIC_RELAXED); }
    bool stop_requested() const { return __atomic_load_n(&stop, __ATOMIC_RELAXED) != 0; }
    std::uint64_t cells_done() const { return __atomic_load_n(&cells, __ATOMIC_RELAXED); }
    void set_cells(std::uint64_t n) { __atomic_store_n(&cells, n, __ATOMIC_RELAXED); }
    // Adds computed cells. Throws Stopped if a stop was requested.
    void done(std::uint64_t n) {
        __atomic_fetch_add(&cells, n, __ATOMIC_RELAXED);
        if (stop_requested()) throw Stopped{};
    }
};

// The threads of a computation, and how it is watched. With `poll`, the calling thread only calls it, about every 100
// ms; without, it is one of the n threads.
struct Threads {
    int n;
    Observer& observer;
    std::function<void()> poll = nullptr;
};

// Runs task(i, worker) for every i below n, on up to threads.n threads, each of which takes the smallest i not yet
// taken. Workers are numbered from 0, and each runs one task at a time.
//
// If the system starts fewer threads than requested, those that it has started do the work, and if there are none, the
// calling thread does. Once a task or poll throws, no further task begins, tasks that ask the observer stop, and the
// exception (that of poll, or else the first one) is thrown from this function after all threads have ended. Throws
// Stopped if a stop was requested through the observer from elsewhere.
void parallel_for(std::size_t n, const Threads& threads,
                  const std::function<void(std::size_t i, std::size_t worker)>& task);

}  // namespace swsearch
