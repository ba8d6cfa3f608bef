// Bindings of simd/align: the ends of optimal local alignments, and the alignments, of one query with many subjects.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "align/forward_pass.hpp"

namespace swsearch {
void bind_align(nanobind::module_& module);

namespace {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using EndTable = nb::ndarray<const std::int64_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const std::int8_t, nb::shape<-1, 32>, nb::c_contig, nb::device::cpu>;

constexpr std::int32_t max_gap_cost = 16'383;
constexpr auto signal_interval = std::chrono::milliseconds(100);

const align::ForwardKernels& kernels_named(const std::string& isa) {
    const align::ForwardKernels* kernels = align::forward_kernels(isa.c_str());
    if (kernels == nullptr) {
        throw nb::value_error(("isa " + isa + " is unknown or not usable on this machine; choose auto").c_str());
    }
    return *kernels;
}

// Throws where an index would leave its array: everything after this trusts them.
void check(const Array<std::uint8_t>* codes, const Array<std::int32_t>& rows, const Table& table, std::int32_t gap_open,
           std::int32_t gap_extend, const Array<std::uint8_t>* identity, const Array<std::uint8_t>& residues,
           const Array<std::uint64_t>& starts, const Array<std::uint32_t>& lengths) {
    if (codes != nullptr && codes->size() != rows.size()) throw nb::value_error("query_codes and rows differ in length");
    if (identity != nullptr && identity->size() != 32) throw nb::value_error("identity needs 32 entries");
    if (starts.size() != lengths.size()) throw nb::value_error("starts and lengths differ in length");
    for (const std::int32_t cost : {gap_open, gap_extend}) {
        if (cost < 0 || cost > max_gap_cost) throw nb::value_error("gap costs range from 0 to 16383");
    }
    if (gap_open + gap_extend == 0) throw nb::value_error("gaps would cost nothing");
    if (rows.size() > 0x7FFFFFF0) throw nb::value_error("the query is longer than 2^31 residues");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows.data()[i] < 0 || static_cast<std::size_t>(rows.data()[i]) >= table.shape(0)) {
            throw nb::value_error(("rows[" + std::to_string(i) + "] is not a row of the table").c_str());
        }
    }
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::uint64_t start = starts.data()[i];
        if (start > residues.size() || lengths.data()[i] > residues.size() - start) {
            throw nb::value_error(("subject " + std::to_string(i) + " leaves the array of residues").c_str());
        }
    }
}

// The rows of a table of ends: score, query_end, subject_end. Throws where one leaves its pair.
std::vector<align::End> ends_in(const EndTable& table, std::size_t query_length, const Array<std::uint32_t>& lengths) {
    if (table.shape(0) != lengths.size()) throw nb::value_error("ends and lengths differ in length");
    std::vector<align::End> ends;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::int64_t* const row = table.data() + 3 * i;
        const auto within = [](std::int64_t value, std::uint64_t most) {
            return value >= 0 && static_cast<std::uint64_t>(value) <= most;
        };
        if (!within(row[0], 0x7FFFFFFF) || !within(row[1], query_length) || !within(row[2], lengths.data()[i])) {
            throw nb::value_error(("the end of subject " + std::to_string(i) + " leaves the pair").c_str());
        }
        ends.push_back({static_cast<std::int32_t>(row[0]), static_cast<std::size_t>(row[1]),
                        static_cast<std::size_t>(row[2])});
    }
    return ends;
}

// Runs `work(i)` for every i of `order` in n_threads threads. The calling thread sleeps, and looks for signals and
// reports progress ten times a second; whatever ends the work early, all threads have joined when this throws.
void run(const std::vector<std::size_t>& order, int n_threads, align::Watch& watch, const nb::object& progress,
         const std::function<void(std::size_t)>& work) {
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr failure;
    std::size_t running = std::min(order.size(), static_cast<std::size_t>(std::max(n_threads, 1)));
    std::atomic<std::size_t> next{0};

    const auto worker = [&] {
        std::exception_ptr mine;
        try {
            for (std::size_t i = next++; i < order.size() && !watch.stop; i = next++) work(order[i]);
        } catch (const align::Stopped&) {
            // whoever set `stop` has the reason
        } catch (...) {
            mine = std::current_exception();
            watch.stop = true;
        }
        const std::lock_guard<std::mutex> lock(mutex);
        if (mine && !failure) failure = mine;
        --running;
        finished.notify_all();
    };

    std::vector<std::thread> threads;
    const auto join = [&] {
        for (std::thread& thread : threads) thread.join();
        threads.clear();
    };
    {
        const nb::gil_scoped_release release;
        const std::size_t wanted = running;
        try {
            for (std::size_t i = 0; i < wanted; ++i) threads.emplace_back(worker);
        } catch (const std::system_error&) {  // fewer threads do the same work; without any, this one does it
            {
                const std::lock_guard<std::mutex> lock(mutex);
                running -= wanted - std::max<std::size_t>(threads.size(), 1);
            }
            if (threads.empty()) worker();
        } catch (...) {
            watch.stop = true;
            join();
            throw;
        }
        std::uint64_t reported = 0;
        const auto report = [&] {
            const std::uint64_t cells = watch.cells.load();
            if (!progress.is_none() && cells > reported) progress(cells - reported);
            reported = cells;
        };
        try {
            std::unique_lock<std::mutex> lock(mutex);
            while (!finished.wait_for(lock, signal_interval, [&] { return running == 0; })) {
                lock.unlock();
                {
                    const nb::gil_scoped_acquire acquire;
                    if (PyErr_CheckSignals() != 0) throw nb::python_error();
                    report();
                }
                lock.lock();
            }
            lock.unlock();
            join();
            if (!failure) {
                const nb::gil_scoped_acquire acquire;
                report();
            }
        } catch (...) {
            watch.stop = true;
            join();
            throw;
        }
    }
    if (failure) std::rethrow_exception(failure);
}

// Subjects in an order that starts the longest first, so that no thread is left with one at the end.
std::vector<std::size_t> longest_first(const Array<std::uint32_t>& lengths) {
    std::vector<std::size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return lengths.data()[a] > lengths.data()[b]; });
    return order;
}

nb::tuple as_tuple(const align::Path& path) {
    return nb::make_tuple(path.end.score, path.query_start, path.end.query_end, path.subject_start,
                          path.end.subject_end, path.cigar, path.identities, path.positives, path.columns,
                          path.gap_openings, path.gap_residues);
}

nb::list align_local(const Array<std::uint8_t>& query_codes, const Array<std::int32_t>& rows, const Table& table,
                     std::int32_t gap_open, std::int32_t gap_extend, const Array<std::uint8_t>& identity,
                     const Array<std::uint8_t>& residues, const Array<std::uint64_t>& starts,
                     const Array<std::uint32_t>& lengths, int n_threads, std::uint64_t memory_bytes,
                     const nb::object& progress, const std::string& isa, std::uint64_t most, std::int32_t floor,
                     const std::optional<EndTable>& ends) {
    check(&query_codes, rows, table, gap_open, gap_extend, &identity, residues, starts, lengths);
    if (ends && most != 1) throw nb::value_error("ends are of the best alignments alone; leave most at 1");
    const std::vector<align::End> known = ends ? ends_in(*ends, rows.size(), lengths) : std::vector<align::End>();
    const align::Query query(query_codes.data(), rows.data(), rows.size(), table.data(), table.shape(0), gap_open,
                             gap_extend, identity.data(), kernels_named(isa));
    std::vector<std::vector<align::Path>> paths(starts.size());
    align::Watch watch;
    run(longest_first(lengths), n_threads, watch, progress, [&](std::size_t i) {
        const std::uint8_t* const subject = residues.data() + starts.data()[i];
        paths[i] = known.empty() ? align::find_paths(query, subject, lengths.data()[i], most, floor, memory_bytes, watch)
                                 : align::find_path_to(query, subject, known[i], floor, memory_bytes, watch);
    });
    nb::list result;
    for (const std::vector<align::Path>& of_subject : paths) {
        nb::list alignments;
        for (const align::Path& path : of_subject) alignments.append(as_tuple(path));
        result.append(alignments);
    }
    return result;
}

nb::list score_ends(const Array<std::int32_t>& rows, const Table& table, std::int32_t gap_open, std::int32_t gap_extend,
                    const Array<std::uint8_t>& residues, const Array<std::uint64_t>& starts,
                    const Array<std::uint32_t>& lengths, int n_threads, const nb::object& progress,
                    const std::string& isa) {
    check(nullptr, rows, table, gap_open, gap_extend, nullptr, residues, starts, lengths);
    const align::Query query(nullptr, rows.data(), rows.size(), table.data(), table.shape(0), gap_open, gap_extend,
                             nullptr, kernels_named(isa));
    std::vector<align::End> ends(starts.size());
    align::Watch watch;
    run(longest_first(lengths), n_threads, watch, progress, [&](std::size_t i) {
        ends[i] = align::ForwardPass(query, residues.data() + starts.data()[i], lengths.data()[i], false, watch).end();
    });
    nb::list result;
    for (const align::End& end : ends) result.append(nb::make_tuple(end.score, end.query_end, end.subject_end));
    return result;
}

nb::list align_isas() {
    nb::list names;
    for (const char* name : {"avx512", "avx2", "sse41", "scalar"}) {
        if (align::forward_kernels(name) != nullptr) names.append(name);
    }
    return names;
}

}  // namespace

void bind_align(nb::module_& module) {
    module.def("align_local", &align_local, "query_codes"_a, "rows"_a, "table"_a, "gap_open"_a, "gap_extend"_a,
               "identity"_a, "residues"_a, "starts"_a, "lengths"_a, "n_threads"_a = 1,
               "memory_bytes"_a = std::uint64_t{64} << 20, "progress"_a = nb::none(), "isa"_a = "auto",
               "most"_a = std::uint64_t{1}, "floor"_a = 1, "ends"_a = nb::none(),
               "The best local alignments of a query with each subject, as docs/design/traceback.md defines them.\n\n"
               "A list a subject of at most `most` tuples: score, query_start, query_end, subject_start, subject_end\n"
               "(0-based, half-open), cigar, identities, positives, columns, gap_openings, gap_residues. Each uses no pair\n"
               "of residues of those before it and scores at least `floor`, and above 0. `ends`, int64 of shape (n, 3), are\n"
               "score, query_end and subject_end of each subject's best alignment as `score_ends` gives them: it is then found\n"
               "from a pass over no more columns than it can span. Raises ValueError for arrays that do not fit together and\n"
               "KeyboardInterrupt, each after all threads have ended; what `progress` raises is passed on likewise.");
    module.def("score_ends", &score_ends, "rows"_a, "table"_a, "gap_open"_a, "gap_extend"_a, "residues"_a, "starts"_a,
               "lengths"_a, "n_threads"_a = 1, "progress"_a = nb::none(), "isa"_a = "auto",
               "A tuple a subject: optimal local score, query_end, subject_end (exclusive); all 0 where nothing aligns.\n"
               "Of all ends the smallest subject end, then the smallest query end.");
    module.def("align_isas", &align_isas, "Names of the instruction sets usable here, widest first.");
}

}  // namespace swsearch
