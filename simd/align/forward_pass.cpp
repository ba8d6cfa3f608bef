// The forward pass. This file determines which columns are computed, in which lanes, and which states are saved. The
// recurrence is in kernels.cpp.

#include "align/forward_pass.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

namespace swsearch::align {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxGroups = std::size_t{1} << 20;
constexpr std::uint64_t kCellsBetweenChecks = 20'000'000;  // some milliseconds of a kernel
constexpr std::size_t kMaxBlocks = 256;
constexpr std::size_t kMinBlockColumns = 1024;
constexpr std::size_t kMaxSavedBytes = std::size_t{32} << 20;

}  // namespace

ForwardPass::Memory ForwardPass::zeroed(std::size_t bytes) {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    Memory memory(std::aligned_alloc(kAlignment, std::max(rounded, kAlignment)));
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), 0, rounded);
    return memory;
}

ForwardPass::ForwardPass(const Query& query, const std::uint8_t* subject, std::size_t length, bool several,
                         const UsedPairs& used, Observer& observer)
    : query_(query), length_(length), several_(several), observer_(observer), used_(used) {
    if (query.length == 0 || length == 0) return;
    const std::uint64_t most =
        std::uint64_t(std::min(query.length, length)) * std::uint64_t(std::max(query.max_score, 0));
    if (most > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
        throw std::length_error("query and subject are so long that their score may leave 30 bits; split the query");
    }
    while ((length >> groups_.shift) >= kMaxGroups) ++groups_.shift;
    state_.subject = subject;
    state_.first = query.first;
    state_.extend = query.extend;
    state_.shift = groups_.shift;
    if (!narrow_gaps(query.first, query.extend) || !run_all(true)) run_all(false);
}

// Computes one pass in lanes of one width. Returns false if they were too narrow.
bool ForwardPass::run_all(bool narrow) {
    narrow_ = narrow;
    const int lanes = narrow ? query_.kernels.narrow_lanes : query_.kernels.wide_lanes;
    lanes_ = static_cast<std::size_t>(lanes);
    kernel_ = narrow ? query_.kernels.narrow : query_.kernels.wide;
    state_.profile = query_.striped(lanes);
    profile_.clear();
    state_.segments = query_.segments(lanes);
    bytes_ = state_.segments * lanes_ * (narrow ? sizeof(std::int16_t) : sizeof(std::int32_t));
    for (int i = 0; i < 3; ++i) {
        h_[i] = zeroed(bytes_);
        state_.h[i] = h_[i].get();
    }
    e_ = zeroed(bytes_);
    state_.e = e_.get();
    state_.last = 0;
    state_.overflow = false;
    groups_.best.assign((length_ >> groups_.shift) + 1, 0);
    state_.column_best = groups_.best.data();

    block_columns_ = length_;
    if (several_) {
        const std::size_t affordable = std::clamp<std::size_t>(kMaxSavedBytes / (2 * bytes_), 1, kMaxBlocks);
        const std::size_t group = std::size_t{1} << groups_.shift;  // a block consists of complete groups
        block_columns_ = std::max(kMinBlockColumns, (length_ + affordable - 1) / affordable);
        block_columns_ = (block_columns_ + group - 1) / group * group;
    }
    blocks_.clear();
    blocks_.resize((length_ + block_columns_ - 1) / block_columns_);
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
        if (block > 0) save(block);
        if (!run_block(block)) return false;
    }
    return true;
}

void ForwardPass::bar(const UsedPairs& used, std::size_t first, std::size_t last) {
    used_ = used;
    std::size_t block = first / block_columns_;
    load(block);
    for (;;) {
        run_block(block);
        ++block;
        if (block == blocks_.size() || (block > last / block_columns_ && begins_as_before(block))) return;
        save(block);
    }
}

// Computes the columns of a block; the state is that at its start.
bool ForwardPass::run_block(std::size_t block) {
    const std::size_t begin = block * block_columns_;
    const std::size_t stop = std::min(length_, begin + block_columns_);
    state_.best = 0;
    state_.best_h = state_.last;
    std::fill(groups_.best.begin() + static_cast<std::ptrdiff_t>(begin >> groups_.shift),
              groups_.best.begin() + static_cast<std::ptrdiff_t>(((stop - 1) >> groups_.shift) + 1), 0);
    const std::size_t step = static_cast<std::size_t>(std::max<std::uint64_t>(1, kCellsBetweenChecks / query_.length));
    for (std::size_t from = begin; from < stop; from += step) {
        const std::size_t to = std::min(stop, from + step);
        narrow_ ? run_columns<std::int16_t>(from, to) : run_columns<std::int32_t>(from, to);
        if (state_.overflow) return false;
        observer_.done((std::max(to, counted_) - counted_) * query_.length);
        counted_ = std::max(to, counted_);
    }
    blocks_[block].best = state_.best;
    current_ = block;
    return true;
}

// Computes columns from to to - 1: those with barred pairs one by one, the others by the kernel.
template <class Value>
void ForwardPass::run_columns(std::size_t from, std::size_t to) {
    while (from < to && !state_.overflow) {
        const std::size_t barred = std::min(to, used_.next_column(from));
        if (from < barred) kernel_(state_, from, barred);
        if (barred < to && !state_.overflow) barred_column<Value>(barred);
        from = barred + 1;
    }
}

// Computes one column with barred pairs by the kernel, which reads changed values: a barred pair scores -128 after a
// diagonal H of 0, so it is never part of an alignment. The E of the row of that H is raised to what it would be from
// the H itself; afterwards, all values but this E are restored.
template <class Value>
void ForwardPass::barred_column(std::size_t column) {
    const std::size_t width = state_.segments * lanes_;
    if (profile_.empty()) {
        profile_.assign(state_.profile, state_.profile + kCodes * width);
        state_.profile = profile_.data();
    }
    std::int8_t* const scores = profile_.data() + (state_.subject[column] & 31u) * width;
    Value* const before = static_cast<Value*>(state_.h[state_.last]);
    Value* const e_column = static_cast<Value*>(state_.e);
    struct Changed {
        std::size_t at;
        std::int8_t score;
        Value diagonal;
    };
    std::vector<Changed> changed;
    for (const std::uint32_t row : used_.rows(column)) {
        const std::size_t at = striped_index(row, state_.segments, lanes_);
        changed.push_back({at, scores[at], 0});
        scores[at] = -128;
        if (row == 0) continue;
        const std::size_t above = striped_index(row - 1, state_.segments, lanes_);
        changed.back().diagonal = before[above];
        const std::int32_t opened = std::int32_t{before[above]} - state_.first + state_.extend;
        e_column[above] = static_cast<Value>(std::max(std::int32_t{e_column[above]}, opened));
        before[above] = 0;
    }
    kernel_(state_, column, column + 1);
    std::size_t number = 0;
    for (const std::uint32_t row : used_.rows(column)) {
        const Changed& one = changed[number++];
        scores[one.at] = one.score;
        if (row > 0) before[striped_index(row - 1, state_.segments, lanes_)] = one.diagonal;
    }
}

void ForwardPass::load(std::size_t block) {
    state_.last = 0;
    if (block == 0) {
        std::memset(state_.h[0], 0, bytes_);
        std::memset(state_.e, 0, bytes_);
        return;
    }
    const std::uint8_t* start = static_cast<const std::uint8_t*>(blocks_[block].start.get());
    std::memcpy(state_.h[0], start, bytes_);
    std::memcpy(state_.e, start + bytes_, bytes_);
}

bool ForwardPass::begins_as_before(std::size_t block) const {
    const std::uint8_t* start = static_cast<const std::uint8_t*>(blocks_[block].start.get());
    return std::memcmp(state_.h[state_.last], start, bytes_) == 0 && std::memcmp(state_.e, start + bytes_, bytes_) == 0;
}

void ForwardPass::save(std::size_t block) {
    if (!blocks_[block].start) blocks_[block].start = zeroed(2 * bytes_);
    std::uint8_t* start = static_cast<std::uint8_t*>(blocks_[block].start.get());
    std::memcpy(start, state_.h[state_.last], bytes_);
    std::memcpy(start + bytes_, state_.e, bytes_);
}

std::int32_t ForwardPass::best_column_h(std::size_t row) const {
    const std::size_t index = striped_index(row, state_.segments, lanes_);
    const void* const h = state_.h[state_.best_h];
    return narrow_ ? static_cast<const std::int16_t*>(h)[index] : static_cast<const std::int32_t*>(h)[index];
}

End ForwardPass::end() {
    End end;
    const auto better = [](const Block& a, const Block& b) { return a.best < b.best; };
    const auto best = std::max_element(blocks_.begin(), blocks_.end(), better);  // the first of equals
    if (best == blocks_.end() || best->best == 0) return end;
    const std::size_t block = static_cast<std::size_t>(best - blocks_.begin());
    if (block != current_) {
        load(block);
        run_block(block);
    }
    end.score = state_.best;
    end.subject_end = state_.best_column + 1;
    for (std::size_t row = 0; row < query_.length; ++row) {
        if (best_column_h(row) == state_.best) {
            end.query_end = row + 1;
            return end;
        }
    }
    throw std::logic_error("the forward pass lost the row of its best score");
}

}  // namespace swsearch::align
