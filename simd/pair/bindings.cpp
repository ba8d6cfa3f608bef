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

nb::tuple align_pair(const Letters& query, const Letters& subject, const std::optional<pair::Table>& table, std::int32_t match,
                     std::int32_t mismatch, std::int32_t gap_open, std::int32_t gap_extend, bool local, bool query_free,
                     bool subject_free, bool path, int n_threads, std::uint64_t memory_bytes, const nb::object& progress,
                     const std::string& isa) {
    const pair::Kernels& kernels = pair::usable_kernels(isa);
    const pair::Costs costs = pair::checked_costs(table, match, mismatch, gap_open, gap_extend, local);
    pair::check_letters(query, costs.table != nullptr ? costs.table_rows : pair::most_letters);
    pair::check_letters(subject, costs.table != nullptr ? costs.table_columns : pair::most_letters);

    pair::Watch watch;
    pair::PairPath found;
    const auto work = [&] {
        const pair::Pair both(query.data(), query.size(), subject.data(), subject.size(), costs,
                              {local, query_free, subject_free});
        if (path) {
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
               "One pair as docs/design/diamond.md defines it: score, query_end, subject_end, query_start, subject_start\n"
               "and runs, pairs of 'M', 'D' or 'I' and a length from the start; without `path` both starts are 0 and runs\n"
               "is None. Letters are rows and columns of `table`; without a table equal letters score `match`, others\n"
               "`mismatch`. Raises ValueError for arguments that do not fit and KeyboardInterrupt, after all threads ended.");
    module.def("pair_isas", &pair_isas, "Names of the instruction sets usable here, widest first.");
}

}  // namespace swsearch
