// CMakeLists.txt compiles this file without fused multiply-add, whose results have other last bits.

#include "statistics/composition.hpp"

#include <algorithm>
#include <array>

namespace swsearch::statistics {
namespace {

constexpr int kMostSteps = 60;

using Composition = std::array<double, kAminoAcids>;

Composition proportions(const Letters& letters, std::size_t i, const CompositionModel& model) {
    std::array<std::int64_t, 256> counts{};
    for (std::int64_t at = i == 0 ? 0 : letters.ends[i - 1]; at < letters.ends[i]; ++at) ++counts[letters.kinds[at]];
    std::int64_t n = 0;
    for (std::size_t kind = 0; kind < kAminoAcids; ++kind) n += counts[kind];
    Composition found;
    for (std::size_t kind = 0; kind < kAminoAcids; ++kind) {
        const double expected = model.pseudocounts * model.background[kind];
        found[kind] = (static_cast<double>(counts[kind]) + expected) / (static_cast<double>(n) + model.pseudocounts);
    }
    return found;
}

// The probability of each score of two letters, from the lowest score on.
struct ScoreDistribution {
    int lowest = kLargestScore;
    int highest = -kLargestScore;
    std::array<double, 2 * kLargestScore + 1> probability{};

    explicit ScoreDistribution(const std::int32_t* scores) {
        for (std::size_t pair = 0; pair < kAminoAcids * kAminoAcids; ++pair) {
            lowest = std::min(lowest, scores[pair]);
            highest = std::max(highest, scores[pair]);
        }
    }

    void fill(const std::int32_t* scores, const Composition& one, const Composition& other) {
        std::fill(probability.begin(), probability.begin() + (highest - lowest + 1), 0.0);
        for (std::size_t a = 0; a < kAminoAcids; ++a) {
            for (std::size_t b = 0; b < kAminoAcids; ++b) {
                probability[static_cast<std::size_t>(scores[a * kAminoAcids + b] - lowest)] += one[a] * other[b];
            }
        }
    }

    // Sum of p(s) x^s less the sum of p(s), and its derivative, both multiplied by the same positive power of x.
    void excess(double x, double total, double& value, double& slope) const {
        // With f(x) = sum of p(s) x^(s - lowest), the function is x^lowest f(x) - total.
        double f = 0.0, derivative = 0.0;
        for (int score = highest; score >= lowest; --score) {
            derivative = derivative * x + f;
            f = f * x + probability[static_cast<std::size_t>(score - lowest)];
        }
        double power = 1.0;  // x^-lowest
        for (int i = 0; i < -lowest; ++i) power = power * x;
        value = f - total * power;
        slope = derivative + static_cast<double>(lowest) * f / x;
    }
};

}  // namespace

void composition_scales(const Letters& one, const Letters& other, std::size_t n, const CompositionModel& model,
                        double* scales) {
    ScoreDistribution distribution(model.scores);
    for (std::size_t i = 0; i < n; ++i) {
        distribution.fill(model.scores, proportions(one, i, model), proportions(other, i, model));
        double total = 0.0;
        for (int score = distribution.lowest; score <= distribution.highest; ++score) {
            total += distribution.probability[static_cast<std::size_t>(score - distribution.lowest)];
        }
        // The sum of p(s) x^s is a convex function of log x that is `total` at 1 and, if the mean score is negative, at
        // one larger x. Newton's method descends to that x if it begins above it.
        double x = model.usual;
        for (int step = 0; step < kMostSteps; ++step) {
            double value, slope;
            distribution.excess(x, total, value, slope);
            if (value <= 0.0) break;
            const double next = slope > 0.0 ? std::max(x - value / slope, model.lowest) : model.lowest;
            if (next >= x) break;
            x = next;
        }
        scales[i] = x;
    }
}

}  // namespace swsearch::statistics
