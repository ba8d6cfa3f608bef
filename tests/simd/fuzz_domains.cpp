// A fuzz target for simd/domains: bytes become a model and proteins, of which some repeat its consensus. The total is
// that of a plain Forward in logarithms; envelopes and alignments lie in the protein, in order; threads do not matter.

#include <cmath>

#include "domains/domains.hpp"
#include "fuzz_bytes.hpp"
#include "plain_gotoh.hpp"

using namespace swsearch;
using namespace swsearch::domains;

namespace {

constexpr double kNever = -1e300;

double log_of(double value) { return value > 0.0 ? std::log(value) : kNever; }

double sum_of(double a, double b) {
    const double larger = std::max(a, b);
    return larger <= kNever ? kNever : larger + std::log(std::exp(a - larger) + std::exp(b - larger));
}

// The logarithm of the sum of all paths with any number of domains.
double plain_total(const Model& model, const std::uint8_t* residues, std::size_t n) {
    const auto t = [&](Transition of, std::size_t k) { return log_of(model.transition(of)[k]); };
    const double length = static_cast<double>(n), loop = log_of(length / (length + 3.0)),
                 move = std::log(3.0 / (length + 3.0));
    const double half = std::log(0.5);
    std::vector<double> match(model.length, kNever), insertion = match, deletion = match;
    double before = 0.0, between = kNever, behind = kNever;
    for (std::size_t i = 0; i < n; ++i) {
        const double begin = sum_of(before, between) + move;
        std::vector<double> m(model.length, kNever), x = m, d = m;
        double end = kNever;
        for (std::size_t k = 0; k < model.length; ++k) {
            double sum = begin + log_of(model.entry[k]);
            if (k > 0) {
                sum = sum_of(sum, match[k - 1] + t(kMM, k - 1));
                sum = sum_of(sum, insertion[k - 1] + t(kIM, k - 1));
                sum = sum_of(sum, deletion[k - 1] + t(kDM, k - 1));
                d[k] = sum_of(m[k - 1] + t(kMD, k - 1), d[k - 1] + t(kDD, k - 1));
            }
            m[k] = sum + log_of(model.odds_of(residues[i])[k]);
            if (k + 1 < model.length) x[k] = sum_of(match[k] + t(kMI, k), insertion[k] + t(kII, k));
            end = sum_of(end, sum_of(m[k], d[k]));
        }
        match = m;
        insertion = x;
        deletion = d;
        between = sum_of(between + loop, end + half);
        behind = sum_of(behind + loop, end + half);
        before += loop;
    }
    return behind + move;
}

double log_of(const Total& total) { return log_of(total.value) + static_cast<double>(total.exponent) * std::log(2.0); }

bool are_equal(const Domain& a, const Domain& b) {
    return a.first == b.first && a.last == b.last && a.total.value == b.total.value && a.accuracy == b.accuracy &&
           a.composition == b.composition && a.pairs == b.pairs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes{data, size};
    const std::size_t length = 1 + bytes.below(40);
    std::vector<double> odds(kCodes * length), transitions(kTransitions * length),
        entry(length, 1.0 / static_cast<double>(length));
    std::vector<std::uint8_t> consensus(length);
    for (std::size_t k = 0; k < length; ++k) {
        consensus[k] = static_cast<std::uint8_t>(bytes.below(20));
        for (std::size_t code = 0; code < kCodes; ++code) odds[code * length + k] = code < 20 ? 0.2 : 1.0;
        odds[consensus[k] * length + k] = static_cast<double>(bytes.below(20));
        const double open = bytes.below(50) / 100.0, close = bytes.below(101) / 100.0;
        const double of_position[] = {1.0 - open, open / 2.0, open / 2.0, 1.0 - close, close, close, 1.0 - close};
        for (std::size_t of = 0; of < kTransitions; ++of) transitions[of * length + k] = of_position[of];
    }
    const Model model{length, odds.data(), transitions.data(), entry.data()};
    std::vector<std::uint8_t> residues;
    std::vector<std::uint64_t> starts;
    std::vector<std::uint32_t> lengths;
    const std::size_t n_proteins = 1 + bytes.below(4);
    for (std::size_t i = 0; i < n_proteins; ++i) {
        starts.push_back(residues.size());
        for (std::uint32_t part = 1 + bytes.below(5); part > 0; --part) {
            if (bytes.flag()) residues.insert(residues.end(), consensus.begin(), consensus.end());
            for (std::uint32_t n = bytes.below(30); n > 0; --n) residues.push_back(bytes.byte());
        }
        if (residues.size() == starts.back()) residues.push_back(0);
        lengths.push_back(static_cast<std::uint32_t>(residues.size() - starts.back()));
    }
    const Subjects proteins{residues.data(), starts.data(), lengths.data(), static_cast<std::uint32_t>(n_proteins)};
    const std::vector<std::int64_t> least(n_proteins, -1'000'000);
    Observer observer;
    const std::vector<Decoded> found = decode(model, proteins, least.data(), {1, observer});
    const std::vector<Decoded> again = decode(model, proteins, least.data(), {3, observer});
    for (std::size_t i = 0; i < n_proteins; ++i) {
        const double expected = plain_total(model, residues.data() + starts[i], lengths[i]),
                     total = log_of(found[i].total);
        REQUIRE(std::abs(total - expected) < 1e-6 || (expected < -600.0 && total < -600.0), "total %f, expected %f",
                total, expected);
        REQUIRE(again[i].domains.size() == found[i].domains.size(), "the number of domains depends on the threads");
        std::size_t behind = 0;
        for (std::size_t k = 0; k < found[i].domains.size(); ++k) {
            const Domain& domain = found[i].domains[k];
            REQUIRE(are_equal(domain, again[i].domains[k]), "a domain depends on the threads");
            REQUIRE(domain.first >= behind && domain.last > domain.first && domain.last <= lengths[i],
                    "an envelope overlaps");
            behind = domain.last;
            for (std::size_t pair = 0; pair < domain.pairs.size(); ++pair) {
                const auto& [position, residue] = domain.pairs[pair];
                REQUIRE(position < length && residue >= domain.first && residue < domain.last, "a pair is outside");
                if (pair > 0) {
                    const auto& [before, above] = domain.pairs[pair - 1];
                    REQUIRE(position > before && residue > above, "pairs are not in order");
                    REQUIRE(position == before + 1 || residue == above + 1, "an insertion is beside a deletion");
                }
            }
            REQUIRE(domain.accuracy <= static_cast<double>(domain.last - domain.first) + 1e-6, "accuracy %f",
                    domain.accuracy);
        }
    }
    return 0;
}
