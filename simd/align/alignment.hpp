// Local alignments of one query with one subject: the interface of simd/align. Inputs: the query's scores and codes
// (Query) and the subject's residues, one byte each. Output: the best alignments as CIGARs with their ends and counts
// (Path).
//
// An alignment is found in two steps: its end, by a pass over all columns, and its path, through the values of that
// pass. docs/design/traceback.md defines the alignment and describes the steps.

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "align/kernel.hpp"
#include "align/used_pairs.hpp"
#include "common/aligned.hpp"
#include "common/parallel_for.hpp"
#include "common/path.hpp"
#include "common/profile.hpp"

namespace swsearch::align {

// The kernels of the instruction set with this name; find_instruction_set looks it up.
const Kernels& kernels_of(const std::string& instruction_set);

// The end of the best local alignment, a node of the matrix: `query_end` residues of the query and `subject_end` of the
// subject precede it. All members are 0 if no alignment scores above 0.
struct End {
    std::int32_t score = 0;
    std::size_t query_end = 0;
    std::size_t subject_end = 0;
};

// A query in the orders in which the passes read it, shared by the alignments with all subjects. The arrays belong to
// the caller and must outlive it. `identity` has 32 entries: letters with equal entries are identical.
class Query {
   public:
    Query(const Profile& profile, const std::uint8_t* codes, const std::uint8_t* identity, const Kernels& kernels);

    // Scores in the striped order of the narrow or of the wide lanes; computed on first use.
    const std::int8_t* striped(bool narrow) const;
    std::size_t segments(int lanes) const { return (length + std::size_t(lanes) - 1) / std::size_t(lanes); }

    // Scores of all query rows against one subject code.
    const std::int8_t* scores(std::uint8_t residue) const { return scores_.data() + (residue % kCodes) * length; }

    // Whether the letters of a query row and of a subject are identical.
    bool identical(std::size_t row, std::uint8_t residue) const {
        return identity_[codes_[row] % kCodes] == identity_[residue % kCodes];
    }

    // The largest number of subject columns that an alignment with this score and query end can span: its gaps cost at
    // most the difference between the sum of the best scores of the rows before the end and the score.
    std::uint64_t max_columns(const End& end) const;

    const std::size_t length;
    const std::int32_t first;   // cost of a gap's first residue
    const std::int32_t extend;  // cost of each further residue
    const Kernels& kernels;
    const std::int32_t max_score;

   private:
    const std::uint8_t* const codes_;
    const std::uint8_t* const identity_;
    std::vector<std::int8_t> scores_;        // [code][row]
    std::vector<std::int64_t> best_before_;  // [row] sum of the best scores of the rows before it
    mutable std::once_flag is_striped_[2];
    mutable std::vector<std::int8_t> striped_[2];
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

// The path with these runs, from a node of the matrix to its end.
Path path_of(const Query& query, const std::uint8_t* subject, const End& end, std::size_t row, std::size_t column,
             const std::vector<Run>& runs);

// What one thread uses for its alignments, one after another. `memory_bytes` limits the memory for what is saved of one
// pair; the paths do not depend on it.
struct Workspace {
    std::size_t memory_bytes;
    Observer& observer;
    Scratch columns = {};  // of H
};

// Returns at most `most` alignments that score at least `floor` and above 0. Each is the best of those that use no pair
// of residues of the alignments before it, nor of `used`, so their scores do not increase.
std::vector<Path> find_paths(const Query& query, const std::uint8_t* subject, std::size_t length, std::size_t most,
                             std::int32_t floor, Workspace& workspace, UsedPairs used = {});

// The same for `most` = 1 if the end of the best alignment is known: the pass covers no more columns than the alignment
// can span. If no alignment with that score has that end, the end of the path differs from it, or there is no path.
std::vector<Path> find_path_to(const Query& query, const std::uint8_t* subject, const End& end, std::int32_t floor,
                               Workspace& workspace);

}  // namespace swsearch::align
