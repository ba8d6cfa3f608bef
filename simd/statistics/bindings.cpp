// Bindings of simd/statistics: functions of arrays for swsearch/deterministic.py and swsearch/scoring, which describe
// them.

#include "common/python.hpp"
#include "statistics/composition.hpp"
#include "statistics/evalue.hpp"
#include "statistics/normal.hpp"

namespace swsearch {

namespace {

template <void (*function)(const double*, std::size_t, double*)>
void of_each(View<const double> x, View<double> values) {
    check_that(values.length == x.length, "the arrays differ in length");
    const nb::gil_scoped_release no_lock;
    function(x.data, x.length, values.data);
}

bool evalues(View<const std::int64_t> scores, View<const double> lengths, View<const double> model,
             std::int64_t score_step, View<double> values) {
    check_that(lengths.length == scores.length && values.length == scores.length, "the arrays differ in length");
    check_that(model.length == 12, "the model has 12 numbers");
    check_that(score_step >= 1, "score_step is below 1");
    const double* const m = model.data;
    const statistics::EvalueModel given{m[0], m[1], m[2], m[3],  m[4],  m[5],      m[6],
                                        m[7], m[8], m[9], m[10], m[11], score_step};
    const nb::gil_scoped_release no_lock;
    return statistics::evalues(scores.data, lengths.data, scores.length, given, values.data);
}

void normal(View<const double> z, View<double> cdf, View<double> excess) {
    check_that(cdf.length == z.length && excess.length == z.length, "the arrays differ in length");
    const nb::gil_scoped_release no_lock;
    statistics::normal(z.data, z.length, cdf.data, excess.data);
}

statistics::Letters checked_letters(View<const std::uint8_t> kinds, View<const std::int64_t> ends, std::size_t n) {
    check_that(ends.length == n, "the arrays differ in length");
    check_that(last_position(ends, "the ends descend") <= kinds.length, "the ends leave their array");
    return {kinds.data, ends.data};
}

void composition_scales(View<const std::uint8_t> kinds_of_one, View<const std::int64_t> ends_of_one,
                        View<const std::uint8_t> kinds_of_other, View<const std::int64_t> ends_of_other,
                        Matrix<const std::int32_t, kAminoAcids> scores, View<const double> background,
                        double pseudocounts, double usual, double lowest, View<double> scales) {
    const auto one = checked_letters(kinds_of_one, ends_of_one, scales.length);
    const auto other = checked_letters(kinds_of_other, ends_of_other, scales.length);
    check_that(scores.length == kAminoAcids && background.length == kAminoAcids,
               "scores or background are not of 20 kinds");
    for (const std::int32_t score : scores) {
        check_that(score >= -statistics::kLargestScore && score <= statistics::kLargestScore, "a score is above 127");
    }
    check_that(pseudocounts > 0.0 && lowest >= 1.0 && usual >= lowest, "pseudocounts, lowest or usual is too small");
    const nb::gil_scoped_release no_lock;
    statistics::composition_scales(one, other, scales.length,
                                   {scores.data, background.data, pseudocounts, usual, lowest}, scales.data);
}

}  // namespace

void bind_statistics(nb::module_& module) {
    define(module, "exp", &of_each<statistics::exp>, {"x", "values"},
           "Write exp(x).\n\nParameters: float64 arrays of one length.");
    define(module, "log", &of_each<statistics::log>, {"x", "values"},
           "Write the natural logarithm of x.\n\nParameters: float64 arrays of one length.");
    define(module, "evalues", &evalues, {"scores", "lengths", "model", "score_step", "values"},
           "Write the E-values of raw scores with subjects of these lengths.\n\n"
           "Parameters: an int64 array; a float64 array of its length; the float64 array of lam, k, a, b, alpha, "
           "beta, the least variance, sigma, tau, the least covariance, the length of the query, and the residues "
           "of the search space times the number of comparisons; the step of scores; a float64 array.\n"
           "Returns False, and writes nothing, if a score is negative or a length below 1.");
    define(module, "normal", &normal, {"z", "cdf", "excess"},
           "Write the standard normal distribution and its partial expectation at z.\n\n"
           "Parameters: float64 arrays of one length.");
    define(module, "composition_scales", &composition_scales,
           {"kinds_of_one", "ends_of_one", "kinds_of_other", "ends_of_other", "scores", "background", "pseudocounts",
            "usual", "lowest", "scales"});
}

}  // namespace swsearch
