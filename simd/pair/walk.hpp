// The traceback of a path from its end, one block of the matrix at a time. Inputs: the exact values at the edges of
// each block. Output: the runs of the path. The canonical decisions of a block's cells are computed from these values,
// and the path follows them.
//
// A block is given by the row of nodes above it and by the values at the left of its rows. Its left edge is a column,
// or a staircase that moves one column to the left per group of rows, as the lanes of a diamond do at its end.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pair/pair.hpp"

namespace swsearch::pair {

// The values at the left of a block: `h` and `next_e` of each row in its own column. The first `group_rows` rows begin
// to the right of `column`, and each further group begins one column further left.
struct LeftEdges {
    std::size_t column;
    std::size_t group_rows;
    const std::int32_t* h;
    const std::int32_t* next_e;
    const std::int32_t* corner;  // for each group: H of the node above its first row, in its column
    const std::int32_t* next_f;  // for each group except the last in use: next F of its last row, in its column
};

class Walk {
   public:
    // row, column: the path's end.
    Walk(const Pair& pair, std::size_t row, std::size_t column) : pair_(pair), walk_(row, column) {}

    // The current node.
    std::size_t row() const { return walk_.row(); }
    std::size_t column() const { return walk_.column(); }
    // Whether only the border of the matrix, or no cell, is left.
    bool done() const { return started_ || row() == 0 || column() == 0; }

    // Follows the path back through the rows from above + 1 on until it leaves the block at its top or its left edge,
    // or reaches its start. `top_h` and `top_f` are H and next F of the row above from column left.column + 1 on;
    // left.column is less than column().
    void through(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdges& left);

    // Follows the rest of the path on the border of the matrix.
    void finish();

    // The runs from the start of the path.
    std::vector<Run> runs() const { return walk_.runs(); }

   private:
    void decide(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdges& left);

    const Pair& pair_;
    Traceback walk_;
    bool started_ = false;  // the path's first cell was reached
    // Values of the current block, whose first column is leftmost_ + 1.
    std::size_t leftmost_ = 0;
    std::size_t width_ = 0;
    std::vector<std::uint8_t> decisions_;
    std::vector<std::int32_t> h_, next_h_, f_, e_, paired_;
};

}  // namespace swsearch::pair
