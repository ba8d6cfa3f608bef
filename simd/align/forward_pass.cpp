// The forward pass: which columns are done when. The recurrence is in the kernels and in scalar_column.hpp.

#include "align/forward_pass.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

#include "align/scalar_column.hpp"

namespace swsearch::align {
namespace {

constexpr std::size_t alignment_bytes = 64;
constexpr std::size_t most_groups = std::size_t{1} << 20;
constexpr std::uint64_t cells_between_checks = 20'000'000;  // a few milliseconds of a kernel
constexpr std::size_t most_blocks = 256;
constexpr std::size_t fewest_block_columns = 1024;
constexpr std::size_t most_saved_bytes = std::size_t{32} << 20;

}  // namespace

ForwardPass::Memory ForwardPass::zeroed(std::size_t bytes) {
    const std::size_t rounded = (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    Memory memory(std::aligned_alloc(alignment_bytes, std::max(rounded, alignment_bytes)));
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), 0, rounded);
    return memory;
}

ForwardPass::ForwardPass(const Query& query, const std::uint8_t* subject, std::size_t length, bool several, Watch& watch)
    : query_(query), length_(length), several_(several), watch_(watch) {
    if (query.length == 0 || length == 0) return;
    const std::uint64_t most = std::uint64_t(std::min(query.length, length)) * std::uint64_t(std::max(query.max_score, 0));
    if (most > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
        throw std::length_error("query and subject are so long that their score may leave 30 bits; split the query");
    }
    while ((length >> groups_.shift) >= most_groups) ++groups_.shift;
    state_.subject = subject;
    state_.first = query.first;
    state_.extend = query.extend;
    state_.shift = groups_.shift;
    if (!narrow_gaps(query.first, query.extend) || !run_all(true)) run_all(false);
}

// One pass in lanes of one width; false where they were too narrow.
bool ForwardPass::run_all(bool narrow) {
    narrow_ = narrow;
    const int lanes = narrow ? query_.kernels.narrow_lanes : query_.kernels.wide_lanes;
    lanes_ = static_cast<std::size_t>(lanes);
    kernel_ = narrow ? query_.kernels.narrow : query_.kernels.wide;
    state_.profile = query_.striped(lanes);
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
        const std::size_t affordable = std::clamp<std::size_t>(most_saved_bytes / (2 * bytes_), 1, most_blocks);
        const std::size_t group = std::size_t{1} << groups_.shift;  // a block holds whole groups
        block_columns_ = std::max(fewest_block_columns, (length_ + affordable - 1) / affordable);
        block_columns_ = (block_columns_ + group - 1) / group * group;
    }
    blocks_.clear();
    blocks_.resize((length_ + block_columns_ - 1) / block_columns_);
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
        if (block > 0) save(block);
        if (!run_block(block, used_)) return false;
    }
    return true;
}

void ForwardPass::bar(const UsedPairs& used, std::size_t first, std::size_t last) {
    used_ = used;
    std::size_t block = first / block_columns_;
    load(block);
    for (;;) {
        run_block(block, used_);
        ++block;
        if (block == blocks_.size() || (block > last / block_columns_ && begins_as_before(block))) return;
        save(block);
    }
}

// Does the columns of a block, whose start is in the state.
bool ForwardPass::run_block(std::size_t block, const UsedPairs& used) {
    const std::size_t begin = block * block_columns_;
    const std::size_t stop = std::min(length_, begin + block_columns_);
    state_.best = 0;
    state_.kept = state_.last;
    std::fill(groups_.best.begin() + static_cast<std::ptrdiff_t>(begin >> groups_.shift),
              groups_.best.begin() + static_cast<std::ptrdiff_t>(((stop - 1) >> groups_.shift) + 1), 0);
    const std::size_t step = static_cast<std::size_t>(std::max<std::uint64_t>(1, cells_between_checks / query_.length));
    for (std::size_t from = begin; from < stop; from += step) {
        const std::size_t to = std::min(stop, from + step);
        narrow_ ? run_columns<std::int16_t>(used, from, to) : run_columns<std::int32_t>(used, from, to);
        if (state_.overflow) return false;
        watch_.done((std::max(to, counted_) - counted_) * query_.length);
        counted_ = std::max(to, counted_);
    }
    blocks_[block].best = state_.best;
    current_ = block;
    return true;
}

// Columns from … to - 1 by the kernel, those with barred pairs one by one without these.
template <class Value>
void ForwardPass::run_columns(const UsedPairs& used, std::size_t from, std::size_t to) {
    const std::size_t segments = state_.segments;
    const std::size_t lanes = lanes_;
    while (from < to && !state_.overflow) {
        const std::size_t special = std::min(to, used.next_column(from));
        if (from < special) kernel_(state_, from, special);
        if (special < to && !state_.overflow) {
            const Rows rows = used.rows(special);
            const auto place = [=](std::size_t row) { return row % segments * lanes + row / segments; };
            const auto barred = [&](std::size_t row) { return rows.holds(row); };
            scalar_column<Value>(state_, special, segments * lanes, place, barred);
        }
        from = special + 1;
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

std::int32_t ForwardPass::kept_value(std::size_t row) const {
    const std::size_t place = row % state_.segments * lanes_ + row / state_.segments;
    const void* kept = state_.h[state_.kept];
    return narrow_ ? static_cast<const std::int16_t*>(kept)[place] : static_cast<const std::int32_t*>(kept)[place];
}

End ForwardPass::end() {
    End end;
    const auto better = [](const Block& a, const Block& b) { return a.best < b.best; };
    const auto best = std::max_element(blocks_.begin(), blocks_.end(), better);  // the first of equals
    if (best == blocks_.end() || best->best == 0) return end;
    const std::size_t block = static_cast<std::size_t>(best - blocks_.begin());
    if (block != current_) {
        load(block);
        run_block(block, used_);
    }
    end.score = state_.best;
    end.subject_end = state_.best_column + 1;
    for (std::size_t row = 0; row < query_.length; ++row) {
        if (kept_value(row) == state_.best) {
            end.query_end = row + 1;
            return end;
        }
    }
    throw std::logic_error("the forward pass lost the row of its best score");
}

}  // namespace swsearch::align
