// Contexts of queries, context columns of sequences, and local Forward scores of one query with many subjects, on
// several threads. The results are the same for any number of threads and for every instruction set.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/parallel_for.hpp"
#include "common/profile.hpp"
#include "context/kernel.hpp"

namespace swsearch::context {

const Kernels& kernels_of(const std::string& instruction_set);

constexpr float kMostOdds = static_cast<float>(INT16_MAX >> kOddsBits);

// A network whose weights are in the order of the kernels.
class PackedNetwork {
   public:
    // The layers of `plain` are [width][kLetters][n_first], [n_second][n_first] and [kAminoAcids][n_second].
    explicit PackedNetwork(const Network& plain);
    PackedNetwork(const PackedNetwork&) = delete;
    PackedNetwork& operator=(const PackedNetwork&) = delete;

    const Network& network() const { return network_; }

   private:
    std::vector<std::int16_t> first_, second_, third_;
    std::vector<std::int32_t> third_bias_;
    Network network_;
};

// How columns become odds.
struct Mixture {
    const float* inverse_background;  // [kAminoAcids] 1 / p, at most kMostOdds
    float admixture;                  // share of the context column in a subject's column; the rest is its residue
};

struct ForwardQuery {
    const float* columns;    // [length][kAminoAcids], each of sum 1 at most
    const GapFactors* gaps;  // [length]
    std::size_t length;
};

// Subject i has the odds [lengths[i]][kAminoAcids] from position starts[i] on.
struct SubjectOdds {
    const std::int16_t* odds;
    const std::uint64_t* starts;
    const std::uint32_t* lengths;
    std::size_t n;
};

// Writes the sums of ContextSumsKernel for the windows around `length` positions, [length][kAminoAcids]. `counts` are
// the observations at each position, [length][kAminoAcids]; places outside have none.
void context_sums(const Library& library, const std::int32_t* counts, std::size_t length, const Kernels& kernels,
                  const Threads& threads, double* sums);

// Writes the odds of all residues of the subjects, one subject after the other, [residues][kAminoAcids], in units of
// 2^-kOddsBits.
void subject_odds(const Network& network, const Mixture& mixture, const Subjects& subjects, const Kernels& kernels,
                  const Threads& threads, std::int16_t* odds);

// Number of blocks of kBlockRows rows of a query.
std::size_t n_blocks(std::size_t n_rows);

// Writes the total of each block of rows with each subject, [n][n_blocks]: its value is totals[i] * 2^exponents[i].
void forward_totals(const ForwardQuery& query, const SubjectOdds& subjects, const Kernels& kernels,
                    const Threads& threads, float* totals, std::int32_t* exponents);

}  // namespace swsearch::context
