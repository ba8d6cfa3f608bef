// Bindings of simd/statistics: functions of arrays for swsearch/deterministic.py and swsearch/statistics, which describe
// them.

#include "common/python.hpp"
#include "statistics/composition.hpp"
#include "statistics/normal.hpp"

namespace swsearch {
void bind_statistics(nb::module_& module);

namespace {

void exp_parts(const Array& x_array, const OutputArray& mantissa_array, const OutputArray& exponent_array) {
    const auto x = view_of<const double>(x_array, "x");
    const auto mantissa = view_of<double>(mantissa_array, "mantissa");
    const auto exponent = view_of<std::int32_t>(exponent_array, "exponent");
    check_that(mantissa.length == x.length && exponent.length == x.length, "the arrays differ in length");
    const nb::gil_scoped_release no_lock;
    statistics::exp_parts(x.data, x.length, mantissa.data, exponent.data);
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
    std::int64_t last = 0;
    for (const std::int64_t end : ends) {
        check_that(end >= last, "the ends descend");
        last = end;
    }
    check_that(static_cast<std::size_t>(last) <= kinds.length, "the ends leave their array");
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
    module.def("exp_parts", &exp_parts, "x"_a, "mantissa"_a, "exponent"_a,
               "Write exp(x) as mantissa * 2**exponent.\n\n"
               "Parameters: float64, float64 and int32 arrays of one length.");
    module.def("normal", &normal, "z"_a, "cdf"_a, "excess"_a,
               "Write the standard normal distribution and its partial expectation at z.\n\n"
               "Parameters: float64 arrays of one length.");
    module.def("composition_scales", &composition_scales, "kinds_of_one"_a, "ends_of_one"_a,
               "kinds_of_other"_a, "ends_of_other"_a, "scores"_a, "background"_a, "pseudocounts"_a, "usual"_a, "lowest"_a, "scales"_a);
}

}  // namespace swsearch
