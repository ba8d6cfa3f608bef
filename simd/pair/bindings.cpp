// Bindings of simd/pair: one pair of sequences, aligned over all its cells by all threads.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pair/arguments.hpp"
#include "pair/supervise.hpp"

namespace swsearch {
void bind_pair(nanobind::module_& module);

namespace {

namespace nb = nanobind;
using namespace nb::literals;

using pair::Letters;
using Rows = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using RowScores = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// What a sweep elsewhere found: (score, query_end, subject_end, rows, h, f).
struct Swept {
    pair::Best end;
    std::vector<pair::SweptRow> rows;
};

Swept swept_of(const nb::tuple& given, std::size_t rows, std::size_t columns) {
    if (given.size() != 6) throw nb::value_error("swept has six parts");
    Swept swept;
    swept.end.score = nb::cast<std::int32_t>(given[0]);
    swept.end.row = nb::cast<std::size_t>(given[1]);
    swept.end.column = nb::cast<std::size_t>(given[2]);
    if (swept.end.row > rows || swept.end.column > columns) throw nb::value_error("the end is beside the matrix");
    const auto places = nb::cast<Rows>(given[3]);
    const auto h = nb::cast<RowScores>(given[4]);
    const auto f = nb::cast<RowScores>(given[5]);
    for (const RowScores* scores : {&h, &f}) {
        if (scores->shape(0) != places.size() || scores->shape(1) != columns) {
            throw nb::value_error("swept rows have a score for every column");
        }
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t place = places.data()[i];
        if (place > rows || (i > 0 && place <= places.data()[i - 1])) throw nb::value_error("swept rows ascend");
        const std::int32_t* const row_h = h.data() + i * columns;
        const std::int32_t* const row_f = f.data() + i * columns;
        swept.rows.push_back({place, {{row_h, row_h + columns}, {row_f, row_f + columns}}});
    }
    return swept;
}

nb::tuple align_pair(const Letters& query, const Letters& subject, const std::optional<pair::Table>& table, std::int32_t match,
                     std::int32_t mismatch, std::int32_t gap_open, std::int32_t gap_extend, bool local, bool query_free,
                     bool subject_free, bool path, int n_threads, std::uint64_t memory_bytes, const nb::object& progress,
                     const std::string& isa, const nb::object& swept_or_none) {
    const pair::Kernels& kernels = pair::usable_kernels(isa);
    const pair::Costs costs = pair::checked_costs(table, match, mismatch, gap_open, gap_extend, local);
    pair::check_letters(query, costs.table != nullptr ? costs.table_rows : pair::most_letters);
    pair::check_letters(subject, costs.table != nullptr ? costs.table_columns : pair::most_letters);

    Swept swept;
    if (!swept_or_none.is_none()) {
        if (!path) throw nb::value_error("a swept pair lacks nothing but its path");
        swept = swept_of(nb::cast<nb::tuple>(swept_or_none), query.size(), subject.size());
    }
    const bool is_swept = !swept_or_none.is_none();

    pair::Watch watch;
    pair::PairPath found;
    const auto work = [&] {
        const pair::Pair both(query.data(), query.size(), subject.data(), subject.size(), costs,
                              {local, query_free, subject_free});
        if (is_swept) {
            found = pair::find_path_from(both, kernels, swept.end, std::move(swept.rows), memory_bytes, n_threads, watch);
        } else if (path) {
            found = pair::find_path(both, kernels, memory_bytes, n_threads, watch);
        } else {
            found.end = pair::find_best(both, kernels, n_threads, watch);
        }
    };
    if (std::uint64_t{query.size()} * subject.size() <= pair::cells_without_signals) {
        const nb::gil_scoped_release release;
        work();
    } else {
        pair::supervise(watch, progress, work);
    }
    nb::object runs = nb::none();
    if (path) {
        nb::list list;
        for (const auto& [operation, length] : found.runs) list.append(nb::make_tuple(std::string(1, operation), length));
        runs = list;
    }
    return nb::make_tuple(found.end.score, found.end.row, found.end.column, found.query_start, found.subject_start, runs);
}

nb::list pair_isas() {
    nb::list names;
    for (const char* name : {"avx512", "avx2", "sse41", "scalar"}) {
        if (pair::kernels_named(name) != nullptr) names.append(name);
    }
    return names;
}

}  // namespace

void bind_pair(nb::module_& module) {
    module.def("align_pair", &align_pair, "query"_a, "subject"_a, "table"_a.none(), "match"_a, "mismatch"_a,
               "gap_open"_a, "gap_extend"_a, "local"_a, "query_free"_a, "subject_free"_a, "path"_a, "n_threads"_a = 1,
               "memory_bytes"_a = std::uint64_t{256} << 20, "progress"_a = nb::none(), "isa"_a = "auto",
               "swept"_a = nb::none(),
               "One pair as docs/design/diamond.md defines it: score, query_end, subject_end, query_start, subject_start\n"
               "and runs, pairs of 'M', 'D' or 'I' and a length from the start; without `path` both starts are 0 and runs\n"
               "is None. Letters are rows and columns of `table`; without a table equal letters score `match`, others\n"
               "`mismatch`. `swept` is the end that a sweep elsewhere found and rows of nodes that it kept, a tuple of score,\n"
               "query_end, subject_end, uint64 rows (query letters above each, ascending), int32 h and f of each row and\n"
               "column, f being what the next row may take; then only the path is left to do. Raises ValueError for arguments that\n"
               "do not fit and KeyboardInterrupt, after all threads ended.");
    module.def("pair_isas", &pair_isas, "Names of the instruction sets usable here, widest first.");
}

}  // namespace swsearch
