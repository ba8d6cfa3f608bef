// Weighted frequencies of the columns of a query-anchored alignment.
//
// Each column has its own rows (those whose aligned part includes it), its own block of columns, and so its own
// weights. From one column to the next few rows change, so the counts of residues are updated and not computed anew.
// Counts are integers, and every sum of floating-point numbers has a fixed order, so threads do not affect the results.
// CMakeLists.txt compiles this file without fused multiply-add, whose results have other last bits.

#include <algorithm>
#include <array>
#include <functional>

#include "pssm/anchored.hpp"

namespace swsearch::pssm {
namespace {

constexpr std::size_t kFewestLetters = 1 << 18;  // of the columns of a task, a millisecond

struct Range {
    std::size_t first, stop;
};

// The part of a row between its outside columns; empty if there is none.
Range aligned_part(const std::uint8_t* row, std::size_t n_columns) {
    std::size_t first = 0, stop = n_columns;
    while (first < n_columns && row[first] == kOutside) ++first;
    while (stop > first && row[stop - 1] == kOutside) --stop;
    return {first, stop};
}

// The rows of one column after another, with their weights.
class ColumnSweep {
   public:
    ColumnSweep(const Rows& rows, const std::vector<Range>& parts, std::size_t min_width, const double* background)
        : rows_(rows),
          parts_(parts),
          min_width_(std::min(min_width, rows.n_columns)),
          background_(background),
          counts_(rows.n_columns * kCodes),
          is_present_(rows.n_rows),
          shares_(rows.n_columns * kCodes) {}

    void write(std::size_t column, const ColumnOutput& output) {
        if (change_rows(column)) weigh();
        double* const frequencies = output.frequencies + column * kAminoAcids;
        std::fill_n(frequencies, kAminoAcids, 0.0);
        double elsewhere = 0.0;  // the weight of rows with a gap or another letter
        for (std::size_t i = 0; i < present_.size(); ++i) {
            const std::uint8_t code = rows_.row(present_[i])[column];
            (code < kAminoAcids ? frequencies[code] : elsewhere) += weights_[i];
        }
        for (std::size_t letter = 0; letter < kAminoAcids; ++letter) {
            frequencies[letter] += elsewhere * background_[letter];
        }
        output.diversity[column] = diversity_;
        output.n_present[column] = static_cast<std::int64_t>(present_.size());
    }

   private:
    // Makes the rows those of a column; returns whether any changed.
    bool change_rows(std::size_t column) {
        bool changed = false;
        for (std::size_t i = 0; i < rows_.n_rows; ++i) {
            const std::uint8_t is_present = column >= parts_[i].first && column < parts_[i].stop;
            if (is_present == is_present_[i]) continue;
            is_present_[i] = is_present;
            changed = true;
            const std::uint8_t* const row = rows_.row(i);
            for (std::size_t c = parts_[i].first; c < parts_[i].stop; ++c) {
                counts_[c * kCodes + row[c]] += is_present ? 1 : -1;
            }
        }
        if (changed) {
            present_.clear();
            for (std::size_t i = 0; i < rows_.n_rows; ++i) {
                if (is_present_[i]) present_.push_back(i);
            }
        }
        return changed;
    }

    // The columns that all present rows have; at least min_width columns around them.
    Range block() const {
        Range common{0, rows_.n_columns};
        for (const std::size_t i : present_) {
            common.first = std::max(common.first, parts_[i].first);
            common.stop = std::min(common.stop, parts_[i].stop);
        }
        const std::size_t width = common.stop - common.first;
        if (width < min_width_) {
            const std::size_t before = (min_width_ - width) / 2;
            common.first = std::min(common.first - std::min(common.first, before), rows_.n_columns - min_width_);
            common.stop = common.first + min_width_;
        }
        return common;
    }

    // Computes the weights of the present rows, and the diversity of their block.
    void weigh() {
        weights_.assign(present_.size(), 0.0);
        diversity_ = 0.0;
        if (present_.empty()) return;
        const Range columns = block();
        std::vector<std::size_t> kinds;
        for (std::size_t c = columns.first; c < columns.stop; ++c) {
            const std::int32_t* const counts = &counts_[c * kCodes];
            const std::size_t n_kinds = static_cast<std::size_t>(
                std::count_if(counts, counts + kAminoAcids, [](std::int32_t count) { return count > 0; }));
            kinds.push_back(n_kinds);
            double* const shares = &shares_[c * kCodes];
            for (std::size_t letter = 0; letter < kCodes; ++letter) {
                const bool counts_here = letter < kAminoAcids && counts[letter] > 0;
                shares[letter] = counts_here ? 1.0 / (static_cast<double>(n_kinds) * counts[letter]) : 0.0;
            }
        }
        const double equal_share = 1.0 / static_cast<double>(present_.size());
        double sum = 0.0;
        for (std::size_t i = 0; i < present_.size(); ++i) {
            weights_[i] = mean_share(rows_.row(present_[i]), columns, equal_share);
            sum += weights_[i];
        }
        for (double& weight : weights_) weight /= sum;
        std::sort(kinds.begin(), kinds.end(), std::greater<>());
        const std::size_t half = (kinds.size() + 1) / 2;
        std::size_t n_kinds = 0;
        for (std::size_t i = 0; i < half; ++i) n_kinds += kinds[i];
        diversity_ = static_cast<double>(n_kinds) / static_cast<double>(half);
    }

    // The mean share of a row in the columns of a block in which it has an amino acid.
    double mean_share(const std::uint8_t* row, const Range& columns, double otherwise) const {
        double sum = 0.0;
        std::size_t n = 0;
        for (std::size_t c = columns.first; c < columns.stop; ++c) {
            const double share = shares_[c * kCodes + row[c]];
            sum += share;
            n += share > 0.0;
        }
        return n == 0 ? otherwise : sum / static_cast<double>(n);
    }

    const Rows& rows_;
    const std::vector<Range>& parts_;
    const std::size_t min_width_;
    const double* const background_;
    std::vector<std::int32_t> counts_;  // of each code in each column, over the present rows
    std::vector<std::uint8_t> is_present_;
    std::vector<double> shares_;  // of each code in each column of the block: 1 / (kinds * count)
    std::vector<std::size_t> present_;
    std::vector<double> weights_;  // of the present rows
    double diversity_ = 0.0;
};

}  // namespace

void column_frequencies(const Rows& rows, std::size_t min_width, const double* background, int n_threads,
                        const ColumnOutput& output) {
    std::vector<Range> parts(rows.n_rows);
    for (std::size_t i = 0; i < rows.n_rows; ++i) parts[i] = aligned_part(rows.row(i), rows.n_columns);
    const std::size_t n_wanted = static_cast<std::size_t>(std::max(n_threads, 1));
    const std::size_t size = std::max(kFewestLetters / rows.n_rows + 1, (rows.n_columns + n_wanted - 1) / n_wanted);
    Observer observer;
    parallel_for((rows.n_columns + size - 1) / size, {n_threads, observer}, [&](std::size_t task, std::size_t) {
        ColumnSweep sweep(rows, parts, min_width, background);
        const std::size_t stop = std::min(rows.n_columns, (task + 1) * size);
        for (std::size_t column = task * size; column < stop; ++column) sweep.write(column, output);
    });
}

}  // namespace swsearch::pssm
