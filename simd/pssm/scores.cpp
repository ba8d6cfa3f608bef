// Rounded scores and their mean odds. CMakeLists.txt compiles this file without fused multiply-add.

#include <algorithm>

#include "pssm/anchored.hpp"

namespace swsearch::pssm {

namespace {

// Writes the scores of one factor, and returns their mean odds.
double mean_odds(const double* values, const std::uint8_t* present, std::size_t n_positions, double factor,
                 const double* odds, const double* composition, std::int64_t* scores) {
    constexpr double kNoFraction = 6755399441055744.0;  // 1.5 * 2**52: a sum with it has no bits for a fraction
    std::array<std::array<std::uint32_t, kScores>, kAminoAcids> counts{};
    for (std::size_t i = 0; i < n_positions * kAminoAcids; ++i) {
        if (present[i / kAminoAcids] != 0) {
            const double limited = std::clamp(factor * values[i], -double{kMostScore}, double{kMostScore});
            scores[i] = static_cast<std::int64_t>((limited + kNoFraction) - kNoFraction);
        }
        ++counts[i % kAminoAcids][static_cast<std::size_t>(scores[i] + kMostScore)];
    }
    double mean = 0.0;
    for (std::size_t a = 0; a < kAminoAcids; ++a) {
        double of_one = 0.0;
        for (std::size_t score = 0; score < kScores; ++score) {
            if (counts[a][score] > 0) of_one += counts[a][score] * odds[score];  // most counts are 0
        }
        mean += of_one * composition[a];
    }
    return mean / static_cast<double>(n_positions);
}

}  // namespace

void scaled_scores(const double* values, const std::uint8_t* present, std::size_t n_positions, double low, double high,
                   int n_bisections, const double* odds, const double* composition, std::int64_t* scores) {
    for (; n_bisections > 0; --n_bisections) {
        const double middle = (low + high) / 2.0;
        const double mean = mean_odds(values, present, n_positions, middle, odds, composition, scores);
        (mean > 1.0 ? high : low) = middle;
    }
    mean_odds(values, present, n_positions, low, odds, composition, scores);
}

}  // namespace swsearch::pssm
