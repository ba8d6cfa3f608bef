// See walk.hpp.

#include "pair/walk.hpp"

#include <algorithm>
#include <limits>

namespace swsearch::pair {
namespace {

enum Decision : std::uint8_t { stop, diagonal, from_e, from_f, h_mask = 3, e_opened = 4, f_opened = 8 };

struct GapCosts {
    std::int32_t first;
    std::int32_t extend;
};

// Decisions of `count` cells side by side, in three passes, of which only the second has a chain. `above` and `h` are H of the
// row above and of this one from one column further left on: h[0] is given, the rest is found. `f` is this row's F and becomes
// the next one's; `next_e` is E of the first cell; `matched` comes as the scores of the letters. H is not below `floor`.
void decide_row(std::size_t count, std::int32_t floor, GapCosts costs, std::int32_t next_e, const std::int32_t* __restrict above,
                std::int32_t* __restrict h, std::int32_t* __restrict f, std::int32_t* __restrict e,
                std::int32_t* __restrict matched, std::uint8_t* __restrict out) {
    for (std::size_t x = 0; x < count; ++x) matched[x] += above[x];
    for (std::size_t x = 0; x < count; ++x) {
        e[x] = next_e;
        // H without E: a gap that is opened where E is the best is no better than E's, extended.
        const std::int32_t other = std::max(std::max(matched[x], floor), f[x]);
        next_e = std::max(next_e - costs.extend, other - costs.first);
    }
    for (std::size_t x = 0; x < count; ++x) {
        const std::int32_t now = std::max(std::max(matched[x], floor), std::max(e[x], f[x]));
        const int from = now == matched[x] ? diagonal : now == e[x] ? from_e : from_f;
        const int opened_before = f[x] == above[x + 1] - costs.first ? f_opened : 0;
        out[x] = static_cast<std::uint8_t>((now == floor ? stop : from) | opened_before);
        h[x + 1] = now;
        f[x] = std::max(f[x] - costs.extend, now - costs.first);
    }
    for (std::size_t x = 0; x < count; ++x) out[x] |= e[x] == h[x] - costs.first ? e_opened : 0;
}

// Scores of a letter against some of the other sequence's.
void compare_row(std::size_t count, std::uint16_t letter, const std::uint16_t* __restrict others, std::int32_t match,
                 std::int32_t mismatch, std::int32_t* __restrict scores) {
    for (std::size_t x = 0; x < count; ++x) scores[x] = letter == others[x] ? match : mismatch;
}

}  // namespace

void Walk::through(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdge& left) {
    decide(above, top_h, top_f, left);
    while (row_ > above && column_ + (row_ - above - 1) / left.group_rows > left.column) {
        const std::uint8_t cell = decisions_[(row_ - above - 1) * width_ + (column_ - leftmost_ - 1)];
        if (state_ == in_h) {
            switch (cell & h_mask) {
                case stop: begun_ = true; return;
                case diagonal: push('M', 1); --row_; --column_; break;
                case from_e: state_ = in_e; break;
                default: state_ = in_f; break;
            }
        } else if (state_ == in_e) {
            push('D', 1);
            if (cell & e_opened) state_ = in_h;
            --column_;
        } else {
            push('I', 1);
            if (cell & f_opened) state_ = in_h;
            --row_;
        }
    }
}

void Walk::finish() {
    if (begun_ || pair_.ends.local) return;  // a local path has nothing on the border
    if (row_ == 0 && column_ > 0 && !pair_.ends.subject_free) push('D', column_), column_ = 0;
    if (column_ == 0 && row_ > 0 && !pair_.ends.query_free) push('I', row_), row_ = 0;
}

// Decisions of the rows above + 1 … row_ from their left edge to column_.
void Walk::decide(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdge& left) {
    const std::size_t n_rows = row_ - above;
    const std::size_t last_group = (n_rows - 1) / left.group_rows;
    leftmost_ = left.column - last_group;
    width_ = column_ - leftmost_;
    decisions_.resize(n_rows * width_);
    // Entry x of each row is the node of column leftmost_ + 1 + x; the rows of H have one more at the left.
    for (std::vector<std::int32_t>* row : {&h_, &next_h_, &f_, &e_, &matched_}) row->resize(width_ + 1);
    std::copy(top_h, top_h + (column_ - left.column), h_.data() + 1 + last_group);
    std::copy(top_f, top_f + (column_ - left.column), f_.data() + last_group);
    const std::int32_t floor = pair_.ends.local ? 0 : std::numeric_limits<std::int32_t>::min();  // a path begins there
    const GapCosts costs{pair_.first, pair_.costs.gap_extend};
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t group = i / left.group_rows;
        const std::size_t begin = last_group - group;
        const std::size_t count = width_ - begin;
        if (i % left.group_rows == 0) {  // the group above ends its left edge over the first column of this one
            h_[begin] = left.corner[group];
            if (group > 0) f_[begin] = left.next_f[group - 1];
        }
        next_h_[begin] = left.h[i];
        const std::uint16_t letter = pair_.query[above + i];
        std::int32_t* const matched = matched_.data() + begin;
        if (pair_.costs.table != nullptr) {
            const std::int8_t* const scores = pair_.line(letter) + leftmost_ + begin;
            std::copy(scores, scores + count, matched);
        } else {
            compare_row(count, letter, pair_.subject + leftmost_ + begin, pair_.costs.match, pair_.costs.mismatch, matched);
        }
        decide_row(count, floor, costs, left.next_e[i], h_.data() + begin, next_h_.data() + begin, f_.data() + begin,
                   e_.data() + begin, matched, decisions_.data() + i * width_ + begin);
        h_.swap(next_h_);
    }
}

void Walk::push(char operation, std::size_t length) {
    if (!runs_.empty() && runs_.back().first == operation) {
        runs_.back().second += length;
    } else {
        runs_.emplace_back(operation, length);
    }
}

}  // namespace swsearch::pair
