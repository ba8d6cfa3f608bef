// Drives simd/context without Python, to be built with sanitizers: the sums of contexts, and the columns of random sequences and their Forward
// totals with a query are computed with every instruction set and compared, bit by bit, with those of the scalar kernels,
// and these with plain loops in double. Residues are heap blocks of exactly their length.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/instruction_sets.hpp"
#include "context/context.hpp"
#include "plain_gotoh.hpp"

namespace {

using namespace swsearch;
using context::kLetters;

struct Model {
    std::vector<std::int16_t> first, first_bias, second, third;
    std::vector<std::int32_t> second_bias, third_bias;
    std::vector<float> powers;
    std::size_t width;

    Model(Random& random, std::size_t width_, std::size_t n_first, std::size_t n_second) : width(width_) {
        const auto fill = [&](auto& values, std::size_t n, std::int32_t most) {
            using Value = typename std::decay_t<decltype(values)>::value_type;
            for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<Value>(random.between(-most, most)));
        };
        fill(first, width * kLetters * n_first, 400);
        fill(first_bias, n_first, 400);
        fill(second, n_second * n_first, 1500);
        fill(second_bias, n_second, 200'000);
        fill(third, kAminoAcids * n_second, 1500);
        fill(third_bias, kAminoAcids, 200'000);
        for (int i = 0; i < 1 << context::kPowerBits; ++i) {
            powers.push_back(static_cast<float>(std::exp2(static_cast<double>(i) / (1 << context::kPowerBits))));
        }
    }

    context::Network network() const {
        return {width, first_bias.size(), second_bias.size(), first.data(), first_bias.data(), second.data(),
                second_bias.data(), third.data(), third_bias.data(), powers.data()};
    }
};

struct Found {
    std::vector<std::int16_t> odds;
    std::vector<float> totals;
    std::vector<std::int32_t> exponents;

    bool operator==(const Found& other) const {
        return odds == other.odds && exponents == other.exponents &&
               std::memcmp(totals.data(), other.totals.data(), totals.size() * sizeof(float)) == 0;
    }
};

Found computed(const context::Network& network, const context::Mixture& mixture, const context::ForwardQuery& query,
               const Subjects& subjects, std::size_t n_residues, const std::string& instruction_set, int n_threads) {
    const std::size_t n_totals = subjects.n * context::n_blocks(query.length);
    Found found{std::vector<std::int16_t>(n_residues * kAminoAcids), std::vector<float>(n_totals),
                std::vector<std::int32_t>(n_totals)};
    Observer observer;
    const context::Kernels& kernels = context::kernels_of(instruction_set);
    context::subject_odds(network, mixture, subjects, kernels, {n_threads, observer}, found.odds.data());
    context::forward_totals(query, {found.odds.data(), subjects.starts, subjects.lengths, subjects.n}, kernels, {n_threads, observer},
                            found.totals.data(), found.exponents.data());
    return found;
}

// A number rounded to a multiple of 1/units.
double rounded(float value, float units) { return std::floor(value * units + 0.5F) / units; }

// The logarithm to base 2 of the total of a subject of n residues. Columns of the query are rounded as
// docs/design/sensitivity.md says; everything else is computed in double precision.
double plain_total(const context::ForwardQuery& query, std::size_t n, const std::int16_t* subject) {
    std::vector<double> p(query.length + 1), y(query.length + 1);
    double total = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        std::vector<double> m(query.length + 1), x(query.length + 1);
        for (std::size_t i = 1; i <= query.length; ++i) {
            double odds = 0.0;
            for (std::size_t a = 0; a < kAminoAcids; ++a) {
                odds += rounded(query.columns[(i - 1) * kAminoAcids + a], 32768.0F) * subject[j * kAminoAcids + a] / 256.0;
            }
            m[i] = odds * (1.0 + p[i - 1] + y[i - 1]);
            const context::GapFactors& gaps = query.gaps[i - 1];
            x[i] = gaps.deletion * m[i - 1] + gaps.further_deletion * x[i - 1];
            total += m[i];
        }
        for (std::size_t i = 1; i <= query.length; ++i) {
            const context::GapFactors& gaps = query.gaps[i - 1];
            y[i] = gaps.insertion * p[i] + gaps.further_insertion * y[i];
            p[i] = m[i] + x[i];
        }
    }
    return std::log2(total);
}

// Compares the sums of a random library of contexts for each instruction set with those of the scalar kernels, and these
// with a plain loop.
void check_contexts(Random& random) {
    const std::size_t n = 32 * (1 + random.below(4)), width = 1 + 2 * random.below(4), length = 1 + random.below(50);
    std::vector<std::int16_t> costs(width * kAminoAcids * n);
    for (std::int16_t& cost : costs) cost = static_cast<std::int16_t>(random.below(2000));
    std::vector<std::int32_t> priors(n), counts(length * kAminoAcids);
    for (std::int32_t& prior : priors) prior = static_cast<std::int32_t>(random.below(1000));
    for (std::int32_t& count : counts) count = random.below(3) == 0 ? static_cast<std::int32_t>(random.below(100)) : 0;
    std::vector<double> weights(300), central(n * kAminoAcids);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(1000 - 3 * i);
    for (double& share : central) share = random.below(65536);
    const context::Library library{n, width, costs.data(), priors.data(), weights.data(), weights.size(), central.data()};
    Observer observer;
    const auto sums_of = [&](const std::string& instruction_set, int n_threads) {
        std::vector<double> sums(counts.size());
        context::context_sums(library, counts.data(), length, context::kernels_of(instruction_set), {n_threads, observer},
                              sums.data());
        return sums;
    };
    const std::vector<double> found = sums_of("scalar", 1);
    for (const InstructionSet& set : instruction_sets()) {
        if (set.usable) REQUIRE(sums_of(set.name, 3) == found, "contexts: %s differs", set.name.c_str());
    }
    for (std::size_t i = 0; i < length; ++i) {
        std::vector<double> all(n);
        for (std::size_t k = 0; k < n; ++k) {
            double cost = 0.0;
            for (std::size_t place = 0; place < width; ++place) {
                const std::size_t j = i + place - width / 2;  // a place before the first is beyond the last
                for (std::size_t a = 0; j < length && a < kAminoAcids; ++a) {
                    cost += costs[(place * kAminoAcids + a) * n + k] * counts[j * kAminoAcids + a];
                }
            }
            all[k] = priors[k] + std::nearbyint(cost / 64.0);
        }
        const double least = *std::min_element(all.begin(), all.end());
        for (std::size_t a = 0; a < kAminoAcids; ++a) {
            double expected = 0.0;
            for (std::size_t k = 0; k < n; ++k) {
                const double above = all[k] - least;
                if (above < 300.0) expected += weights[static_cast<std::size_t>(above)] * central[k * kAminoAcids + a];
            }
            REQUIRE(found[i * kAminoAcids + a] == expected, "position %zu: %f, expected %f", i, found[i * kAminoAcids + a], expected);
        }
    }
}

}  // namespace

// Argument: the number of random queries.
int main(int, char** arguments) {
    Random random{0x2545F4914F6CDD1Du};
    for (int n = std::atoi(arguments[1]); n > 0; --n) {
        check_contexts(random);
        const Model model(random, 1 + 2 * random.below(8), 32 * (1 + random.below(6)), 32 * (1 + random.below(2)));
        std::vector<float> query((1 + random.below(60)) * kAminoAcids);
        for (float& value : query) value = static_cast<float>(random.between(1, 100)) / 1000.0F;
        std::vector<float> inverse(kAminoAcids);
        for (float& value : inverse) value = static_cast<float>(random.between(10, 50));
        const context::Mixture mixture{inverse.data(), 0.5F};
        std::vector<context::GapFactors> gaps(query.size() / kAminoAcids);
        for (context::GapFactors& one : gaps) {
            const auto share = [&](int most) { return static_cast<float>(random.between(0, most)) / 100.0F; };
            one = {share(20), share(90), share(20), share(90)};
        }
        const context::ForwardQuery given{query.data(), gaps.data(), gaps.size()};
        std::vector<std::uint64_t> starts;
        std::vector<std::uint32_t> lengths;
        std::uint32_t n_residues = 0;
        for (std::uint32_t i = 0; i < 1 + random.below(40); ++i) {
            starts.push_back(n_residues);
            lengths.push_back(random.below(i % 9 == 0 ? 300 : 90));
            n_residues += lengths.back();
        }
        std::vector<std::uint8_t> residues(n_residues);
        for (std::uint8_t& residue : residues) residue = static_cast<std::uint8_t>(random.below(64));
        const Subjects subjects{residues.data(), starts.data(), lengths.data(), static_cast<std::uint32_t>(starts.size())};
        const Found plain = computed(model.network(), mixture, given, subjects, n_residues, "scalar", 1);
        for (const InstructionSet& set : instruction_sets()) {
            if (!set.usable) continue;
            REQUIRE(computed(model.network(), mixture, given, subjects, n_residues, set.name, 1) == plain, "%s differs", set.name.c_str());
        }
        REQUIRE(computed(model.network(), mixture, given, subjects, n_residues, "auto", 3) == plain, "%d threads differ", 3);
        for (std::uint32_t i = 0; i < subjects.n; ++i) {
            const double expected = plain_total(given, lengths[i], &plain.odds[starts[i] * kAminoAcids]);
            double sum = 0.0;
            const std::size_t n_blocks = context::n_blocks(given.length);
            for (std::size_t k = i * n_blocks; k < (i + 1) * n_blocks; ++k) {
                sum += std::ldexp(static_cast<double>(plain.totals[k]), plain.exponents[k]);
            }
            const double found = std::log2(sum);
            REQUIRE(lengths[i] == 0 || expected > 100.0 || std::abs(found - expected) < 1e-4, "subject %u: %f, expected %f", i, found, expected);
        }
    }
    std::puts("all totals agree");
}
