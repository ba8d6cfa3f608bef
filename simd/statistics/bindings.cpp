// Bindings of simd/statistics: functions of arrays for swsearch/deterministic.py, which describes them.

#include "common/python.hpp"
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

}  // namespace

void bind_statistics(nb::module_& module) {
    module.def("exp_parts", &exp_parts, "x"_a, "mantissa"_a, "exponent"_a,
               "Write exp(x) as mantissa * 2**exponent.\n\n"
               "Parameters: float64, float64 and int32 arrays of one length.");
    module.def("normal", &normal, "z"_a, "cdf"_a, "excess"_a,
               "Write the standard normal distribution and its partial expectation at z.\n\n"
               "Parameters: float64 arrays of one length.");
}

}  // namespace swsearch
