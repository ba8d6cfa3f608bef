// E-values of raw scores with the finite-size correction. swsearch/scoring/karlin_altschul.py describes the formula.

#pragma once

#include <cstddef>
#include <cstdint>

namespace swsearch::statistics {

// The parameters of a scoring scheme and of one query.
struct EvalueModel {
    double lam, k;
    double a, b;                         // mean aligned length of score S: a * S + b
    double alpha, beta, least_variance;  // its variance: alpha * S + beta, but at least this
    double sigma, tau, least_covariance;
    double query_length;
    double search_space;      // residues, times the number of comparisons with a subject
    std::int64_t score_step;  // scores are rounded down to a multiple of it
};

// values[i] is the E-value of scores[i] with a subject of lengths[i] residues. Returns false, and writes nothing, if a
// score is negative or a length below 1.
bool evalues(const std::int64_t* scores, const double* lengths, std::size_t n, const EvalueModel& model,
             double* values);

}  // namespace swsearch::statistics
