// Lanes of 8, 16 and 32 bits over the vectors of one instruction set: the few operations the kernels are written in.
//
// An instruction set is a class Isa with a vector type V of kBytes bytes and
//     load, store                  unaligned
//     load_half, load_quarter      so many bytes only, into the low end; the others are anything
//     splat8/16/32, add8/16 and sub8/16 (saturating, signed), add32, sub32, max8/16/32
//     any_greater8/16/32(a, b)     whether any lane of a exceeds that of b
//     shift8/16/32(v, x)           lane i + 1 takes lane i, lane 0 takes x
//     look_up(row, codes)          int8 row[32] at the low five bits of each byte of codes
//     widen16, widen32             the low bytes of a vector, sign-extended
//     keep_order(a, b)             has a and b computed here: with 16 registers the compiler's own order spills
//     load_parts(rows, first)   the 16 bytes rows[16 * i] + first in the i-th part of 16 bytes, for every part
//     unpack_low, unpack_high      in every part of 16 bytes, the lower or upper 8 of a and b in turn

#pragma once

#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

// A number n from 0 to 255 is the signed byte n - 128.
template <class I>
struct Lane8 {
    using Isa = I;
    using V = typename Isa::V;
    static constexpr int kLanes = Isa::kBytes;
    static constexpr int32_t kMaxGap = 127;
    static constexpr int32_t kMaxCost = 127;
    static constexpr int32_t kLargest = 255;
    static V zero() { return Isa::splat8(-128); }
    static V cost(int32_t value) { return Isa::splat8(static_cast<int8_t>(value)); }
    static V add_score(V a, V b) { return Isa::add8(a, b); }
    static V subtract(V a, V b) { return Isa::sub8(a, b); }
    static V max(V a, V b) { return Isa::max8(a, b); }
    static bool any_greater(V a, V b) { return Isa::any_greater8(a, b); }
    static bool saturated(V a) { return Isa::any_greater8(a, Isa::splat8(126)); }
    static V shift(V a) { return Isa::shift8(a, -128); }
    static V residues(const uint8_t* from) { return Isa::load(from); }
    static V look_up(const int8_t* row, V codes) { return Isa::look_up(row, codes); }
    static V scores(const int8_t* from) { return Isa::load(from); }
    static void values(V a, int32_t* to) {
        int8_t lanes[kLanes];
        Isa::store(lanes, a);
        for (int i = 0; i < kLanes; ++i) {
            to[i] = lanes[i] == 127 ? kSaturated : lanes[i] + 128;
        }
    }
};

// A number n from 0 to 65,535 is the signed word n - 32,768.
template <class I>
struct Lane16 {
    using Isa = I;
    using V = typename Isa::V;
    static constexpr int kLanes = Isa::kBytes / 2;
    static constexpr int32_t kMaxGap = 32767;
    static constexpr int32_t kMaxCost = 32767;
    static constexpr int32_t kLargest = 65535;
    static V zero() { return Isa::splat16(-32768); }
    static V cost(int32_t value) { return Isa::splat16(static_cast<int16_t>(value)); }
    static V add_score(V a, V b) { return Isa::add16(a, b); }
    static V subtract(V a, V b) { return Isa::sub16(a, b); }
    static V max(V a, V b) { return Isa::max16(a, b); }
    static bool any_greater(V a, V b) { return Isa::any_greater16(a, b); }
    static bool saturated(V a) { return Isa::any_greater16(a, Isa::splat16(32766)); }
    static V shift(V a) { return Isa::shift16(a, -32768); }
    static V residues(const uint8_t* from) { return Isa::load(from); }
    static V look_up(const int8_t* row, V codes) { return Isa::widen16(Isa::look_up(row, codes)); }
    static V scores(const int8_t* from) { return Isa::widen16(Isa::load_half(from)); }
    static void values(V a, int32_t* to) {
        int16_t lanes[kLanes];
        Isa::store(lanes, a);
        for (int i = 0; i < kLanes; ++i) {
            to[i] = lanes[i] == 32767 ? kSaturated : lanes[i] + 32768;
        }
    }
};

// Plain integers; a score is at most 127 times the query's length, and the door refuses queries beyond 2^24 residues.
// E and F may fall below zero, but never by more than the cost of a gap's first residue.
template <class I>
struct Lane32 {
    using Isa = I;
    using V = typename Isa::V;
    static constexpr int kLanes = Isa::kBytes / 4;
    static constexpr int32_t kMaxGap = 32767;
    static constexpr int32_t kMaxCost = 2147483646;  // more than any score, and taken only from numbers of 0 and more
    static constexpr int32_t kLargest = 2147483647;
    static V zero() { return Isa::splat32(0); }
    static V cost(int32_t value) { return Isa::splat32(value); }
    static V add_score(V a, V b) { return Isa::max32(Isa::add32(a, b), zero()); }
    static V subtract(V a, V b) { return Isa::sub32(a, b); }
    static V max(V a, V b) { return Isa::max32(a, b); }
    static bool any_greater(V a, V b) { return Isa::any_greater32(a, b); }
    static bool saturated(V) { return false; }
    static V shift(V a) { return Isa::shift32(a, 0); }
    static V residues(const uint8_t* from) { return Isa::load(from); }
    static V look_up(const int8_t* row, V codes) { return Isa::widen32(Isa::look_up(row, codes)); }
    static V scores(const int8_t* from) { return Isa::widen32(Isa::load_quarter(from)); }
    static void values(V a, int32_t* to) { Isa::store(to, a); }
};

// A cost of any size. What a lane subtracts at a time is limited, so it goes in parts; a cost that no number of the lane
// survives is only said to be so.
template <class Lane>
class LargeCost {
    using V = typename Lane::V;

public:
    explicit LargeCost(int64_t cost) : out_of_range_(cost >= Lane::kLargest) {
        for (V& part : parts_) {
            const int64_t taken = cost < Lane::kMaxCost ? cost : Lane::kMaxCost;
            part = Lane::cost(static_cast<int32_t>(taken));
            cost -= taken;
        }
    }
    bool out_of_range() const { return out_of_range_; }
    V subtracted_from(V a) const {
        for (const V& part : parts_) {
            a = Lane::subtract(a, part);
        }
        return a;
    }

private:
    bool out_of_range_;
    V parts_[Lane::kLargest / Lane::kMaxCost + 1];
};

}  // namespace
}  // namespace swsearch::score
