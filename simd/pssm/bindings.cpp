// Bindings of simd/pssm: functions of query-anchored alignments and of their scores for swsearch/query, which describes
// them.

#include "common/python.hpp"
#include "pssm/anchored.hpp"

namespace swsearch {

namespace {

pssm::Rows checked_rows(const View<const std::uint8_t>& rows) {
    check_that(rows.length > 0 && rows.columns > 0, "there are no rows, or they are empty");
    for (const std::uint8_t code : rows) check_that(code < kCodes, "a code of the rows is above 31");
    return {rows.data, rows.length, rows.columns};
}

// Writes the row of each alignment; returns the index of the first that is malformed, or -1.
std::int64_t write_rows(View<const std::uint8_t> letters, View<const std::int64_t> letter_ends,
                        View<const std::uint8_t> cigars, View<const std::int64_t> cigar_ends,
                        View<const std::int64_t> query_starts, Matrix<std::uint8_t> rows) {
    const std::size_t n = rows.length;
    check_that(letter_ends.length == n && cigar_ends.length == n && query_starts.length == n,
               "the arrays differ in length");
    check_that(last_position(letter_ends, "the ends descend") <= letters.length &&
                   last_position(cigar_ends, "the ends descend") <= cigars.length,
               "the ends leave their array");
    const nb::gil_scoped_release no_lock;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t first_letter = i == 0 ? 0 : letter_ends[i - 1], first_sign = i == 0 ? 0 : cigar_ends[i - 1];
        const pssm::AlignedPart part{letters.data + first_letter,
                                     static_cast<std::size_t>(letter_ends[i] - first_letter),
                                     reinterpret_cast<const char*>(cigars.data) + first_sign,
                                     static_cast<std::size_t>(cigar_ends[i] - first_sign), query_starts[i]};
        if (!pssm::write_row(part, rows.columns, rows.data + i * rows.columns)) return static_cast<std::int64_t>(i);
    }
    return -1;
}

void keep_distinct(Matrix<const std::uint8_t> rows_array, int percent, View<std::uint8_t> keep) {
    const auto rows = checked_rows(rows_array);
    check_that(keep.length == rows.n_rows, "keep has another length than the rows");
    check_that(percent >= 0 && percent <= 100, "the percentage ranges from 0 to 100");
    const nb::gil_scoped_release no_lock;
    pssm::keep_distinct(rows, percent, keep.data);
}

void column_frequencies(Matrix<const std::uint8_t> rows_array, std::size_t min_width, View<const double> background,
                        int n_threads, Matrix<double, kAminoAcids> frequencies, View<double> diversity,
                        View<std::int64_t> n_present) {
    const auto rows = checked_rows(rows_array);
    check_threads(n_threads);
    check_that(background.length == kAminoAcids, "background has another length than 20");
    check_that(frequencies.length == rows.n_columns && diversity.length == rows.n_columns &&
                   n_present.length == rows.n_columns,
               "the outputs have another number of columns than the rows");
    const nb::gil_scoped_release no_lock;
    pssm::column_frequencies(rows, min_width, background.data, n_threads,
                             {frequencies.data, diversity.data, n_present.data});
}

void scaled_scores(Matrix<const double, kAminoAcids> values, View<const std::uint8_t> present, double low, double high,
                   int n_bisections, View<const double> odds, View<const double> composition,
                   Matrix<std::int64_t, kAminoAcids> scores) {
    check_that(present.length == values.length && scores.length == values.length, "the arrays differ in length");
    check_that(odds.length == pssm::kScores && composition.length == kAminoAcids,
               "there is one value of odds for each score, and one share for each amino acid");
    for (const std::int64_t score : scores) {
        check_that(score >= -pssm::kMostScore && score <= pssm::kMostScore, "a score is not between -127 and 127");
    }
    for (const double value : values) check_that(value == value, "a value is not a number");
    const nb::gil_scoped_release no_lock;
    pssm::scaled_scores(values.data, present.data, values.length, low, high, n_bisections, odds.data, composition.data,
                        scores.data);
}

}  // namespace

void bind_pssm(nb::module_& module) {
    define(module, "write_rows", &write_rows,
           {"letters", "letter_ends", "cigars", "cigar_ends", "query_starts", "rows"});
    define(module, "keep_distinct", &keep_distinct, {"rows", "percent", "keep"});
    define(module, "column_frequencies", &column_frequencies,
           {"rows", "min_width", "background", "n_threads", "frequencies", "diversity", "n_present"});
    define(module, "scaled_scores", &scaled_scores,
           {"values", "present", "low", "high", "n_bisections", "odds", "composition", "scores"});
}

}  // namespace swsearch
