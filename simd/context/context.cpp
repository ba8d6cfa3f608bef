// The drivers of the context kernels: the windows of a subject, groups of subjects of similar length, and threads.

#include "context/context.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/instruction_sets.hpp"

namespace swsearch::context {

SWSEARCH_DEFINE_KERNELS_OF

namespace {

constexpr std::size_t kBlock = 128;  // columns that are computed at a time; those of a group then fit the cache
constexpr std::uint8_t kCodeMask = 31;
constexpr std::uint8_t kOther = kLetters - 1;

// The letters of a part of a subject, with those of the windows' other places on either side.
class Letters {
   public:
    explicit Letters(const Network& network) : margin_(network.width / 2) {}

    // The letter of residue `from`; those up to `to`, and `margin` on either side, can be read.
    const std::uint8_t* of(const std::uint8_t* residues, std::size_t length, std::size_t from, std::size_t to) {
        letters_.assign(to - from + 2 * margin_, kOther);
        const std::size_t first = from < margin_ ? 0 : from - margin_;
        const std::size_t stop = std::min(length, to + margin_);
        for (std::size_t i = first; i < stop; ++i) {
            letters_[i + margin_ - from] = std::min<std::uint8_t>(residues[i] & kCodeMask, kOther);
        }
        return letters_.data() + margin_;
    }

   private:
    std::size_t margin_;
    std::vector<std::uint8_t> letters_;
};

// Forward of one group of subjects, at most one in each lane.
class Group {
   public:
    Group(const Network& network, const ForwardQuery& query, const Kernels& kernels)
        : network_(network),
          query_(query),
          kernels_(kernels),
          letters_(network),
          lanes_(kernels.lanes),
          p_(query.length * lanes_),
          y_(query.length * lanes_),
          total_(lanes_),
          exponent_(lanes_),
          of_total_(lanes_),
          columns_(kBlock * kAminoAcids),
          odds_(kBlock * kAminoAcids * lanes_) {}

    void run(const Subjects& subjects, const std::uint32_t* members, std::size_t n, Observer& observer, float* totals,
             std::int32_t* exponents) {
        for (std::vector<float>* const values : {&p_, &y_, &total_}) std::fill(values->begin(), values->end(), 0.0F);
        std::fill(exponent_.begin(), exponent_.end(), 0);
        std::fill(of_total_.begin(), of_total_.end(), 0);
        ForwardState state{query_.columns, query_.length, query_.open,      query_.extend,   p_.data(),
                           y_.data(),      total_.data(), exponent_.data(), of_total_.data()};
        std::size_t longest = 0;
        for (std::size_t k = 0; k < n; ++k) longest = std::max<std::size_t>(longest, subjects.lengths[members[k]]);
        for (std::size_t from = 0; from < longest; from += kBlock) {
            const std::size_t size = std::min(kBlock, longest - from);
            std::fill_n(odds_.begin(), static_cast<std::ptrdiff_t>(size * kAminoAcids * lanes_), 0.0F);
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
        const std::uint8_t* const letters = letters_.of(residues, length, from, to);
        kernels_.columns(network_, letters, to - from, columns_.data());
        const float rest = 1.0F - query_.admixture;
        for (std::size_t j = 0; j < to - from; ++j) {
            const float* const column = &columns_[j * kAminoAcids];
            float* const odds = &odds_[j * kAminoAcids * lanes_ + lane];
            const bool is_known = letters[j] < kAminoAcids;
            for (std::size_t a = 0; a < kAminoAcids; ++a) {
                const float share = is_known ? query_.admixture * column[a] : column[a];
                odds[a * lanes_] = share * query_.inverse_background[a];
            }
            if (is_known) odds[letters[j] * lanes_] += rest * query_.inverse_background[letters[j]];
        }
    }

    const Network& network_;
    const ForwardQuery& query_;
    const Kernels& kernels_;
    Letters letters_;
    const std::size_t lanes_;
    std::vector<float> p_, y_, total_;
    std::vector<std::int32_t> exponent_, of_total_;
    std::vector<float> columns_, odds_;
};

}  // namespace

void subject_columns(const Network& network, const Subjects& subjects, const Kernels& kernels, int n_threads,
                     Observer& observer, const std::function<void()>& poll, float* columns) {
    struct Part {
        std::uint32_t subject;
        std::size_t from;
        float* columns;
    };
    std::vector<Part> parts;
    for (std::uint32_t i = 0; i < subjects.n; ++i) {
        for (std::size_t from = 0; from < subjects.lengths[i]; from += kBlock) {
            parts.push_back({i, from, columns + from * kAminoAcids});
        }
        columns += subjects.lengths[i] * kAminoAcids;
    }
    parallel_for(
        parts.size(), n_threads, observer,
        [&](std::size_t task, std::size_t) {
            const Part& part = parts[task];
            const std::size_t length = subjects.lengths[part.subject], to = std::min(length, part.from + kBlock);
            Letters letters(network);
            const std::uint8_t* const first =
                letters.of(subjects.residues + subjects.starts[part.subject], length, part.from, to);
            kernels.columns(network, first, to - part.from, part.columns);
            observer.done(to - part.from);
        },
        poll);
}

void forward_totals(const Network& network, const ForwardQuery& query, const Subjects& subjects, const Kernels& kernels,
                    int n_threads, Observer& observer, const std::function<void()>& poll, float* totals,
                    std::int32_t* exponents) {
    std::vector<std::uint32_t> order(subjects.n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return subjects.lengths[a] > subjects.lengths[b]; });
    parallel_for((subjects.n + kernels.lanes - 1) / kernels.lanes, n_threads, observer,
                 [&](std::size_t task, std::size_t) {
                     const std::size_t first = task * kernels.lanes,
                                       n = std::min<std::size_t>(kernels.lanes, subjects.n - first);
                     Group group(network, query, kernels);
                     group.run(subjects, order.data() + first, n, observer, totals, exponents);
                 },
                 poll);
}

}  // namespace swsearch::context
