// The implementation of StripRunner: the order of letters and scores for the lanes, the choice of kernels for the steps
// of a part, and the search for ends. It is instantiated for lanes of 8, 16 and 32 bits.

#include "pair/strip.hpp"

#include <cstring>
#include <type_traits>

namespace swsearch::pair {
namespace {

template <class Lane>
Lane clipped(std::int64_t value) {
    return static_cast<Lane>(
        std::clamp<std::int64_t>(value, std::numeric_limits<Lane>::min(), std::numeric_limits<Lane>::max()));
}

// A gap's score that is below the range of 8 bits is not better than the 0 of a local path. Other values are in range.
template <class Lane>
void to_lanes(const std::int32_t* __restrict from, std::size_t count, std::int32_t base, Lane* __restrict to) {
    using Limits = std::numeric_limits<std::conditional_t<sizeof(Lane) == 1, Lane, std::int32_t>>;
    constexpr std::int32_t kLeast = Limits::min();
    for (std::size_t x = 0; x < count; ++x) to[x] = static_cast<Lane>(std::max(from[x] - base, kLeast));
}

// The first lane with this value, or `last`.
template <class Lane>
const Lane* find_lane(const Lane* first, const Lane* last, Lane value) {
    if constexpr (sizeof(Lane) == 1) {
        const std::size_t size = static_cast<std::size_t>(last - first);
        const void* const found = std::memchr(first, static_cast<unsigned char>(value), size);
        return found == nullptr ? last : static_cast<const Lane*>(found);
    } else {
        return std::find(first, last, value);
    }
}

template <class Lane>
void from_lanes(const Lane* __restrict from, std::size_t count, std::int32_t base, std::int32_t* __restrict to) {
    for (std::size_t x = 0; x < count; ++x) to[x] = from[x] + base;
}

}  // namespace

template <class Lane>
StripRunner<Lane>::StripRunner(const Pair& pair, const Width& width)
    : pair_(pair),
      width_(width),
      n_lanes_(static_cast<std::size_t>(width.lanes)),
      n_rows_(static_cast<std::size_t>(width.rows)),
      lag_(width.lag()),
      functions_(width.steps[pair.boundary.local][pair.gap_open != 0][pair.table == nullptr]),
      best_(n_lanes_),
      position_(n_lanes_),
      allowed_(width.strip()) {
    if (pair.table != nullptr) scores_.resize(kStepsPerBlock * width.strip());
}

template <class Lane>
void StripRunner<Lane>::begin(StripState<Lane>& state, std::int32_t corner, const std::int32_t* h,
                              const std::int32_t* next_e) const {
    const std::size_t strip_rows = width_.strip();
    state.base = kBytes ? kByteBase : kNarrow ? corner : 0;
    state.h.resize(strip_rows);
    state.e.resize(strip_rows);
    state.diagonal_h.assign(n_lanes_, 0);
    state.f.assign(n_lanes_, 0);
    state.previous_f.assign(n_lanes_, 0);
    for (std::size_t row = 0; row < strip_rows; ++row) {
        state.h[index(row)] = static_cast<Lane>(h[row] - state.base);
        state.e[index(row)] = clipped<Lane>(std::int64_t{next_e[row]} - state.base);
        if (row % n_rows_ == 0) {
            state.diagonal_h[row / n_rows_] = static_cast<Lane>((row == 0 ? corner : h[row - 1]) - state.base);
        }
    }
    state.previous_h.assign(state.h.end() - std::ptrdiff_t(n_lanes_), state.h.end());
}

template <class Lane>
void StripRunner<Lane>::begin_at_border(StripState<Lane>& state, std::size_t strip) const {
    const std::size_t above = strip * width_.strip();
    std::vector<std::int32_t> left_h(width_.strip());
    std::vector<std::int32_t> next_e(width_.strip());
    for (std::size_t row = 0; row < width_.strip(); ++row) {
        left_h[row] = pair_.left_border(above + row + 1);
        next_e[row] = left_h[row] - pair_.first;
    }
    begin(state, pair_.left_border(above), left_h.data(), next_e.data());
}

template <class Lane>
void StripRunner<Lane>::save(const StripState<Lane>& state, std::byte* to) const {
    std::memcpy(to, &state.base, sizeof(state.base));
    to += sizeof(state.base);
    for (const auto* values : saved_vectors(state)) {
        std::memcpy(to, values->data(), values->size() * sizeof(Lane));
        to += values->size() * sizeof(Lane);
    }
}

template <class Lane>
void StripRunner<Lane>::restore(StripState<Lane>& state, const std::byte* from) const {
    std::memcpy(&state.base, from, sizeof(state.base));
    from += sizeof(state.base);
    state.h.resize(width_.strip());
    state.e.resize(width_.strip());
    for (auto* values : {&state.diagonal_h, &state.previous_h, &state.f, &state.previous_f}) values->resize(n_lanes_);
    for (auto* values : saved_vectors(state)) {
        std::memcpy(values->data(), from, values->size() * sizeof(Lane));
        from += values->size() * sizeof(Lane);
    }
}

template <class Lane>
void StripRunner<Lane>::column(const StripState<Lane>& state, std::int32_t* h, std::int32_t* next_e) const {
    for (std::size_t row = 0; row < width_.strip(); ++row) {
        h[row] = state.h[index(row)] + state.base;
        next_e[row] = state.e[index(row)] + state.base;
    }
}

template <class Lane>
void StripRunner<Lane>::rebase(StripState<Lane>& state, std::int32_t base) const {
    const std::int32_t change = state.base - base;
    if (change == 0) return;
    for (auto* values : saved_vectors(state)) {
        for (Lane& value : *values) value = clipped<Lane>(std::int64_t{value} + change);
    }
    state.base = base;
}

template <class Lane>
void StripRunner<Lane>::prepare(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
                                const std::int32_t* top_f) {
    rebase(state, kBytes ? kByteBase : kNarrow ? top_h[std::min(part.begin, part.count - 1)] : 0);
    const std::size_t n_steps = part.end - part.begin;
    for (std::vector<Lane>* row : {&top_h_, &top_f_, &bottom_h_, &bottom_f_}) row->resize(n_steps);
    const std::size_t inside = part.begin < part.count ? std::min(part.end, part.count) - part.begin : 0;
    to_lanes(top_h + part.begin, inside, state.base, top_h_.data());
    to_lanes(top_f + part.begin, inside, state.base, top_f_.data());
    std::fill(top_h_.begin() + std::ptrdiff_t(inside), top_h_.end(), Lane{0});  // here lane 0 is past the last column
    std::fill(top_f_.begin() + std::ptrdiff_t(inside), top_f_.end(), Lane{0});
    if (state.query.empty() && state.score_rows.empty()) lay_out_letters(state, strip);
}

template <class Lane>
void StripRunner<Lane>::lay_out_letters(StripState<Lane>& state, std::size_t strip) const {
    const bool by_table = pair_.table != nullptr;
    by_table ? state.score_rows.resize(width_.strip()) : state.query.resize(width_.strip());
    for (std::size_t row = 0; row < width_.strip(); ++row) {
        const std::size_t at = strip * width_.strip() + row;
        const bool inside = at < pair_.rows;
        if (by_table) {
            const std::size_t lag = static_cast<std::size_t>(kSkew) * (row / n_rows_);
            state.score_rows[index(row)] = pair_.scores(inside ? pair_.query[at] : kQueryFill) - lag;
        } else {
            state.query[index(row)] = static_cast<Lane>(inside   ? pair_.query[at]
                                                        : kBytes ? kByteQueryFill
                                                                 : kQueryFill);
        }
    }
}

// Lays out the scores of n_steps steps, in the first of which lane 0 is at `column`.
template <class Lane>
void StripRunner<Lane>::lay_out_scores(const StripState<Lane>& state, std::size_t column, std::size_t n_steps) {
    const std::size_t strip_rows = width_.strip();
    const std::int8_t* rows[kMaxScoreRows];
    for (std::size_t x = 0; x < strip_rows; x += width_.score_rows) {
        for (std::size_t y = 0; y < width_.score_rows; ++y) rows[y] = state.score_rows[x + y] + column;
        for (std::size_t step = 0; step < n_steps; step += kTransposedSteps) {
            width_.transpose(rows, scores_.data() + step * strip_rows + x, strip_rows);
            for (std::size_t y = 0; y < width_.score_rows; ++y) rows[y] += kTransposedSteps;
        }
    }
}

template <class Lane>
void StripRunner<Lane>::steps(StripState<Lane>& state, const Part& part, bool track) {
    Steps call{};
    call.h = state.h.data();
    call.e = state.e.data();
    call.diagonal_h = state.diagonal_h.data();
    call.previous_h = state.previous_h.data();
    call.f = state.f.data();
    call.previous_f = state.previous_f.data();
    call.query = state.query.data();
    for (std::size_t odd : {0u, 1u}) {
        if (pair_.table == nullptr) call.subject[odd] = pair_.template letters<Lane>(odd);
    }
    call.from = static_cast<std::ptrdiff_t>(part.from);
    call.best = best_.data();
    call.position = position_.data();
    call.allowed = allowed_.data();
    call.first_step = static_cast<std::ptrdiff_t>(part.begin);
    call.columns = static_cast<std::ptrdiff_t>(part.count);
    call.match = pair_.match;
    call.mismatch = pair_.mismatch;
    call.first = pair_.first;
    call.extend = pair_.gap_extend;
    call.zero = clipped<Lane>(-std::int64_t{state.base});
    for (std::size_t from = part.begin; from < part.end;) {
        Kind kind = track ? kTracked : kMasked;
        std::size_t to = part.end;
        if (!track && from < lag_) {
            to = std::min(to, lag_);
        } else if (!track && from < part.count) {
            kind = kPlain;
            to = std::min(to, part.count);
        }
        if (pair_.table != nullptr) {
            to = std::min(to, from + kStepsPerBlock);
            lay_out_scores(state, part.from + from, to - from);
            call.scores = scores_.data();
        }
        const std::size_t at = from - part.begin;
        call.top_h = top_h_.data() + at;
        call.top_f = top_f_.data() + at;
        call.bottom_h = bottom_h_.data() + at;
        call.bottom_f = bottom_f_.data() + at;
        functions_[kind](call, static_cast<std::ptrdiff_t>(from), static_cast<std::ptrdiff_t>(to));
        from = to;
    }
}

// Computes the steps one by one and finds the best end of the part, whose score is given. This second computation
// exists because a lane of 8 bits cannot represent a step and row; few parts reach the best known score.
template <class Lane>
void StripRunner<Lane>::find_ends(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t score,
                                  Best& best) {
    const Lane wanted = static_cast<Lane>(score - state.base);
    std::vector<Lane> bottom_h;
    std::vector<Lane> bottom_f;
    const std::vector<Lane> top_h = top_h_;
    const std::vector<Lane> top_f = top_f_;
    for (std::size_t t = part.begin; t < part.end; ++t) {
        const std::size_t at = t - part.begin;
        top_h_[0] = top_h[at];
        top_f_[0] = top_f[at];
        steps(state, {part.from, part.count, t, t + 1}, false);
        bottom_h.push_back(bottom_h_[0]);
        bottom_f.push_back(bottom_f_[0]);
        const Lane* const cells_end = state.h.data() + state.h.size();
        const Lane* at_cell = state.h.data();
        while ((at_cell = find_lane(at_cell, cells_end, wanted)) != cells_end) {
            const std::size_t cell = static_cast<std::size_t>(at_cell++ - state.h.data());
            const std::size_t lane = cell % n_lanes_;
            const std::size_t lag = static_cast<std::size_t>(kSkew) * lane;
            if (t < lag || t - lag >= part.count) continue;  // this step has no cell in the row
            best.take({score, part.from + t - lag + 1, strip * width_.strip() + lane * n_rows_ + cell / n_lanes_ + 1});
        }
    }
    bottom_h_ = std::move(bottom_h);
    bottom_f_ = std::move(bottom_f);
}

template <class Lane>
void StripRunner<Lane>::finish(const StripState<Lane>& state, const Part& part, std::int32_t* row_h,
                               std::int32_t* row_f) const {
    const std::size_t from = std::max(part.begin, lag_);
    const std::size_t to = std::min(part.end, part.count + lag_);
    if (from >= to) return;
    from_lanes(bottom_h_.data() + (from - part.begin), to - from, state.base, row_h + (from - lag_));
    from_lanes(bottom_f_.data() + (from - part.begin), to - from, state.base, row_f + (from - lag_));
}

template <class Lane>
void StripRunner<Lane>::advance(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
                                const std::int32_t* top_f) {
    prepare(state, strip, part, top_h, top_f);
    steps(state, part, false);
}

template <class Lane>
void StripRunner<Lane>::run(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t* row_h,
                            std::int32_t* row_f) {
    advance(state, strip, part, row_h, row_f);
    finish(state, part, row_h, row_f);
}

template <class Lane>
void StripRunner<Lane>::run_local(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t* row_h,
                                  std::int32_t* row_f, std::int32_t known, Best& best) {
    prepare(state, strip, part, row_h, row_f);
    saved_ = state;
    std::fill(best_.begin(), best_.end(), std::numeric_limits<Lane>::min());
    steps(state, part, false);
    const std::int32_t reached = *std::max_element(best_.begin(), best_.end()) + state.base;
    if (kBytes && reached >= kByteLimit) {
        best.score = reached;
        return;
    }
    if (reached > 0 && reached >= known) {  // computed again to find the position
        state = saved_;
        if constexpr (kBytes) {
            find_ends(state, strip, part, reached, best);
            finish(state, part, row_h, row_f);
            return;
        }
        run_tracked(state, strip, part, row_h, row_f, strip * width_.strip(), pair_.rows, best);
        return;
    }
    finish(state, part, row_h, row_f);
}

template <class Lane>
void StripRunner<Lane>::run_tracked(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t* row_h,
                                    std::int32_t* row_f, std::size_t allowed_from, std::size_t allowed_to, Best& best) {
    prepare(state, strip, part, row_h, row_f);
    const std::size_t above = strip * width_.strip();
    for (std::size_t row = 0; row < width_.strip(); ++row) {
        const bool allowed = above + row >= allowed_from && above + row < allowed_to;
        allowed_[index(row)] = static_cast<Lane>(allowed ? -1 : 0);
    }
    std::fill(best_.begin(), best_.end(), std::numeric_limits<Lane>::min());
    std::fill(position_.begin(), position_.end(), Lane{-1});
    steps(state, part, true);
    for (std::size_t lane = 0; lane < n_lanes_; ++lane) {
        if (position_[lane] < 0) continue;
        const std::size_t at = static_cast<std::size_t>(position_[lane]);
        best.take({best_[lane] + state.base,
                   part.from + part.begin + at / n_rows_ - static_cast<std::size_t>(kSkew) * lane + 1,
                   above + lane * n_rows_ + at % n_rows_ + 1});
    }
    finish(state, part, row_h, row_f);
}

template class StripRunner<std::int8_t>;
template class StripRunner<std::int16_t>;
template class StripRunner<std::int32_t>;

}  // namespace swsearch::pair
