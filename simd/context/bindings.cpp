// Bindings of simd/context: contexts for swsearch/query/contexts.py, odds of columns and Forward totals for
// swsearch/query/columns.py, which describe them.

#include <nanobind/stl/string.h>

#include <algorithm>
#include <numeric>

#include "common/python.hpp"
#include "context/context.hpp"

namespace swsearch {

namespace {

void context_sums(Matrix<const std::int16_t> costs, View<const std::int32_t> priors, View<const double> weights,
                  Matrix<const double, kAminoAcids> central, Matrix<const std::int32_t, kAminoAcids> counts,
                  Matrix<double, kAminoAcids> sums, int n_threads, const std::string& instruction_set) {
    constexpr std::int64_t kMostCounted = 1001 << context::kCountBits;  // at a position
    require_columns(costs, "costs", priors.length);
    const std::size_t width = costs.length / kAminoAcids;
    check_that(costs.length == width * kAminoAcids && width % 2 == 1, "the width of the window is odd");
    check_that(priors.length % context::kRowMultiple == 0 && priors.length > 0 && central.length == priors.length,
               "the arrays of the contexts do not fit together, or their number is not a multiple of 32");
    check_that(sums.length == counts.length, "there is one row of sums for each position");
    for (std::size_t i = 0; i < counts.length; ++i) {
        std::int64_t counted = 0;
        for (std::size_t a = 0; a < kAminoAcids; ++a) {
            const std::int32_t count = counts[i * kAminoAcids + a];
            check_that(count >= 0, "a number of observations is negative");
            counted += count;
        }
        check_that(counted <= kMostCounted, "a position has more than 1,000 observations");
    }
    const context::Library library{priors.length, width,          costs.data,  priors.data,
                                   weights.data,  weights.length, central.data};
    const context::Kernels& kernels = context::kernels_of(instruction_set);
    PythonPoll poll;
    const nb::gil_scoped_release no_lock;
    context::context_sums(library, counts.data, counts.length, kernels, poll.threads(n_threads), sums.data);
}

context::PackedNetwork checked_network(const View<const std::int16_t>& first,
                                       const View<const std::int16_t>& first_bias,
                                       const View<const std::int16_t>& second,
                                       const View<const std::int32_t>& second_bias,
                                       const View<const std::int16_t>& third,
                                       const View<const std::int32_t>& third_bias, const View<const float>& powers) {
    const std::size_t n_first = first_bias.length;
    require_columns(first, "first", n_first);
    const std::size_t n_second = second_bias.length;
    require_columns(second, "second", n_first);
    require_columns(third, "third", n_second);
    const std::size_t width = first.length / context::kLetters;
    check_that(first.length % context::kLetters == 0 && width % 2 == 1, "the width of the window is odd");
    for (const std::size_t n : {n_first, n_second}) {
        check_that(n % context::kRowMultiple == 0 && n > 0 && n <= context::kMostUnits,
                   "a layer has 32 to 1,024 units");
    }
    check_that(second.length == n_second && third.length == kAminoAcids && third_bias.length == kAminoAcids &&
                   powers.length == std::size_t{1} << context::kPowerBits,
               "the layers of the model do not fit together");
    return context::PackedNetwork({width, n_first, n_second, first.data, first_bias.data, second.data, second_bias.data,
                                   third.data, third_bias.data, powers.data});
}

std::size_t n_residues(const Subjects& subjects) {
    return std::accumulate(subjects.lengths, subjects.lengths + subjects.n, std::size_t{0});
}

void context_odds(Matrix<const std::int16_t> first, View<const std::int16_t> first_bias,
                  Matrix<const std::int16_t> second, View<const std::int32_t> second_bias,
                  Matrix<const std::int16_t> third, View<const std::int32_t> third_bias, View<const float> powers,
                  View<const float> inverse_background, float admixture, Residues residues, Starts starts,
                  Lengths lengths, Matrix<std::int16_t, kAminoAcids> odds, int n_threads,
                  const std::string& instruction_set) {
    const context::PackedNetwork network =
        checked_network(first, first_bias, second, second_bias, third, third_bias, powers);
    check_that(inverse_background.length == kAminoAcids, "inverse_background has another length than 20");
    check_that(admixture >= 0.0F && admixture <= 1.0F, "the admixture ranges from 0 to 1");
    for (std::size_t a = 0; a < kAminoAcids; ++a) {
        const bool is_share = inverse_background[a] >= 1.0F && inverse_background[a] < context::kMostOdds;
        check_that(is_share, "the composition has a share that is not above 1/127, or above 1");
    }
    const Subjects subjects = checked_subjects(residues, starts, lengths);
    check_that(odds.length == n_residues(subjects), "odds has another length than the subjects together");
    const context::Kernels& kernels = context::kernels_of(instruction_set);
    PythonPoll poll;
    const nb::gil_scoped_release no_lock;
    context::subject_odds(network.network(), {inverse_background.data, admixture}, subjects, kernels,
                          poll.threads(n_threads), odds.data);
}

// Whether the values of a block stay in the range of float between two looks at their size.
void check_gaps(const View<const float>& gaps) {
    constexpr float kMost = 1 << 20;
    float deleted = 0.0F;
    for (std::size_t i = 0; i < gaps.length; ++i) {
        const float* const factors = gaps.data + i * gaps.columns;
        deleted = factors[0] + factors[1] * deleted;
        const bool is_positive = std::all_of(factors, factors + gaps.columns, [](float one) { return one >= 0.0F; });
        check_that(is_positive && deleted <= kMost && factors[2] <= kMost && factors[3] <= 1.0F,
                   "a factor of a gap of the query is out of range");
    }
}

void forward_totals(Matrix<const float, kAminoAcids> query,
                    Matrix<const float, sizeof(context::GapFactors) / sizeof(float)> gaps,
                    Matrix<const std::int16_t, kAminoAcids> odds, Starts starts, Lengths lengths, Matrix<float> totals,
                    Matrix<std::int32_t> exponents, int n_threads, const std::string& instruction_set) {
    check_that(gaps.length == query.length, "there is one row of gaps for each position");
    check_gaps(gaps);
    for (std::size_t i = 0; i < query.length; ++i) {
        float sum = 0.0F;
        for (std::size_t a = 0; a < kAminoAcids; ++a) {
            check_that(query[i * kAminoAcids + a] >= 0.0F, "a column of the query has a negative share");
            sum += query[i * kAminoAcids + a];
        }
        check_that(sum < 1.01F, "the sum of a column of the query exceeds 1");
    }
    check_inside(starts, lengths, odds.length);
    const std::size_t n_blocks = context::n_blocks(query.length);
    require_columns(totals, "totals", n_blocks);
    require_columns(exponents, "exponents", n_blocks);
    const bool is_one_each = totals.length == starts.length && exponents.length == starts.length;
    check_that(is_one_each, "there is one row of totals for each subject");
    const context::Kernels& kernels = context::kernels_of(instruction_set);
    PythonPoll poll;
    const nb::gil_scoped_release no_lock;
    context::forward_totals({query.data, reinterpret_cast<const context::GapFactors*>(gaps.data), query.length},
                            {odds.data, starts.data, lengths.data, starts.length}, kernels, poll.threads(n_threads),
                            totals.data, exponents.data);
}

}  // namespace

void bind_context(nb::module_& module) {
    define(module, "context_sums", &context_sums, {"costs", "priors", "weights", "central", "counts", "sums"},
           "n_threads"_a = 1, "instruction_set"_a = "auto");
    define(module, "context_odds", &context_odds,
           {"first", "first_bias", "second", "second_bias", "third", "third_bias", "powers", "inverse_background",
            "admixture", "residues", "starts", "lengths", "odds"},
           "n_threads"_a = 1, "instruction_set"_a = "auto");
    define(module, "forward_totals", &forward_totals,
           {"query", "gaps", "odds", "starts", "lengths", "totals", "exponents"}, "n_threads"_a = 1,
           "instruction_set"_a = "auto");
}

}  // namespace swsearch
