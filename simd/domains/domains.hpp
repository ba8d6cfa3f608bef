// The domains of a family in subjects: posterior decoding with a profile hidden Markov model, as HMMER 3 does it (Eddy
// 2011, doi 10.1371/journal.pcbi.1002195). swsearch/domains/decoding.py describes the models and turns the sums into
// scores.
//
// A model is local in both directions: a pair begins a domain with a probability of its position, and each pair and
// deletion may end it. A subject has residues before, between and behind its domains, whose number has a geometric
// distribution with the mean of the subject's length. All values are odds against unrelated residues, in float64 with
// an exponent for each row, so that nothing overflows and every machine computes the same bytes.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/parallel_for.hpp"
#include "common/profile.hpp"

namespace swsearch::domains {

enum Transition { kMM, kMI, kMD, kIM, kII, kDM, kDD, kTransitions };

struct Model {
    std::size_t length;
    const double* odds;         // [kCodes][length] of a pair with each residue
    const double* transitions;  // [kTransitions][length]
    const double* entry;        // [length] probability that a domain begins with this position

    const double* odds_of(std::uint8_t code) const { return odds + (code & (kCodes - 1)) * length; }
    const double* transition(Transition of) const { return transitions + of * length; }
};

// A value times 2^exponent.
struct Total {
    double value = 0.0;
    std::int64_t exponent = 0;
};

struct Domain {
    std::size_t first, last;  // residues of the envelope, which lie in first <= i < last
    Total total;              // of all paths with one domain through the envelope
    double accuracy;          // sum of the posterior probabilities of the alignment's residues
    // Expected odds of each amino acid in the envelope, by the emissions of the states that are expected there.
    std::array<double, kAminoAcids> composition;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // the alignment: position of the model, residue
};

struct Decoded {
    Total total;  // of all paths with any number of domains
    std::vector<Domain> domains;
};

// The domains of each subject, on several threads, whose number does not matter. If the total of a subject is below
// 2^least[i], it has none; if that of a domain is, it has no alignment.
std::vector<Decoded> decode(const Model& model, const Subjects& subjects, const std::int64_t* least,
                            const Threads& threads);

// The numbers at the beginning of lines of text, as files of models have them.
struct LeadingNumbers {
    std::vector<double> values;  // of each line
    std::string letters;         // the first byte of a later word of each line, a space if there is none
};

// The first `n_columns` words of every `step`-th line from line `first` on (from 0), and the first byte of the
// `word`-th word after them (from 0). The word `*` counts as `star`; one that is no number of at least 0, as NaN.
LeadingNumbers leading_numbers(std::string_view text, std::size_t first, std::size_t step, std::size_t n_columns,
                               std::size_t word, double star);

}  // namespace swsearch::domains
