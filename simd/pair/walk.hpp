// The path from its end backwards, a block of the matrix at a time: canonical decisions from true values, and the steps
// they give.
//
// A block is known by the row of nodes above it and by what its rows have at their left. Its left edge is a column, or a
// stair that goes left by one column a group of rows, as the lanes of a diamond end.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "pair/pair.hpp"

namespace swsearch::pair {

// What the rows of a block have at their left: `h` and `next_e` of each row at its own column. The first `group_rows` rows
// begin right of `column`, each further group one column further left.
struct LeftEdge {
    std::size_t column;
    std::size_t group_rows;
    const std::int32_t* h;
    const std::int32_t* next_e;
    const std::int32_t* corner;  // of each group: H of the node above its first row, at its column
    const std::int32_t* next_f;  // of each group: next F of its last row, at its column; of all but the last group in use
};

class Walk {
public:
    Walk(const Pair& pair, std::size_t row, std::size_t column) : pair_(pair), row_(row), column_(column) {}

    // The node that the path has come to.
    std::size_t row() const { return row_; }
    std::size_t column() const { return column_; }
    // Whether there is nothing left but the border of the matrix, or not even that.
    bool done() const { return begun_ || row_ == 0 || column_ == 0; }

    // Goes on through the rows from above + 1 on until the path leaves the block at its top or at its left, or begins.
    // `top_h` and `top_f` are H and next F of the row above in columns left.column + 1, … ; left.column is less than column().
    void through(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdge& left);

    // What is left on the border of the matrix.
    void finish();

    // 'M', 'D', 'I' with lengths, from the start of the path.
    std::vector<std::pair<char, std::size_t>> runs() const { return {runs_.rbegin(), runs_.rend()}; }

private:
    enum State { in_h, in_e, in_f };

    void decide(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdge& left);
    void push(char operation, std::size_t length);

    const Pair& pair_;
    std::size_t row_;
    std::size_t column_;
    State state_ = in_h;
    bool begun_ = false;  // the path's first cell is reached
    std::vector<std::pair<char, std::size_t>> runs_;
    // Of the block at hand, whose first column is leftmost_ + 1.
    std::size_t leftmost_ = 0;
    std::size_t width_ = 0;
    std::vector<std::uint8_t> decisions_;
    std::vector<std::int32_t> h_, next_h_, f_, e_, matched_;
};

}  // namespace swsearch::pair
