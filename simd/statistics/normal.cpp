// The loops have the same operations in the same order for every element, so the compiler may use vectors of any width.
// CMakeLists.txt compiles this file without fused multiply-add, whose results have other last bits.

#include "statistics/normal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace swsearch::statistics {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2High = 0.693145751953125;  // 0xB1721 / 2**20: its product with an exponent below 2**32 is exact
constexpr double kLn2Low = 1.4286068203094173e-06;
constexpr double kLargestExponent = 1e8;  // exp of this is infinite, and exp of its negative 0
constexpr int kExpTerms = 14;             // (ln 2 / 2)**14 / 14! is below 5e-18
constexpr double kSqrtHalf = 0.7071067811865476;
constexpr int kLogTerms = 11;  // s**22 / 23 is below 1e-18 for s = (sqrt(2) - 1) / (sqrt(2) + 1)
constexpr double kInverseSqrtTau = 0.3989422804014327;
constexpr double kSeriesLimit = 2.5;  // the series converges fast below, the continued fraction above
constexpr int kSeriesTerms = 40;
constexpr int kFractionLevels = 80;
constexpr std::size_t kBlock = 8;  // elements of a block: enough divisions at once to hide the time of each

using Block = std::array<double, kBlock>;

// exp(x) = mantissa * 2**power; a NaN stays in the mantissa.
void exp_of(Block x, Block& mantissa, Block& power) {
    Block rest;
    for (std::size_t i = 0; i < kBlock; ++i) {
        x[i] = x[i] < -kLargestExponent ? -kLargestExponent : x[i];
        x[i] = x[i] > kLargestExponent ? kLargestExponent : x[i];
        power[i] = std::nearbyint((x[i] == x[i] ? x[i] : 0.0) * kLog2E);
        rest[i] = (x[i] - power[i] * kLn2High) - power[i] * kLn2Low;
        mantissa[i] = 1.0;
    }
    for (int term = kExpTerms; term > 0; --term) {
        const double divisor = term;
        for (std::size_t i = 0; i < kBlock; ++i) mantissa[i] = mantissa[i] * rest[i] / divisor + 1.0;
    }
}

// The density of the distribution at t.
void density_at(const Block& t, Block& density) {
    Block x, mantissa, power;
    for (std::size_t i = 0; i < kBlock; ++i) x[i] = -0.5 * t[i] * t[i];
    exp_of(x, mantissa, power);
    for (std::size_t i = 0; i < kBlock; ++i) {
        density[i] = std::ldexp(mantissa[i], static_cast<int>(std::max(power[i], -3000.0))) * kInverseSqrtTau;
    }
}

// P(Z <= -t) and E[max(0, Z - t)] by a power series, for small t.
void by_series(const Block& t, const Block& density, Block& tail, Block& excess) {
    Block term = t, total = t, square;
    for (std::size_t i = 0; i < kBlock; ++i) square[i] = t[i] * t[i];
    for (int odd = 3; odd < 2 * kSeriesTerms; odd += 2) {
        const double divisor = odd;
        for (std::size_t i = 0; i < kBlock; ++i) {
            term[i] = term[i] * square[i] / divisor;
            total[i] += term[i];
        }
    }
    for (std::size_t i = 0; i < kBlock; ++i) {
        tail[i] = 0.5 - density[i] * total[i];
        excess[i] = density[i] - t[i] * tail[i];
    }
}

// The same by a continued fraction, for large t.
void by_fraction(const Block& t, const Block& density, Block& tail, Block& excess) {
    Block fraction{};
    for (int level = kFractionLevels; level > 0; --level) {
        const double dividend = level;
        for (std::size_t i = 0; i < kBlock; ++i) fraction[i] = dividend / (fraction[i] + t[i]);
    }
    for (std::size_t i = 0; i < kBlock; ++i) {
        tail[i] = density[i] / (t[i] + fraction[i]);
        excess[i] = tail[i] * fraction[i];
    }
}

}  // namespace

void exp_parts(const double* x, std::size_t n, double* mantissa, std::int32_t* exponent) {
    for (std::size_t first = 0; first < n; first += kBlock) {
        const std::size_t size = std::min(kBlock, n - first);
        Block given{}, mantissas, powers;
        std::copy_n(x + first, size, given.begin());
        exp_of(given, mantissas, powers);
        for (std::size_t i = 0; i < size; ++i) {
            mantissa[first + i] = mantissas[i];
            exponent[first + i] = static_cast<std::int32_t>(powers[i]);
        }
    }
}

void exp(const double* x, std::size_t n, double* values) {
    std::vector<std::int32_t> exponents(n);
    exp_parts(x, n, values, exponents.data());
    for (std::size_t i = 0; i < n; ++i) values[i] = std::ldexp(values[i], std::clamp(exponents[i], -3000, 3000));
}

void log(const double* x, std::size_t n, double* values) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < n; ++i) {
        if (!(x[i] > 0.0 && x[i] < kInfinity)) {
            const bool is_positive = x[i] > 0.0;
            values[i] = x[i] == 0.0 ? -kInfinity : is_positive ? kInfinity : std::numeric_limits<double>::quiet_NaN();
            continue;
        }
        int exponent = 0;
        double mantissa = std::frexp(x[i], &exponent);
        if (mantissa < kSqrtHalf) {
            mantissa = 2.0 * mantissa;
            exponent -= 1;
        }
        const double power = exponent;
        const double f = mantissa - 1.0;
        const double s = f / (2.0 + f);
        const double square = s * s;
        double series = 0.0;
        for (int term = kLogTerms; term > 0; --term) series = (2.0 / (2 * term + 1) + series) * square;
        values[i] = power * kLn2High - ((s * (f - series) - power * kLn2Low) - f);
    }
}

void normal(const double* z, std::size_t n, double* cdf, double* excess) {
    for (std::size_t first = 0; first < n; first += kBlock) {
        const std::size_t size = std::min(kBlock, n - first);
        Block t{}, density{}, near_tail{}, near_excess{}, far_tail{}, far_excess{};
        bool any_near = false, any_far = false;
        for (std::size_t i = 0; i < size; ++i) {
            t[i] = std::fabs(z[first + i]);
            (t[i] < kSeriesLimit ? any_near : any_far) = true;
        }
        density_at(t, density);
        if (any_near) by_series(t, density, near_tail, near_excess);
        if (any_far) by_fraction(t, density, far_tail, far_excess);
        for (std::size_t i = 0; i < size; ++i) {
            const bool is_near = t[i] < kSeriesLimit;
            const double tail = is_near ? near_tail[i] : far_tail[i];
            const double beyond = is_near ? near_excess[i] : far_excess[i];
            const bool is_negative = z[first + i] < 0;
            cdf[first + i] = is_negative ? tail : 1.0 - tail;
            excess[first + i] = is_negative ? beyond : t[i] + beyond;
        }
    }
}

}  // namespace swsearch::statistics
