// The door between the pair aligner and its kernels: what one call computes, and the kernels of each instruction set.
//
// A strip is `lanes · rows` consecutive query rows: lane a holds the rows a·rows … a·rows + rows - 1. In step t lane a
// does column t - skew · a, so no lane needs what another one does in the same step: the diamond of
// docs/design/diamond.md, `lanes` processing units wide. With a skew of 2 it does not even need the step before, so a
// core works on two steps at once and the chain of F down a lane's rows does not hold it up.

#pragma once

#include <cstddef>
#include <cstdint>

namespace swsearch::pair {

constexpr std::ptrdiff_t skew = 2;  // columns that a lane is behind the one above it

// What a call does besides computing the cells.
enum Kind {
    plain,    // every lane has a column in every step
    masked,   // lanes whose column is outside 0 … columns - 1 keep their state: the triangles at the borders
    tracked,  // as masked; remembers the first step and row at which a lane had its best allowed score
    n_kinds
};

// Plain data: it crosses into files that are compiled for other instruction sets. `lane` stands for int8_t, int16_t or
// int32_t. Scores are relative to a base that the caller knows. "Next" gaps are those that a neighbour may take: E of the next
// column is max(E - extend, H - first), F of the next row likewise, so no value is ever minus infinity.
struct Steps {
    void* h;             // lane [rows][lanes] H of each row at its last column
    void* e;             // lane [rows][lanes] next E
    void* before;        // lane [lanes] H of the row above each lane, at the lane's last column
    void* older;         // lane [lanes] H of each lane's last row, a column before its last
    void* f;             // lane [lanes] next F of each lane's last row
    void* older_f;       // lane [lanes] the same, a column before
    const void* query;   // lane [rows][lanes] letters, where letters are compared
    const void* subject[2];  // lane: letters of even and of odd columns backwards; that of column c is subject[c & 1][-c / 2]
    std::ptrdiff_t from;     // the column of lane 0 in step 0
    const std::int8_t* scores;  // [step][rows][lanes] of this call, where a table gives them
    const void* top_h;   // lane [step] of this call: H of the row above lane 0
    const void* top_f;   // lane [step] next F of that row
    void* bottom_h;      // lane [step] H of the last lane's last row
    void* bottom_f;      // lane [step] its next F
    void* best;          // lane [lanes] largest H of each lane (local and tracked)
    void* place;         // lane [lanes] (step - first_step) · rows + row where it was first reached (tracked)
    const void* allowed;  // lane [rows][lanes] -1 where a path may end, else 0 (tracked)
    std::ptrdiff_t first_step;
    std::ptrdiff_t columns;
    std::int32_t match;
    std::int32_t mismatch;
    std::int32_t first;
    std::int32_t extend;
    std::int32_t zero;  // where a local path begins
};

// Does the steps from … to - 1.
using StepsFunction = void (*)(Steps& steps, std::ptrdiff_t from, std::ptrdiff_t to);

// Scores in the order of the kernels: out[step · stride + line] = lines[line][step] for the lines of a Width and 16 steps.
constexpr std::size_t steps_transposed = 16;
constexpr std::size_t most_lines = 64;
using TransposeFunction = void (*)(const std::int8_t* const* lines, std::int8_t* out, std::size_t stride);

struct Width {
    int lanes;
    int rows;
    std::size_t lines;  // that `transpose` takes; a strip is a multiple
    TransposeFunction transpose;
    StepsFunction steps[2][2][2][n_kinds];  // [local][affine][letters are compared][kind]; null where there is none

    std::size_t strip() const { return static_cast<std::size_t>(lanes) * static_cast<std::size_t>(rows); }
    // Columns that the last lane is behind the first.
    std::size_t behind() const { return static_cast<std::size_t>(skew * (lanes - 1)); }
};

struct Kernels {
    const char* name;
    Width bytes;   // saturating 8-bit lanes: local, plain and masked only
    Width narrow;  // 16-bit lanes
    Width wide;    // 32-bit lanes
};

extern const Kernels kernels_scalar;
#if defined(__x86_64__)
extern const Kernels kernels_sse41;
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

// The kernels of the instruction set with that name ("auto": the widest of this machine); null where it cannot run.
const Kernels* kernels_named(const char* name);

}  // namespace swsearch::pair
