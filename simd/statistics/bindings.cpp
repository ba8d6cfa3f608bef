// Bindings of simd/statistics: functions of arrays for swsearch/deterministic.py and swsearch/scoring, which describe
// them.

#include "common/python.hpp"
#include "statistics/composition.hpp"
#include "statistics/evalue.hpp"
#include "statistics/normal.hpp"

namespace swsearch {
void bind_statistics(nb::module_& module);

namespace {

template <void (*function)(const double*, std::size_t, double*)>
void of_each(const Array& x_array, const OutputArray& values_array) {
    const auto x = view_of<const double>(x_array, "x");
    const auto values = view_of<double>(values_array, "values");
    check_that(values.length == x.length, "the arrays differ in length");
    const nb::gil_scoped_release no_lock;
    function(x.data, x.length, values.data);
}

bool evalues(const Array& scores_array, const Array& lengths_array, const Array& model_array, std::int64_t score_step,
             const OutputArray& values_array) {
    const auto scores = view_of<const std::int64_t>(scores_array, "scores");
    const auto lengths = view_of<const double>(lengths_array, "lengths");
    const auto model = view_of<const double>(model_array, "model");
    const auto values = view_of<double>(values_array, "values");
    check_that(lengths.length == scores.length && values.length == scores.length, "the arrays differ in length");
    check_that(model.length == 12, "the model has 12 numbers");
    check_that(score_step >= 1, "score_step is below 1");
    const double* const m = model.data;
    const statistics::EvalueModel given{m[0], m[1], m[2], m[3],  m[4],  m[5],      m[6],
                                        m[7], m[8], m[9], m[10], m[11], score_step};
    const nb::gil_scoped_release no_lock;
    return statistics::evalues(scores.data, lengths.data, scores.length, given, values.data);
}

void normal(const Array& z_array, const OutputArray& cdf_array, const OutputArray& excess_array) {
    const auto z = view_of<const double>(z_array, "z");
    const auto cdf = view_of<double>(cdf_array, "cdf");
    const auto excess = view_of<double>(excess_array, "excess");
    check_that(cdf.length == z.length && excess.length == z.length, "the arrays differ in length");
    const nb::gil_scoped_release no_lock;
    statistics::normal(z.data, z.length, cdf.data, excess.data);
}

statistics::Letters checked_letters(const Array& kinds_array, const Array& ends_array, std::size_t n) {
    const auto kinds = view_of<const std::uint8_t>(kinds_array, "kinds");
    const auto ends = view_of<const std::int64_t>(ends_array, "ends");
    check_that(ends.length == n, "the arrays differ in length");
    check_that(last_position(ends, "the ends descend") <= kinds.length, "the ends leave their array");
    return {kinds.data, ends.data};
}

void composition_scales(const Array& kinds_of_one, const Array& ends_of_one, const Array& kinds_of_other,
                        const Array& ends_of_other, const Array& scores_array, const Array& background_array,
                        double pseudocounts, double usual, double lowest, const OutputArray& scales_array) {
    using statistics::kKinds;
    const auto scores = view_of<const std::int32_t, 2>(scores_array, "scores", kKinds);
    const auto background = view_of<const double>(background_array, "background");
    const auto scales = view_of<double>(scales_array, "scales");
    const auto one = checked_letters(kinds_of_one, ends_of_one, scales.length);
    const auto other = checked_letters(kinds_of_other, ends_of_other, scales.length);
    check_that(scores.length == kKinds && background.length == kKinds, "scores or background are not of 20 kinds");
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
    module.def("exp", &of_each<statistics::exp>, "x"_a, "values"_a,
               "Write exp(x).\n\nParameters: float64 arrays of one length.");
    module.def("log", &of_each<statistics::log>, "x"_a, "values"_a,
               "Write the natural logarithm of x.\n\nParameters: float64 arrays of one length.");
    module.def("evalues", &evalues, "scores"_a, "lengths"_a, "model"_a, "score_step"_a, "values"_a,
               "Write the E-values of raw scores with subjects of these lengths.\n\n"
               "Parameters: an int64 array; a float64 array of its length; the float64 array of lam, k, a, b, alpha, "
               "beta, the least variance, sigma, tau, the least covariance, the length of the query, and the residues "
               "of the search space times the number of comparisons; the step of scores; a float64 array.\n"
               "Returns False, and writes nothing, if a score is negative or a length below 1.");
    module.def("normal", &normal, "z"_a, "cdf"_a, "excess"_a,
               "Write the standard normal distribution and its partial expectation at z.\n\n"
               "Parameters: float64 arrays of one length.");
    module.def("composition_scales", &composition_scales, "kinds_of_one"_a, "ends_of_one"_a, "kinds_of_other"_a,
               "ends_of_other"_a, "scores"_a, "background"_a, "pseudocounts"_a, "usual"_a, "lowest"_a, "scales"_a);
}

}  // namespace swsearch
