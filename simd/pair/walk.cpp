// See walk.hpp.

#include "pair/walk.hpp"

#include <algorithm>
#include <limits>

namespace swsearch::pair {
namespace {

enum Decision : std::uint8_t { stop, diagonal, from_e, from_f, h_mask = 3, e_opened = 4, f_opened = 8 };

}  // namespace

void Walk::through(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdge& left) {
    if (pair_.costs.table != nullptr) {
        decide<true>(above, top_h, top_f, left);
    } else {
        decide<false>(above, top_h, top_f, left);
    }
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
    if (begun_) return;
    if (row_ == 0 && column_ > 0 && !pair_.ends.subject_free) push('D', column_), column_ = 0;
    if (column_ == 0 && row_ > 0 && !pair_.ends.query_free) push('I', row_), row_ = 0;
}

// Decisions of the rows above + 1 … row_ from their left edge to column_.
template <bool by_table>
void Walk::decide(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdge& left) {
    const std::size_t n_rows = row_ - above;
    const std::size_t last_group = (n_rows - 1) / left.group_rows;
    leftmost_ = left.column - last_group;
    width_ = column_ - leftmost_;
    decisions_.resize(n_rows * width_);
    h_.resize(width_);
    f_.resize(width_);
    std::copy(top_h, top_h + (column_ - left.column), h_.begin() + std::ptrdiff_t(last_group));
    std::copy(top_f, top_f + (column_ - left.column), f_.begin() + std::ptrdiff_t(last_group));
    const std::int32_t match = pair_.costs.match;
    const std::int32_t mismatch = pair_.costs.mismatch;
    const std::int32_t first = pair_.first;
    const std::int32_t extend = pair_.costs.gap_extend;
    const std::int32_t floor = pair_.ends.local ? 0 : std::numeric_limits<std::int32_t>::min();  // a path begins there
    const std::uint16_t* const subject = pair_.subject + leftmost_;
    std::int32_t corner = 0;
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t group = i / left.group_rows;
        const std::size_t begin = last_group - group;
        if (i % left.group_rows == 0) {
            corner = left.corner[group];
            if (group > 0) {  // the group above ends its left edge over the first column of this one
                h_[begin] = left.h[i - 1];
                f_[begin] = left.next_f[group - 1];
            }
        }
        std::uint8_t* const out = decisions_.data() + i * width_;
        const std::uint16_t letter = pair_.query[above + i];
        const std::int8_t* const scores = by_table ? pair_.costs.table + letter * pair_.costs.table_columns : nullptr;
        std::int32_t across = corner;
        std::int32_t before = left.h[i];
        std::int32_t e = left.next_e[i];
        corner = before;
        for (std::size_t x = begin; x < width_; ++x) {
            const std::int32_t f = f_[x];
            const std::uint16_t other = subject[x];
            const std::int32_t matched = across + (by_table ? scores[other] : letter == other ? match : mismatch);
            const std::int32_t now = std::max(std::max(matched, floor), std::max(e, f));
            const int from = now == matched ? diagonal : now == e ? from_e : from_f;
            const int opened_before = (e == before - first ? e_opened : 0) | (f == h_[x] - first ? f_opened : 0);
            out[x] = static_cast<std::uint8_t>((now == floor ? stop : from) | opened_before);
            across = h_[x];
            h_[x] = now;
            before = now;
            const std::int32_t opened = now - first;
            e = std::max(e - extend, opened);
            f_[x] = std::max(f - extend, opened);
        }
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
