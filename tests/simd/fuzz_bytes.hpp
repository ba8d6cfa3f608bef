// The bytes of a fuzzer as a source of numbers: each call consumes bytes from the front; after the end it reads zeros.

#pragma once

#include <cstddef>
#include <cstdint>

struct Bytes {
    const std::uint8_t* data;
    std::size_t size;

    std::uint8_t byte() {
        if (size == 0) return 0;
        --size;
        return *data++;
    }
    std::uint32_t word() {
        std::uint32_t value = 0;
        for (int i = 0; i < 4; ++i) value = value << 8 | byte();
        return value;
    }
    std::uint32_t below(std::uint32_t n) { return (n <= 256 ? byte() : word()) % n; }
    // Byte i of those that are left, which are read again and again, so that what is made of them resembles itself.
    std::uint8_t at(std::size_t i) const { return size == 0 ? std::uint8_t{0} : data[i % size]; }
    bool flag() { return (byte() & 1) != 0; }
};
