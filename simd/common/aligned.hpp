// Vectors whose elements begin at a cache line, so that no load of a whole vector crosses one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace swsearch {

// Takes a little more from the ordinary allocator, whose small blocks are much faster than those of the aligned one.
template <class T>
struct AlignedAllocator {
    using value_type = T;
    static constexpr std::size_t kAlignment = 64;

    AlignedAllocator() = default;
    template <class Other>
    AlignedAllocator(const AlignedAllocator<Other>&) {}

    T* allocate(std::size_t n) {
        void* const block = ::operator new(n * sizeof(T) + kAlignment);
        // At least 16 bytes after the block's begin, since blocks begin at multiples of 16.
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

}  // namespace swsearch
