// What the kernels of the pair aligner take and give: plain records between the strips and the translation units of the
// instruction sets (common/vectors.hpp).
//
// A strip is `lanes * rows` consecutive query rows: lane a holds the rows a * rows to a * rows + rows - 1. In step t
// lane a computes column t - kSkew * a, so that no lane needs what another one computes in the same step: the diamond
// of docs/design/diamond.md, `lanes` processing units wide. With a skew of 2 it does not need the step before either,
// so a core works on two steps at once, and the dependency of F down the rows of a lane does not delay it.

#pragma once

#include <stddef.h>
#include <stdint.h>

namespace swsearch::pair {

constexpr ptrdiff_t kSkew = 2;  // columns that a lane is behind the one above it

// What a call does besides computing the cells.
enum Kind {
    kPlain,    // every lane has a column in every step
    kMasked,   // lanes whose column is outside 0 to columns - 1 keep their state: the triangles at the borders
    kTracked,  // as kMasked; also finds the first step and row in which a lane had its best allowed score
    kKinds
};

// A call computes some steps. `lane` stands for int8_t, int16_t or int32_t; scores are relative to a base that the
// caller chooses. "Next" E and F are those that a neighbour may take: E of the next column is max(E - extend, H -
// first), F of the next row likewise, so no value is ever minus infinity.
struct Steps {
    void* h;              // lane [rows][lanes] H of each row in its last column
    void* e;              // lane [rows][lanes] its next E
    void* diagonal_h;     // lane [lanes] H of the row above each lane, in the lane's last column
    void* previous_h;     // lane [lanes] H of each lane's last row, one column before its last
    void* f;              // lane [lanes] next F of each lane's last row
    void* previous_f;     // lane [lanes] the same, one column before
    const void* query;    // lane [rows][lanes] letters, where letters are compared
    const void* subject[2];  // lane: letters of even and of odd columns, backwards; column c is subject[c & 1][-c / 2]
    ptrdiff_t from;       // the column of lane 0 in step 0
    const int8_t* scores;    // [step][rows][lanes] of this call, where a table gives them
    const void* top_h;    // lane [step] of this call: H of the row above lane 0
    const void* top_f;    // lane [step] next F of that row
    void* bottom_h;       // lane [step] H of the last lane's last row
    void* bottom_f;       // lane [step] its next F
    void* best;           // lane [lanes] largest H of each lane (local and kTracked)
    void* position;       // lane [lanes] (step - first_step) * rows + row in which it was first reached (kTracked)
    const void* allowed;  // lane [rows][lanes] -1 where a path may end, else 0 (kTracked)
    ptrdiff_t first_step;
    ptrdiff_t columns;
    int32_t match;
    int32_t mismatch;
    int32_t first;   // cost of a gap's first letter
    int32_t extend;  // and of each further one
    int32_t zero;    // the score 0, with which a local path begins
};

// Computes steps from to to - 1.
using StepsFunction = void (*)(Steps& steps, ptrdiff_t from, ptrdiff_t to);

// Reorders scores: out[step * stride + i] = rows[i][step] for Width::score_rows rows and 16 steps.
using TransposeFunction = void (*)(const int8_t* const* rows, int8_t* out, size_t stride);
constexpr size_t kTransposedSteps = 16;
constexpr size_t kMaxScoreRows = 64;

// The kernels with lanes of one width.
struct Width {
    int lanes;
    int rows;
    size_t score_rows;  // that `transpose` takes; the rows of a strip are a multiple of it
    TransposeFunction transpose;
    StepsFunction steps[2][2][2][kKinds];  // [local][affine][letters are compared][kind]; null where there is none

    size_t strip() const { return static_cast<size_t>(lanes) * static_cast<size_t>(rows); }
    // Columns that the last lane is behind the first.
    size_t lag() const { return static_cast<size_t>(kSkew * (lanes - 1)); }
};

struct Kernels {
    Width bytes;   // saturating 8-bit lanes: local problems, kPlain and kMasked only
    Width narrow;  // 16-bit lanes
    Width wide;    // 32-bit lanes
};

}  // namespace swsearch::pair
