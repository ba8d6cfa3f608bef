// The query's scores in the orders in which the passes read them: by code and row, and striped for the lanes.

#include <algorithm>
#include <limits>

#include "align/alignment.hpp"
#include "common/instruction_sets.hpp"

namespace swsearch::align {

SWSEARCH_DEFINE_KERNELS_OF

Query::Query(const Profile& profile, const std::uint8_t* codes, const std::uint8_t* identity, const Kernels& kernels_in)
    : length(static_cast<std::size_t>(profile.length)),
      first(profile.open + profile.extend),
      extend(profile.extend),
      kernels(kernels_in),
      max_score(profile.n_rows == 0
                    ? 0
                    : *std::max_element(profile.table, profile.table + std::ptrdiff_t{kCodes} * profile.n_rows)),
      codes_(codes),
      identity_(identity),
      scores_(kCodes * length),
      best_before_(length + 1) {
    const auto table_row = [&](std::int32_t row) { return profile.table + std::ptrdiff_t{row} * kCodes; };
    for (std::size_t code = 0; code < kCodes; ++code) {
        std::int8_t* const out = scores_.data() + code * length;
        for (std::size_t row = 0; row < length; ++row) out[row] = table_row(profile.rows[row])[code];
    }
    std::vector<std::int8_t> best;
    for (std::int32_t row = 0; row < profile.n_rows; ++row) {
        best.push_back(*std::max_element(table_row(row), table_row(row) + kCodes));
    }
    for (std::size_t row = 0; row < length; ++row) {
        const std::size_t table_index = static_cast<std::size_t>(profile.rows[row]);
        best_before_[row + 1] = best_before_[row] + std::max<std::int8_t>(best[table_index], 0);
    }
}

std::uint64_t Query::max_columns(const End& end) const {
    if (extend == 0) return std::numeric_limits<std::uint64_t>::max();
    const std::int64_t for_gaps = best_before_[end.query_end] - end.score - (first - extend);
    return end.query_end + static_cast<std::uint64_t>(std::max<std::int64_t>(for_gaps, 0) / extend);
}

const std::int8_t* Query::striped(bool narrow) const {
    std::vector<std::int8_t>& scores = striped_[narrow];
    std::call_once(is_striped_[narrow], [&] {
        const int lanes = narrow ? kernels.narrow_lanes : kernels.wide_lanes;
        const std::size_t n_segments = segments(lanes), width = static_cast<std::size_t>(lanes);
        scores.assign(kCodes * n_segments * width, std::int8_t{-128});
        for (std::size_t code = 0; code < kCodes; ++code) {
            std::int8_t* const out = scores.data() + code * n_segments * width;
            const std::int8_t* const in = scores_.data() + code * length;
            for (std::size_t row = 0; row < length; ++row) out[striped_index(row, n_segments, width)] = in[row];
        }
    });
    return scores.data();
}

}  // namespace swsearch::align
