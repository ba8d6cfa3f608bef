// The implementation of parallel_for with std::thread: the workers take task numbers from a shared counter.

#include "common/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace swsearch {

void parallel_for(std::size_t n, const Threads& threads,
                  const std::function<void(std::size_t i, std::size_t worker)>& task) {
    constexpr auto kPollInterval = std::chrono::milliseconds(100);
    Observer& observer = threads.observer;
    const std::function<void()>& poll = threads.poll;
    if (n == 0) {
        return;
    }
    const std::size_t wanted = std::min(n, static_cast<std::size_t>(std::max(threads.n, 1)));
    if (wanted == 1 && !poll) {  // the case of short alignments, which occurs millions of times
        for (std::size_t i = 0; i < n && !observer.stop_requested(); ++i) {
            task(i, 0);
        }
        if (observer.stop_requested()) {
            throw Stopped{};
        }
        return;
    }
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable ended;
    std::size_t n_ended = 0;
    std::exception_ptr failure;

    // Returns false if no task is left.
    const auto run_one = [&](std::size_t worker) {
        const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= n || observer.stop_requested()) {
            return false;
        }
        task(i, worker);
        return true;
    };
    const auto fail = [&] {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) {
            failure = std::current_exception();
        }
        next = n;
        observer.request_stop();
    };
    const auto work = [&](std::size_t worker) {
        try {
            while (run_one(worker)) {
            }
        } catch (...) {
            fail();
        }
        const std::lock_guard<std::mutex> lock(mutex);
        ++n_ended;
        ended.notify_one();
    };

    std::vector<std::thread> started;
    try {
        started.reserve(wanted);
        for (std::size_t worker = poll ? 0 : 1; worker < wanted && next < n; ++worker) {
            started.emplace_back(work, worker);
        }
    } catch (const std::system_error&) {
        // The system starts no more threads; those that it has started do all of the work.
    } catch (const std::bad_alloc&) {
    }
    std::exception_ptr poll_failure;
    try {
        if (!poll) {
            work(0);
        } else if (started.empty()) {
            auto polled = std::chrono::steady_clock::now();
            while (run_one(0)) {
                if (std::chrono::steady_clock::now() - polled >= kPollInterval) {
                    poll();
                    polled = std::chrono::steady_clock::now();
                }
            }
        } else {
            std::unique_lock<std::mutex> lock(mutex);
            while (!ended.wait_for(lock, kPollInterval, [&] { return n_ended == started.size(); })) {
                lock.unlock();
                poll();
                lock.lock();
            }
        }
    } catch (...) {
        poll_failure = std::current_exception();
        observer.request_stop();
    }
    for (std::thread& thread : started) {
        thread.join();
    }
    if (poll_failure) {
        std::rethrow_exception(poll_failure);
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
    if (observer.stop_requested()) {  // by an outer loop
        throw Stopped{};
    }
}

}  // namespace swsearch
