// Steps of one strip: translation between the absolute scores of rows and the lanes of a kernel, pieces with and without
// triangles, and ends. One a thread.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "pair/pair.hpp"

namespace swsearch::pair {

// What a strip hands from tile to tile: the rightmost cells of each row, as lanes (kernel.hpp). Belongs to one strip.
template <class Lane>
struct StripState {
    std::vector<Lane> h;
    std::vector<Lane> e;
    std::vector<Lane> before;
    std::vector<Lane> older;
    std::vector<Lane> f;
    std::vector<Lane> older_f;
    std::int32_t base = 0;
    std::vector<Lane> query;  // the strip's letters, in the order of its lanes
    std::vector<const std::int8_t*> lines;  // or where a table scores, their lines, at the column of step 0
};

// Which part of a strip is done: columns from + 1 … from + count in steps begin … end - 1.
struct Part {
    std::size_t from;
    std::size_t count;
    std::size_t begin;
    std::size_t end;
};

template <class Lane>
class StripRunner {
public:
    StripRunner(const Pair& pair, const Width& width);

    // The state before the first column: left_h(i), next_e(i) of the node in query row i of the strip (0 is its first),
    // and H of the node above the first.
    void begin(StripState<Lane>& state, std::int32_t corner, const std::int32_t* left_h, const std::int32_t* next_e) const;

    // The state on the border of the matrix.
    void begin_at_border(StripState<Lane>& state, std::size_t strip) const;

    // The state as Cut::state_bytes bytes, and back.
    void save(const StripState<Lane>& state, std::byte* to) const;
    void restore(StripState<Lane>& state, const std::byte* from) const;

    // H and next E of the last column that each row has done.
    void column(const StripState<Lane>& state, std::int32_t* h, std::int32_t* next_e) const;

    // Does a part. The rows are those of columns from + 1, …; `bottom_h` may be `top_h`, or null. Where ends are looked for,
    // `best` is raised to the best one of the part, `known` being a score that is reached elsewhere; rows that may hold an
    // end are `allowed_from` … allowed_to - 1 of the query.
    void run(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
             const std::int32_t* top_f, std::int32_t* bottom_h, std::int32_t* bottom_f);
    void run_local(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t* row_h, std::int32_t* row_f,
                   std::int32_t known, Best& best);
    void run_tracked(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
                     const std::int32_t* top_f, std::int32_t* bottom_h, std::int32_t* bottom_f, std::size_t allowed_from,
                     std::size_t allowed_to, Best& best);

private:
    static constexpr bool bytes = sizeof(Lane) == 1;
    static constexpr bool narrow = sizeof(Lane) == 2;
    static constexpr std::int32_t byte_base = 128;  // a lane of -128 is a score of 0
    static constexpr std::size_t steps_a_block = 64;  // scores from a table are laid out for this many steps at a time

    std::size_t place(std::size_t row) const { return row % n_rows_ * n_lanes_ + row / n_rows_; }
    void rebase(StripState<Lane>& state, std::int32_t base) const;
    void prepare(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
                 const std::int32_t* top_f);
    void steps(StripState<Lane>& state, std::size_t strip, const Part& part, bool with_ends);
    void find_ends(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t score, Best& best);
    void finish(const StripState<Lane>& state, const Part& part, std::int32_t* bottom_h, std::int32_t* bottom_f) const;
    void lay_out_letters(StripState<Lane>& state, std::size_t strip) const;
    void lay_out_scores(const StripState<Lane>& state, std::size_t column, std::size_t n_steps);

    const Pair& pair_;
    const Width& width_;
    const std::size_t n_lanes_;
    const std::size_t n_rows_;
    const std::size_t behind_;
    const StepsFunction* const functions_;
    std::vector<Lane> top_h_, top_f_, bottom_h_, bottom_f_;
    std::vector<Lane> best_, place_, allowed_;
    std::vector<std::int8_t> scores_;
    StripState<Lane> saved_;
};

extern template class StripRunner<std::int8_t>;
extern template class StripRunner<std::int16_t>;
extern template class StripRunner<std::int32_t>;

}  // namespace swsearch::pair
