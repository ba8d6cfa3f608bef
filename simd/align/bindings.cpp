// Bindings of simd/align: a Python function that returns the optimal local alignments of one query with many subjects.
// The inputs are NumPy arrays of scores, residues, starts and lengths.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "align/forward_pass.hpp"
#include "common/python.hpp"
#include "pair/pair.hpp"

namespace swsearch {

namespace {

// The ends of a checked array of (score, query_end, subject_end), all inside their pairs.
std::vector<align::End> checked_ends(const Matrix<const std::int64_t, 3>& ends, std::int32_t query_length,
                                     const Subjects& subjects) {
    check_that(ends.length == subjects.n, "ends and lengths differ in length");
    std::vector<align::End> checked;
    for (std::size_t i = 0; i < ends.length; ++i) {
        const std::int64_t* const row = ends.data + 3 * i;
        const std::int64_t limits[] = {INT32_MAX, query_length, subjects.lengths[i]};
        for (std::size_t k = 0; k < 3; ++k) {
            if (row[k] < 0 || row[k] > limits[k])
                refuse("the end of subject " + std::to_string(i) + " leaves the pair");
        }
        checked.push_back(
            {static_cast<std::int32_t>(row[0]), static_cast<std::size_t>(row[1]), static_cast<std::size_t>(row[2])});
    }
    return checked;
}

using Earlier = std::vector<std::tuple<std::int64_t, std::int64_t, std::string>>;

// The pairs of residues of alignments, each a query_start, a subject_start and a CIGAR, which stay inside the pair.
align::UsedPairs checked_pairs(const Earlier& earlier, std::int64_t query_length, std::int64_t subject_length) {
    std::vector<align::UsedPair> pairs;
    for (const auto& [query_start, subject_start, cigar] : earlier) {
        std::int64_t row = query_start, column = subject_start, length = 0;
        check_that(row >= 0 && column >= 0, "an earlier alignment leaves the pair");
        for (const char letter : cigar) {
            if (letter >= '0' && letter <= '9') {
                length = length * 10 + (letter - '0');
                check_that(length <= INT32_MAX, "an earlier alignment leaves the pair");
                continue;
            }
            const bool pairs_residues = letter == '=' || letter == 'X';
            check_that(pairs_residues || letter == 'I' || letter == 'D',
                       "a CIGAR consists of numbers with =, X, I or D");
            const std::int64_t rows = letter == 'D' ? 0 : length, columns = letter == 'I' ? 0 : length;
            check_that(row + rows <= query_length && column + columns <= subject_length,
                       "an earlier alignment leaves the pair");
            for (std::int64_t k = 0; pairs_residues && k < length; ++k) {
                pairs.emplace_back(static_cast<std::size_t>(row + k), static_cast<std::size_t>(column + k));
            }
            row += rows;
            column += columns;
            length = 0;
        }
    }
    align::UsedPairs used;
    used.add(pairs);
    return used;
}

// Memory for the values of one pair, in addition to memory that is linear in the lengths.
constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;
// Cells of the matrices, in about a quarter of a millisecond, for which the start of another thread is worthwhile.
constexpr std::uint64_t kCellsOfThread = 1'000'000;

// Calls task(i, residues, workspace) for each subject on several threads, if there is work for them, the longest first,
// so that no thread has a long subject at the end. Little work is done by the calling thread, which then looks for
// signals only at its end.
template <class Task>
void for_each_subject(const align::Query& query, const Subjects& subjects, int n_threads, std::uint64_t memory_bytes,
                      const nb::object& progress, const Task& task) {
    check_threads(n_threads);
    std::vector<std::size_t> order(subjects.n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return subjects.lengths[a] > subjects.lengths[b]; });
    const std::uint64_t residues = std::accumulate(subjects.lengths, subjects.lengths + subjects.n, std::uint64_t{0});
    const std::uint64_t worthwhile = residues * query.length / kCellsOfThread;
    PythonPoll poll(progress);
    const nb::gil_scoped_release no_lock;
    const int threads =
        static_cast<int>(std::clamp<std::uint64_t>(worthwhile, 1, static_cast<std::uint64_t>(n_threads)));
    std::vector<align::Workspace> workspaces;
    for (int thread = 0; thread < threads; ++thread) workspaces.push_back({memory_bytes, poll.observer});
    const auto of_subject = [&](std::size_t i, std::size_t worker) {
        task(order[i], subjects.residues + subjects.starts[order[i]], workspaces[worker]);
    };
    parallel_for(order.size(), poll.threads(threads, worthwhile >= 2), of_subject);
    poll();
}

// Length of a query, and of a subject, from which on the best path is found in less time by diamonds (simd/pair), which
// give the same one: complete columns of a striped matrix leave the first cache.
constexpr std::uint64_t kLengthForDiamonds = 8'000;

// Whether the path of a query and a subject of this length is found by diamonds: if their scores stay within 30 bits,
// and the memory is enough for what diamonds save of the pair, for its rows and for the scores of its letters.
bool takes_diamonds(const align::Query& query, std::int32_t n_rows, std::uint64_t length, std::uint64_t memory_bytes) {
    const std::uint64_t both = query.length + length, letters = static_cast<std::uint64_t>(n_rows);
    const auto step = static_cast<std::uint64_t>(std::max(query.max_score, 0) + query.first + 1);
    return std::min<std::uint64_t>(query.length, length) >= kLengthForDiamonds && both * step <= 1u << 29 &&
           32 * both <= memory_bytes && letters * length <= memory_bytes && letters <= pair::kMaxLetters;
}

std::vector<align::Path> path_by_diamonds(const align::Query& query, const Profile& profile,
                                          const std::uint8_t* residues, std::size_t length, std::int32_t floor,
                                          const align::Workspace& workspace, const pair::Kernels& kernels) {
    std::vector<std::uint16_t> rows(profile.rows, profile.rows + profile.length), codes(length);
    std::transform(residues, residues + length, codes.begin(), [](std::uint8_t residue) { return residue % kCodes; });
    const pair::Scoring scoring{
        profile.table, static_cast<std::size_t>(profile.n_rows), kCodes, 0, 0, profile.open, profile.extend, {true, 0}};
    const pair::Pair pair({scoring, rows.data(), rows.size(), codes.data(), length});
    const pair::PairPath found = pair::find_path(pair, kernels, workspace.memory_bytes, {1, workspace.observer});
    if (found.end.score < std::max(floor, 1)) return {};
    const align::End end{found.end.score, found.end.row, found.end.column};
    return {align::path_of(query, residues, end, found.query_start, found.subject_start, found.runs)};
}

nb::list align_local(View<const std::uint8_t> query_codes, Rows rows, Table table, std::int32_t gap_open,
                     std::int32_t gap_extend, View<const std::uint8_t> identity, Residues residues, Starts starts,
                     Lengths lengths, int n_threads, std::uint64_t memory_bytes, const nb::object& progress,
                     const std::string& instruction_set, std::uint64_t most, std::int32_t floor,
                     const std::optional<Array>& ends, const std::optional<Array>& floors,
                     const std::vector<Earlier>& earlier) {
    const Profile profile = checked_profile(rows, table, gap_open, gap_extend);
    check_that(query_codes.length == static_cast<std::size_t>(profile.length), "query_codes and rows differ in length");
    check_that(identity.length == kCodes, "identity needs 32 entries");
    const Subjects subjects = checked_subjects(residues, starts, lengths);
    check_that(!ends || most == 1, "ends are of the best alignments alone; leave most at 1");
    const std::vector<align::End> known =
        ends ? checked_ends(Passed<Matrix<const std::int64_t, 3>>::checked(*ends, "ends"), profile.length, subjects)
             : std::vector<align::End>();
    std::vector<std::int32_t> lowest(subjects.n, floor);
    if (floors) {
        const auto each = view_of<const std::int32_t>(*floors, "floors");
        check_that(each.length == subjects.n, "floors and lengths differ in length");
        lowest.assign(each.begin(), each.end());
    }
    check_that(earlier.empty() || (earlier.size() == subjects.n && !ends),
               "earlier alignments are of all subjects, without ends");
    std::vector<align::UsedPairs> used(subjects.n);
    for (std::size_t i = 0; i < earlier.size(); ++i) {
        used[i] = checked_pairs(earlier[i], profile.length, subjects.lengths[i]);
    }
    const align::Query query(profile, query_codes.data, identity.data, align::kernels_of(instruction_set));
    std::vector<std::vector<align::Path>> paths(subjects.n);
    const auto task = [&](std::size_t i, const std::uint8_t* subject, align::Workspace& workspace) {
        if (!known.empty()) {
            paths[i] = align::find_path_to(query, subject, known[i], lowest[i], workspace);
        } else if (most == 1 && used[i].empty() &&
                   takes_diamonds(query, profile.n_rows, subjects.lengths[i], memory_bytes)) {
            paths[i] = path_by_diamonds(query, profile, subject, subjects.lengths[i], lowest[i], workspace,
                                        pair::kernels_of(instruction_set));
        } else {
            paths[i] =
                align::find_paths(query, subject, subjects.lengths[i], most, lowest[i], workspace, std::move(used[i]));
        }
    };
    for_each_subject(query, subjects, n_threads, memory_bytes, progress, task);
    nb::list result;
    for (const std::vector<align::Path>& of_subject : paths) {
        nb::list alignments;
        for (const align::Path& path : of_subject) {
            alignments.append(nb::make_tuple(path.end.score, path.query_start, path.end.query_end, path.subject_start,
                                             path.end.subject_end, path.cigar, path.identities, path.positives,
                                             path.columns, path.gap_openings, path.gap_residues));
        }
        result.append(alignments);
    }
    return result;
}

}  // namespace

void bind_align(nb::module_& module) {
    define(
        module, "align_local", &align_local,
        {"query_codes", "rows", "table", "gap_open", "gap_extend", "identity", "residues", "starts", "lengths"},
        "n_threads"_a = 1, "memory_bytes"_a = kMemoryBytes, "progress"_a = nb::none(), "instruction_set"_a = "auto",
        "most"_a = std::uint64_t{1}, "floor"_a = 1, "ends"_a = nb::none(), "floors"_a = nb::none(),
        "earlier"_a = std::vector<Earlier>{},
        "The best local alignments of a query with each subject, as docs/design/traceback.md defines them.\n\n"
        "For each subject a list of at most `most` tuples: score, query_start, query_end, subject_start, subject_end\n"
        "(0-based, half-open), cigar, identities, positives, columns, gap_openings, gap_residues. Each uses no pair of\n"
        "residues of those before it and scores at least `floor` (or the subject's element of `floors`, int32), and\n"
        "above 0; nor of the `earlier` alignments of each subject (query_start, subject_start, cigar). `ends`, int64 of shape (n, 3), are the\n"
        "score, query_end and subject_end of each subject's best alignment: the alignment\n"
        "is then found from a pass over no more columns than it can span. Raises ValueError for arrays that do not fit\n"
        "together, TypeError for arrays of another kind, and KeyboardInterrupt, each after all threads have ended; what\n"
        "`progress` raises is passed on likewise.");
}

}  // namespace swsearch
