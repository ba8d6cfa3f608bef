// Context columns of sequences, and local Forward scores of one query with many subjects, on several threads. The
// results are the same for any number of threads and for every instruction set.

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

// What Forward needs beside the network.
struct ForwardQuery {
    const float* columns;  // [length][kAminoAcids], each of sum 1 at most
    std::size_t length;
    const float* inverse_background;  // [kAminoAcids] 1 / p, at most kMostOdds
    float admixture;                  // share of the context column in a subject's column; the rest is its residue
    float open, extend;
};

// Writes the columns of all residues of the subjects, one subject after the other, [residues][kAminoAcids].
void subject_columns(const Network& network, const Subjects& subjects, const Kernels& kernels, int n_threads,
                     Observer& observer, const std::function<void()>& poll, float* columns);

// Writes the total of each subject: its value is totals[i] * 2^exponents[i].
void forward_totals(const Network& network, const ForwardQuery& query, const Subjects& subjects, const Kernels& kernels,
                    int n_threads, Observer& observer, const std::function<void()>& poll, float* totals,
                    std::int32_t* exponents);

}  // namespace swsearch::context
