// The forward pass: optimal local score, where it ends, and the best score of each group of subject columns.
//
// First of the three steps of an alignment (docs/design/traceback.md). The kernels differ in instruction set and lane
// width alone; all give the same numbers.

#pragma once

#include <cstddef>
#include <cstdint>

namespace swsearch::align {

// The state of one forward pass, between calls that each do some columns. Plain data: it crosses into files that are
// compiled for other instruction sets, which therefore see no inline function of the rest of the program.
struct ForwardState {
    const std::int8_t* profile;  // striped for the kernel's lanes: [32][segments][lanes]; row r is lane r / segments
    std::size_t segments;
    const std::uint8_t* subject;
    std::int32_t first;   // cost of a gap's first residue
    std::int32_t extend;  // cost of each further one
    void* h[3];           // columns of H, striped: last, kept, free; 64-byte aligned
    void* e;              // E of the last column; 64-byte aligned
    int last;             // which of h holds the column before
    int kept;             // which of h holds the first column that reached `best`
    std::int32_t best;
    std::size_t best_column;  // 0-based column of `kept`
    std::int32_t* column_best;  // [columns >> shift + 1] largest H of each group of columns, or null
    unsigned shift;
    bool overflow;  // the lanes were too narrow: nothing of this state may be used
};

// Does columns from … to - 1.
using ForwardKernel = void (*)(ForwardState& state, std::size_t from, std::size_t to);

struct ForwardKernels {
    const char* name;
    ForwardKernel narrow;  // 16-bit lanes; sets `overflow` where scores leave them
    int narrow_lanes;
    ForwardKernel wide;  // 32-bit lanes
    int wide_lanes;
};

extern const ForwardKernels forward_scalar;
#if defined(__x86_64__)
extern const ForwardKernels forward_sse41;
extern const ForwardKernels forward_avx2;
extern const ForwardKernels forward_avx512;
#endif

// The kernels of the instruction set with that name ("auto": the widest of this machine); null where it cannot run.
const ForwardKernels* forward_kernels(const char* name);

// Largest score that 16-bit lanes hold: one more column adds at most 127.
constexpr std::int32_t narrow_limit = 32767 - 127;

// Whether these gap costs fit 16-bit lanes: E is never below -first, and one more step must not wrap.
constexpr bool narrow_gaps(std::int32_t first, std::int32_t extend) { return first + extend <= 32000; }

}  // namespace swsearch::align
