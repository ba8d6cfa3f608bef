// Bindings of simd/pair: one pair of sequences, aligned over all its cells by all threads.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "pair/pair.hpp"

namespace swsearch {
void bind_pair(nanobind::module_& module);

namespace {

namespace nb = nanobind;
using namespace nb::literals;

using Letters = nb::ndarray<const std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const std::int8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr std::int32_t max_cost = 16'383;
constexpr auto signal_interval = std::chrono::milliseconds(100);
constexpr std::uint64_t cells_without_signals = 50'000'000;  // done before anybody could press Ctrl-C

// Runs `work` while the calling thread looks for signals and reports progress; throws after `work` has ended.
void supervise(pair::Watch& watch, const nb::object& progress, const std::function<void()>& work) {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    std::exception_ptr failure;
    const nb::gil_scoped_release release;
    std::thread thread([&] {
        try {
            work();
        } catch (const pair::Stopped&) {
            // whoever set `stop` has the reason
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard<std::mutex> lock(mutex);
        ended = true;
        changed.notify_all();
    });
    std::uint64_t reported = 0;
    const auto report = [&] {
        const std::uint64_t cells = watch.cells.load();
        if (!progress.is_none() && cells > reported) progress(cells - reported);
        reported = cells;
    };
    try {
        std::unique_lock<std::mutex> lock(mutex);
        while (!changed.wait_for(lock, signal_interval, [&] { return ended; })) {
            lock.unlock();
            {
                const nb::gil_scoped_acquire acquire;
                if (PyErr_CheckSignals() != 0) throw nb::python_error();
                report();
            }
            lock.lock();
        }
    } catch (...) {
        watch.stop = true;
        thread.join();
        throw;
    }
    thread.join();
    if (failure) std::rethrow_exception(failure);
    const nb::gil_scoped_acquire acquire;
    report();
}

nb::tuple align_pair(const Letters& query, const Letters& subject, const nb::object& table_or_none, std::int32_t match,
                     std::int32_t mismatch, std::int32_t gap_open, std::int32_t gap_extend, bool local, bool query_free,
                     bool subject_free, bool path, int n_threads, std::uint64_t memory_bytes, const nb::object& progress,
                     const std::string& isa) {
    const pair::Kernels* kernels = pair::kernels_named(isa.c_str());
    if (kernels == nullptr) {
        throw nb::value_error(("isa " + isa + " is unknown or not usable on this machine; choose auto").c_str());
    }
    for (const std::int32_t cost : {match, -match, mismatch, -mismatch, gap_open, gap_extend}) {
        if (cost > max_cost) throw nb::value_error("scores and gap costs range up to 16383");
    }
    if (gap_open < 0 || gap_extend < 0) throw nb::value_error("gap costs are not negative");
    if (local && gap_open + gap_extend == 0) throw nb::value_error("gaps would cost nothing");
    pair::Costs costs{nullptr, 0, 0, match, mismatch, gap_open, gap_extend};
    Table table;
    if (!table_or_none.is_none()) {
        table = nb::cast<Table>(table_or_none);
        costs.table = table.data();
        costs.table_rows = table.shape(0);
        costs.table_columns = table.shape(1);
        if (costs.table_rows == 0 || costs.table_columns == 0) throw nb::value_error("the table is empty");
    }
    const auto check = [&](const Letters& letters, std::size_t limit) {
        for (std::size_t i = 0; i < letters.size(); ++i) {
            if (letters.data()[i] >= limit) throw nb::value_error("a letter has no score");
        }
    };
    check(query, costs.table != nullptr ? costs.table_rows : pair::most_letters);
    check(subject, costs.table != nullptr ? costs.table_columns : pair::most_letters);

    pair::Watch watch;
    pair::PairPath found;
    const auto work = [&] {
        const pair::Pair both(query.data(), query.size(), subject.data(), subject.size(), costs,
                              {local, query_free, subject_free});
        if (path) {
            found = pair::find_path(both, *kernels, memory_bytes, n_threads, watch);
        } else {
            found.end = pair::find_best(both, *kernels, n_threads, watch);
        }
    };
    if (std::uint64_t{query.size()} * subject.size() <= cells_without_signals) {
        const nb::gil_scoped_release release;
        work();
    } else {
        supervise(watch, progress, work);
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
