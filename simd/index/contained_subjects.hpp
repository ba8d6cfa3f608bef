// Subjects whose residues are part of another subject.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/parallel_for.hpp"
#include "common/profile.hpp"

namespace swsearch::index {

// The subjects, ascending, whose residues are contained in those of a longer subject, each with the last such subject.
//
// Lengths ascend. `chosen` is 1 for the subjects that are compared. Subjects of
// fewer than `shortest` residues, at least 16, are contained in none. Those are compared byte by byte whose first 16
// residues, and then all, have the same hash, but in a subject of many equal parts, such as a run of one letter, only
// so many that the time remains proportional to its length. Of the subjects that may be contained, only those whose
// hash is `part` modulo `n_parts` are compared, and memory is used for them alone: about 32 bytes each, and 4
// bytes for every subject.
std::vector<std::pair<std::uint32_t, std::uint32_t>> contained_subjects(const Subjects& subjects,
                                                                        const std::uint8_t* chosen,
                                                                        std::uint32_t shortest, std::uint64_t part,
                                                                        std::uint64_t n_parts, const Threads& threads);

}  // namespace swsearch::index
