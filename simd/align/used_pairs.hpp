// The pairs of residues that earlier alignments of the same two sequences have used, and that the next alignment must
// not use again. They are stored by subject column, with the query rows of each column in ascending order.
//
// The method is that of M. S. Waterman and M. Eggert, A new algorithm for best subsequence alignments, J. Mol. Biol.
// 197:723, 1987.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace swsearch::align {

// Query rows of one subject column, in ascending order.
class Rows {
   public:
    Rows(const std::uint32_t* first, const std::uint32_t* last) : first_(first), last_(last) {}
    const std::uint32_t* begin() const { return first_; }
    const std::uint32_t* end() const { return last_; }
    bool contains(std::size_t row) const {
        return first_ != last_ && std::binary_search(first_, last_, static_cast<std::uint32_t>(row));
    }

   private:
    const std::uint32_t* first_;
    const std::uint32_t* last_;
};

class UsedPairs {
   public:
    // Adds pairs (row, column), in any order.
    void add(const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
        std::vector<std::pair<std::size_t, std::uint32_t>> all;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            for (std::size_t k = begins_[i]; k < begins_[i + 1]; ++k) all.emplace_back(columns_[i], rows_[k]);
        }
        const auto n_before = static_cast<std::ptrdiff_t>(all.size());
        for (const auto& [row, column] : pairs) all.emplace_back(column, static_cast<std::uint32_t>(row));
        std::sort(all.begin() + n_before, all.end());
        std::inplace_merge(all.begin(), all.begin() + n_before, all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        columns_.clear();
        rows_.clear();
        begins_.assign(1, 0);
        for (const auto& [column, row] : all) {
            if (columns_.empty() || columns_.back() != column) {
                columns_.push_back(column);
                begins_.push_back(rows_.size());
            }
            rows_.push_back(row);
            begins_.back() = rows_.size();
        }
    }

    // The first column from `column` on that has a used pair; SIZE_MAX if there is none.
    std::size_t next_column(std::size_t column) const {
        const auto found = std::lower_bound(columns_.begin(), columns_.end(), column);
        return found == columns_.end() ? SIZE_MAX : *found;
    }

    bool empty() const { return columns_.empty(); }

    Rows rows(std::size_t column) const {
        const auto found = std::lower_bound(columns_.begin(), columns_.end(), column);
        if (found == columns_.end() || *found != column) return {nullptr, nullptr};
        const std::size_t index = static_cast<std::size_t>(found - columns_.begin());
        return {rows_.data() + begins_[index], rows_.data() + begins_[index + 1]};
    }

   private:
    std::vector<std::size_t> columns_;    // columns with used pairs, ascending
    std::vector<std::size_t> begins_{0};  // index in rows_ of the first row of each column, followed by the end
    std::vector<std::uint32_t> rows_;
};

}  // namespace swsearch::align
