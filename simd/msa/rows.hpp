// The rows of a multiple alignment in a form in which two rows are compared many columns at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swsearch::msa {

// A row: its residues lie in the columns first … last - 1, or nowhere if both are 0.
struct Row {
    const std::uint8_t* codes;  // residue codes, kNoResidue elsewhere; may be read in whole blocks of kBlock columns
    std::size_t first;
    std::size_t last;
    std::size_t residues;
};

class Rows {
   public:
    static constexpr std::uint8_t kNoResidue = 0x80;
    static constexpr std::size_t kBlock = 64;

    // The rows order[0], order[1] … of codes of shape (…, n_columns); codes below n_kinds are residues.
    Rows(const std::uint8_t* codes, const std::vector<std::uint32_t>& order, std::size_t n_columns,
         std::uint8_t n_kinds);

    std::size_t size() const { return rows_.size(); }
    std::size_t columns() const { return n_columns_; }
    const Row& operator[](std::size_t i) const { return rows_[i]; }

   private:
    std::size_t n_columns_;
    std::vector<std::uint8_t> codes_;
    std::vector<Row> rows_;
};

// The columns in which two rows have a residue, and those of them in which the residues differ.
struct Agreement {
    std::size_t common = 0;
    std::size_t different = 0;
};

// Compares two rows in the columns first … last - 1; outside of them, at least one of the rows must have no residue.
// The comparison ends when `enough` columns differ.
Agreement compare(const Row& a, const Row& b, std::size_t first, std::size_t last, std::size_t enough);

}  // namespace swsearch::msa
