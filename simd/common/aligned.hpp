// Memory that begins at a cache line of 64 bytes, so that no load of a complete SIMD vector crosses a line.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace swsearch {

// Allocates 64 additional bytes with the ordinary allocator, whose small blocks are allocated much faster than those of
// the aligned one. The address of the block is stored before the first element.
template <class T>
struct AlignedAllocator {
    using value_type = T;
    static constexpr std::size_t kAlignment = 64;

    AlignedAllocator() = default;
    template <class Other>
    AlignedAllocator(const AlignedAllocator<Other>&) {}

    T* allocate(std::size_t n) {
        void* const block = ::operator new(n * sizeof(T) + kAlignment);
        // The address is at least 16 bytes after the block's begin, because blocks begin at multiples of 16.
        const std::uintptr_t address = (reinterpret_cast<std::uintptr_t>(block) + kAlignment) & ~(kAlignment - 1);
        void** const elements = reinterpret_cast<void**>(address);
        elements[-1] = block;
        return reinterpret_cast<T*>(elements);
    }
    void deallocate(T* elements, std::size_t) { ::operator delete(reinterpret_cast<void**>(elements)[-1]); }
    bool operator==(const AlignedAllocator&) const { return true; }
    bool operator!=(const AlignedAllocator&) const { return false; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// Memory of one thread for intermediate values; it grows as needed.
class Scratch {
   public:
    // Memory with any content, which is valid until the next call.
    std::uint8_t* at_least(std::size_t bytes) {
        if (bytes > size_) {
            memory_.reset();
            size_ = 0;
            memory_.reset(AlignedAllocator<std::uint8_t>().allocate(bytes));
            size_ = bytes;
        }
        return memory_.get();
    }

   private:
    struct Delete {
        void operator()(std::uint8_t* memory) const { AlignedAllocator<std::uint8_t>().deallocate(memory, 0); }
    };
    std::unique_ptr<std::uint8_t, Delete> memory_;
    std::size_t size_ = 0;
};

}  // namespace swsearch
