// The scale of scores among letters of given compositions. swsearch/query/composition.py describes it.

#pragma once

#include <cstddef>
#include <cstdint>

#include "common/profile.hpp"

namespace swsearch::statistics {

constexpr int kLargestScore = 127;  // of a pair of amino acids, positive or negative

// What all pairs of sequences share.
struct CompositionModel {
    const std::int32_t* scores;  // shape (kAminoAcids, kAminoAcids)
    const double* background;    // proportions of the kinds, which add up to 1
    double pseudocounts;         // letters of background composition that are added to each sequence
    double usual;                // exp(lambda) of the matrix
    double lowest;               // smallest result
};

// Sequences one after another. The kind of each letter is below kAminoAcids, or it is not counted.
struct Letters {
    const std::uint8_t* kinds;
    const std::int64_t* ends;  // the end of each sequence in `kinds`, exclusive
};

// scales[i] = exp(lambda') for the letters of sequence i of both: at most `usual`, at least `lowest`.
void composition_scales(const Letters& one, const Letters& other, std::size_t n, const CompositionModel& model,
                        double* scales);

}  // namespace swsearch::statistics
