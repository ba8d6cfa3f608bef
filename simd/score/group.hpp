// Group: several queries that the SIMD score kernels score in the same passes over the subjects, with the subjects and
// windows that are still to be scored against them (docs/design/cpu-engine.md, "Several queries per pass").
//
// Used by score/search.cpp. In: group_queries takes the queries of a call and, for each, the round in which it begins.
// Out: groups of consecutive queries, built greedily. search.cpp adds the subjects, and passes what saturates to groups
// of later rounds.

#pragma once

#include <cstdint>
#include <vector>

#include "score/kernel.hpp"

namespace swsearch::score {

// Part of a long subject; its score is that of the best alignment inside it.
struct Window {
    uint32_t subject;
    uint32_t first;
    uint32_t length;
    uint32_t step;  // residues before the next window begins
};

// A group can be moved but not copied, because its queries point to its own rows and table.
class Group {
   public:
    Group(uint32_t number, const Query& query, int first_round);
    Group(Group&&) = default;
    Group& operator=(Group&&) = default;

    // Whether a query can share the passes. The gap costs must be equal, the rows must fit the cache, and the tables,
    // with equal rows counted once, must fit the score profile.
    bool takes(const Query& query, int first_round) const;
    void add(uint32_t number, const Query& query);

    int size() const { return static_cast<int>(queries.size()); }
    // Items still to score; each is scored against every query.
    size_t n_items() const { return subjects.size() + windows.size(); }

    std::vector<uint32_t> numbers;  // numbers of the queries in the caller's order
    std::vector<Query> queries;
    int64_t n_rows = 0;                  // total rows of all queries
    int round;                           // the next round of the group
    bool fresh = true;                   // no subject was scored before, so cells are counted
    std::vector<uint32_t> subjects;      // their indices, shortest subject first
    std::vector<Window> windows;         // shortest first
    std::vector<int32_t> window_scores;  // the score of query q in window w is at q * windows.size() + w
    uint64_t reached = 0;                // number of scores whose bound reached the floor

   private:
    void add_rows(const Query& query);

    std::vector<int8_t> table_;
    std::vector<std::vector<int32_t>> rows_;
};

// Groups of consecutive queries, as few as possible; first_rounds is the round in which each query begins.
std::vector<Group> group_queries(const std::vector<Query>& queries, const std::vector<int>& first_rounds);

}  // namespace swsearch::score
