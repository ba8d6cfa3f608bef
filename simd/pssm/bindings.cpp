// Bindings of simd/pssm: functions of query-anchored alignments and of their scores for swsearch/query, which describes
// them.

#include "common/python.hpp"
#include "pssm/anchored.hpp"

namespace swsearch {
void bind_pssm(nb::module_& module);

namespace {

constexpr std::size_t kCodesOfRows = 32;

pssm::Rows checked_rows(const Array& array) {
    const auto rows = view_of<const std::uint8_t, 2>(array, "rows");
    check_that(rows.length > 0 && rows.columns > 0, "there are no rows, or they are empty");
    for (const std::uint8_t code : rows) check_that(code < kCodesOfRows, "a code of the rows is above 31");
    return {rows.data, rows.length, rows.columns};
}

// Writes the row of each alignment; returns the index of the first that is malformed, or -1.
std::int64_t write_rows(const Array& letters_array, const Array& letter_ends_array, const Array& cigars_array,
                        const Array& cigar_ends_array, const Array& starts_array, const OutputArray& rows_array) {
    const auto letters = view_of<const std::uint8_t>(letters_array, "letters");
    const auto letter_ends = view_of<const std::int64_t>(letter_ends_array, "letter_ends");
    const auto cigars = view_of<const std::uint8_t>(cigars_array, "cigars");
    const auto cigar_ends = view_of<const std::int64_t>(cigar_ends_array, "cigar_ends");
    const auto starts = view_of<const std::int64_t>(starts_array, "query_starts");
    const auto rows = view_of<std::uint8_t, 2>(rows_array, "rows");
    const std::size_t n = rows.length;
    check_that(letter_ends.length == n && cigar_ends.length == n && starts.length == n, "the arrays differ in length");
    check_that(last_position(letter_ends, "the ends descend") <= letters.length &&
                   last_position(cigar_ends, "the ends descend") <= cigars.length,
               "the ends leave their array");
    const nb::gil_scoped_release no_lock;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t first_letter = i == 0 ? 0 : letter_ends[i - 1], first_sign = i == 0 ? 0 : cigar_ends[i - 1];
        const pssm::AlignedPart part{letters.data + first_letter,
                                     static_cast<std::size_t>(letter_ends[i] - first_letter),
                                     reinterpret_cast<const char*>(cigars.data) + first_sign,
                                     static_cast<std::size_t>(cigar_ends[i] - first_sign), starts[i]};
        if (!pssm::write_row(part, rows.columns, rows.data + i * rows.columns)) return static_cast<std::int64_t>(i);
    }
    return -1;
}

void keep_distinct(const Array& rows_array, int percent, const OutputArray& keep_array) {
    const auto rows = checked_rows(rows_array);
    const auto keep = view_of<std::uint8_t>(keep_array, "keep");
    check_that(keep.length == rows.n_rows, "keep has another length than the rows");
    check_that(percent >= 0 && percent <= 100, "the percentage ranges from 0 to 100");
    const nb::gil_scoped_release no_lock;
    pssm::keep_distinct(rows, percent, keep.data);
}

void column_frequencies(const Array& rows_array, std::size_t min_width, const Array& background_array, int n_threads,
                        const OutputArray& frequencies_array, const OutputArray& diversity_array,
                        const OutputArray& n_present_array) {
    const auto rows = checked_rows(rows_array);
    const auto background = view_of<const double>(background_array, "background");
    const auto frequencies = view_of<double, 2>(frequencies_array, "frequencies", pssm::kAminoAcids);
    const auto diversity = view_of<double>(diversity_array, "diversity");
    const auto n_present = view_of<std::int64_t>(n_present_array, "n_present");
    check_threads(n_threads);
    check_that(background.length == pssm::kAminoAcids, "background has another length than 20");
    check_that(frequencies.length == rows.n_columns && diversity.length == rows.n_columns &&
                   n_present.length == rows.n_columns,
               "the outputs have another number of columns than the rows");
    const nb::gil_scoped_release no_lock;
    pssm::column_frequencies(rows, min_width, background.data, n_threads,
                             {frequencies.data, diversity.data, n_present.data});
}

double scaled_scores(const Array& values_array, const Array& present_array, double factor, const Array& odds_array,
                     const Array& composition_array, const OutputArray& scores_array) {
    const auto values = view_of<const double, 2>(values_array, "values", pssm::kAminoAcids);
    const auto present = view_of<const std::uint8_t>(present_array, "present");
    const auto odds = view_of<const double>(odds_array, "odds");
    const auto composition = view_of<const double>(composition_array, "composition");
    const auto scores = view_of<std::int64_t, 2>(scores_array, "scores", pssm::kAminoAcids);
    check_that(present.length == values.length && scores.length == values.length, "the arrays differ in length");
    check_that(odds.length == pssm::kScores && composition.length == pssm::kAminoAcids,
               "there is one value of odds for each score, and one share for each amino acid");
    for (const std::int64_t score : scores) {
        check_that(score >= -pssm::kMostScore && score <= pssm::kMostScore, "a score is not between -127 and 127");
    }
    for (const double value : values) check_that(value == value, "a value is not a number");
    const nb::gil_scoped_release no_lock;
    return pssm::scaled_scores(values.data, present.data, values.length, factor, odds.data, composition.data,
                               scores.data);
}

}  // namespace

void bind_pssm(nb::module_& module) {
    module.def("write_rows", &write_rows, "letters"_a, "letter_ends"_a, "cigars"_a, "cigar_ends"_a, "query_starts"_a,
               "rows"_a);
    module.def("keep_distinct", &keep_distinct, "rows"_a, "percent"_a, "keep"_a);
    module.def("column_frequencies", &column_frequencies, "rows"_a, "min_width"_a, "background"_a, "n_threads"_a,
               "frequencies"_a, "diversity"_a, "n_present"_a);
    module.def("scaled_scores", &scaled_scores, "values"_a, "present"_a, "factor"_a, "odds"_a, "composition"_a,
               "scores"_a);
}

}  // namespace swsearch
