// One pair of sequences, one recurrence, several problems: best score and its end, and the path, in linear memory.
//
// docs/design/diamond.md defines the problems and says why the steps are exact. Nodes of the matrix: row i and column j
// have i residues of the query and j of the subject before them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "align/pair.hpp"
#include "pair/kernel.hpp"

namespace swsearch::pair {

using align::Stopped;
using align::Watch;

constexpr std::uint16_t query_fill = 0xFFFF;  // letters that equal no other
constexpr std::uint16_t subject_fill = 0xFFFE;
constexpr std::size_t most_letters = 0xFFF0;
// Lanes of 8 bits compare letters by looking up the exclusive or of four bits.
constexpr std::int8_t byte_query_fill = 15;
constexpr std::int8_t byte_subject_fill = 14;
constexpr std::uint16_t most_byte_letters = 14;

struct Ends {
    bool local;         // a path begins and ends anywhere, and H is never below 0
    bool query_free;    // end gaps that consume the query cost nothing
    bool subject_free;  // end gaps that consume the subject cost nothing
};

struct Costs {
    const std::int8_t* table;   // score of a query letter (row) against a subject letter, or null: letters are compared
    std::size_t table_rows;
    std::size_t table_columns;
    std::int32_t match;
    std::int32_t mismatch;
    std::int32_t gap_open;  // a gap of k residues costs gap_open + k · gap_extend
    std::int32_t gap_extend;
};

// The pair in the orders that the kernels read. The arrays given belong to the caller and outlive this.
class Pair {
public:
    Pair(const std::uint16_t* query, std::size_t rows, const std::uint16_t* subject, std::size_t columns,
         const Costs& costs, const Ends& ends);

    // H on the border: of node (i, 0) and of node (0, j).
    std::int32_t left_border(std::size_t i) const { return border(i, ends.local || ends.query_free); }
    std::int32_t top_border(std::size_t j) const { return border(j, ends.local || ends.subject_free); }

    // Letters of the even or the odd columns, backwards and with fill at both ends: entry -c / 2 is that of column c, and
    // the lanes of one step, two columns apart, lie side by side.
    template <class Lane>
    const Lane* letters(std::size_t odd) const;

    // Scores of a query letter against the subject, with the worst score at both ends; only with a table. `query_fill` has
    // the worst score everywhere.
    const std::int8_t* line(std::uint16_t letter) const {
        const std::size_t number = letter == query_fill ? 0 : line_of_[letter];
        return lines_.data() + number * line_bytes_ + margin;
    }

    const std::uint16_t* const query;
    const std::size_t rows;
    const std::uint16_t* const subject;
    const std::size_t columns;
    const Costs costs;
    const Ends ends;
    const std::int32_t first;
    std::int32_t max_score;
    std::int32_t min_score;

    static constexpr std::size_t margin = 160;  // no kernel reads further past an end

    bool letters_fit_bytes() const { return costs.table != nullptr || !bytes_.empty(); }

private:
    std::size_t half_columns() const { return (columns + 1) / 2; }

    std::int32_t border(std::size_t k, bool free) const {
        if (free || k == 0) return 0;
        return -(costs.gap_open + static_cast<std::int32_t>(k) * costs.gap_extend);
    }

    std::vector<std::int8_t> bytes_;
    std::vector<std::int16_t> narrow_;
    std::vector<std::int32_t> wide_;
    std::vector<std::int8_t> lines_;
    std::vector<std::size_t> line_of_;
    std::size_t line_bytes_ = 0;
};

// The best end that the problem allows: smallest column, then smallest row, of the largest score.
struct Best {
    std::int32_t score = 0;
    std::size_t column = 0;
    std::size_t row = 0;

    bool loses_to(const Best& other) const {
        if (score != other.score) return score < other.score;
        return column != other.column ? column > other.column : row > other.row;
    }
};

// H of a row of nodes and the F that the row below may take, for columns 1, 2, …; column 0 is the border.
struct Row {
    std::vector<std::int32_t> h;
    std::vector<std::int32_t> f;
};

// A row that a sweep keeps: the lowest of strip `strip`.
struct Kept {
    std::size_t strip;
    Row row;
};

// How the matrix is cut: strips of rows, tiles of steps, lanes wide enough for every score of a tile.
struct Cut {
    const Width& width;
    std::size_t lane_bytes;
    std::size_t steps;  // of a tile

    Cut(const Pair& pair, const Kernels& kernels);
    // Lanes of 8 bits, which do not hold every score: a sweep that meets `byte_limit` or more stops there.
    static Cut of_bytes(const Kernels& kernels) { return {kernels.bytes, 1, 1024}; }
    // Whether such a sweep can be tried: a local problem whose letters and costs fit 8 bits.
    static bool bytes_fit(const Pair& pair, const Kernels& kernels);

    std::size_t strips(const Pair& pair) const { return (pair.rows + width.strip() - 1) / width.strip(); }
    std::size_t tiles(std::size_t columns) const { return (columns + width.behind() + steps - 1) / steps; }
    // Bytes of a strip's state: H and E of its cells, four values a lane, and the base.
    std::size_t state_bytes() const {
        return (2 * width.strip() + 4 * static_cast<std::size_t>(width.lanes)) * lane_bytes + sizeof(std::int32_t);
    }

private:
    Cut(const Width& width_in, std::size_t lane_bytes_in, std::size_t steps_in)
        : width(width_in), lane_bytes(lane_bytes_in), steps(steps_in) {}
};

// States of strips first … last - 1 where their tiles begin, from which a strip can be taken up in its middle.
class Checkpoints {
public:
    Checkpoints() = default;  // keeps none
    Checkpoints(const Cut& cut, std::size_t first, std::size_t last, std::size_t columns)
        : first_(first),
          state_bytes_(cut.state_bytes()),
          strip_bytes_(strip_bytes(cut, columns)),
          bytes_((last - first) * strip_bytes_) {}

    static std::size_t strip_bytes(const Cut& cut, std::size_t columns) { return cut.tiles(columns) * cut.state_bytes(); }

    bool empty() const { return bytes_.empty(); }
    std::byte* at(std::size_t strip, std::size_t tile) { return bytes_.data() + place(strip, tile); }
    const std::byte* at(std::size_t strip, std::size_t tile) const { return bytes_.data() + place(strip, tile); }

private:
    std::size_t place(std::size_t strip, std::size_t tile) const {
        return (strip - first_) * strip_bytes_ + tile * state_bytes_;
    }

    std::size_t first_ = 0;
    std::size_t state_bytes_ = 0;
    std::size_t strip_bytes_ = 0;
    std::vector<std::byte> bytes_;
};

// What a sweep keeps: rows by ascending strip, and the states of all of its strips or of none.
struct Keeping {
    std::vector<Kept> rows;
    Checkpoints states;
};

constexpr std::int32_t byte_limit = 255;  // lanes of 8 bits hold the scores below it

Row top_row(const Pair& pair);

// Computes strips first … last - 1 over columns 1 … columns, in diamonds that n_threads threads take from a FIFO. `row`
// is the row above and becomes the lowest one; `kept` says what to keep and takes it. `best` is given where ends
// are looked for, and then columns and last are those of the whole matrix. With lanes of 8 bits it may stop early, and then
// `best` has `byte_limit`.
void sweep(const Pair& pair, const Cut& cut, std::size_t first, std::size_t last, std::size_t columns, Row& row,
           Keeping& kept, Best* best, int n_threads, Watch& watch);

// Score and end.
Best find_best(const Pair& pair, const Kernels& kernels, int n_threads, Watch& watch);

struct PairPath {
    Best end;
    std::size_t query_start = 0;
    std::size_t subject_start = 0;
    std::vector<std::pair<char, std::size_t>> runs;  // 'M', 'D', 'I' with lengths, from the start
};

// The alignment. What is kept for it takes at most `memory_bytes` at a time in the sweep of the whole matrix and in that of
// each band cut from it, but a row in any case; the path is the same for all values.
PairPath find_path(const Pair& pair, const Kernels& kernels, std::size_t memory_bytes, int n_threads, Watch& watch);

}  // namespace swsearch::pair
