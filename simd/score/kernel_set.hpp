// All kernels of one instruction set, as the record the dispatcher takes.

#pragma once

#include "score/lanes.hpp"
#include "score/many_subjects.hpp"
#include "score/one_subject.hpp"

namespace swsearch::score {
namespace {

// kVectors vectors go side by side in the kernel for many subjects with 8 bits: with 32 registers two hide each other's
// latency, with 16 they do not fit. The wider types see the few saturated subjects only, so they keep batches small.
template <class Isa, int kVectors>
constexpr Kernels kernel_set(const char* name) {
    using Many8 = ManySubjects<Lane8<Isa>, kVectors>;
    using Many16 = ManySubjects<Lane16<Isa>, 1>;
    using Many32 = ManySubjects<Lane32<Isa>, 1>;
    using One8 = OneSubject<Lane8<Isa>>;
    using One16 = OneSubject<Lane16<Isa>>;
    using One32 = OneSubject<Lane32<Isa>>;
    return Kernels{
        name,
        {Many8::kLanes, Many16::kLanes, Many32::kLanes},
        {One8::kLanes, One16::kLanes, One32::kLanes},
        {Lane8<Isa>::kMaxGap, Lane16<Isa>::kMaxGap, Lane32<Isa>::kMaxGap},
        {Lane8<Isa>::kLargest, Lane16<Isa>::kLargest, Lane32<Isa>::kLargest},
        {Many8::template score<false>, Many16::template score<false>, Many32::template score<false>},
        {Many8::scratch_bytes, Many16::scratch_bytes, Many32::scratch_bytes},
        Many8::template score<true>,
        {One8::score, One16::score, One32::score},
        {One8::scratch_bytes, One16::scratch_bytes, One32::scratch_bytes},
    };
}

}  // namespace
}  // namespace swsearch::score
