// All score kernels of one instruction set. This file instantiates the kernels for many subjects and for one subject
// with lanes of each width, and the kernels for bounds with lanes of 8 bits, and defines their table (kernel.hpp).

#include "score/lanes.hpp"
#include "score/many_subjects.hpp"
#include "score/one_subject.hpp"

namespace swsearch::score {
namespace {

// The kernel for many subjects uses two vectors at a time if there are 32 registers: they hide each other's latency,
// but with 16 registers they do not fit. Lanes of 16 and 32 bits compute only the few saturated subjects, so their
// batches are small.
constexpr int kVectors8 = Vectors::kRegisters >= 32 ? 2 : 1;

template <bool kOnePort, bool kWraps>
using Many8 = ManySubjects<ScoreLanes<int8_t, kOnePort, kWraps>, kVectors8>;
using Many16 = ManySubjects<ScoreLanes<int16_t>, 1>;
using Many32 = ManySubjects<ScoreLanes<int32_t>, 1>;
using One8 = OneSubject<ScoreLanes<int8_t>>;
using One16 = OneSubject<ScoreLanes<int16_t>>;
using One32 = OneSubject<ScoreLanes<int32_t>>;

template <bool kOnePort, bool kWraps>
constexpr Kernels kernels(const Kernels* one_port, const Kernels* wrapping) {
    using Bytes = Many8<kOnePort, kWraps>;
    return {
        {Bytes::kLanes, Many16::kLanes, Many32::kLanes},
        {One8::kLanes, One16::kLanes, One32::kLanes},
        {ScoreLanes<int8_t>::kMaxGap, ScoreLanes<int16_t>::kMaxGap, ScoreLanes<int32_t>::kMaxGap},
        {ScoreLanes<int8_t>::kLargest, ScoreLanes<int16_t>::kLargest, ScoreLanes<int32_t>::kLargest},
        {Bytes::template largest<0>(), Many16::largest<0>(), Many32::largest<0>()},
        {Bytes::template score<0>, Many16::score<0>, Many32::score<0>},
        {Bytes::scratch_bytes, Many16::scratch_bytes, Many32::scratch_bytes},
        {Bytes::template score<kBandSizes[0]>, Bytes::template score<kBandSizes[1]>,
         Bytes::template score<kBandSizes[2]>},
        {Bytes::template largest<kBandSizes[0]>(), Bytes::template largest<kBandSizes[1]>(),
         Bytes::template largest<kBandSizes[2]>()},
        {One8::score, One16::score, One32::score},
        {One8::scratch_bytes, One16::scratch_bytes, One32::scratch_bytes},
        one_port,
        wrapping,
    };
}

// Only vectors of 512 bits can have one port for these operations. All processors that have them without VBMI do.
#ifdef __AVX512VBMI__
constexpr bool kHasVbmi = true;
#else
constexpr bool kHasVbmi = false;
#endif
constexpr bool kMayHaveOnePort = Vectors::kBytes == 64;
constexpr bool kAlwaysHasOnePort = kMayHaveOnePort && !kHasVbmi;
constexpr Kernels kOnePortKernels = kernels<kMayHaveOnePort, false>(nullptr, nullptr);
// Only processors with vectors of 256 bits have a further port for additions that wrap.
constexpr bool kMayWrap = Vectors::kBytes >= 32 && Vectors::kBytes <= 64;
constexpr Kernels kWrappingKernels = kernels<kMayHaveOnePort, kMayWrap>(nullptr, nullptr);

}  // namespace

extern const Kernels SWSEARCH_KERNELS;
const Kernels SWSEARCH_KERNELS = kernels<kAlwaysHasOnePort, false>(kMayHaveOnePort ? &kOnePortKernels : nullptr,
                                                                   kMayWrap ? &kWrappingKernels : nullptr);

}  // namespace swsearch::score
