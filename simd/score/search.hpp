// Scores many subjects against several queries: the interface of simd/score. Inputs: queries with their floors, and
// packed subjects, one byte per residue. Output: an int32 score per query and subject. The search plans the work, runs
// it on threads, and scores saturated subjects again in wider lanes.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
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

// The lowest scores that are needed. They depend on the query and on the length of the subject.
class Floors {
   public:
    // The floors of all queries for subjects of at least `shortest` residues; the steps ascend, the first begins at 0.
    struct Step {
        uint32_t shortest;
        std::vector<int32_t> floors;
    };

    explicit Floors(std::vector<Step> steps) : steps_(std::move(steps)) {}

    int32_t of(size_t query, uint32_t length) const {
        size_t step = steps_.size() - 1;
        while (steps_[step].shortest > length) {
            --step;
        }
        return steps_[step].floors[query];
    }

    int32_t highest(size_t query) const {
        int32_t highest = 0;
        for (const Step& step : steps_) {
            highest = std::max(highest, step.floors[query]);
        }
        return highest;
    }

   private:
    std::vector<Step> steps_;
};

// Writes scores[q * subjects.n + s]: the exact score if it is at least the floor, otherwise any number below the floor.
// Returns the counts of each query. Counts each cell once in the observer.
//
// Queries with floors are bounded first. band_rows is the number of query rows per band, one of kBandSizes, or kNoBand,
// or kChooseBand; no score that reaches its floor depends on it.
std::vector<ScoreCounts> score_subjects(const std::vector<Query>& queries, const Floors& floors,
                                        const Subjects& subjects, int32_t* scores, const Kernels& kernels,
                                        int band_rows, const Threads& threads);

// Writes the upper bound of each score as the kernel for bounds with this number of rows per band computes it. Returns
// the smallest bound for which it writes kSaturated instead. The gap costs must fit 8 bits.
int32_t bound_subjects(const Query& query, const Subjects& subjects, int32_t* bounds, const Kernels& kernels,
                       int band_rows);

// Whether the kernels whose additions wrap (Kernels::wrapping) can score a query.
bool fits_wrapping(const Query& query);
// The kernels of the instruction set with this name; find_instruction_set looks it up.
const Kernels& kernels_of(const std::string& instruction_set);
// The same, or one of their forms for Intel's processors, whichever is the fastest for these queries on this processor.
const Kernels& fastest_kernels_of(const std::string& instruction_set, const std::vector<Query>& queries);

}  // namespace swsearch::score
