// Query-anchored multiple alignments: rows from CIGARs, removal of near-identical rows, weighted frequencies of the
// columns, and scores of a scale. swsearch/query describes the methods. All results are the same for any number of
// threads.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/parallel_for.hpp"
#include "common/profile.hpp"

namespace swsearch::pssm {

constexpr std::uint8_t kOutside = 30;  // a column before or after the aligned part of a row
constexpr std::uint8_t kGap = 31;      // a gap inside the aligned part

// Aligned rows of residue codes, row by row.
struct Rows {
    const std::uint8_t* codes;
    std::size_t n_rows;
    std::size_t n_columns;

    const std::uint8_t* row(std::size_t i) const { return codes + i * n_columns; }
};

// One alignment whose letters are put into the columns of the query.
struct AlignedPart {
    const std::uint8_t* letters;  // the aligned residues of the subject, without gaps
    std::size_t n_letters;
    const char* cigar;  // counts and =, X, I (consumes the query) or D (consumes the subject)
    std::size_t cigar_length;
    std::int64_t query_start;
};

// Writes one row of n_columns codes. Returns false if the CIGAR is malformed, or leaves the query or the letters.
bool write_row(const AlignedPart& part, std::size_t n_columns, std::uint8_t* row);

// Writes for each row whether it is kept: the first row always, and a further row unless at least `percent` of its
// residues are equal to those of an earlier kept row in the same columns; compared with the first row, all must be.
void keep_distinct(const Rows& rows, int percent, std::uint8_t* keep);

// Weighted frequencies of the amino acids in every column; see swsearch/query/estimation.py.
struct ColumnOutput {
    double* frequencies;      // n_columns x 20
    double* diversity;        // mean number of different amino acids in the more diverse half of the block's columns
    std::int64_t* n_present;  // number of rows whose aligned part includes the column
};
void column_frequencies(const Rows& rows, std::size_t min_width, const double* background, int n_threads,
                        const ColumnOutput& output);

constexpr int kMostScore = 127;  // and the lowest is -127
constexpr std::size_t kScores = 2 * kMostScore + 1;

// Replaces the scores of those positions that are `present` by values times a factor, rounded to the nearest integer
// and, of two, to the even one. The factor is the largest from `low` to `high`, by so many bisections, whose mean odds
// of all positions, for letters of a composition, are at most 1. The mean is a sum by score, from the lowest one, and
// then by amino acid.
void scaled_scores(const double* values, const std::uint8_t* present, std::size_t n_positions, double low, double high,
                   int n_bisections, const double* odds, const double* composition, std::int64_t* scores);

}  // namespace swsearch::pssm
