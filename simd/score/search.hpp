// Scores of many subjects against several queries: what the door calls. Plans the work, runs it on threads, and has
// saturated subjects scored again in wider lanes.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "score/kernel.hpp"

namespace swsearch::score {

struct Subjects {
    const uint8_t* residues;
    const uint64_t* starts;
    const uint32_t* lengths;
    uint32_t n;
};

// Called on the calling thread about every 100 ms and once at the end with the cells done since the last call; what it
// throws stops the workers, and goes on from score_subjects when they have ended.
using Poll = std::function<void(uint64_t cells)>;

// Writes scores[q * subjects.n + s], exact where it is at least the query's floor; a lower score may be written as any
// number below the floor. Returns for each query how many of the scores leave the narrowest lanes that hold its gap cost.
std::vector<uint64_t> score_subjects(const std::vector<Query>& queries, const Subjects& subjects, int32_t* scores,
                                     const Kernels& kernels, int n_threads, const Poll& poll);

// Kernels of an instruction set and whether this processor can run them, best first.
struct InstructionSet {
    const Kernels* kernels;
    bool usable;
};
std::vector<InstructionSet> instruction_sets();

}  // namespace swsearch::score
