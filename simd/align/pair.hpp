// The alignment of one query with one subject: where it ends, the band that holds it, and its path.
//
// docs/design/traceback.md defines the alignment and proves the steps.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "align/forward.hpp"
#include "align/used_pairs.hpp"

namespace swsearch::align {

// Thrown in a worker when the caller wants it to end.
struct Stopped {};

// The end of the best local alignment. Nodes of the matrix: `query_end` residues of the query and `subject_end` of the
// subject lie before it. All 0 where nothing scores above 0.
struct End {
    std::int32_t score = 0;
    std::size_t query_end = 0;
    std::size_t subject_end = 0;
};

// A query as all its subjects share it. The arrays given belong to the caller and outlive this.
class Query {
public:
    Query(const std::uint8_t* codes, const std::int32_t* rows, std::size_t length, const std::int8_t* table,
          std::size_t table_rows, std::int32_t gap_open, std::int32_t gap_extend, const std::uint8_t* identity,
          const ForwardKernels& kernels);

    // Scores in the striped order of `lanes` lanes; made on first use.
    const std::int8_t* striped(int lanes) const;
    std::size_t segments(int lanes) const { return (length + std::size_t(lanes) - 1) / std::size_t(lanes); }

    // Scores of all query rows against one subject code.
    const std::int8_t* scores(std::uint8_t residue) const { return plain_.data() + (residue & 31u) * length; }

    // Most subject columns of an alignment of this score that ends in this row: its gaps cost at most what the score
    // leaves of the best that the rows before the end can score.
    std::uint64_t most_columns(const End& end) const;

    const std::uint8_t* const codes;
    const std::size_t length;
    const std::int32_t first;
    const std::int32_t extend;
    const std::uint8_t* const identity;
    const ForwardKernels& kernels;
    const std::int32_t max_score;

private:
    std::vector<std::int8_t> plain_;
    std::vector<std::int64_t> best_before_;  // [row] sum of the best scores of the rows before it
    mutable std::mutex mutex_;
    mutable std::vector<std::int8_t> striped_[2];
    mutable int striped_lanes_[2] = {0, 0};
};

// What a worker tells the calling thread and hears from it.
struct Watch {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> cells{0};

    void done(std::uint64_t more) {
        cells.fetch_add(more, std::memory_order_relaxed);
        if (stop.load(std::memory_order_relaxed)) throw Stopped{};
    }
};

// Largest H of each group of 2^shift subject columns.
struct ColumnBest {
    std::vector<std::int32_t> best;
    unsigned shift = 0;
};

struct Path {
    End end;
    std::size_t query_start = 0;
    std::size_t subject_start = 0;
    std::string cigar;
    std::uint64_t identities = 0;
    std::uint64_t positives = 0;
    std::uint64_t columns = 0;
    std::uint64_t gap_openings = 0;
    std::uint64_t gap_residues = 0;
};

// At most `most` alignments of a score of at least `floor` (and above 0), each the best of those that use no pair of
// residues of the ones before; uses about `memory_bytes` beyond what is linear in the lengths, and gives the same paths
// for all values. Scores do not grow along the list.
std::vector<Path> find_paths(const Query& query, const std::uint8_t* subject, std::size_t length, std::size_t most,
                             std::int32_t floor, std::size_t memory_bytes, Watch& watch);

// The same for `most` of 1 where the end of the best alignment is known, from a pass over no more columns than that can
// span. Where what is given ends no alignment of that score, the path's own end differs from it, or there is none.
std::vector<Path> find_path_to(const Query& query, const std::uint8_t* subject, const End& end, std::int32_t floor,
                               std::size_t memory_bytes, Watch& watch);

}  // namespace swsearch::align
