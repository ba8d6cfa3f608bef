// All conditions are computed in whole numbers, so that every machine selects the same rows. A limit of p percent means
// that rows differ in at least a share of (9999 - 100 p) / 10000 of their columns, which tolerates rows of exactly p.

#include "msa/selection.hpp"

#include <algorithm>
#include <vector>

namespace swsearch::msa {
namespace {

constexpr std::int64_t kWhole = 10'000;
constexpr std::int64_t kHalfWindow = 25;
constexpr std::int64_t kMaxStep = 5;

using Counts = std::vector<std::int64_t>;

// Whether a row is too similar to one that was taken: the columns that differ are too few both for the shorter of the
// row and the overlap, and for the columns that the two have in common.
bool too_similar(const Row& row, const Row& other, int max_identity) {
    const std::size_t first = std::max(row.first, other.first);
    const std::size_t last = std::min(row.last, other.last);
    if (first >= last) return false;
    const std::int64_t share = kWhole - 1 - 100 * static_cast<std::int64_t>(max_identity);
    const auto shorter = static_cast<std::int64_t>(std::min(row.residues, last - first));
    const std::int64_t enough = std::max<std::int64_t>(0, (share * shorter + kWhole - 10) / kWhole);
    const Agreement both = compare(row, other, first, last, static_cast<std::size_t>(enough));
    if (both.common == 0) return false;
    const auto different = static_cast<std::int64_t>(both.different);
    return different < enough && different * kWhole <= share * static_cast<std::int64_t>(both.common);
}

// The largest number of rows of a column in the window around each column.
void raise_to_window_maxima(const Counts& counts, Counts& maxima) {
    const auto n = static_cast<std::int64_t>(counts.size());
    for (std::int64_t i = 1; i <= n; ++i) {
        const std::int64_t from = std::max<std::int64_t>(1, std::min(n - 2 * kHalfWindow + 1, i - kHalfWindow));
        const std::int64_t to = std::min(n, std::max(2 * kHalfWindow, i + kHalfWindow));
        const std::int64_t most = *std::max_element(counts.begin() + (from - 1), counts.begin() + to);
        std::int64_t& known = maxima[static_cast<std::size_t>(i - 1)];
        known = std::max(known, most);
    }
}

// A row that is offered.
struct Candidate {
    std::uint32_t row;
    std::size_t n_compared;  // rows that were taken, in the order in which they were, and are not too similar
};

// Whether no row that was taken before the candidate is too similar. A row that was not too similar at a lower limit is
// not at a higher one, so each pair is compared once, and once more for each round in which it decides.
bool passes(const Rows& rows, Candidate& candidate, const std::vector<std::uint32_t>& taken, int limit) {
    for (; candidate.n_compared < taken.size(); ++candidate.n_compared) {
        const std::uint32_t other = taken[candidate.n_compared];
        if (other < candidate.row && too_similar(rows[candidate.row], rows[other], limit)) return false;
    }
    return true;
}

void count_columns(const Row& row, Counts& counts) {
    for (std::size_t column = row.first; column < row.last; ++column) ++counts[column];
}

}  // namespace

std::vector<std::uint8_t> select(const Rows& rows, std::size_t n_rows, const Selection& selection) {
    std::vector<std::uint8_t> is_taken(rows.size(), 0);
    if (rows.size() == 0) return is_taken;
    std::vector<Candidate> left;
    left.reserve(rows.size());
    for (std::size_t row = 1; row < rows.size(); ++row) left.push_back({static_cast<std::uint32_t>(row), 0});
    std::vector<std::uint32_t> taken{0};
    is_taken[0] = 1;
    Counts counts(rows.columns(), 0), maxima(rows.columns(), 0);
    count_columns(rows[0], counts);
    const bool to_depth = selection.at_least > 0 && selection.at_least < static_cast<std::int64_t>(n_rows);
    const std::int64_t wanted = to_depth ? selection.at_least : static_cast<std::int64_t>(n_rows);
    const int lowest = to_depth ? std::min(selection.min_identity, selection.max_identity) : selection.max_identity;
    std::vector<int> limits(rows.columns(), lowest);
    std::int64_t lacking = wanted, step = 0;
    for (std::int64_t limit = lowest; limit <= selection.max_identity && !left.empty(); limit += step) {
        raise_to_window_maxima(counts, maxima);
        const std::int64_t lacking_before = lacking;
        lacking = 0;
        for (std::size_t column = 0; column < maxima.size(); ++column) {
            if (maxima[column] >= wanted) continue;
            limits[column] = static_cast<int>(limit);
            lacking = std::max(lacking, wanted - maxima[column]);
        }
        if (lacking == 0) break;
        std::vector<Candidate> rejected;
        for (Candidate& candidate : left) {
            const Row& row = rows[candidate.row];
            const int own = *std::max_element(limits.begin() + static_cast<std::ptrdiff_t>(row.first),
                                              limits.begin() + static_cast<std::ptrdiff_t>(row.last));
            if (limit < 100 && !passes(rows, candidate, taken, own)) {
                rejected.push_back(candidate);
                continue;
            }
            taken.push_back(candidate.row);
            is_taken[candidate.row] = 1;
            if (limit < 100) count_columns(row, counts);
        }
        left.swap(rejected);
        const std::int64_t gained = lacking_before - lacking + 1;
        step = std::max<std::int64_t>(1, std::min(kMaxStep, lacking / gained * step / 2));
    }
    return is_taken;
}

}  // namespace swsearch::msa
