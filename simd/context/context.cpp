// The drivers of the context kernels: the windows of a subject, groups of subjects of similar length, and threads.

#include "context/context.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "common/instruction_sets.hpp"

namespace swsearch::context {

SWSEARCH_DEFINE_KERNELS_OF

namespace {

constexpr std::uint8_t kCodeMask = 31;
constexpr std::uint8_t kOther = kLetters - 1;

// Weights of [units][inputs] as blocks of units, [units / kRowMultiple][inputs / 2][kRowMultiple][2]; 0 past the units.
std::vector<std::int16_t> in_pairs(const std::int16_t* weights, std::size_t n_units, std::size_t n_inputs) {
    const std::size_t n_blocks = (n_units + kRowMultiple - 1) / kRowMultiple;
    std::vector<std::int16_t> packed(n_blocks * kRowMultiple * n_inputs);
    for (std::size_t unit = 0; unit < n_units; ++unit) {
        const std::size_t block = unit / kRowMultiple * kRowMultiple * n_inputs, lane = unit % kRowMultiple;
        for (std::size_t k = 0; k < n_inputs; ++k) {
            packed[block + (k / 2 * kRowMultiple + lane) * 2 + k % 2] = weights[unit * n_inputs + k];
        }
    }
    return packed;
}

// Computes columns of parts of subjects.
class Predictor {
   public:
    Predictor(const Network& network, const Kernels& kernels)
        : network_(network),
          kernels_(kernels),
          margin_(network.width / 2),
          work_(kResidues * (network.n_first + network.n_second)) {}

    // Writes the columns of residues `from` to `to`, at most kResidues, and returns the letters of these.
    const std::uint8_t* write(const std::uint8_t* residues, std::size_t length, std::size_t from, std::size_t to,
                              float* columns) {
        letters_.assign(to - from + 2 * margin_, kOther);
        const std::size_t first = from < margin_ ? 0 : from - margin_;
        const std::size_t stop = std::min(length, to + margin_);
        for (std::size_t i = first; i < stop; ++i) {
            letters_[i + margin_ - from] = std::min<std::uint8_t>(residues[i] & kCodeMask, kOther);
        }
        kernels_.columns(network_, letters_.data() + margin_, to - from, work_.data(), columns);
        return letters_.data() + margin_;
    }

   private:
    const Network& network_;
    const Kernels& kernels_;
    std::size_t margin_;
    std::vector<std::int16_t> work_;
    std::vector<std::uint8_t> letters_;
};

// The odds of n columns of a subject with these letters.
void write_odds(const Mixture& mixture, const float* columns, const std::uint8_t* letters, std::size_t n,
                std::int16_t* odds) {
    constexpr float kUnits = 1 << kOddsBits;
    const float rest = 1.0F - mixture.admixture;
    for (std::size_t j = 0; j < n; ++j, columns += kAminoAcids, odds += kAminoAcids) {
        const bool is_known = letters[j] < kAminoAcids;
        const float admixture = is_known ? mixture.admixture : 1.0F;
        float found[kAminoAcids];
        for (std::size_t a = 0; a < kAminoAcids; ++a) {
            found[a] = admixture * columns[a] * mixture.inverse_background[a];
        }
        if (is_known) found[letters[j]] += rest * mixture.inverse_background[letters[j]];
        for (std::size_t a = 0; a < kAminoAcids; ++a) odds[a] = static_cast<std::int16_t>(found[a] * kUnits + 0.5F);
    }
}

// Forward of one group of subjects, at most one in each lane.
class Group {
   public:
    // `columns` and `gaps` have rows for whole blocks.
    Group(std::size_t length, const std::int16_t* columns, const GapFactors* gaps, const Kernels& kernels)
        : kernels_(kernels),
          columns_(columns),
          gaps_(gaps),
          length_(length),
          lanes_(kernels.lanes),
          n_blocks_(n_blocks(length)),
          p_(n_blocks_ * kBlockRows * lanes_),
          y_(n_blocks_ * kBlockRows * lanes_),
          total_(n_blocks_ * lanes_),
          exponent_(n_blocks_ * lanes_),
          of_total_(n_blocks_ * lanes_),
          odds_(kResidues * kAminoAcids * lanes_) {}

    void run(const SubjectOdds& subjects, const std::uint32_t* members, std::size_t n, Observer& observer,
             float* totals, std::int32_t* exponents) {
        ForwardState state{columns_,  gaps_,         n_blocks_,        p_.data(),
                           y_.data(), total_.data(), exponent_.data(), of_total_.data()};
        std::size_t longest = 0;
        for (std::size_t k = 0; k < n; ++k) longest = std::max<std::size_t>(longest, subjects.lengths[members[k]]);
        for (std::size_t from = 0; from < longest; from += kResidues) {
            const std::size_t size = std::min(kResidues, longest - from);
            std::fill_n(odds_.begin(), static_cast<std::ptrdiff_t>(size * kAminoAcids * lanes_), std::int16_t{0});
            for (std::size_t k = 0; k < n; ++k) {
                const std::size_t length = subjects.lengths[members[k]];
                if (from >= length) continue;
                const std::int16_t* const first = subjects.odds + (subjects.starts[members[k]] + from) * kAminoAcids;
                fill_lane(first, std::min(size, length - from), k);
            }
            kernels_.forward(state, odds_.data(), size);
            observer.done(size * n * length_);
        }
        for (std::size_t k = 0; k < n; ++k) {
            for (std::size_t block = 0; block < n_blocks_; ++block) {
                totals[members[k] * n_blocks_ + block] = total_[block * lanes_ + k];
                exponents[members[k] * n_blocks_ + block] = of_total_[block * lanes_ + k];
            }
        }
    }

   private:
    // The odds of `size` columns of one subject, in its lane.
    void fill_lane(const std::int16_t* odds, std::size_t size, std::size_t lane) {
        for (std::size_t j = 0; j < size; ++j, odds += kAminoAcids) {
            std::int16_t* const to_lane = &odds_[(j * kAminoAcids / 2 * lanes_ + lane) * 2];
            for (std::size_t k = 0; k < kAminoAcids / 2; ++k) {
                std::memcpy(to_lane + k * 2 * lanes_, odds + 2 * k, 2 * sizeof(std::int16_t));
            }
        }
    }

    const Kernels& kernels_;
    const std::int16_t* columns_;
    const GapFactors* gaps_;
    const std::size_t length_, lanes_, n_blocks_;
    std::vector<float> p_, y_, total_;
    std::vector<std::int32_t> exponent_, of_total_;
    std::vector<std::int16_t> odds_;
};

}  // namespace

PackedNetwork::PackedNetwork(const Network& plain)
    : first_(plain.width * kLetters * plain.n_first),
      second_(in_pairs(plain.second, plain.n_second, plain.n_first)),
      third_(in_pairs(plain.third, kAminoAcids, plain.n_second)),
      third_bias_(kRowMultiple),
      network_(plain) {
    const std::size_t n_rows = plain.width * kLetters;
    for (std::size_t unit = 0; unit < plain.n_first; unit += kRowMultiple) {
        for (std::size_t row = 0; row < n_rows; ++row) {
            std::copy_n(plain.first + row * plain.n_first + unit, kRowMultiple,
                        &first_[unit * n_rows + row * kRowMultiple]);
        }
    }
    std::copy_n(plain.third_bias, kAminoAcids, third_bias_.begin());
    network_.first = first_.data();
    network_.second = second_.data();
    network_.third = third_.data();
    network_.third_bias = third_bias_.data();
}

std::size_t n_blocks(std::size_t n_rows) { return (n_rows + kBlockRows - 1) / kBlockRows; }

void context_sums(const Library& library, const std::int32_t* counts, std::size_t length, const Kernels& kernels,
                  const Threads& threads, double* sums) {
    constexpr std::size_t kPositions = 64;  // of a task, which takes longer than the start of a thread
    const std::size_t reach = library.width / 2;
    parallel_for((length + kPositions - 1) / kPositions, threads, [&](std::size_t task, std::size_t) {
        std::vector<Observation> observations;
        std::vector<std::int32_t> work(library.n);
        std::vector<NearContext> near(library.n);
        const std::size_t to = std::min(length, (task + 1) * kPositions);
        for (std::size_t i = task * kPositions; i < to; ++i) {
            observations.clear();
            const std::size_t first = i < reach ? 0 : i - reach, stop = std::min(length, i + reach + 1);
            const std::int16_t* costs = library.costs + (first + reach - i) * kAminoAcids * library.n;
            for (std::size_t k = first * kAminoAcids; k < stop * kAminoAcids; ++k, costs += library.n) {
                if (counts[k] != 0) observations.push_back({costs, counts[k]});
            }
            kernels.context_sums(library, observations.data(), observations.size(), work.data(), near.data(),
                                 sums + i * kAminoAcids);
        }
        threads.observer.done(to - task * kPositions);
    });
}

void subject_odds(const Network& network, const Mixture& mixture, const Subjects& subjects, const Kernels& kernels,
                  const Threads& threads, std::int16_t* odds) {
    struct Part {
        std::uint32_t subject;
        std::size_t from;
        std::int16_t* odds;
    };
    std::vector<Part> parts;
    for (std::uint32_t i = 0; i < subjects.n; ++i) {
        for (std::size_t from = 0; from < subjects.lengths[i]; from += kResidues) {
            parts.push_back({i, from, odds + from * kAminoAcids});
        }
        odds += subjects.lengths[i] * kAminoAcids;
    }
    parallel_for(parts.size(), threads, [&](std::size_t task, std::size_t) {
        const Part& part = parts[task];
        const std::size_t length = subjects.lengths[part.subject], to = std::min(length, part.from + kResidues);
        Predictor predictor(network, kernels);
        float columns[kResidues * kAminoAcids];
        const std::uint8_t* const letters =
            predictor.write(subjects.residues + subjects.starts[part.subject], length, part.from, to, columns);
        write_odds(mixture, columns, letters, to - part.from, part.odds);
        threads.observer.done(to - part.from);
    });
}

void forward_totals(const ForwardQuery& query, const SubjectOdds& subjects, const Kernels& kernels,
                    const Threads& threads, float* totals, std::int32_t* exponents) {
    const std::size_t n_rows = n_blocks(query.length) * kBlockRows;
    std::vector<GapFactors> gaps(n_rows);
    std::copy_n(query.gaps, query.length, gaps.begin());
    std::vector<std::int16_t> columns(n_rows * kAminoAcids);
    std::transform(query.columns, query.columns + query.length * kAminoAcids, columns.begin(), [](float share) {
        return static_cast<std::int16_t>(std::min(share * (1 << kQueryBits) + 0.5F, 32767.0F));
    });
    std::vector<std::uint32_t> order(subjects.n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return subjects.lengths[a] > subjects.lengths[b]; });
    parallel_for((subjects.n + kernels.lanes - 1) / kernels.lanes, threads, [&](std::size_t task, std::size_t) {
        const std::size_t first = task * kernels.lanes, n = std::min<std::size_t>(kernels.lanes, subjects.n - first);
        Group group(query.length, columns.data(), gaps.data(), kernels);
        group.run(subjects, order.data() + first, n, threads.observer, totals, exponents);
    });
}

}  // namespace swsearch::context
