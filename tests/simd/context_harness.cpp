// Drives simd/context without Python, to be built with sanitizers: the columns of random sequences and their Forward
// totals with a query are computed with every instruction set and compared, bit by bit, with those of the scalar kernels,
// and these with plain loops in double. Residues are heap blocks of exactly their length.

#include <cmath>
#include <cstring>
#include <vector>

#include "common/instruction_sets.hpp"
#include "context/context.hpp"
#include "plain_gotoh.hpp"

namespace {

using namespace swsearch;
using context::kAminoAcids;
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
    Found found{std::vector<std::int16_t>(n_residues * kAminoAcids), std::vector<float>(subjects.n),
                std::vector<std::int32_t>(subjects.n)};
    Observer observer;
    const context::Kernels& kernels = context::kernels_of(instruction_set);
    context::subject_odds(network, mixture, subjects, kernels, n_threads, observer, nullptr, found.odds.data());
    context::forward_totals(query, {found.odds.data(), subjects.starts, subjects.lengths, subjects.n}, kernels, n_threads,
                            observer, nullptr, found.totals.data(), found.exponents.data());
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
            x[i] = query.open * m[i - 1] + query.extend * x[i - 1];
            total += m[i];
        }
        for (std::size_t i = 0; i <= query.length; ++i) {
            y[i] = query.open * p[i] + query.extend * y[i];
            p[i] = m[i] + x[i];
        }
    }
    return std::log2(total);
}

}  // namespace

// Argument: the number of random queries.
int main(int, char** arguments) {
    Random random{0x2545F4914F6CDD1Du};
    for (int n = std::atoi(arguments[1]); n > 0; --n) {
        const Model model(random, 1 + 2 * random.below(8), 32 * (1 + random.below(6)), 32 * (1 + random.below(2)));
        std::vector<float> query((1 + random.below(60)) * kAminoAcids);
        for (float& value : query) value = static_cast<float>(random.between(1, 100)) / 1000.0F;
        std::vector<float> inverse(kAminoAcids);
        for (float& value : inverse) value = static_cast<float>(random.between(10, 50));
        const context::Mixture mixture{inverse.data(), 0.5F};
        const context::ForwardQuery given{query.data(), query.size() / kAminoAcids, 0.03F, 0.5F};
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
            const double found = std::log2(static_cast<double>(plain.totals[i])) + plain.exponents[i];
            REQUIRE(lengths[i] == 0 || expected > 100.0 || std::abs(found - expected) < 1e-4, "subject %u: %f, expected %f", i, found, expected);
        }
    }
    std::puts("all totals agree");
}
