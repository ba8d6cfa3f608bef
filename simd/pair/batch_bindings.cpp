// Bindings of simd/pair for many pairs at once: a thread takes one pair after another.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "pair/arguments.hpp"
#include "pair/supervise.hpp"

namespace swsearch {
void bind_pair_batch(nanobind::module_& module);

namespace {

namespace nb = nanobind;
using namespace nb::literals;
using pair::Letters;

using Places = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Runs = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr char operations[] = "MID";
constexpr int operation_bits = 2;  // of a run; the others are its length
constexpr std::size_t pairs_a_portion = 64;  // whose CIGARs a thread spells at a time
constexpr std::size_t longest_run = (std::size_t{1} << (32 - operation_bits)) - 1;

// Sequences one after another in one array, and where each ends.
struct Sequences {
    const std::uint16_t* letters;
    const std::int64_t* ends;

    std::size_t start(std::size_t i) const { return i == 0 ? 0 : static_cast<std::size_t>(ends[i - 1]); }
    std::size_t length(std::size_t i) const { return static_cast<std::size_t>(ends[i]) - start(i); }
    const std::uint16_t* begin(std::size_t i) const { return letters + start(i); }
};

Sequences checked_sequences(const Letters& letters, const Places& ends) {
    std::int64_t before = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends.data()[i] < before) throw nb::value_error("the ends of sequences do not grow");
        before = ends.data()[i];
    }
    if (static_cast<std::size_t>(before) != letters.size()) {
        throw nb::value_error("the last sequence does not end where the letters do");
    }
    return {letters.data(), ends.data()};
}

std::uint32_t code_of(char operation) {
    return operation == operations[0] ? 0 : operation == operations[1] ? 1 : 2;
}

// Runs task(i) for every i below n, on up to n_threads threads of which this is one. Throws what a task threw, after all
// threads have ended.
void share_out(std::size_t n, int n_threads, const std::function<void(std::size_t)>& task) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto take = [&] {
        try {
            for (std::size_t i = next++; i < n; i = next++) task(i);
        } catch (...) {
            next = n;
            const std::lock_guard<std::mutex> lock(mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    const std::size_t wanted = std::min(n, static_cast<std::size_t>(std::max(n_threads, 1)));
    try {
        for (std::size_t t = 1; t < wanted; ++t) threads.emplace_back(take);
    } catch (const std::system_error&) {
        // fewer threads do the same work
    }
    take();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// A NumPy array that owns a vector's values.
template <class Value, class Shape>
auto array_of(std::vector<Value>&& values, const Shape& shape) {
    auto* const kept = new std::vector<Value>(std::move(values));
    const nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<Value>*>(pointer); });
    return nb::ndarray<nb::numpy, Value>(kept->data(), shape.size(), shape.data(), owner);
}

nb::tuple align_pairs(const Letters& query, const Places& query_ends, const Letters& subject, const Places& subject_ends,
                      const std::optional<pair::Table>& table, std::int32_t match, std::int32_t mismatch,
                      std::int32_t gap_open, std::int32_t gap_extend, bool local, bool query_free, bool subject_free,
                      bool path, int n_threads, std::uint64_t memory_bytes, const nb::object& progress,
                      const std::string& isa) {
    const pair::Kernels& kernels = pair::usable_kernels(isa);
    const pair::Costs costs = pair::checked_costs(table, match, mismatch, gap_open, gap_extend, local);
    pair::check_letters(query, costs.table != nullptr ? costs.table_rows : pair::most_letters);
    pair::check_letters(subject, costs.table != nullptr ? costs.table_columns : pair::most_letters);
    if (query_ends.size() != subject_ends.size()) throw nb::value_error("there are not as many queries as subjects");
    const Sequences queries = checked_sequences(query, query_ends);
    const Sequences subjects = checked_sequences(subject, subject_ends);
    const std::size_t n = query_ends.size();

    std::vector<std::int64_t> ends(n * 5);
    std::vector<std::vector<std::uint32_t>> runs(n);
    pair::Watch watch;
    const auto align = [&](std::size_t i) {
        const pair::Pair both(queries.begin(i), queries.length(i), subjects.begin(i), subjects.length(i), costs,
                              {local, query_free, subject_free});
        pair::PairPath found;
        if (path) {
            found = pair::find_path(both, kernels, memory_bytes, 1, watch);
        } else {
            found.end = pair::find_best(both, kernels, 1, watch);
        }
        const std::int64_t values[] = {found.end.score, static_cast<std::int64_t>(found.end.row),
                                       static_cast<std::int64_t>(found.end.column),
                                       static_cast<std::int64_t>(found.query_start),
                                       static_cast<std::int64_t>(found.subject_start)};
        std::copy(std::begin(values), std::end(values), ends.begin() + static_cast<std::ptrdiff_t>(i * 5));
        for (const auto& [operation, length] : found.runs) {
            if (length > longest_run) throw std::length_error("an alignment has a run of more than 2^30 columns");
            runs[i].push_back(static_cast<std::uint32_t>(length) << operation_bits | code_of(operation));
        }
    };
    const auto work = [&] { share_out(n, n_threads, align); };
    std::uint64_t cells = 0;
    for (std::size_t i = 0; i < n; ++i) cells += std::uint64_t{queries.length(i)} * subjects.length(i);
    if (cells <= pair::cells_without_signals) {
        const nb::gil_scoped_release release;
        work();
    } else {
        pair::supervise(watch, progress, work);
    }
    std::vector<std::uint32_t> all;
    std::vector<std::int64_t> run_ends(n);
    for (std::size_t i = 0; i < n; ++i) {
        all.insert(all.end(), runs[i].begin(), runs[i].end());
        run_ends[i] = static_cast<std::int64_t>(all.size());
    }
    const std::size_t n_runs = all.size();
    return nb::make_tuple(array_of(std::move(ends), std::array<std::size_t, 2>{n, 5}),
                          array_of(std::move(run_ends), std::array<std::size_t, 1>{n}),
                          array_of(std::move(all), std::array<std::size_t, 1>{n_runs}));
}

void append_run(std::string& cigar, std::size_t length, char operation) {
    char digits[24];
    char* const end = digits + sizeof digits;
    char* begin = end;
    *--begin = operation;
    for (; length > 0; length /= 10) *--begin = static_cast<char>('0' + length % 10);
    cigar.append(begin, end);
}

// What a pair's runs are of: the sequences in which they begin, and where.
struct Spelled {
    const std::uint16_t* query;
    std::size_t rows;
    const std::uint16_t* subject;
    std::size_t columns;
    const std::uint32_t* runs;
    std::size_t n_runs;
};

std::string spell(const Spelled& pair, std::size_t row, std::size_t column) {
    std::string cigar;
    if (row > pair.rows || column > pair.columns) throw nb::value_error("a start lies beyond its sequence");
    for (std::size_t run = 0; run < pair.n_runs; ++run) {
        const std::size_t length = pair.runs[run] >> operation_bits;
        const std::uint32_t code = pair.runs[run] & 3u;
        if (code > 2) throw nb::value_error("a run has no operation of that number");
        const char operation = operations[code];
        const std::size_t rows = operation == 'D' ? 0 : length;
        const std::size_t columns = operation == 'I' ? 0 : length;
        if (row + rows > pair.rows || column + columns > pair.columns) {
            throw nb::value_error("runs go beyond their sequences");
        }
        if (operation == 'M') {
            const std::uint16_t* const a = pair.query + row;
            const std::uint16_t* const b = pair.subject + column;
            std::size_t from = 0;
            for (std::size_t x = 1; x <= length; ++x) {
                const bool equal = a[from] == b[from];
                if (x == length || (a[x] == b[x]) != equal) {
                    append_run(cigar, x - from, equal ? '=' : 'X');
                    from = x;
                }
            }
        } else if (length > 0) {
            append_run(cigar, length, operation);
        }
        row += rows;
        column += columns;
    }
    return cigar;
}

nb::list spell_cigars(const Letters& query, const Places& query_ends, const Letters& subject,
                      const Places& subject_ends, const Places& query_starts, const Places& subject_starts,
                      const Places& run_ends, const Runs& runs, int n_threads) {
    const Sequences queries = checked_sequences(query, query_ends);
    const Sequences subjects = checked_sequences(subject, subject_ends);
    const std::size_t n = query_ends.size();
    if (subject_ends.size() != n || query_starts.size() != n || subject_starts.size() != n || run_ends.size() != n) {
        throw nb::value_error("the arrays are not of as many pairs");
    }
    std::int64_t before = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (run_ends.data()[i] < before) throw nb::value_error("the ends of runs do not grow");
        before = run_ends.data()[i];
    }
    if (static_cast<std::size_t>(before) > runs.size()) throw nb::value_error("the last runs end beyond all runs");
    std::vector<std::string> cigars(n);
    const std::size_t n_portions = (n + pairs_a_portion - 1) / pairs_a_portion;
    {
        const nb::gil_scoped_release release;
        share_out(n_portions, n_threads, [&](std::size_t portion) {
            const std::size_t last = std::min(n, (portion + 1) * pairs_a_portion);
            for (std::size_t i = portion * pairs_a_portion; i < last; ++i) {
                const std::size_t first = i == 0 ? 0 : static_cast<std::size_t>(run_ends.data()[i - 1]);
                const Spelled pair{queries.begin(i), queries.length(i), subjects.begin(i), subjects.length(i),
                                   runs.data() + first, static_cast<std::size_t>(run_ends.data()[i]) - first};
                cigars[i] = spell(pair, static_cast<std::size_t>(query_starts.data()[i]),
                                  static_cast<std::size_t>(subject_starts.data()[i]));
            }
        });
    }
    nb::list list;
    for (const std::string& cigar : cigars) list.append(nb::str(cigar.c_str(), cigar.size()));
    return list;
}

}  // namespace

void bind_pair_batch(nb::module_& module) {
    module.def("align_pairs", &align_pairs, "query"_a, "query_ends"_a, "subject"_a, "subject_ends"_a, "table"_a.none(),
               "match"_a, "mismatch"_a, "gap_open"_a, "gap_extend"_a, "local"_a, "query_free"_a, "subject_free"_a,
               "path"_a, "n_threads"_a = 1, "memory_bytes"_a = std::uint64_t{256} << 20, "progress"_a = nb::none(),
               "isa"_a = "auto",
               "Many pairs as align_pair does one, each by one thread. Sequence i ends at *_ends[i] and begins where the one\n"
               "before it ends. Returns int64 (n, 5): score, query_end, subject_end, query_start, subject_start; int64 (n,)\n"
               "ends of each pair's runs; and uint32 runs, length * 4 + operation (0 M, 1 I, 2 D), from the start.");
    module.def("spell_cigars", &spell_cigars, "query"_a, "query_ends"_a, "subject"_a, "subject_ends"_a,
               "query_starts"_a, "subject_starts"_a, "run_ends"_a, "runs"_a, "n_threads"_a = 1,
               "CIGARs of pairs: their runs, with M written as = where the letters are equal and X where they are not.");
}

}  // namespace swsearch
