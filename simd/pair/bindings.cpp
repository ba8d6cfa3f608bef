// Bindings of simd/pair: Python functions that align pairs of sequences; that trace the path of a pair whose matrix was
// computed elsewhere; and that convert runs to CIGARs. Inputs are NumPy arrays of 16-bit letters.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/python.hpp"
#include "pair/pair.hpp"
#include "pair/walk.hpp"

namespace swsearch {

namespace {

using pair::PairProblem;
using pair::Scoring;
using Letters = View<const std::uint16_t>;
using Positions = View<const std::int64_t>;
using ScoreTable = std::optional<Matrix<const std::int8_t>>;

constexpr std::uint64_t kCellsWithoutSignals = 50'000'000;  // computed before a user could press Ctrl-C
constexpr char kOperations[] = "MID";
constexpr int kOperationBits = 2;  // lowest bits of a run; the other bits are its length
constexpr std::size_t kMaxRunLength = (std::size_t{1} << (32 - kOperationBits)) - 1;
constexpr std::size_t kPairsPerTask = 64;  // pairs whose CIGARs one task writes

// Scores and gap costs, checked that they are in their ranges. The table belongs to the array.
Scoring checked_scoring(const ScoreTable& table, std::int32_t match, std::int32_t mismatch, std::int32_t gap_open,
                        std::int32_t gap_extend, bool local, unsigned free_ends) {
    for (const std::int32_t cost : {match, mismatch, gap_open, gap_extend}) {
        check_that(cost >= -kMaxGapCost && cost <= kMaxGapCost, "scores and gap costs range up to 16383");
    }
    check_that(gap_open >= 0 && gap_extend >= 0, "gap costs are not negative");
    check_that(free_ends <= pair::kAllEnds, "free_ends has other flags than those of the four ends");
    check_that(!local || gap_open + gap_extend > 0, "gaps would cost nothing");
    Scoring scoring{nullptr, 0, 0, match, mismatch, gap_open, gap_extend, {local, free_ends}};
    if (table) {
        check_that(table->size() > 0, "the table is empty");
        scoring.table = table->data;
        scoring.table_rows = table->length;
        scoring.table_columns = table->columns;
    }
    return scoring;
}

void check_letters(const Letters& query, const Letters& subject, const Scoring& scoring) {
    const bool by_table = scoring.table != nullptr;
    const std::size_t n_query = by_table ? scoring.table_rows : pair::kMaxLetters;
    const std::size_t n_subject = by_table ? scoring.table_columns : pair::kMaxLetters;
    for (const std::uint16_t letter : query) check_that(letter < n_query, "a letter has no score");
    for (const std::uint16_t letter : subject) check_that(letter < n_subject, "a letter has no score");
}

nb::list list_of(const std::vector<Run>& runs) {
    nb::list list;
    for (const auto& [operation, length] : runs) list.append(nb::make_tuple(std::string(1, operation), length));
    return list;
}

// Consecutive sequences in one array, with the position at which each ends.
struct Sequences {
    Letters letters;
    Positions end_positions;

    std::size_t start(std::size_t i) const { return i == 0 ? 0 : static_cast<std::size_t>(end_positions[i - 1]); }
    std::size_t length(std::size_t i) const { return static_cast<std::size_t>(end_positions[i]) - start(i); }
    const std::uint16_t* begin(std::size_t i) const { return letters.data + start(i); }
};

Sequences checked_sequences(const Letters& letters, const Positions& end_positions) {
    check_that(last_position(end_positions, "the ends of sequences do not grow") == letters.length,
               "the last sequence does not end where the letters do");
    return {letters, end_positions};
}

std::uint32_t packed(const Run& run) {
    if (run.length > kMaxRunLength) throw std::length_error("an alignment has a run of more than 2^30 columns");
    const auto code = static_cast<std::uint32_t>(std::find(kOperations, kOperations + 2, run.operation) - kOperations);
    return static_cast<std::uint32_t>(run.length) << kOperationBits | code;
}

nb::tuple align_pairs(Letters query, Positions query_ends, Letters subject, Positions subject_ends, ScoreTable table,
                      std::int32_t match, std::int32_t mismatch, std::int32_t gap_open, std::int32_t gap_extend,
                      bool local, unsigned free_ends, bool path, int n_threads, std::uint64_t memory_bytes,
                      const nb::object& progress, const std::string& instruction_set) {
    const pair::Kernels& kernels = pair::kernels_of(instruction_set);
    const Scoring scoring = checked_scoring(table, match, mismatch, gap_open, gap_extend, local, free_ends);
    check_letters(query, subject, scoring);
    const Sequences queries = checked_sequences(query, query_ends);
    const Sequences subjects = checked_sequences(subject, subject_ends);
    const std::size_t n = queries.end_positions.length;
    check_that(subjects.end_positions.length == n, "there are not as many queries as subjects");

    std::vector<std::int64_t> ends(n * 5);
    std::vector<std::vector<std::uint32_t>> runs_of_pairs(n);
    std::uint64_t cells = 0;
    for (std::size_t i = 0; i < n; ++i) cells += std::uint64_t{queries.length(i)} * subjects.length(i);
    PythonPoll poll(progress);
    const bool is_long = cells > kCellsWithoutSignals;
    const Threads threads = poll.threads(n_threads, is_long);
    const auto align = [&](std::size_t i, std::size_t) {
        const pair::Pair pair({scoring, queries.begin(i), queries.length(i), subjects.begin(i), subjects.length(i)});
        const Threads of_pair{n == 1 ? n_threads : 1, poll.observer};
        const pair::PairPath found = path ? pair::find_path(pair, kernels, memory_bytes, of_pair)
                                          : pair::PairPath{pair::find_best(pair, kernels, of_pair), 0, 0, {}};
        const std::size_t values[] = {found.end.row, found.end.column, found.query_start, found.subject_start};
        ends[5 * i] = found.end.score;
        for (std::size_t k = 0; k < 4; ++k) ends[5 * i + 1 + k] = static_cast<std::int64_t>(values[k]);
        std::transform(found.runs.begin(), found.runs.end(), std::back_inserter(runs_of_pairs[i]), packed);
    };
    {
        const nb::gil_scoped_release no_lock;
        parallel_for(n, threads, align);
        if (is_long) poll();
    }
    std::vector<std::uint32_t> runs;
    std::vector<std::int64_t> run_ends;
    for (const std::vector<std::uint32_t>& of_pair : runs_of_pairs) {
        runs.insert(runs.end(), of_pair.begin(), of_pair.end());
        run_ends.push_back(static_cast<std::int64_t>(runs.size()));
    }
    return nb::make_tuple(array_of<std::int64_t, 2>(std::move(ends), {n, 5}), array_of(std::move(run_ends)),
                          array_of(std::move(runs)));
}

// The CIGAR of the packed runs of a pair from node (row, column) on.
std::string cigar_of(const PairProblem& pair, const std::uint32_t* first_run, const std::uint32_t* last_run,
                     std::size_t row, std::size_t column) {
    std::string cigar;
    check_that(row <= pair.rows && column <= pair.columns, "a start lies beyond its sequence");
    for (const std::uint32_t* run = first_run; run != last_run; ++run) {
        const std::size_t length = *run >> kOperationBits;
        const std::uint32_t code = *run & 3u;
        check_that(code <= 2, "a run has no operation of that number");
        const char operation = kOperations[code];
        const std::size_t rows = operation == 'D' ? 0 : length;
        const std::size_t columns = operation == 'I' ? 0 : length;
        check_that(rows <= pair.rows - row && columns <= pair.columns - column, "runs go beyond their sequences");
        if (operation == 'M') {
            append_pairs_to_cigar(cigar, length,
                                  [&](std::size_t k) { return pair.query[row + k] == pair.subject[column + k]; });
        } else if (length > 0) {
            append_to_cigar(cigar, length, operation);
        }
        row += rows;
        column += columns;
    }
    return cigar;
}

nb::list write_cigars(Letters query, Positions query_ends, Letters subject, Positions subject_ends,
                      Positions query_starts, Positions subject_starts, Positions run_ends,
                      View<const std::uint32_t> runs, int n_threads) {
    const Sequences queries = checked_sequences(query, query_ends);
    const Sequences subjects = checked_sequences(subject, subject_ends);
    const std::size_t n = queries.end_positions.length;
    check_that(subjects.end_positions.length == n && query_starts.length == n && subject_starts.length == n &&
                   run_ends.length == n,
               "the arrays are not of as many pairs");
    check_that(last_position(run_ends, "the ends of runs do not grow") <= runs.length,
               "the last runs end beyond all runs");
    check_threads(n_threads);
    std::vector<std::string> cigars(n);
    {
        const nb::gil_scoped_release no_lock;
        Observer observer;
        parallel_for(
            (n + kPairsPerTask - 1) / kPairsPerTask, {n_threads, observer}, [&](std::size_t task, std::size_t) {
                const std::size_t last = std::min(n, (task + 1) * kPairsPerTask);
                for (std::size_t i = task * kPairsPerTask; i < last; ++i) {
                    const PairProblem pair{
                        {}, queries.begin(i), queries.length(i), subjects.begin(i), subjects.length(i)};
                    const std::uint32_t* const first_run = runs.data + (i == 0 ? 0 : run_ends[i - 1]);
                    cigars[i] =
                        cigar_of(pair, first_run, runs.data + run_ends[i], static_cast<std::size_t>(query_starts[i]),
                                 static_cast<std::size_t>(subject_starts[i]));
                }
            });
    }
    nb::list list;
    for (const std::string& cigar : cigars) list.append(nb::str(cigar.c_str(), cigar.size()));
    return list;
}

// A Walk that also owns the arrays that it reads.
class PairWalk {
   public:
    PairWalk(const Array& query, const Array& subject, const std::optional<Array>& table, std::int32_t match,
             std::int32_t mismatch, std::int32_t gap_open, std::int32_t gap_extend, bool local, unsigned free_ends,
             std::size_t query_end, std::size_t subject_end)
        : query_(query),
          subject_(subject),
          table_(table),
          pair_(checked(query, subject,
                        checked_scoring(Passed<ScoreTable>::checked(table, "table"), match, mismatch, gap_open,
                                        gap_extend, local, free_ends))),
          walk_(pair_, query_end, subject_end) {
        check_that(query_end <= pair_.rows && subject_end <= pair_.columns, "the end is outside the matrix");
    }

    std::size_t row() const { return walk_.row(); }
    std::size_t column() const { return walk_.column(); }
    bool done() const { return walk_.done(); }

    void through(std::size_t above, std::size_t column, std::size_t group_rows, const Array& top_h, const Array& top_f,
                 const Array& left_h, const Array& next_e, const Array& corner, const Array& next_f) {
        check_that(!walk_.done() && above < walk_.row() && column < walk_.column() && group_rows > 0,
                   "the block has no cell that the path could be in");
        const std::size_t rows = walk_.row() - above;
        const std::size_t groups = (rows - 1) / group_rows + 1;
        const std::size_t columns = walk_.column() - column;
        check_that(groups - 1 <= column, "the left edge of the block leaves the matrix");
        const auto checked_edge = [](const Array& array, const char* name, std::size_t length) {
            const auto edge = view_of<const std::int32_t>(array, name);
            if (edge.length < length)
                refuse(std::string("the block's edge ") + name + " is shorter than the path may go");
            return edge.data;
        };
        const std::int32_t* const h_above = checked_edge(top_h, "top_h", columns);
        const std::int32_t* const f_above = checked_edge(top_f, "top_f", columns);
        const pair::LeftEdges left{column,
                                   group_rows,
                                   checked_edge(left_h, "left_h", rows),
                                   checked_edge(next_e, "next_e", rows),
                                   checked_edge(corner, "corner", groups),
                                   checked_edge(next_f, "next_f", groups - 1)};
        const nb::gil_scoped_release no_lock;
        walk_.through(above, h_above, f_above, left);
    }

    nb::tuple finish() {
        walk_.finish();
        return nb::make_tuple(walk_.row(), walk_.column(), list_of(walk_.runs()));
    }

   private:
    static PairProblem checked(const Array& query_array, const Array& subject_array, const Scoring& scoring) {
        const auto query = view_of<const std::uint16_t>(query_array, "query");
        const auto subject = view_of<const std::uint16_t>(subject_array, "subject");
        check_letters(query, subject, scoring);
        return {scoring, query.data, query.length, subject.data, subject.length};
    }

    Array query_;
    Array subject_;
    std::optional<Array> table_;
    pair::Pair pair_;
    pair::Walk walk_;
};

}  // namespace

void bind_pair(nb::module_& module) {
    define(
        module, "align_pairs", &align_pairs,
        {"query", "query_ends", "subject", "subject_ends", "table", "match", "mismatch", "gap_open", "gap_extend",
         "local", "free_ends", "path"},
        "n_threads"_a = 1, "memory_bytes"_a = std::uint64_t{256} << 20, "progress"_a = nb::none(),
        "instruction_set"_a = "auto",
        "Pairs as docs/design/diamond.md defines them: a single one by all threads, several by one thread each.\n"
        "Sequence i ends at *_ends[i] and begins where the one before it ends. Letters, uint16, are rows and columns of\n"
        "`table`; without a table equal letters score `match`, others `mismatch`. `free_ends`: flags of\n"
        "swsearch.engine.pair_arrays.FreeEnds. Returns int64 (n, 5): score, query_end, subject_end, query_start,\n"
        "subject_start, both starts 0 without `path`; int64 (n,) ends of each pair's runs; and uint32 runs, length * 4 +\n"
        "operation (0 M, 1 I, 2 D), from the start. Raises ValueError for arguments that do not fit, TypeError for\n"
        "arrays of another kind, and KeyboardInterrupt, after all threads have ended.");
    define(module, "write_cigars", &write_cigars,
           {"query", "query_ends", "subject", "subject_ends", "query_starts", "subject_starts", "run_ends", "runs"},
           "n_threads"_a = 1,
           "CIGARs of pairs: their runs, with M written as = where the letters are equal and X where they are not.");
    nb::class_<PairWalk>(
        module, "PairWalk",
        "The path of a pair from an end that a sweep elsewhere found, back through blocks of its matrix\n"
        "(docs/design/diamond.md, \"Path\"). Letters and scores as for `align_pairs`. Raises ValueError for\n"
        "arguments that do not fit.")
        .def(nb::init<const Array&, const Array&, const std::optional<Array>&, std::int32_t, std::int32_t, std::int32_t,
                      std::int32_t, bool, unsigned, std::size_t, std::size_t>(),
             "query"_a, "subject"_a, "table"_a.none(), "match"_a, "mismatch"_a, "gap_open"_a, "gap_extend"_a, "local"_a,
             "free_ends"_a, "query_end"_a, "subject_end"_a)
        .def_prop_ro("row", &PairWalk::row, "Query letters before the current node of the path.")
        .def_prop_ro("column", &PairWalk::column, "Subject letters before it.")
        .def_prop_ro("done", &PairWalk::done, "Whether the path needs no more blocks.")
        .def(
            "through", &PairWalk::through, "above"_a, "column"_a, "group_rows"_a, "top_h"_a, "top_f"_a, "left_h"_a,
            "next_e"_a, "corner"_a, "next_f"_a,
            "Follows the path through the rows below row `above` of nodes. `top_h`, `top_f`: H of that row, and the F that the\n"
            "next row may take, in columns column + 1 and so on. `left_h`, `next_e`: of each row, H at the left of the block\n"
            "and the E that the next column may take. The first `group_rows` rows have theirs in `column`, each further group\n"
            "one column further left. `corner`: of each group, H above its first row in its column; `next_f`: next F of its\n"
            "last row. All int32.")
        .def("finish", &PairWalk::finish,
             "query_start, subject_start and runs, pairs of 'M', 'D' or 'I' and a length, once the path is done.");
}

}  // namespace swsearch
