// Scores of many subjects against several queries: plans the work, runs it on threads, and scores saturated subjects
// again in wider lanes.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/parallel_for.hpp"
#include "score/kernel.hpp"

namespace swsearch::score {

// Writes scores[q * subjects.n + s]: exact where the score is at least the query's floor; any number below the floor
// where it is lower. Returns for each query how many of its scores leave the narrowest lanes that hold its gap cost.
// Counts cells in the observer, each once, and calls poll on the calling thread about every 100 ms; what poll throws
// stops the workers and is thrown from here after they have ended.
std::vector<uint64_t> score_subjects(const std::vector<Query>& queries, const Subjects& subjects, int32_t* scores,
                                     const Kernels& kernels, int n_threads, Observer& observer,
                                     const std::function<void()>& poll);

// The kernels of the instruction set with that name, as find_instruction_set finds it.
const Kernels& kernels_of(const std::string& instruction_set);

}  // namespace swsearch::score
