// The forward pass. This file determines which columns are computed, in which lanes, and which are kept or saved. The
// recurrence is in kernels.cpp.

#include "align/forward_pass.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace swsearch::align {
namespace {

// All columns of H are kept if they take at most this many bytes; they stay in the cache of a core.
constexpr std::size_t kKeptBytes = std::size_t{2} << 20;
// If they are not kept, this many bytes of columns are computed before the first ones are overwritten,
constexpr std::size_t kPassBytes = std::size_t{1} << 15;
// and this many columns for a path.
constexpr std::size_t kPathColumns = 64;
// Columns of a block, if several alignments are asked for. Fewer would be saved more often than it pays.
constexpr std::size_t kBlockColumns = 64;

}  // namespace

ForwardPass::ForwardPass(const Query& query, const std::uint8_t* subject, std::size_t length, bool several,
                         const UsedPairs& used, Workspace& workspace)
    : query_(query), length_(length), several_(several), used_(used), workspace_(workspace) {
    if (query.length == 0 || length == 0) return;
    const std::uint64_t most =
        std::uint64_t(std::min(query.length, length)) * std::uint64_t(std::max(query.max_score, 0));
    if (most > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
        throw std::length_error("query and subject are so long that their score may leave 30 bits; split the query");
    }
    state_.subject = subject;
    state_.first = query.first;
    state_.extend = query.extend;
    if (!narrow_gaps(query.first, query.extend) || !run_all(true)) run_all(false);
}

// Computes one pass in lanes of one width. Returns false if they were too narrow.
bool ForwardPass::run_all(bool narrow) {
    narrow_ = narrow;
    const int lanes = narrow ? query_.kernels.narrow_lanes : query_.kernels.wide_lanes;
    lanes_ = static_cast<std::size_t>(lanes);
    kernel_ = narrow ? query_.kernels.narrow : query_.kernels.wide;
    state_.profile = query_.striped(narrow);
    state_.segments = query_.segments(lanes);
    state_.overflow = false;
    bytes_ = state_.segments * lanes_ * (narrow ? sizeof(std::int16_t) : sizeof(std::int32_t));
    places_.resize(state_.segments * lanes_);
    for (std::size_t row = 0, lane = 0; lane < lanes_; ++lane) {
        for (std::size_t segment = 0; segment < state_.segments; ++segment) {
            places_[row++] = static_cast<std::uint32_t>(segment * lanes_ + lane);
        }
    }

    keeps_all_ = length_ < std::min(kKeptBytes, workspace_.memory_bytes) / bytes_;
    const std::size_t room = std::max<std::size_t>(workspace_.memory_bytes / bytes_, 2) - 1;
    path_columns_ = keeps_all_ ? length_ : std::min({std::max(kPathColumns, kKeptBytes / 2 / bytes_), room, length_});
    pass_columns_ = keeps_all_ ? length_ : std::clamp<std::size_t>(kPassBytes / bytes_, 1, path_columns_);
    e_.resize(bytes_);
    barred_.assign(bytes_, 0);
    state_.h = workspace_.columns.at_least((path_columns_ + 1) * bytes_);
    state_.e = e_.data();

    block_columns_ = length_;
    if (several_ || !keeps_all_) {
        const std::size_t affordable = std::max<std::size_t>(workspace_.memory_bytes / (2 * bytes_), 1);
        block_columns_ = std::max(keeps_all_ ? kBlockColumns : path_columns_, (length_ + affordable - 1) / affordable);
    }
    blocks_.assign((length_ + block_columns_ - 1) / block_columns_, {});
    starts_.clear();
    starts_.push_back({0, {}});
    load(starts_[0]);
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
        if (block > 0) starts_.push_back(saved(block * block_columns_));
        if (!run_block(block)) return false;
    }
    return true;
}

void ForwardPass::bar(std::size_t first, std::size_t last) {
    std::size_t block = first / block_columns_;
    load(starts_[block]);
    for (;;) {
        run_block(block);
        ++block;
        if (block == blocks_.size() || (block > last / block_columns_ && begins_as_before(block))) return;
        starts_[block] = saved(block * block_columns_);
    }
}

// Computes the columns of a block; the state is that at its start. Returns false if the lanes were too narrow.
bool ForwardPass::run_block(std::size_t block) {
    state_.best = 0;
    state_.best_column = 0;
    compute(block * block_columns_, std::min(length_, (block + 1) * block_columns_), pass_columns_);
    blocks_[block] = {state_.best, state_.best_column};
    return !state_.overflow;
}

// Computes columns from to to - 1, and keeps at least the last one, or with `room` for all of them these; ends early at
// an overflow.
void ForwardPass::compute(std::size_t from, std::size_t to, std::size_t room) {
    while (from < to && !state_.overflow) {
        if (from - state_.begin >= room) {
            std::memcpy(state_.h, column_of_h(from), bytes_);
            state_.begin = from;
        }
        const std::size_t stop = std::min(to, state_.begin + room);
        narrow_ ? run_columns<std::int16_t>(from, stop) : run_columns<std::int32_t>(from, stop);
        workspace_.observer.done((std::max(stop, counted_) - counted_) * query_.length);
        counted_ = std::max(stop, counted_);
        from = stop;
    }
}

// Computes columns from to to - 1: those with barred pairs one by one, the others by one call of the kernel.
template <class Value>
void ForwardPass::run_columns(std::size_t from, std::size_t to) {
    const UsedPair* pair = used_.from(from);
    while (from < to && !state_.overflow) {
        const std::size_t barred = pair == used_.end() ? to : std::min(to, pair->column());
        if (from < barred) kernel_(state_, from, barred);
        if (barred < to && !state_.overflow) pair = barred_column<Value>(pair);
        from = barred + 1;
    }
}

// Computes the column of a barred pair, its first one, and returns that of the next column.
template <class Value>
const UsedPair* ForwardPass::barred_column(const UsedPair* first) {
    const std::size_t column = first->column();
    Value* const barred = reinterpret_cast<Value*>(barred_.data());
    const UsedPair* last = first;
    for (; last != used_.end() && last->column() == column; ++last) {
        barred[places_[last->row()]] = std::numeric_limits<Value>::max();
    }
    state_.barred = barred;
    kernel_(state_, column, column + 1);
    state_.barred = nullptr;
    for (const UsedPair* pair = first; pair != last; ++pair) barred[places_[pair->row()]] = 0;
    return last;
}

// What was computed last, which is column `column` - 1.
ForwardPass::Saved ForwardPass::saved(std::size_t column) const {
    Saved made{column, {column_of_h(column), column_of_h(column) + bytes_}};
    made.values.insert(made.values.end(), e_.begin(), e_.end());
    return made;
}

// Makes a saved column the last one that was computed.
void ForwardPass::load(const Saved& saved) {
    if (!keeps_all_) state_.begin = saved.column;
    std::uint8_t* const h = column_of_h(saved.column);
    if (saved.column == 0) {
        std::memset(h, 0, bytes_);
        std::memset(state_.e, 0, bytes_);
        return;
    }
    std::memcpy(h, saved.values.data(), bytes_);
    std::memcpy(state_.e, saved.values.data() + bytes_, bytes_);
}

bool ForwardPass::begins_as_before(std::size_t block) const {
    const std::uint8_t* const values = starts_[block].values.data();
    return std::memcmp(column_of_h(starts_[block].column), values, bytes_) == 0 &&
           std::memcmp(state_.e, values + bytes_, bytes_) == 0;
}

std::int32_t ForwardPass::value(const std::uint8_t* values, std::size_t row) const {
    const std::size_t place = places_[row];
    return narrow_ ? reinterpret_cast<const std::int16_t*>(values)[place]
                   : reinterpret_cast<const std::int32_t*>(values)[place];
}

End ForwardPass::end() {
    End end;
    const auto better = [](const Block& a, const Block& b) { return a.best < b.best; };
    const auto best = std::max_element(blocks_.begin(), blocks_.end(), better);  // the first of equals
    if (best == blocks_.end() || best->best == 0) return end;
    end.score = best->best;
    end.subject_end = best->best_column + 1;
    within_.clear();
    load_up_to(end.subject_end);
    for (end.query_end = 1; end.query_end <= query_.length; ++end.query_end) {
        if (h(end.query_end, end.subject_end) == end.score) return end;
    }
    throw std::logic_error("the forward pass lost the row of its best score");
}

std::size_t ForwardPass::load_up_to(std::size_t column) {
    if (keeps_all_) {
        available_ = &starts_[0];
        return 0;
    }
    while (!within_.empty() && within_.back().column >= column) within_.pop_back();
    const std::size_t affordable = std::max<std::size_t>(workspace_.memory_bytes / (2 * bytes_), 2);
    for (;;) {
        available_ = within_.empty() ? &starts_[(column - 1) / block_columns_] : &within_.back();
        const std::size_t from = available_->column;
        load(*available_);
        const std::size_t n_parts = std::min((column - from + path_columns_ - 1) / path_columns_, affordable);
        if (n_parts == 1) {
            compute(from, column, path_columns_);
            return from;
        }
        const std::size_t step = (column - from) / n_parts;
        for (std::size_t part = 1; part < n_parts; ++part) {
            compute(from + (part - 1) * step, from + part * step, pass_columns_);
            within_.push_back(saved(from + part * step));
        }
    }
}

std::int32_t ForwardPass::h(std::size_t row, std::size_t column) const {
    return row == 0 ? 0 : value(column_of_h(column), row - 1);
}

std::int32_t ForwardPass::first_e(std::size_t row) const {
    if (row == 0 || available_->column == 0) return std::numeric_limits<std::int32_t>::min() / 2;
    return value(available_->values.data() + bytes_, row - 1);
}

}  // namespace swsearch::align
