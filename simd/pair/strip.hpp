// The computation of one strip by the kernels of one lane width. It converts between the absolute scores of rows and
// the lanes of a kernel, divides a part of the strip into steps with and without masks, and finds ends. Inputs: the row
// above and the strip's state. Outputs: the lowest row, the new state and, on request, the best end.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/aligned.hpp"
#include "pair/pair.hpp"

namespace swsearch::pair {

// The state that one tile of a strip passes to the next: the rightmost cells of each row, as lanes (kernel.hpp).
template <class Lane>
struct StripState {
    AlignedVector<Lane> h;
    AlignedVector<Lane> e;
    AlignedVector<Lane> diagonal_h;
    AlignedVector<Lane> previous_h;
    AlignedVector<Lane> f;
    AlignedVector<Lane> previous_f;
    std::int32_t base = 0;                       // a lane's value plus the base is the score
    AlignedVector<Lane> query;                   // the strip's letters, in the order of its lanes
    std::vector<const std::int8_t*> score_rows;  // with a table, the scores of each row, at the column of step 0
};

// A part of a strip: columns from + 1 to from + count, in steps begin to end - 1.
struct Part {
    std::size_t from;
    std::size_t count;
    std::size_t begin;
    std::size_t end;
};

// Computes strips of one pair, for one thread.
template <class Lane>
class StripRunner {
   public:
    StripRunner(const Pair& pair, const Width& width);

    // Sets the state to a column: h[i] and next_e[i] belong to the node in row i of the strip, and corner is H of the
    // node above the first of them.
    void begin(StripState<Lane>& state, std::int32_t corner, const std::int32_t* h, const std::int32_t* next_e) const;

    // Sets the state to the border of the matrix.
    void begin_at_border(StripState<Lane>& state, std::size_t strip) const;

    // Converts the state to Tiling::state_bytes bytes, and back.
    void save(const StripState<Lane>& state, std::byte* to) const;
    void restore(StripState<Lane>& state, const std::byte* from) const;

    // H and next E of the last column that each row has computed.
    void column(const StripState<Lane>& state, std::int32_t* h, std::int32_t* next_e) const;

    // Computes a part for its state alone. The row above begins at column from + 1.
    void advance(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
                 const std::int32_t* top_f);
    // The same, and replaces the row above by the strip's lowest row.
    void run(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t* row_h, std::int32_t* row_f);
    // The same, and replaces `best` by the best end of the part if that is better. Ends that score less than `known`, a
    // score that is reached elsewhere, may be omitted.
    void run_local(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t* row_h,
                   std::int32_t* row_f, std::int32_t known, Best& best);
    // The same for ends in the rows allowed_from to allowed_to - 1 of the query.
    void run_tracked(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t* row_h,
                     std::int32_t* row_f, std::size_t allowed_from, std::size_t allowed_to, Best& best);

   private:
    static constexpr bool kBytes = sizeof(Lane) == 1;
    static constexpr bool kNarrow = sizeof(Lane) == 2;
    static constexpr std::int32_t kByteBase = 128;     // a lane of -128 is a score of 0
    static constexpr std::size_t kStepsPerBlock = 64;  // steps for which the scores of a table are laid out at a time

    // The vectors of a state that are saved.
    template <class State>
    static auto saved_vectors(State& state) {
        return std::array{&state.h, &state.e, &state.diagonal_h, &state.previous_h, &state.f, &state.previous_f};
    }

    // The index of a row of the strip in vectors of [rows][lanes].
    std::size_t index(std::size_t row) const { return row % n_rows_ * n_lanes_ + row / n_rows_; }
    void rebase(StripState<Lane>& state, std::int32_t base) const;
    void prepare(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
                 const std::int32_t* top_f);
    void steps(StripState<Lane>& state, const Part& part, bool track);
    void find_ends(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t score, Best& best);
    void finish(const StripState<Lane>& state, const Part& part, std::int32_t* row_h, std::int32_t* row_f) const;
    void lay_out_letters(StripState<Lane>& state, std::size_t strip) const;
    void lay_out_scores(const StripState<Lane>& state, std::size_t column, std::size_t n_steps);

    const Pair& pair_;
    const Width& width_;
    const std::size_t n_lanes_;
    const std::size_t n_rows_;
    const std::size_t lag_;
    const StepsFunction* const functions_;
    std::vector<Lane> top_h_, top_f_, bottom_h_, bottom_f_;
    AlignedVector<Lane> best_, position_, allowed_;
    AlignedVector<std::int8_t> scores_;
    StripState<Lane> saved_;
};

extern template class StripRunner<std::int8_t>;
extern template class StripRunner<std::int16_t>;
extern template class StripRunner<std::int32_t>;

}  // namespace swsearch::pair
