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

// Forward of one group of subjects, at most one in each lane.
class Group {
   public:
    Group(const Network& network, const ForwardQuery& query, const std::int16_t* columns, const Kernels& kernels)
        : query_(query),
          kernels_(kernels),
          predictor_(network, kernels),
          query_columns_(columns),
          lanes_(kernels.lanes),
          p_(query.length * lanes_),
          y_(query.length * lanes_),
          total_(lanes_),
          exponent_(lanes_),
          of_total_(lanes_),
          columns_(kResidues * kAminoAcids),
          odds_(kResidues * kAminoAcids * lanes_) {}

    void run(const Subjects& subjects, const std::uint32_t* members, std::size_t n, Observer& observer, float* totals,
             std::int32_t* exponents) {
        for (std::vector<float>* const values : {&p_, &y_, &total_}) std::fill(values->begin(), values->end(), 0.0F);
        std::fill(exponent_.begin(), exponent_.end(), 0);
        std::fill(of_total_.begin(), of_total_.end(), 0);
        ForwardState state{query_columns_, query_.length, query_.open,      query_.extend,   p_.data(),
                           y_.data(),      total_.data(), exponent_.data(), of_total_.data()};
        std::size_t longest = 0;
        for (std::size_t k = 0; k < n; ++k) longest = std::max<std::size_t>(longest, subjects.lengths[members[k]]);
        for (std::size_t from = 0; from < longest; from += kResidues) {
            const std::size_t size = std::min(kResidues, longest - from);
            std::fill_n(odds_.begin(), static_cast<std::ptrdiff_t>(size * kAminoAcids * lanes_), std::int16_t{0});
            for (std::size_t k = 0; k < n; ++k) {
                write_odds(subjects.residues + subjects.starts[members[k]], subjects.lengths[members[k]], from, size,
                           k);
            }
            kernels_.forward(state, odds_.data(), size);
            observer.done(size * n * query_.length);
        }
        for (std::size_t k = 0; k < n; ++k) {
            totals[members[k]] = total_[k];
            exponents[members[k]] = of_total_[k];
        }
    }

   private:
    // The odds of the columns of one subject, in its lane.
    void write_odds(const std::uint8_t* residues, std::size_t length, std::size_t from, std::size_t size,
                    std::size_t lane) {
        if (from >= length) return;
        const std::size_t to = std::min(length, from + size);
        const std::uint8_t* const letters = predictor_.write(residues, length, from, to, columns_.data());
        constexpr float kUnits = 1 << kOddsBits;
        const float rest = 1.0F - query_.admixture;
        for (std::size_t j = 0; j < to - from; ++j) {
            const float* const column = &columns_[j * kAminoAcids];
            const bool is_known = letters[j] < kAminoAcids;
            const float admixture = is_known ? query_.admixture : 1.0F;
            float odds[kAminoAcids];
            for (std::size_t a = 0; a < kAminoAcids; ++a) {
                odds[a] = admixture * column[a] * query_.inverse_background[a];
            }
            if (is_known) odds[letters[j]] += rest * query_.inverse_background[letters[j]];
            std::int16_t words[kAminoAcids];
            for (std::size_t a = 0; a < kAminoAcids; ++a) words[a] = static_cast<std::int16_t>(odds[a] * kUnits + 0.5F);
            std::int16_t* const to_lane = &odds_[(j * kAminoAcids / 2 * lanes_ + lane) * 2];
            for (std::size_t k = 0; k < kAminoAcids / 2; ++k) {
                std::memcpy(to_lane + k * 2 * lanes_, words + 2 * k, 2 * sizeof(std::int16_t));
            }
        }
    }

    const ForwardQuery& query_;
    const Kernels& kernels_;
    Predictor predictor_;
    const std::int16_t* query_columns_;
    const std::size_t lanes_;
    std::vector<float> p_, y_, total_;
    std::vector<std::int32_t> exponent_, of_total_;
    std::vector<float> columns_;
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

void subject_columns(const Network& network, const Subjects& subjects, const Kernels& kernels, int n_threads,
                     Observer& observer, const std::function<void()>& poll, float* columns) {
    struct Part {
        std::uint32_t subject;
        std::size_t from;
        float* columns;
    };
    std::vector<Part> parts;
    for (std::uint32_t i = 0; i < subjects.n; ++i) {
        for (std::size_t from = 0; from < subjects.lengths[i]; from += kResidues) {
            parts.push_back({i, from, columns + from * kAminoAcids});
        }
        columns += subjects.lengths[i] * kAminoAcids;
    }
    parallel_for(
        parts.size(), n_threads, observer,
        [&](std::size_t task, std::size_t) {
            const Part& part = parts[task];
            const std::size_t length = subjects.lengths[part.subject], to = std::min(length, part.from + kResidues);
            Predictor(network, kernels)
                .write(subjects.residues + subjects.starts[part.subject], length, part.from, to, part.columns);
            observer.done(to - part.from);
        },
        poll);
}

void forward_totals(const Network& network, const ForwardQuery& query, const Subjects& subjects, const Kernels& kernels,
                    int n_threads, Observer& observer, const std::function<void()>& poll, float* totals,
                    std::int32_t* exponents) {
    std::vector<std::int16_t> columns(query.length * kAminoAcids);
    std::transform(query.columns, query.columns + columns.size(), columns.begin(), [](float share) {
        return static_cast<std::int16_t>(std::min(share * (1 << kQueryBits) + 0.5F, 32767.0F));
    });
    std::vector<std::uint32_t> order(subjects.n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return subjects.lengths[a] > subjects.lengths[b]; });
    parallel_for((subjects.n + kernels.lanes - 1) / kernels.lanes, n_threads, observer,
                 [&](std::size_t task, std::size_t) {
                     const std::size_t first = task * kernels.lanes,
                                       n = std::min<std::size_t>(kernels.lanes, subjects.n - first);
                     Group group(network, query, columns.data(), kernels);
                     group.run(subjects, order.data() + first, n, observer, totals, exponents);
                 },
                 poll);
}

}  // namespace swsearch::context
