// Work on threads of its own beside a calling thread that stays awake for signals and progress.

#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include "pair/pair.hpp"

namespace swsearch::pair {

constexpr auto signal_interval = std::chrono::milliseconds(100);
constexpr std::uint64_t cells_without_signals = 50'000'000;  // done before anybody could press Ctrl-C

// Runs `work` while the calling thread looks for signals and reports progress; throws after `work` has ended.
inline void supervise(Watch& watch, const nanobind::object& progress, const std::function<void()>& work) {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    std::exception_ptr failure;
    const nanobind::gil_scoped_release release;
    const auto all = [&] {
        try {
            work();
        } catch (const Stopped&) {
            // whoever set `stop` has the reason
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard<std::mutex> lock(mutex);
        ended = true;
        changed.notify_all();
    };
    std::thread thread;
    try {
        thread = std::thread(all);
    } catch (const std::system_error&) {
        all();  // the system gives no thread: this one does the work, and hears signals when it is done
    }
    const auto join = [&] {
        if (thread.joinable()) thread.join();
    };
    std::uint64_t reported = 0;
    const auto report = [&] {
        const std::uint64_t cells = watch.cells.load();
        if (!progress.is_none() && cells > reported) progress(cells - reported);
        reported = cells;
    };
    try {
        std::unique_lock<std::mutex> lock(mutex);
        while (!changed.wait_for(lock, signal_interval, [&] { return ended; })) {
            lock.unlock();
            {
                const nanobind::gil_scoped_acquire acquire;
                if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
                report();
            }
            lock.lock();
        }
    } catch (...) {
        watch.stop = true;
        join();
        throw;
    }
    join();
    if (failure) std::rethrow_exception(failure);
    const nanobind::gil_scoped_acquire acquire;
    report();
}

}  // namespace swsearch::pair
