// The path from its end backwards, one block of the matrix at a time: canonical decisions from exact values, and the
// steps that follow from them.
//
// A block is given by the row of nodes above it and by the values at the left of its rows. Its left edge is a column,
// or a staircase that goes left by one column per group of rows, as the lanes of a diamond end.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pair/pair.hpp"

namespace swsearch::pair {

// The values at the left of a block: `h` and `next_e` of each row in its own column. The first `group_rows` rows begin
// right of `column`, each further group one column further left.
struct LeftEdges {
    std::size_t column;
    std::size_t group_rows;
    const std::int32_t* h;
    const std::int32_t* next_e;
    const std::int32_t* corner;  // of each group: H of the node above its first row, in its column
    const std::int32_t* next_f;  // of each group but the last in use: next F of its last row, in its column
};

class Walk {
public:
    // Begins at the path's end.
    Walk(const Pair& pair, std::size_t row, std::size_t column) : pair_(pair), walk_(row, column) {}

    // The current node.
    std::size_t row() const { return walk_.row(); }
    std::size_t column() const { return walk_.column(); }
    // Whether at most the border of the matrix is left.
    bool done() const { return started_ || row() == 0 || column() == 0; }

    // Follows the path through the rows from above + 1 on until it leaves the block at its top or its left, or starts.
    // `top_h` and `top_f` are H and next F of the row above in columns left.column + 1 and so on; left.column is less
    // than column().
    void through(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdges& left);

    // Follows what is left on the border of the matrix.
    void finish();

    // From the start of the path.
    std::vector<Run> runs() const { return walk_.runs(); }

private:
    void decide(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdges& left);

    const Pair& pair_;
    Traceback walk_;
    bool started_ = false;  // the path's first cell is reached
    // Of the current block, whose first column is leftmost_ + 1.
    std::size_t leftmost_ = 0;
    std::size_t width_ = 0;
    std::vector<std::uint8_t> decisions_;
    std::vector<std::int32_t> h_, next_h_, f_, e_, paired_;
};

}  // namespace swsearch::pair
