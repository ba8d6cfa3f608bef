// The interface of the kernels of the pair aligner: plain records that the strips and the translation units of the
// instruction sets (common/vectors.hpp) exchange. Inputs: the row above a strip and the strip's state. Outputs: the
// strip's lowest row, its new state and, on request, its best score.
//
// A strip consists of `lanes * rows` consecutive query rows: lane a has rows a * rows to a * rows + rows - 1. In step t
// lane a computes column t - kSkew * a: the diamond of docs/design/diamond.md, which explains the skew.

#pragma once

#include <stddef.h>
#include <stdint.h>

namespace swsearch::pair {

constexpr ptrdiff_t kSkew = 2;  // columns by which a lane lags behind the lane above it

// The operations of a call in addition to the computation of the cells.
enum Kind {
    kPlain,    // every lane has a column in every step
    kMasked,   // lanes whose column is outside 0 to columns - 1 retain their state: the triangles at the borders
    kTracked,  // as kMasked; also finds the first step and row in which a lane had its best allowed score
    kKinds
};

// The arguments of a call, which computes some steps. `lane` stands for int8_t, int16_t or int32_t; scores are relative
// to a base that the caller chooses. The "next" E and F are those of the neighbouring cells: the next E, which is E of
// the next column, is max(E - extend, H - first), and the next F is that of the next row. Therefore no value is ever
// minus infinity.
struct Steps {
    void* h;                 // lane [rows][lanes] H of each row in its last column
    void* e;                 // lane [rows][lanes] its next E
    void* diagonal_h;        // lane [lanes] H of the row above each lane, in the lane's last column
    void* previous_h;        // lane [lanes] H of each lane's last row, one column before its last
    void* f;                 // lane [lanes] next F of each lane's last row
    void* previous_f;        // lane [lanes] the same, one column before
    const void* query;       // lane [rows][lanes] letters, if letters are compared
    const void* subject[2];  // lane: letters of even and of odd columns, reversed; column c is subject[c & 1][-c / 2]
    ptrdiff_t from;          // the column of lane 0 in step 0
    const int8_t* scores;    // [step][rows][lanes] of this call, if a table gives them
    const void* top_h;       // lane [step] of this call: H of the row above lane 0
    const void* top_f;       // lane [step] next F of that row
    void* bottom_h;          // lane [step] H of the last lane's last row
    void* bottom_f;          // lane [step] its next F
    void* best;              // lane [lanes] largest H of each lane (local and kTracked)
    void* position;          // lane [lanes] (step - first_step) * rows + row in which it was first reached (kTracked)
    const void* allowed;     // lane [rows][lanes] -1 if a path may end in the row, else 0 (kTracked)
    ptrdiff_t first_step;
    ptrdiff_t columns;
    int32_t match;
    int32_t mismatch;
    int32_t first;   // cost of a gap's first letter
    int32_t extend;  // cost of each further letter
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
    size_t score_rows;  // rows that `transpose` takes; the rows of a strip are a multiple of it
    TransposeFunction transpose;
    StepsFunction steps[2][2][2][kKinds];  // [local][affine][letters are compared][kind]; null if there is none

    size_t strip() const { return static_cast<size_t>(lanes) * static_cast<size_t>(rows); }
    // Columns by which the last lane lags behind the first.
    size_t lag() const { return static_cast<size_t>(kSkew * (lanes - 1)); }
};

struct Kernels {
    Width bytes;   // saturating 8-bit lanes: local problems, kPlain and kMasked only
    Width narrow;  // 16-bit lanes
    Width wide;    // 32-bit lanes
};

}  // namespace swsearch::pair
