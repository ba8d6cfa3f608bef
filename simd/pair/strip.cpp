// See strip.hpp.

#include "pair/strip.hpp"

#include <cstring>

namespace swsearch::pair {
namespace {

template <class Lane>
Lane clipped(std::int64_t value) {
    return static_cast<Lane>(std::clamp<std::int64_t>(value, std::numeric_limits<Lane>::min(),
                                                      std::numeric_limits<Lane>::max()));
}

// A gap's score that is below the range of 8 bits is no better than the 0 of a local path; others are in range.
template <class Lane>
void to_lanes(const std::int32_t* __restrict from, std::size_t count, std::int32_t base, Lane* __restrict to) {
    constexpr std::int32_t least = sizeof(Lane) == 1 ? std::numeric_limits<Lane>::min() : std::numeric_limits<std::int32_t>::min();
    for (std::size_t x = 0; x < count; ++x) to[x] = static_cast<Lane>(std::max(from[x] - base, least));
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
      behind_(width.behind()),
      functions_(width.steps[pair.ends.local][pair.costs.gap_open != 0][pair.costs.table == nullptr]),
      best_(n_lanes_),
      place_(n_lanes_),
      allowed_(width.strip()) {
    if (pair.costs.table != nullptr) scores_.resize(steps_a_block * width.strip());
}

template <class Lane>
void StripRunner<Lane>::begin(StripState<Lane>& state, std::int32_t corner, const std::int32_t* left_h,
                              const std::int32_t* next_e) const {
    const std::size_t strip_rows = width_.strip();
    state.base = bytes ? byte_base : narrow ? corner : 0;
    state.h.resize(strip_rows);
    state.e.resize(strip_rows);
    state.before.assign(n_lanes_, 0);
    state.f.assign(n_lanes_, 0);
    state.older_f.assign(n_lanes_, 0);
    for (std::size_t row = 0; row < strip_rows; ++row) {
        state.h[place(row)] = static_cast<Lane>(left_h[row] - state.base);
        state.e[place(row)] = clipped<Lane>(std::int64_t{next_e[row]} - state.base);
        if (row % n_rows_ == 0) {
            state.before[row / n_rows_] = static_cast<Lane>((row == 0 ? corner : left_h[row - 1]) - state.base);
        }
    }
    state.older.assign(state.h.end() - std::ptrdiff_t(n_lanes_), state.h.end());
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
    for (const std::vector<Lane>* values : {&state.h, &state.e, &state.before, &state.older, &state.f, &state.older_f}) {
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
    for (std::vector<Lane>* values : {&state.before, &state.older, &state.f, &state.older_f}) values->resize(n_lanes_);
    for (std::vector<Lane>* values : {&state.h, &state.e, &state.before, &state.older, &state.f, &state.older_f}) {
        std::memcpy(values->data(), from, values->size() * sizeof(Lane));
        from += values->size() * sizeof(Lane);
    }
}

template <class Lane>
void StripRunner<Lane>::column(const StripState<Lane>& state, std::int32_t* h, std::int32_t* next_e) const {
    for (std::size_t row = 0; row < width_.strip(); ++row) {
        h[row] = state.h[place(row)] + state.base;
        next_e[row] = state.e[place(row)] + state.base;
    }
}

template <class Lane>
void StripRunner<Lane>::rebase(StripState<Lane>& state, std::int32_t base) const {
    const std::int32_t change = state.base - base;
    if (change == 0) return;
    for (std::vector<Lane>* values : {&state.h, &state.e, &state.before, &state.older, &state.f, &state.older_f}) {
        for (Lane& value : *values) value = clipped<Lane>(std::int64_t{value} + change);
    }
    state.base = base;
}

template <class Lane>
void StripRunner<Lane>::prepare(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
                                const std::int32_t* top_f) {
    rebase(state, bytes ? byte_base : narrow ? top_h[std::min(part.begin, part.count - 1)] : 0);
    const std::size_t n_steps = part.end - part.begin;
    for (std::vector<Lane>* row : {&top_h_, &top_f_, &bottom_h_, &bottom_f_}) row->resize(n_steps);
    const std::size_t inside = part.begin < part.count ? std::min(part.end, part.count) - part.begin : 0;
    to_lanes(top_h + part.begin, inside, state.base, top_h_.data());
    to_lanes(top_f + part.begin, inside, state.base, top_f_.data());
    std::fill(top_h_.begin() + std::ptrdiff_t(inside), top_h_.end(), Lane{0});  // lane 0 is past the last column
    std::fill(top_f_.begin() + std::ptrdiff_t(inside), top_f_.end(), Lane{0});
    if (state.query.empty() && state.lines.empty()) lay_out_letters(state, strip);
}

template <class Lane>
void StripRunner<Lane>::lay_out_letters(StripState<Lane>& state, std::size_t strip) const {
    const bool by_table = pair_.costs.table != nullptr;
    (by_table ? state.lines.resize(width_.strip()) : state.query.resize(width_.strip()));
    for (std::size_t row = 0; row < width_.strip(); ++row) {
        const std::size_t at = strip * width_.strip() + row;
        const bool inside = at < pair_.rows;
        if (by_table) {
            const std::size_t behind = static_cast<std::size_t>(skew) * (row / n_rows_);
            state.lines[place(row)] = pair_.line(inside ? pair_.query[at] : query_fill) - behind;
        } else {
            state.query[place(row)] = static_cast<Lane>(inside ? pair_.query[at] : bytes ? byte_query_fill : query_fill);
        }
    }
}

// Scores of n_steps steps, the first of which has lane 0 at `column`.
template <class Lane>
void StripRunner<Lane>::lay_out_scores(const StripState<Lane>& state, std::size_t column, std::size_t n_steps) {
    const std::size_t strip_rows = width_.strip();
    const std::int8_t* lines[most_lines];
    for (std::size_t x = 0; x < strip_rows; x += width_.lines) {
        for (std::size_t y = 0; y < width_.lines; ++y) lines[y] = state.lines[x + y] + column;
        for (std::size_t step = 0; step < n_steps; step += steps_transposed) {
            width_.transpose(lines, scores_.data() + step * strip_rows + x, strip_rows);
            for (std::size_t y = 0; y < width_.lines; ++y) lines[y] += steps_transposed;
        }
    }
}

template <class Lane>
void StripRunner<Lane>::steps(StripState<Lane>& state, std::size_t strip, const Part& part, bool with_ends) {
    Steps call{};
    call.h = state.h.data();
    call.e = state.e.data();
    call.before = state.before.data();
    call.older = state.older.data();
    call.f = state.f.data();
    call.older_f = state.older_f.data();
    call.query = state.query.data();
    for (std::size_t odd : {0u, 1u}) {
        if (pair_.costs.table == nullptr) call.subject[odd] = pair_.template letters<Lane>(odd);
    }
    call.from = static_cast<std::ptrdiff_t>(part.from);
    call.best = best_.data();
    call.place = place_.data();
    call.allowed = allowed_.data();
    call.first_step = static_cast<std::ptrdiff_t>(part.begin);
    call.columns = static_cast<std::ptrdiff_t>(part.count);
    call.match = pair_.costs.match;
    call.mismatch = pair_.costs.mismatch;
    call.first = pair_.first;
    call.extend = pair_.costs.gap_extend;
    call.zero = clipped<Lane>(-std::int64_t{state.base});
    for (std::size_t from = part.begin; from < part.end;) {
        Kind kind = with_ends ? tracked : masked;
        std::size_t to = part.end;
        if (!with_ends && from < behind_) {
            to = std::min(to, behind_);
        } else if (!with_ends && from < part.count) {
            kind = plain;
            to = std::min(to, part.count);
        }
        if (pair_.costs.table != nullptr) {
            to = std::min(to, from + steps_a_block);
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

// Does the steps one by one and looks for the first cell with `score`, the best of the part: a step and row do not fit a
// lane of 8 bits, and few parts reach the best score known.
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
        steps(state, strip, {part.from, part.count, t, t + 1}, false);
        bottom_h.push_back(bottom_h_[0]);
        bottom_f.push_back(bottom_f_[0]);
        for (std::size_t cell = 0; cell < state.h.size(); ++cell) {
            if (state.h[cell] != wanted) continue;
            const std::size_t lane = cell % n_lanes_;
            const std::size_t behind = static_cast<std::size_t>(skew) * lane;
            if (t < behind || t - behind >= part.count) continue;  // no cell of this step
            Best found;
            found.score = score;
            found.column = part.from + t - behind + 1;
            found.row = strip * width_.strip() + lane * n_rows_ + cell / n_lanes_ + 1;
            if (best.loses_to(found)) best = found;
        }
    }
    bottom_h_ = std::move(bottom_h);
    bottom_f_ = std::move(bottom_f);
}

template <class Lane>
void StripRunner<Lane>::finish(const StripState<Lane>& state, const Part& part, std::int32_t* bottom_h,
                               std::int32_t* bottom_f) const {
    if (bottom_h == nullptr) return;
    const std::size_t from = std::max(part.begin, behind_);
    const std::size_t to = std::min(part.end, part.count + behind_);
    if (from >= to) return;
    from_lanes(bottom_h_.data() + (from - part.begin), to - from, state.base, bottom_h + (from - behind_));
    from_lanes(bottom_f_.data() + (from - part.begin), to - from, state.base, bottom_f + (from - behind_));
}

template <class Lane>
void StripRunner<Lane>::run(StripState<Lane>& state, std::size_t strip, const Part& part, const std::int32_t* top_h,
                            const std::int32_t* top_f, std::int32_t* bottom_h, std::int32_t* bottom_f) {
    prepare(state, strip, part, top_h, top_f);
    steps(state, strip, part, false);
    finish(state, part, bottom_h, bottom_f);
}

template <class Lane>
void StripRunner<Lane>::run_local(StripState<Lane>& state, std::size_t strip, const Part& part, std::int32_t* row_h,
                                  std::int32_t* row_f, std::int32_t known, Best& best) {
    prepare(state, strip, part, row_h, row_f);
    saved_ = state;
    std::fill(best_.begin(), best_.end(), std::numeric_limits<Lane>::min());
    steps(state, strip, part, false);
    const std::int32_t reached = *std::max_element(best_.begin(), best_.end()) + state.base;
    if (bytes && reached >= byte_limit) {
        best.score = reached;
        return;
    }
    if (reached > 0 && reached >= known) {  // again, to learn where
        state = saved_;
        if constexpr (bytes) {
            find_ends(state, strip, part, reached, best);
            finish(state, part, row_h, row_f);
            return;
        }
        run_tracked(state, strip, part, row_h, row_f, row_h, row_f, strip * width_.strip(), pair_.rows, best);
        return;
    }
    finish(state, part, row_h, row_f);
}

template <class Lane>
void StripRunner<Lane>::run_tracked(StripState<Lane>& state, std::size_t strip, const Part& part,
                                    const std::int32_t* top_h, const std::int32_t* top_f, std::int32_t* bottom_h,
                                    std::int32_t* bottom_f, std::size_t allowed_from, std::size_t allowed_to,
                                    Best& best) {
    prepare(state, strip, part, top_h, top_f);
    const std::size_t above = strip * width_.strip();
    for (std::size_t row = 0; row < width_.strip(); ++row) {
        const bool allowed = above + row >= allowed_from && above + row < allowed_to;
        allowed_[place(row)] = static_cast<Lane>(allowed ? -1 : 0);
    }
    std::fill(best_.begin(), best_.end(), std::numeric_limits<Lane>::min());
    std::fill(place_.begin(), place_.end(), Lane{-1});
    steps(state, strip, part, true);
    for (std::size_t lane = 0; lane < n_lanes_; ++lane) {
        if (place_[lane] < 0) continue;
        const std::size_t at = static_cast<std::size_t>(place_[lane]);
        Best found;
        found.score = best_[lane] + state.base;
        found.column = part.from + part.begin + at / n_rows_ - static_cast<std::size_t>(skew) * lane + 1;
        found.row = above + lane * n_rows_ + at % n_rows_ + 1;
        if (best.loses_to(found)) best = found;
    }
    finish(state, part, bottom_h, bottom_f);
}

template class StripRunner<std::int8_t>;
template class StripRunner<std::int16_t>;
template class StripRunner<std::int32_t>;

}  // namespace swsearch::pair
