// Rows of a query-anchored alignment: written from CIGARs, and compared with each other.

#include <algorithm>
#include <array>

#include "pssm/anchored.hpp"

namespace swsearch::pssm {

bool write_row(const AlignedPart& part, std::size_t n_columns, std::uint8_t* row) {
    std::fill_n(row, n_columns, kOutside);
    if (part.query_start < 0) return false;
    std::size_t column = static_cast<std::size_t>(part.query_start), letter = 0, count = 0;
    bool is_complete = true;  // whether the last count has a sign
    for (std::size_t i = 0; i < part.cigar_length; ++i) {
        const char sign = part.cigar[i];
        is_complete = sign < '0' || sign > '9';
        if (!is_complete) {
            count = count * 10 + static_cast<std::size_t>(sign - '0');
            if (count > UINT32_MAX) return false;
            continue;
        }
        const bool in_query = sign != 'D', in_subject = sign != 'I';
        if (sign != '=' && sign != 'X' && sign != 'I' && sign != 'D') return false;
        if (in_query && (column > n_columns || count > n_columns - column)) return false;
        if (in_subject && count > part.n_letters - letter) return false;
        if (in_query && in_subject) {
            std::copy_n(part.letters + letter, count, row + column);
        } else if (in_query) {
            std::fill_n(row + column, count, kGap);
        }
        column += in_query ? count : 0;
        letter += in_subject ? count : 0;
        count = 0;
    }
    return is_complete && letter == part.n_letters;
}

namespace {

constexpr std::size_t kStep = 64;  // columns between two tests whether the rows differ too much already
constexpr std::uint8_t kNothing = 255;

// Whether at most `allowed` of the residues of `row` differ from `other`. Columns without a residue are kNothing in
// `row` and kOutside or kGap in `other`.
bool is_covered(const std::uint8_t* row, const std::uint8_t* other, std::size_t first, std::size_t stop,
                std::size_t allowed) {
    std::size_t n_different = 0;
    for (std::size_t begin = first; begin < stop; begin += kStep) {
        const std::size_t end = std::min(stop, begin + kStep);
        std::uint8_t n = 0;
        for (std::size_t i = begin; i < end; ++i)
            n += static_cast<std::uint8_t>((row[i] != other[i]) & (row[i] != kNothing));
        n_different += n;
        if (n_different > allowed) return false;
    }
    return true;
}

}  // namespace

void keep_distinct(const Rows& rows, int percent, std::uint8_t* keep) {
    std::vector<std::size_t> kept;
    std::vector<std::uint8_t> residues(rows.n_columns);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        const std::uint8_t* const row = rows.row(i);
        std::size_t n_residues = 0, first = rows.n_columns, stop = 0;
        for (std::size_t column = 0; column < rows.n_columns; ++column) {
            const bool is_residue = row[column] < kOutside;
            residues[column] = is_residue ? row[column] : kNothing;
            if (!is_residue) continue;
            ++n_residues;
            first = std::min(first, column);
            stop = column + 1;
        }
        const std::size_t may_differ = n_residues * static_cast<std::size_t>(100 - percent) / 100;
        const bool is_distinct = std::none_of(kept.begin(), kept.end(), [&](std::size_t earlier) {
            return is_covered(residues.data(), rows.row(earlier), first, stop, earlier == 0 ? 0 : may_differ);
        });
        keep[i] = i == 0 || is_distinct;
        if (keep[i]) kept.push_back(i);
    }
}

}  // namespace swsearch::pssm
