// The interface of the pair aligner: it aligns one pair of sequences in linear memory. Inputs: a PairProblem, that is,
// two arrays of 16-bit letters, the scoring, and whether the problem is local, global or semi-global. Outputs: the best
// score with its end, and the path.
//
// docs/design/diamond.md defines the problems and proves that the steps are exact. A node (i, j) of the matrix is the
// position after i letters of the query and j letters of the subject.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "common/parallel_for.hpp"
#include "common/path.hpp"
#include "pair/kernel.hpp"

namespace swsearch::pair {

// The kernels of the instruction set with this name; find_instruction_set looks it up.
const Kernels& kernels_of(const std::string& instruction_set);

constexpr std::uint16_t kQueryFill = 0xFFFF;  // a letter that equals no other; so does kSubjectFill
constexpr std::uint16_t kSubjectFill = 0xFFFE;
constexpr std::size_t kMaxLetters = 0xFFF0;
// Lanes of 8 bits compare letters by a table look-up with the exclusive or of four bits.
constexpr std::int8_t kByteQueryFill = 15;
constexpr std::int8_t kByteSubjectFill = 14;
constexpr std::uint16_t kMaxByteLetters = 14;

// The letters before the start or after the end of a path that cost nothing, as flags of BoundaryMode::free_ends;
// swsearch/engine/pair_arrays.py has the same numbers.
enum FreeEnd : unsigned { kQueryStart = 1, kQueryEnd = 2, kSubjectStart = 4, kSubjectEnd = 8 };
constexpr unsigned kAllEnds = kQueryStart | kQueryEnd | kSubjectStart | kSubjectEnd;

struct BoundaryMode {
    bool local;          // a path begins and ends anywhere, and H is never below 0
    unsigned free_ends;  // without effect if the problem is local

    // Whether a path may begin, or end, on a border of the matrix at no cost for the letters outside it.
    bool free(FreeEnd end) const { return local || (free_ends & end) != 0; }
};

// The scores of letters and gaps, and the nodes at which a path may begin and end.
struct Scoring {
    const std::int8_t* table;  // score of a query letter (row) and a subject letter, or null: letters are compared
    std::size_t table_rows;
    std::size_t table_columns;
    std::int32_t match;
    std::int32_t mismatch;
    std::int32_t gap_open;  // a gap of k letters costs gap_open + k * gap_extend
    std::int32_t gap_extend;
    BoundaryMode boundary;
};

// A pair of sequences with its scoring. The arrays belong to the caller.
struct PairProblem : Scoring {
    const std::uint16_t* query;
    std::size_t rows;
    const std::uint16_t* subject;
    std::size_t columns;
};

// A problem in the orders in which the kernels read it. The arrays of the problem must outlive it.
class Pair : public PairProblem {
   public:
    explicit Pair(const PairProblem& problem);

    // H on the border: of node (i, 0) and of node (0, j).
    std::int32_t left_border(std::size_t i) const { return border(i, boundary.free(kQueryStart)); }
    std::int32_t top_border(std::size_t j) const { return border(j, boundary.free(kSubjectStart)); }

    // Letters of the even or the odd columns in reverse order, with fill at both ends: entry -c / 2 is that of column
    // c. Therefore the letters of the lanes of one step, which are two columns apart, are adjacent.
    template <class Lane>
    const Lane* letters(std::size_t odd) const {
        return std::get<std::vector<Lane>>(letters_).data() + odd * half_letters() + kMargin + half_columns() - 1;
    }

    // Scores of a query letter against the subject, with the worst score at both ends; only with a table. kQueryFill
    // has the worst score everywhere.
    const std::int8_t* scores(std::uint16_t letter) const {
        const std::size_t row = letter == kQueryFill ? 0 : score_row_[letter];
        return scores_.data() + row * score_row_bytes_ + kMargin;
    }

    const std::int32_t first;  // cost of a gap's first letter
    std::int32_t max_score;
    std::int32_t min_score;

    static constexpr std::size_t kMargin = 160;  // maximum number of entries that a kernel reads past an end

    bool letters_fit_bytes() const { return table != nullptr || !std::get<std::vector<std::int8_t>>(letters_).empty(); }

   private:
    std::size_t half_columns() const { return (columns + 1) / 2; }
    std::size_t half_letters() const { return half_columns() + 2 * kMargin; }

    template <class Lane>
    void lay_out_letters(Lane fill);

    std::int32_t border(std::size_t k, bool free) const {
        if (free || k == 0) return 0;
        return -(gap_open + static_cast<std::int32_t>(k) * gap_extend);
    }

    // By the type of the lanes; those of bytes are empty if the letters do not fit.
    std::tuple<std::vector<std::int8_t>, std::vector<std::int16_t>, std::vector<std::int32_t>> letters_;
    std::vector<std::int8_t> scores_;     // a row of worst scores, then one row for each letter of the query
    std::vector<std::size_t> score_row_;  // index of each letter's row
    std::size_t score_row_bytes_ = 0;
};

// The best end that the problem allows: the largest score, at its smallest column and there at its smallest row.
struct Best {
    std::int32_t score = 0;
    std::size_t column = 0;
    std::size_t row = 0;

    bool loses_to(const Best& other) const {
        return std::tie(other.score, column, row) > std::tie(score, other.column, other.row);
    }
    // Becomes another end if that is better.
    void take(const Best& other) {
        if (loses_to(other)) *this = other;
    }
};

// H and the next F of each node of a row, in columns 1, 2 and so on; column 0 is the border.
struct Row {
    std::vector<std::int32_t> h;
    std::vector<std::int32_t> f;
};

// The lowest row of a strip, saved by a sweep.
struct SavedRow {
    std::size_t strip;
    Row row;
};

// The division of the matrix into strips of rows and tiles of steps, with lanes wide enough for every score of a tile.
struct Tiling {
    const Width& width;
    std::size_t lane_bytes;
    std::size_t steps;  // steps of a tile

    Tiling(const Pair& pair, const Kernels& kernels);
    // The tiling with lanes of 8 bits, which cannot represent every score: a sweep that reaches kByteLimit stops.
    static Tiling of_bytes(const Kernels& kernels) { return {kernels.bytes, 1, 1024}; }
    // Whether a sweep with 8 bits can be tried: the problem is local, and its letters and costs fit 8 bits.
    static bool bytes_fit(const Pair& pair, const Kernels& kernels);

    std::size_t strips(const Pair& pair) const { return (pair.rows + width.strip() - 1) / width.strip(); }
    std::size_t tiles(std::size_t columns) const { return (columns + width.lag() + steps - 1) / steps; }
    // Bytes of a strip's state: H and E of its cells, four values per lane, and the base.
    std::size_t state_bytes() const {
        return (2 * width.strip() + 4 * static_cast<std::size_t>(width.lanes)) * lane_bytes + sizeof(std::int32_t);
    }

   private:
    Tiling(const Width& width_in, std::size_t lane_bytes_in, std::size_t steps_in)
        : width(width_in), lane_bytes(lane_bytes_in), steps(steps_in) {}
};

// The states of strips first to last - 1 at the beginning of each tile, from which a strip can be computed again in
// parts.
class Checkpoints {
   public:
    Checkpoints() = default;  // saves no states
    Checkpoints(const Tiling& tiling, std::size_t first, std::size_t last, std::size_t columns)
        : first_(first),
          state_bytes_(tiling.state_bytes()),
          strip_bytes_(strip_bytes(tiling, columns)),
          bytes_((last - first) * strip_bytes_) {}

    static std::size_t strip_bytes(const Tiling& tiling, std::size_t columns) {
        return tiling.tiles(columns) * tiling.state_bytes();
    }

    bool empty() const { return bytes_.empty(); }
    std::byte* at(std::size_t strip, std::size_t tile) { return bytes_.data() + index(strip, tile); }
    const std::byte* at(std::size_t strip, std::size_t tile) const { return bytes_.data() + index(strip, tile); }

   private:
    std::size_t index(std::size_t strip, std::size_t tile) const {
        return (strip - first_) * strip_bytes_ + tile * state_bytes_;
    }

    std::size_t first_ = 0;
    std::size_t state_bytes_ = 0;
    std::size_t strip_bytes_ = 0;
    std::vector<std::byte> bytes_;
};

// The data that a sweep saves: rows, by ascending strip, and the states of all of its strips or of none.
struct Saved {
    std::vector<SavedRow> rows;
    Checkpoints states;
};

constexpr std::int32_t kByteLimit = 255;  // lanes of 8 bits represent the scores below it

Row top_row(const Pair& pair);

// Computes strips first to last - 1 over columns 1 to columns, in diamonds that threads take from a queue.
// `row` is the row above and becomes the lowest row. `saved` specifies the data to save and receives them. `best` is
// null if no end is requested; otherwise columns and last are those of the complete matrix. With lanes of 8 bits the
// sweep may stop early; then `best` has the score kByteLimit.
void sweep(const Pair& pair, const Tiling& tiling, std::size_t first, std::size_t last, std::size_t columns, Row& row,
           Saved& saved, Best* best, const Threads& threads);

// The best score and its end.
Best find_best(const Pair& pair, const Kernels& kernels, const Threads& threads);

struct PairPath {
    Best end;
    std::size_t query_start = 0;
    std::size_t subject_start = 0;
    std::vector<Run> runs;  // from the start
};

// The best alignment with its path. The saved data take at most `memory_bytes` at a time, in the sweep of the complete
// matrix and in that of each band, but at least one row is saved. The path does not depend on `memory_bytes`.
PairPath find_path(const Pair& pair, const Kernels& kernels, std::size_t memory_bytes, const Threads& threads);

}  // namespace swsearch::pair
