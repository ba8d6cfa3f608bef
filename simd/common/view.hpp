// A view of the elements of an array, with one or two dimensions.

#pragma once

#include <cstddef>

namespace swsearch {

// The elements of a checked array. They belong to the array.
template <class T>
struct View {
    T* data;
    std::size_t length;   // extent of the first dimension
    std::size_t columns;  // extent of the second dimension, 1 if there is none

    std::size_t size() const { return length * columns; }
    T* begin() const { return data; }
    T* end() const { return data + size(); }
    T& operator[](std::size_t i) const { return data[i]; }
};

}  // namespace swsearch
