// The operations and their order are those of the formula, element by element, so the values do not depend on the
// machine. CMakeLists.txt compiles this file without fused multiply-add.

#include "statistics/evalue.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "statistics/normal.hpp"

namespace swsearch::statistics {
namespace {

constexpr std::size_t kBlock = 64;  // elements whose intermediate values are held at once
constexpr std::int32_t kSmallestPower = -100'000;

using Block = std::array<double, kBlock>;

}  // namespace

bool evalues(const std::int64_t* scores, const double* lengths, std::size_t n, const EvalueModel& model,
             double* values) {
    for (std::size_t i = 0; i < n; ++i) {
        if (scores[i] < 0 || !(lengths[i] >= 1.0)) return false;
    }
    for (std::size_t first = 0; first < n; first += kBlock) {
        const std::size_t size = std::min(kBlock, n - first);
        Block spread, covariance, exponent, tail, at_query, at_subject;
        Block query_some, query_excess, subject_some, subject_excess;
        std::array<std::int32_t, kBlock> power;
        for (std::size_t i = 0; i < size; ++i) {
            const double score = static_cast<double>(scores[first + i] / model.score_step * model.score_step);
            const double mean = model.a * score + model.b;
            spread[i] = std::sqrt(std::max(model.least_variance, model.alpha * score + model.beta));
            covariance[i] = std::max(model.least_covariance, model.sigma * score + model.tau);
            at_query[i] = (model.query_length - mean) / spread[i];
            at_subject[i] = (lengths[first + i] - mean) / spread[i];
            exponent[i] = -model.lam * score;
        }
        normal(at_query.data(), size, query_some.data(), query_excess.data());
        normal(at_subject.data(), size, subject_some.data(), subject_excess.data());
        exp_parts(exponent.data(), size, tail.data(), power.data());
        for (std::size_t i = 0; i < size; ++i) {
            const double area = (spread[i] * query_excess[i]) * (spread[i] * subject_excess[i]) +
                                covariance[i] * (query_some[i] * subject_some[i]);
            const double factor = model.k * area * (model.search_space / lengths[first + i]) * tail[i];
            values[first + i] = std::ldexp(factor, std::max(power[i], kSmallestPower));
        }
    }
    return true;
}

}  // namespace swsearch::statistics
