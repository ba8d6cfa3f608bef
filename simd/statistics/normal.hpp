// exp, log and the standard normal distribution, element by element, from operations whose results IEEE 754 defines, so
// that every machine computes the same bytes. swsearch/deterministic.py describes the functions and their errors.

#pragma once

#include <cstddef>
#include <cstdint>

namespace swsearch::statistics {

// exp(x[i]) = mantissa[i] * 2**exponent[i].
void exp_parts(const double* x, std::size_t n, double* mantissa, std::int32_t* exponent);

// values[i] = exp(x[i]): 0 in case of underflow, infinity in case of overflow.
void exp(const double* x, std::size_t n, double* values);

// values[i] is the natural logarithm of x[i]: -infinity at 0, NaN for negative values.
void log(const double* x, std::size_t n, double* values);

// cdf[i] = P(Z <= z[i]) and excess[i] = E[max(0, z[i] + Z)] of a standard normal Z.
void normal(const double* z, std::size_t n, double* cdf, double* excess);

}  // namespace swsearch::statistics
