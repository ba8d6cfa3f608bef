#include "msa/effective_number.hpp"

#include <array>
#include <cmath>
#include <numeric>

#include "common/parallel_for.hpp"

namespace swsearch::msa {
namespace {

constexpr std::size_t kKinds = 32;           // more than there are residue codes
constexpr std::size_t kMaxShareOfEnds = 10;  // one row in so many may not reach a column
constexpr std::size_t kMinColumns = 10;
constexpr double kShortRow = 30.0;  // residues that are added to the length of a row in the weights of the whole
constexpr double kNoShare = 1e-10;

using Weights = std::vector<double>;

// The number of rows with each kind of residue in a column.
struct ColumnCounts {
    std::array<std::uint32_t, kKinds> of_kind{};
    std::size_t kinds = 0;

    void add(std::uint8_t code) { kinds += of_kind[code]++ == 0; }
};

// The codes of an alignment column by column, the order in which they are read here.
class Columns {
   public:
    explicit Columns(const Rows& rows) : n_rows_(rows.size()), codes_(rows.size() * rows.columns()) {
        for (std::size_t k = 0; k < n_rows_; ++k) {
            const std::uint8_t* const row = rows[k].codes;
            for (std::size_t column = 0; column < rows.columns(); ++column) codes_[column * n_rows_ + k] = row[column];
        }
    }

    const std::uint8_t* operator[](std::size_t column) const { return codes_.data() + column * n_rows_; }

   private:
    std::size_t n_rows_;
    std::vector<std::uint8_t> codes_;
};

// The position-based weights of the whole alignment; a short row weighs as much for a residue as a long one.
Weights global_weights(const Rows& rows, const Columns& columns) {
    Weights weights(rows.size(), 1e-6);
    for (std::size_t column = 0; column < rows.columns(); ++column) {
        const std::uint8_t* const codes = columns[column];
        ColumnCounts counts;
        for (std::size_t k = 0; k < rows.size(); ++k) {
            if (codes[k] < Rows::kNoResidue) counts.add(codes[k]);
        }
        for (std::size_t k = 0; k < rows.size(); ++k) {
            const std::uint8_t code = codes[k];
            if (code >= Rows::kNoResidue) continue;
            const double length = static_cast<double>(rows[k].residues) + kShortRow;
            weights[k] += 1.0 / (static_cast<double>(counts.of_kind[code] * counts.kinds) * length);
        }
    }
    const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight /= whole;
    return weights;
}

// The rows with a residue in a column.
std::vector<std::uint32_t> subalignment(const std::uint8_t* column, std::size_t n_rows) {
    std::vector<std::uint32_t> members;
    for (std::size_t k = 0; k < n_rows; ++k) {
        if (column[k] < Rows::kNoResidue) members.push_back(static_cast<std::uint32_t>(k));
    }
    return members;
}

// The columns that nearly all rows of a subalignment reach.
std::vector<std::uint32_t> reached_columns(const Rows& rows, const std::vector<std::uint32_t>& members) {
    std::vector<std::int64_t> changes(rows.columns() + 1, 0);
    for (const std::uint32_t k : members) {
        ++changes[rows[k].first];
        --changes[rows[k].last];
    }
    std::vector<std::uint32_t> columns;
    std::int64_t reaching = 0;
    for (std::size_t column = 0; column < rows.columns(); ++column) {
        reaching += changes[column];
        const std::size_t ends = members.size() - static_cast<std::size_t>(reaching);
        if (ends * kMaxShareOfEnds <= members.size()) columns.push_back(static_cast<std::uint32_t>(column));
    }
    return columns;
}

// Neff of the subalignment of a column.
double of_subalignment(const Rows& rows, const Columns& all, const std::vector<std::uint32_t>& members,
                       const Weights& global) {
    const std::vector<std::uint32_t> columns = reached_columns(rows, members);
    Weights weights(members.size(), 1e-8);
    std::size_t n_columns = 0;
    for (const std::uint32_t column : columns) {
        const std::uint8_t* const codes = all[column];
        ColumnCounts counts;
        for (const std::uint32_t k : members) {
            if (codes[k] < Rows::kNoResidue) counts.add(codes[k]);
        }
        if (counts.kinds == 0) continue;
        ++n_columns;
        std::array<double, 256> shares{};
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            const double same = counts.of_kind[kind];
            if (same > 0) shares[kind] = 1.0 / (same * static_cast<double>(counts.kinds));
        }
        for (std::size_t m = 0; m < members.size(); ++m) weights[m] += shares[codes[members[m]]];
    }
    if (n_columns == 0) return 1.0;
    if (n_columns < kMinColumns) {
        for (std::size_t m = 0; m < members.size(); ++m) weights[m] = global[members[m]];
    }
    double entropy = 0.0;
    for (const std::uint32_t column : columns) {
        const std::uint8_t* const codes = all[column];
        std::array<double, 256> shares{};
        for (std::size_t m = 0; m < members.size(); ++m) shares[codes[members[m]]] += weights[m];
        const double whole = std::accumulate(shares.begin(), shares.begin() + kKinds, 0.0);
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            const double share = whole > 0 ? shares[kind] / whole : 0.0;
            if (share > kNoShare) entropy -= share * std::log2(share);
        }
    }
    return std::exp2(entropy / static_cast<double>(n_columns));
}

}  // namespace

double effective_number(const Rows& rows, int n_threads) {
    if (rows.size() <= 1 || rows.columns() == 0) return 1.0;
    const Columns columns(rows);
    const Weights global = global_weights(rows, columns);
    constexpr double kAsBefore = -1.0;
    std::vector<double> of_column(rows.columns(), kAsBefore);
    Observer observer;
    parallel_for(rows.columns(), {n_threads, observer}, [&](std::size_t column, std::size_t) {
        const std::vector<std::uint32_t> members = subalignment(columns[column], rows.size());
        if (column == 0 ? members.empty() : members == subalignment(columns[column - 1], rows.size())) return;
        of_column[column] = members.empty() ? 1.0 : of_subalignment(rows, columns, members, global);
    });
    double before = 0.0, total = 0.0;
    for (const double found : of_column) total += before = found == kAsBefore ? before : found;
    return total / static_cast<double>(rows.columns());
}

}  // namespace swsearch::msa
