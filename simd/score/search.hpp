// Scores many subjects against several queries: the interface of simd/score. Inputs: queries (a Profile with a floor
// each) and packed subjects, one byte per residue. Output: an int32 score per query and subject. The search plans the
// work, runs it on threads, and scores saturated subjects again in wider lanes.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/parallel_for.hpp"
#include "score/kernel.hpp"

namespace swsearch::score {

constexpr int kNoBand = 0;       // every score is computed exactly
constexpr int kChooseBand = -1;  // the search chooses for each query

// How some of the scores of a query were found.
struct ScoreCounts {
    uint64_t n_wide = 0;     // scores that exceed the narrowest lanes that can represent the query's gap cost
    uint64_t n_bounded = 0;  // subjects, not divided into windows, that a bound proved to score below the floor
};

// Writes scores[q * subjects.n + s]: the exact score if it is at least the query's floor, otherwise any number below
// the floor. Returns the counts of each query.
// Counts each cell once in the observer, and calls poll on the calling thread about every 100 ms; an exception of poll
// stops the workers and is thrown from this function after they have ended.
//
// Queries with a floor are bounded first. band_rows is the number of query rows per band, one of kBandSizes, or kNoBand,
// or kChooseBand; no score that reaches its floor depends on it.
std::vector<ScoreCounts> score_subjects(const std::vector<Query>& queries, const Subjects& subjects, int32_t* scores,
                                        const Kernels& kernels, int band_rows, int n_threads, Observer& observer,
                                        const std::function<void()>& poll);

// Writes the upper bound of each score as the kernel for bounds with this number of rows per band computes it, or
// kSaturated. The gap costs must fit 8 bits.
void bound_subjects(const Query& query, const Subjects& subjects, int32_t* bounds, const Kernels& kernels, int band_rows);

// The kernels of the instruction set with this name; find_instruction_set looks it up.
const Kernels& kernels_of(const std::string& instruction_set);
// The same, or their form for one port, whichever is faster on this processor.
const Kernels& fastest_kernels_of(const std::string& instruction_set);

}  // namespace swsearch::score
