// The query's scores in the orders that the passes read them.

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "align/pair.hpp"

namespace swsearch::align {
namespace {

constexpr std::size_t codes_count = 32;

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
      plain_(codes_count * length_in),
      best_before_(length_in + 1) {
    for (std::size_t code = 0; code < codes_count; ++code) {
        std::int8_t* out = plain_.data() + code * length;
        for (std::size_t row = 0; row < length; ++row) {
            out[row] = table[static_cast<std::size_t>(rows[row]) * codes_count + code];
        }
    }
    std::vector<std::int8_t> best(table_rows);
    for (std::size_t row = 0; row < table_rows; ++row) {
        best[row] = *std::max_element(table + row * codes_count, table + (row + 1) * codes_count);
    }
    for (std::size_t row = 0; row < length; ++row) {
        best_before_[row + 1] = best_before_[row] + std::max<std::int8_t>(best[static_cast<std::size_t>(rows[row])], 0);
    }
}

std::uint64_t Query::most_columns(const End& end) const {
    if (extend == 0) return std::numeric_limits<std::uint64_t>::max();
    const std::int64_t for_gaps = best_before_[end.query_end] - end.score - (first - extend);
    return end.query_end + static_cast<std::uint64_t>(std::max<std::int64_t>(for_gaps, 0) / extend);
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

}  // namespace swsearch::align
