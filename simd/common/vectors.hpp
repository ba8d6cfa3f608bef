// The vectors of one instruction set, and their lanes of 8, 16 and 32 bits: the operations in which all kernels are
// written.
//
// A kernel's translation unit is compiled once for each instruction set (add_kernels in CMakeLists.txt).
// SWSEARCH_VECTORS names the header that defines its class Vectors, and SWSEARCH_KERNELS the table of kernels that the
// unit defines. These translation units, and all files that they include, have internal linkage and use no C++ library.
// Otherwise the linker could use an inline function that was compiled for a wide instruction set in code that must run
// on every processor.
//
// Vectors, which has what vectors/compiled.hpp defines for all sets, has a type V of kBytes bytes, the number
// kRegisters of vector registers, a type Mask<T> that marks lanes, and, for lanes of the signed integer T:
//     load, store                    unaligned
//     splat<T>(x)                    every lane is x
//     add, subtract                  wrapping
//     add_saturating, subtract_saturating    lanes of 8 and 16 bits only
//     max, equal, greater, any_greater
//     select(mask, yes, no)
//     shift_in(a, x)                 lane 0 is x, lane i + 1 is lane i of a
//     shift_up<kBy>(a)               lane i + kBy is lane i of a, the lower ones are 0; kBy a power of 2, T not 8 bits
//     last(a)                        the highest lane
//     largest(a)                     the largest lane, if all are at least 0; T not 8 bits
//     widen(a)                       the low bytes of a, sign-extended to T
//     load_bytes(from)               one byte per lane, sign-extended to T
// and, for lanes of 32 bits that each hold a pair of 16 bits:
//     add_products(sum, a, b)        sum + a0 * b0 + a1 * b1, wrapping
// and, for bytes:
//     exclusive_or
//     codes_of(a)                    the low five bits of each byte of a, as look_up needs them: a class Codes
//     look_up(row, codes)            int8 row[32] at each of the codes
//     keep_order(a, b)               computes a and b here: with 16 registers the compiler's own order spills
// and, separately in each part of 16 bytes:
//     shuffle(table, index)          byte index[i] of the table; the index is 0 to 15
//     first_of_parts(first, others)  byte 0 from first, the other bytes from others
//     load_parts(rows, offset)       part i is the 16 bytes at rows[16 * i] + offset
//     unpack_low, unpack_high        the lower or upper 8 bytes of a and b, alternating

#pragma once

#include <stddef.h>
#include <stdint.h>

// One expression for each width of the lanes T.
#define BY_LANE(on_bytes, on_words, on_ints) \
    if constexpr (sizeof(T) == 1) {          \
        return on_bytes;                     \
    } else if constexpr (sizeof(T) == 2) {   \
        return on_words;                     \
    } else {                                 \
        return on_ints;                      \
    }
#define BY_NARROW_LANE(on_bytes, on_words)                      \
    static_assert(sizeof(T) < 4, "lanes of 8 or 16 bits only"); \
    if constexpr (sizeof(T) == 1) {                             \
        return on_bytes;                                        \
    } else {                                                    \
        return on_words;                                        \
    }
#define SWSEARCH_QUOTED_(text) #text
#define SWSEARCH_QUOTED(text) SWSEARCH_QUOTED_(text)
// clang-format off: the argument is a path.
#include SWSEARCH_QUOTED(common/vectors/SWSEARCH_VECTORS.hpp)
// clang-format on
#undef BY_LANE
#undef BY_NARROW_LANE

namespace swsearch {
namespace {

// The operations of Vectors on lanes of type T.
template <class T>
struct Lanes {
    using V = Vectors::V;
    using Value = T;
    using Mask = Vectors::Mask<T>;
    static constexpr int kLanes = Vectors::kBytes / static_cast<int>(sizeof(T));

    static V load(const T* from) { return Vectors::load(from); }
    static void store(T* to, V a) { Vectors::store(to, a); }
    static V splat(int32_t x) { return Vectors::splat<T>(x); }
    static V add(V a, V b) { return Vectors::add<T>(a, b); }
    static V subtract(V a, V b) { return Vectors::subtract<T>(a, b); }
    static V add_saturating(V a, V b) { return Vectors::add_saturating<T>(a, b); }
    static V subtract_saturating(V a, V b) { return Vectors::subtract_saturating<T>(a, b); }
    static V max(V a, V b) { return Vectors::max<T>(a, b); }
    static Mask equal(V a, V b) { return Vectors::equal<T>(a, b); }
    static Mask greater(V a, V b) { return Vectors::greater<T>(a, b); }
    static bool any_greater(V a, V b) { return Vectors::any_greater<T>(a, b); }
    static V select(Mask mask, V yes, V no) { return Vectors::select<T>(mask, yes, no); }
    static V shift_in(V a, T x) { return Vectors::shift_in<T>(a, x); }
    template <int kBy>
    static V shift_up(V a) {
        return Vectors::shift_up<T, kBy>(a);
    }
    static T last(V a) { return Vectors::last<T>(a); }
    static int32_t largest(V a) { return Vectors::largest<T>(a); }
    static V load_bytes(const int8_t* from) { return Vectors::load_bytes<T>(from); }
    using Codes = Vectors::Codes;
    // int8 row[32] at each of the low codes.
    static V look_up(const int8_t* row, const Codes& codes) { return Vectors::widen<T>(Vectors::look_up(row, codes)); }

    // The intersection of two masks; a template, so that a compiler checks only the branch that is taken.
    template <class M>
    static M both(M a, M b) {
        if constexpr (kBitMasks) {
            return static_cast<M>(a & b);
        } else {
            return Vectors::select<T>(a, b, Vectors::splat<T>(0));
        }
    }
    // The mask of the lanes above number `below`, up to number `up_to`.
    static Mask between(ptrdiff_t below, ptrdiff_t up_to) {
        if constexpr (kBitMasks) {
            const auto bits = [](ptrdiff_t lane) {
                const ptrdiff_t n = clamp(lane + 1, 0);
                return n == 0 ? uint64_t{0} : ~uint64_t{0} >> (64 - n);
            };
            return static_cast<Mask>(bits(up_to) & ~bits(below));
        } else {
            T number[kLanes];
            for (int i = 0; i < kLanes; ++i) {
                number[i] = static_cast<T>(i);
            }
            const V lane = load(number);
            return both(greater(lane, splat(clamp(below, -1))), greater(splat(clamp(up_to, -1) + 1), lane));
        }
    }

   private:
    static constexpr bool kBitMasks = sizeof(Mask) < sizeof(V);
    static int32_t clamp(ptrdiff_t x, int32_t least) {
        return x < least ? least : x > kLanes ? kLanes : static_cast<int32_t>(x);
    }
};

}  // namespace
}  // namespace swsearch
