// The decisions of the cells of a block, computed row by row from the values at its edges, and the traceback through
// them.

#include "pair/walk.hpp"

#include <algorithm>
#include <limits>

namespace swsearch::pair {
namespace {

struct GapCosts {
    std::int32_t first;
    std::int32_t extend;
};

// Writes the decisions of `count` cells of a row, in passes of which only the second has a dependency between cells.
// `above` and `h` are H of the row above and of this row, beginning one column further left; h[0] is given, the other
// entries are computed. `f` is F of this row and is replaced by that of the next; `next_e` is E of the first cell.
// `paired` contains the scores of the letters and is replaced by H by a pair. H is at least `floor`.
void decide_row(std::size_t count, std::int32_t floor, GapCosts gap, std::int32_t next_e,
                const std::int32_t* __restrict above, std::int32_t* __restrict h, std::int32_t* __restrict f,
                std::int32_t* __restrict e, std::int32_t* __restrict paired, std::uint8_t* __restrict out) {
    for (std::size_t x = 0; x < count; ++x) paired[x] += above[x];
    for (std::size_t x = 0; x < count; ++x) {
        e[x] = next_e;
        // H without E: if E is the largest term, opening a gap is not better than extending E.
        const std::int32_t other = std::max(std::max(paired[x], floor), f[x]);
        next_e = std::max(next_e - gap.extend, other - gap.first);
    }
    for (std::size_t x = 0; x < count; ++x) {
        const std::int32_t now = std::max(std::max(paired[x], floor), std::max(e[x], f[x]));
        const int from = now == paired[x] ? kDiagonal : now == e[x] ? kFromE : kFromF;
        const int opened_before = f[x] == above[x + 1] - gap.first ? kFOpened : 0;
        out[x] = static_cast<std::uint8_t>((now == floor ? kStop : from) | opened_before);
        h[x + 1] = now;
        f[x] = std::max(f[x] - gap.extend, now - gap.first);
    }
    for (std::size_t x = 0; x < count; ++x) out[x] |= e[x] == h[x] - gap.first ? kEOpened : 0;
}

// The scores of a letter against some letters of the other sequence.
void compare_row(std::size_t count, std::uint16_t letter, const std::uint16_t* __restrict others, std::int32_t match,
                 std::int32_t mismatch, std::int32_t* __restrict scores) {
    for (std::size_t x = 0; x < count; ++x) scores[x] = letter == others[x] ? match : mismatch;
}

}  // namespace

void Walk::through(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdges& left) {
    decide(above, top_h, top_f, left);
    while (!started_ && row() > above && column() + (row() - above - 1) / left.group_rows > left.column) {
        started_ = !walk_.follow(decisions_[(row() - above - 1) * width_ + (column() - leftmost_ - 1)]);
    }
}

void Walk::finish() {
    if (started_ || pair_.boundary.local) return;  // a local path has no part on the border
    if (row() == 0 && column() > 0 && !pair_.boundary.free(kSubjectStart)) walk_.subject_alone(column());
    if (column() == 0 && row() > 0 && !pair_.boundary.free(kQueryStart)) walk_.query_alone(row());
}

// Computes the decisions of the rows above + 1 to row(), from their left edge to column().
void Walk::decide(std::size_t above, const std::int32_t* top_h, const std::int32_t* top_f, const LeftEdges& left) {
    const std::size_t n_rows = row() - above;
    const std::size_t last_group = (n_rows - 1) / left.group_rows;
    leftmost_ = left.column - last_group;
    width_ = column() - leftmost_;
    decisions_.resize(n_rows * width_);
    // Entry x of each vector is the node in column leftmost_ + 1 + x; those of H have one more entry at the left.
    for (std::vector<std::int32_t>* row : {&h_, &next_h_, &f_, &e_, &paired_}) row->resize(width_ + 1);
    std::copy(top_h, top_h + (column() - left.column), h_.data() + 1 + last_group);
    std::copy(top_f, top_f + (column() - left.column), f_.data() + last_group);
    const std::int32_t floor =
        pair_.boundary.local ? 0 : std::numeric_limits<std::int32_t>::min();  // a path starts there
    const GapCosts gap{pair_.first, pair_.gap_extend};
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t group = i / left.group_rows;
        const std::size_t begin = last_group - group;
        const std::size_t count = width_ - begin;
        if (i % left.group_rows == 0) {  // the left edge of the group above ends above the first column of this one
            h_[begin] = left.corner[group];
            if (group > 0) f_[begin] = left.next_f[group - 1];
        }
        next_h_[begin] = left.h[i];
        const std::uint16_t letter = pair_.query[above + i];
        std::int32_t* const paired = paired_.data() + begin;
        if (pair_.table != nullptr) {
            const std::int8_t* const scores = pair_.scores(letter) + leftmost_ + begin;
            std::copy(scores, scores + count, paired);
        } else {
            compare_row(count, letter, pair_.subject + leftmost_ + begin, pair_.match, pair_.mismatch, paired);
        }
        decide_row(count, floor, gap, left.next_e[i], h_.data() + begin, next_h_.data() + begin, f_.data() + begin,
                   e_.data() + begin, paired, decisions_.data() + i * width_ + begin);
        h_.swap(next_h_);
    }
}

}  // namespace swsearch::pair
