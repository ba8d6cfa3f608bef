// Threads that take work from one list, and a calling thread that watches them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "score/kernel.hpp"

namespace swsearch::score {

// Scratch memory of one thread, aligned to 64 bytes; grows and is kept.
class Scratch {
public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch();
    uint8_t* at_least(size_t bytes);

private:
    uint8_t* data_ = nullptr;
    size_t size_ = 0;
};

// Runs task(i) for every i below n on up to n_threads threads, each taking the smallest i not yet taken. poll is called
// on the calling thread about every 100 ms. What task or poll throws stops the others (tasks in progress hear it by
// their Control) and is thrown from here once all threads have ended.
void run_crew(size_t n, int n_threads, const std::function<void(size_t i, Scratch&, const Control&)>& task,
              uint64_t* cells, const std::function<void()>& poll);

}  // namespace swsearch::score
