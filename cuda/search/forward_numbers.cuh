// The arithmetic of column_odds and forward_totals: products of 16-bit numbers, and powers of two.
//
// A GPU has an instruction that multiplies two 16-bit numbers with two bytes. One factor, from 0 to 2^15 - 1, is stored
// as bytes for it: a word holds the low bytes of two neighbours, then their high bytes.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

SWS_DEVICE u32 byte_pair(u32 first, u32 second) {
    return (first & 255u) | (second & 255u) << 8 | first >> 8 << 16 | second >> 8 << 24;
}

// A sum of products of pairs of signed 16-bit numbers and pairs of bytes; it wraps as 32-bit numbers do.
class ByteProducts {
   public:
    SWS_DEVICE void add(u32 numbers, u32 bytes) {
        low_ = add_low_products(numbers, bytes, low_);
        high_ = add_high_products(numbers, bytes, high_);
    }
    SWS_DEVICE int sum() const { return static_cast<int>(low_ + (high_ << 8)); }

   private:
    u32 low_ = 0, high_ = 0;
};

// 2^exponent of an exponent up to 0; 0 below the normal numbers.
SWS_DEVICE float power_of_two(int exponent) {
    return __uint_as_float(exponent < -126 ? 0u : static_cast<u32>(127 + exponent) << 23);
}

}  // namespace swsearch
