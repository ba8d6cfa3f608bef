// The query's scores in the orders that the passes read them, and the forward pass over a whole subject.

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>

#include "align/pair.hpp"
#include "align/scalar_column.hpp"

namespace swsearch::align {
namespace {

constexpr std::size_t codes_count = 32;
constexpr std::size_t alignment_bytes = 64;
constexpr std::size_t most_groups = std::size_t{1} << 20;
constexpr std::uint64_t cells_between_checks = 20'000'000;  // a few milliseconds of a kernel

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};

std::unique_ptr<void, Free> zeroed(std::size_t bytes) {
    const std::size_t rounded = (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    std::unique_ptr<void, Free> memory(std::aligned_alloc(alignment_bytes, std::max(rounded, alignment_bytes)));
    if (!memory) throw std::bad_alloc();
    std::fill_n(static_cast<std::uint8_t*>(memory.get()), rounded, std::uint8_t{0});
    return memory;
}

// Columns from … to - 1 by the kernel, those with used pairs one by one without these.
template <class Value>
void columns(ForwardState& state, ForwardKernel kernel, std::size_t lanes, const UsedPairs& used, std::size_t from,
             std::size_t to) {
    const std::size_t segments = state.segments;
    while (from < to && !state.overflow) {
        const std::size_t special = std::min(to, used.next_column(from));
        if (from < special) kernel(state, from, special);
        if (special < to && !state.overflow) {
            const Rows rows = used.rows(special);
            const auto place = [=](std::size_t row) { return row % segments * lanes + row / segments; };
            scalar_column<Value>(state, special, segments * lanes, place, [&](std::size_t row) { return rows.holds(row); });
        }
        from = special + 1;
    }
}

// One pass in lanes of one width; false where they were too narrow. `counted` is how many columns the watch has been
// told of, so that a second pass does not count them again.
bool pass(const Query& query, const std::uint8_t* subject, std::size_t length, const UsedPairs& used, Watch& watch,
          ColumnBest* groups, bool narrow, std::size_t& counted, End& end) {
    const int lanes = narrow ? query.kernels.narrow_lanes : query.kernels.wide_lanes;
    const ForwardKernel kernel = narrow ? query.kernels.narrow : query.kernels.wide;
    const std::size_t value_bytes = narrow ? 2 : 4;
    const std::size_t segments = query.segments(lanes);
    const std::size_t bytes = segments * static_cast<std::size_t>(lanes) * value_bytes;
    const std::unique_ptr<void, Free> h[3] = {zeroed(bytes), zeroed(bytes), zeroed(bytes)};
    const std::unique_ptr<void, Free> e = zeroed(bytes);

    ForwardState state{};
    state.profile = query.striped(lanes);
    state.segments = segments;
    state.subject = subject;
    state.first = query.first;
    state.extend = query.extend;
    for (int i = 0; i < 3; ++i) state.h[i] = h[i].get();
    state.e = e.get();
    state.last = 0;
    state.kept = 1;
    if (groups != nullptr) {
        groups->shift = 0;
        while ((length >> groups->shift) >= most_groups) ++groups->shift;
        groups->best.assign((length >> groups->shift) + 1, 0);
        state.column_best = groups->best.data();
        state.shift = groups->shift;
    }
    const std::size_t step = static_cast<std::size_t>(std::max<std::uint64_t>(1, cells_between_checks / query.length));
    for (std::size_t from = 0; from < length; from += step) {
        const std::size_t to = std::min(length, from + step);
        if (narrow) {
            columns<std::int16_t>(state, kernel, static_cast<std::size_t>(lanes), used, from, to);
        } else {
            columns<std::int32_t>(state, kernel, static_cast<std::size_t>(lanes), used, from, to);
        }
        if (state.overflow) return false;
        watch.done((std::max(to, counted) - counted) * query.length);
        counted = std::max(to, counted);
    }
    end = End{};
    if (state.best == 0) return true;
    end.score = state.best;
    end.subject_end = state.best_column + 1;
    const void* kept = state.h[state.kept];
    for (std::size_t row = 0; row < query.length; ++row) {
        const std::size_t place = row % segments * static_cast<std::size_t>(lanes) + row / segments;
        const std::int32_t value = narrow ? static_cast<const std::int16_t*>(kept)[place]
                                          : static_cast<const std::int32_t*>(kept)[place];
        if (value == state.best) {
            end.query_end = row + 1;
            return true;
        }
    }
    throw std::logic_error("the forward pass lost the row of its best score");
}

}  // namespace

Query::Query(const std::uint8_t* codes_in, const std::int32_t* rows, std::size_t length_in, const std::int8_t* table,
             std::size_t table_rows, std::int32_t gap_open, std::int32_t gap_extend, const std::uint8_t* identity_in,
             const ForwardKernels& kernels_in)
    : codes(codes_in),
      length(length_in),
      first(gap_open + gap_extend),
      extend(gap_extend),
      identity(identity_in),
      kernels(kernels_in),
      max_score(table_rows == 0 ? 0 : *std::max_element(table, table + table_rows * codes_count)),
      plain_(codes_count * length_in) {
    for (std::size_t code = 0; code < codes_count; ++code) {
        std::int8_t* out = plain_.data() + code * length;
        for (std::size_t row = 0; row < length; ++row) {
            out[row] = table[static_cast<std::size_t>(rows[row]) * codes_count + code];
        }
    }
}

const std::int8_t* Query::striped(int lanes) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int i = 0; i < 2; ++i) {
        if (striped_lanes_[i] == lanes) return striped_[i].data();
        if (striped_lanes_[i] != 0) continue;
        const std::size_t n_segments = segments(lanes);
        const std::size_t width = static_cast<std::size_t>(lanes);
        striped_[i].assign(codes_count * n_segments * width, std::int8_t{-128});
        for (std::size_t code = 0; code < codes_count; ++code) {
            std::int8_t* out = striped_[i].data() + code * n_segments * width;
            const std::int8_t* in = plain_.data() + code * length;
            for (std::size_t row = 0; row < length; ++row) out[row % n_segments * width + row / n_segments] = in[row];
        }
        striped_lanes_[i] = lanes;
        return striped_[i].data();
    }
    throw std::logic_error("a query is striped for two widths at most");
}

End find_end(const Query& query, const std::uint8_t* subject, std::size_t length, const UsedPairs& used, Watch& watch,
             ColumnBest* groups) {
    End end;
    if (query.length == 0 || length == 0) return end;
    const std::uint64_t most = std::uint64_t(std::min(query.length, length)) * std::uint64_t(std::max(query.max_score, 0));
    if (most > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
        throw std::length_error("query and subject are so long that their score may leave 30 bits; split the query");
    }
    std::size_t counted = 0;
    const bool narrow = narrow_gaps(query.first, query.extend);
    if (narrow && pass(query, subject, length, used, watch, groups, true, counted, end)) return end;
    pass(query, subject, length, used, watch, groups, false, counted, end);
    return end;
}

}  // namespace swsearch::align
