// Subjects with equal residues.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/profile.hpp"

namespace swsearch::index {

// The subjects whose residues are those of an earlier subject, ascending, each with the first of these subjects.
//
// A subject of any length is followed by padding, up to a multiple of 16 bytes. Subjects are compared by a hash, then
// byte by byte. Only those whose hash is `part` modulo `n_parts` are compared, and memory is used for them alone: 16
// bytes each.
std::vector<std::pair<std::uint32_t, std::uint32_t>> equal_subjects(const Subjects& subjects, std::uint64_t part,
                                                                    std::uint64_t n_parts);

}  // namespace swsearch::index
