// A fuzz target for simd/pssm: bytes become CIGARs that fit or not, and rows of any codes. Rows and the choice of distinct
// rows must equal those of plain loops; frequencies must sum to 1 and be the same for any number of threads.

#include <cmath>
#include <cstring>
#include <string>

#include "fuzz_bytes.hpp"
#include "plain_gotoh.hpp"
#include "pssm/anchored.hpp"

using namespace swsearch::pssm;
using swsearch::kAminoAcids;

namespace {

constexpr std::uint8_t untouched = 0xEE;

// The row of an alignment, one column of the alignment after the other; empty if it is refused.
std::vector<std::uint8_t> plain_row(const std::string& cigar, const std::vector<std::uint8_t>& letters,
                                    std::int64_t start, std::size_t n_columns) {
    std::vector<std::uint8_t> row(n_columns, kOutside);
    std::size_t letter = 0, at = 0;
    std::int64_t column = start;
    if (start < 0) return {};
    while (at < cigar.size()) {
        const std::size_t digits = cigar.find_first_not_of("0123456789", at);
        if (digits == std::string::npos || digits - at > 18) return {};
        std::int64_t count = digits == at ? 0 : std::stoll(cigar.substr(at, digits - at));
        const char sign = cigar[digits];
        at = digits + 1;
        if (std::strchr("=XID", sign) == nullptr || sign == '\0') return {};
        if (sign != 'D' && column > static_cast<std::int64_t>(n_columns)) return {};
        for (; count > 0; --count) {
            if (sign != 'D' && column >= static_cast<std::int64_t>(n_columns)) return {};
            if (sign != 'I' && letter >= letters.size()) return {};
            if (sign != 'D') row[static_cast<std::size_t>(column++)] = sign == 'I' ? kGap : letters[letter];
            letter += sign != 'I';
        }
    }
    return letter == letters.size() ? row : std::vector<std::uint8_t>{};
}

void check_row(Bytes& bytes) {
    const std::size_t n_columns = 1 + bytes.below(40);
    std::string cigar;
    std::size_t n_letters = 0;
    for (std::uint32_t n = bytes.below(6); n > 0; --n) {
        const std::uint32_t kind = bytes.below(16);
        const std::uint32_t count = kind == 15 ? bytes.word() : bytes.below(9);
        cigar += (kind == 14 ? "99999999999" : "") + (kind == 13 ? std::string{} : std::to_string(count));
        const char sign = kind == 12 ? static_cast<char>(bytes.byte()) : "=XID"[kind % 4];
        if (kind != 11) cigar += sign;
        n_letters += sign != 'I' ? std::min<std::uint32_t>(count, 60) : 0;
    }
    const std::uint8_t wrong = bytes.byte();
    n_letters = wrong < 32 ? bytes.below(20) : n_letters;
    const std::int64_t starts[] = {-1, INT64_MIN, INT64_MAX, static_cast<std::int64_t>(n_columns)};
    const std::int64_t start = wrong >= 224 ? starts[wrong % 4] : bytes.below(8);
    std::vector<std::uint8_t> letters(n_letters), row(n_columns, untouched);
    for (std::uint8_t& letter : letters) letter = static_cast<std::uint8_t>(bytes.byte() % 32);
    const bool fits = write_row({letters.data(), letters.size(), cigar.data(), cigar.size(), start}, n_columns, row.data());
    const std::vector<std::uint8_t> expected = plain_row(cigar, letters, start, n_columns);
    REQUIRE(fits == !expected.empty(), "%s from %lld: %d", cigar.c_str(), static_cast<long long>(start), fits);
    REQUIRE(!fits || row == expected, "%s from %lld: another row", cigar.c_str(), static_cast<long long>(start));
}

std::vector<std::uint8_t> plain_distinct(const Rows& rows, int percent) {
    std::vector<std::uint8_t> keep(rows.n_rows, 1);
    for (std::size_t i = 1; i < rows.n_rows; ++i) {
        for (std::size_t earlier = 0; earlier < i && keep[i]; ++earlier) {
            if (!keep[earlier]) continue;
            std::size_t n = 0, equal = 0;
            for (std::size_t c = 0; c < rows.n_columns; ++c) {
                const std::uint8_t code = rows.row(i)[c];
                if (code >= kOutside) continue;
                ++n;
                equal += code == rows.row(earlier)[c];
            }
            keep[i] = equal * 100 < n * static_cast<std::size_t>(earlier == 0 ? 100 : percent);
        }
    }
    return keep;
}

void check_columns(const Rows& rows, std::size_t min_width) {
    const std::vector<double> background(kAminoAcids, 1.0 / kAminoAcids);
    std::vector<double> first_frequencies, first_diversity;
    for (const int n_threads : {1, 3}) {
        std::vector<double> frequencies(rows.n_columns * kAminoAcids, -1.0), diversity(rows.n_columns, -1.0);
        std::vector<std::int64_t> n_present(rows.n_columns, -1);
        column_frequencies(rows, min_width, background.data(), n_threads,
                           {frequencies.data(), diversity.data(), n_present.data()});
        for (std::size_t c = 0; c < rows.n_columns; ++c) {
            std::int64_t present = 0;
            for (std::size_t i = 0; i < rows.n_rows; ++i) {
                bool before = false, after = false;
                for (std::size_t k = 0; k <= c; ++k) before |= rows.row(i)[k] != kOutside;
                for (std::size_t k = c; k < rows.n_columns; ++k) after |= rows.row(i)[k] != kOutside;
                present += before && after;
            }
            REQUIRE(n_present[c] == present, "column %zu: %lld rows, not %lld", c, static_cast<long long>(n_present[c]),
                    static_cast<long long>(present));
            double sum = 0.0;
            for (std::size_t a = 0; a < kAminoAcids; ++a) {
                REQUIRE(frequencies[c * kAminoAcids + a] >= 0.0, "column %zu: a negative frequency", c);
                sum += frequencies[c * kAminoAcids + a];
            }
            REQUIRE(std::abs(sum - (present > 0)) < 1e-9, "column %zu: frequencies sum to %g", c, sum);
            REQUIRE(diversity[c] >= 0.0 && diversity[c] <= 20.0, "column %zu: %g kinds", c, diversity[c]);
        }
        if (n_threads == 1) first_frequencies = frequencies, first_diversity = diversity;
        REQUIRE(frequencies == first_frequencies && diversity == first_diversity, "%d threads: other values", n_threads);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes{data, size};
    check_row(bytes);
    const std::uint8_t flags = bytes.byte();
    const std::size_t n_rows = 1 + bytes.below(12), n_columns = 1 + bytes.below(flags & 1 ? 150 : 20);
    const int percent = flags & 2 ? 94 : static_cast<int>(bytes.below(101));
    const std::size_t min_width = flags & 4 ? 25 : bytes.below(200);
    std::vector<std::uint8_t> codes(n_rows * n_columns);
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t start = bytes.at(3 * i) % (n_columns + 1), stop = n_columns - bytes.at(5 * i) % (n_columns + 1);
        for (std::size_t c = 0; c < n_columns; ++c) {
            const std::uint8_t code = bytes.at(i * 31 + c) % 16 == 0 ? bytes.at(i + c * 7) % 32 : bytes.at(c) % 20;
            codes[i * n_columns + c] = (flags & 8) && (c < start || c >= stop) ? kOutside : code;
        }
    }
    const Rows rows{codes.data(), n_rows, n_columns};
    std::vector<std::uint8_t> keep(n_rows, untouched);
    keep_distinct(rows, percent, keep.data());
    REQUIRE(keep == plain_distinct(rows, percent), "%d percent: other rows", percent);
    check_columns(rows, min_width);
    return 0;
}
