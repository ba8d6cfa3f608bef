#include "score/crew.hpp"

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

namespace swsearch::score {

namespace {
constexpr std::align_val_t kAlignment{64};
constexpr std::chrono::milliseconds kPollInterval{100};
}  // namespace

Scratch::~Scratch() {
    ::operator delete(data_, kAlignment);
}

uint8_t* Scratch::at_least(size_t bytes) {
    if (bytes > size_) {
        ::operator delete(data_, kAlignment);
        data_ = nullptr;
        size_ = 0;
        data_ = static_cast<uint8_t*>(::operator new(bytes, kAlignment));
        size_ = bytes;
    }
    return data_;
}

void run_crew(size_t n, int n_threads, const std::function<void(size_t i, Scratch&, const Control&)>& task,
              uint64_t* cells, const std::function<void()>& poll) {
    if (n == 0) {
        return;
    }
    std::atomic<size_t> next{0};
    int32_t stop = 0;
    const Control control{&stop, cells};
    std::mutex mutex;
    std::condition_variable ended;
    std::exception_ptr failure;
    size_t working = 0;

    const auto work = [&] {
        std::exception_ptr problem;
        try {
            Scratch scratch;
            while (__atomic_load_n(&stop, __ATOMIC_RELAXED) == 0) {
                const size_t i = next.fetch_add(1, std::memory_order_relaxed);
                if (i >= n) {
                    break;
                }
                task(i, scratch, control);
            }
        } catch (...) {
            problem = std::current_exception();
            __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        }
        const std::lock_guard<std::mutex> lock(mutex);
        if (problem && !failure) {
            failure = problem;
        }
        --working;
        ended.notify_one();
    };

    std::vector<std::thread> threads;
    std::exception_ptr refusal;
    try {
        const size_t wanted = std::min(n, static_cast<size_t>(n_threads));
        threads.reserve(wanted);
        for (size_t t = 0; t < wanted; ++t) {
            {
                const std::lock_guard<std::mutex> lock(mutex);
                ++working;
            }
            try {
                threads.emplace_back(work);
            } catch (const std::system_error&) {  // fewer threads do the same work; without any, this one does it
                if (threads.empty()) {
                    work();
                } else {
                    const std::lock_guard<std::mutex> lock(mutex);
                    --working;
                }
                break;
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex);
                --working;
                throw;
            }
        }
        std::unique_lock<std::mutex> lock(mutex);
        while (!ended.wait_for(lock, kPollInterval, [&] { return working == 0; })) {
            lock.unlock();
            poll();
            lock.lock();
        }
    } catch (...) {
        refusal = std::current_exception();
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    if (refusal) {
        std::rethrow_exception(refusal);
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

}  // namespace swsearch::score
