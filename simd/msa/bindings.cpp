// Bindings of simd/msa: functions of alignments as arrays of codes; swsearch/report/row_filter.py describes them.

#include <numeric>
#include <stdexcept>
#include <vector>

#include "common/python.hpp"
#include "msa/effective_number.hpp"
#include "msa/rows.hpp"
#include "msa/selection.hpp"

namespace swsearch {

namespace {

constexpr int kMaxKinds = 32;

std::uint8_t checked_kinds(int n_kinds) {
    check_that(n_kinds >= 1 && n_kinds <= kMaxKinds, "n_kinds ranges from 1 to 32");
    return static_cast<std::uint8_t>(n_kinds);
}

void select_rows(Matrix<const std::uint8_t> codes, View<const std::uint32_t> order, int n_kinds, int max_identity,
                 int min_identity, std::int64_t at_least, View<std::uint8_t> taken) {
    check_that(taken.length == codes.length, "taken and codes differ in length");
    check_that(max_identity >= 0 && max_identity <= 100, "max_identity ranges from 0 to 100");
    check_that(min_identity >= 0, "min_identity is negative");
    check_that(at_least >= 0, "at_least is negative");
    const std::uint8_t kinds = checked_kinds(n_kinds);
    for (const std::uint32_t row : order) check_that(row < codes.length, "order has a number that is not a row");
    const nb::gil_scoped_release no_lock;
    const msa::Rows rows(codes.data, {order.begin(), order.end()}, codes.columns, kinds);
    for (std::size_t i = 1; i < rows.size(); ++i) {
        if (rows[i].residues == 0) throw std::invalid_argument("a row of order has no residue");
    }
    const auto is_taken = msa::select(rows, codes.length, {max_identity, min_identity, at_least});
    for (std::size_t i = 0; i < rows.size(); ++i) taken[order[i]] = is_taken[i];
}

double effective_number(Matrix<const std::uint8_t> codes, int n_kinds, int n_threads) {
    const std::uint8_t kinds = checked_kinds(n_kinds);
    check_threads(n_threads);
    const nb::gil_scoped_release no_lock;
    std::vector<std::uint32_t> every(codes.length);
    std::iota(every.begin(), every.end(), 0u);
    return msa::effective_number({codes.data, every, codes.columns, kinds}, n_threads);
}

}  // namespace

void bind_msa(nb::module_& module) {
    define(module, "select_rows", &select_rows,
           {"codes", "order", "n_kinds", "max_identity", "min_identity", "at_least", "taken"},
           "Write 1 for the rows of an alignment that are not too similar to each other.\n\n"
           "Parameters: codes uint8 (n_rows, n_columns), codes below n_kinds are residues; order uint32, the rows "
           "that are offered, the query first, none of the others without residues; max_identity percent; at_least "
           "rows in each window of columns, or 0, and min_identity, the limit to begin with; taken uint8 (n_rows,).");
    define(module, "effective_number", &effective_number, {"codes", "n_kinds", "n_threads"},
           "The effective number of sequences (Neff) of an alignment, uint8 (n_rows, n_columns).");
}

}  // namespace swsearch
