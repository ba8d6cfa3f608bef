// The pairs of residues that earlier alignments of the same two sequences have used, and that the next alignment must
// not use again, in the order of their columns and rows.
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

// A query row and a subject column, both below 2^32.
struct UsedPair {
    UsedPair(std::size_t row, std::size_t column) : place(std::uint64_t{column} << 32 | row) {}
    std::size_t row() const { return static_cast<std::uint32_t>(place); }
    std::size_t column() const { return place >> 32; }
    bool operator<(const UsedPair& other) const { return place < other.place; }
    bool operator==(const UsedPair& other) const { return place == other.place; }

    std::uint64_t place;
};

class UsedPairs {
   public:
    // Adds pairs in any order.
    void add(const std::vector<UsedPair>& pairs) {
        const auto n_before = static_cast<std::ptrdiff_t>(pairs_.size());
        pairs_.insert(pairs_.end(), pairs.begin(), pairs.end());
        const auto added = pairs_.begin() + n_before;
        if (!std::is_sorted(added, pairs_.end())) std::sort(added, pairs_.end());  // the pairs of one path are sorted
        std::inplace_merge(pairs_.begin(), added, pairs_.end());
        pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
    }

    bool empty() const { return pairs_.empty(); }
    const UsedPair* end() const { return pairs_.data() + pairs_.size(); }

    // The first pair of the columns from `column` on.
    const UsedPair* from(std::size_t column) const {
        return std::lower_bound(pairs_.data(), end(), UsedPair(0, column));
    }

    bool contains(const UsedPair& pair) const { return std::binary_search(pairs_.begin(), pairs_.end(), pair); }

   private:
    std::vector<UsedPair> pairs_;
};

}  // namespace swsearch::align
