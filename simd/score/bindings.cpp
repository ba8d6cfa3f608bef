// Bindings of simd/score: scores of many subjects against several queries, and which instruction sets can do it.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "score/search.hpp"

namespace nb = nanobind;

namespace swsearch {
void bind_score(nb::module_& module);

namespace {

using score::Kernels;
using score::Query;

constexpr int64_t kMaxQueryLength = int64_t{1} << 24;
constexpr int64_t kMaxSubjectLength = (int64_t{1} << 31) - (int64_t{1} << 16);
constexpr int kMaxGapCost = 16383;
constexpr int kMaxThreads = 4096;

template <class T, class... Shape>
using Array = nb::ndarray<T, Shape..., nb::c_contig, nb::device::cpu>;
using Rows = Array<const int32_t, nb::ndim<1>>;
using Table = Array<const int8_t, nb::shape<-1, score::kCodes>>;

const Kernels& kernels_named(const std::string& name) {
    std::string usable;
    for (const score::InstructionSet& set : score::instruction_sets()) {
        if (name == set.kernels->name) {
            if (!set.usable) {
                throw std::invalid_argument("this processor cannot run instruction set " + name);
            }
            return *set.kernels;
        }
        usable += (usable.empty() ? "" : ", ") + std::string(set.kernels->name);
    }
    throw std::invalid_argument("no instruction set is named " + name + "; there are " + usable);
}

std::vector<Query> checked_queries(const std::vector<std::pair<Rows, Table>>& profiles, int gap_open, int gap_extend,
                                   const std::vector<int32_t>& floors) {
    if (floors.size() != profiles.size()) {
        throw std::invalid_argument("floors must have one element a profile");
    }
    if (gap_open < 0 || gap_open > kMaxGapCost || gap_extend < 0 || gap_extend > kMaxGapCost ||
        gap_open + gap_extend == 0) {
        throw std::invalid_argument("gap costs must be 0 to 16383 and not both 0");
    }
    std::vector<Query> queries;
    for (const auto& [rows, table] : profiles) {
        const int64_t length = static_cast<int64_t>(rows.shape(0));
        const int64_t n_rows = static_cast<int64_t>(table.shape(0));
        if (length < 1 || length > kMaxQueryLength || n_rows < 1 || n_rows > kMaxQueryLength) {
            throw std::invalid_argument("a query has 1 to 16777216 residues and table rows");
        }
        const auto [lowest, highest] = std::minmax_element(rows.data(), rows.data() + length);
        if (*lowest < 0 || *highest >= n_rows) {
            throw std::invalid_argument("a query's rows must lie inside its table");
        }
        queries.push_back({rows.data(), table.data(), static_cast<int32_t>(length), static_cast<int32_t>(n_rows),
                           gap_open, gap_extend, floors[queries.size()]});
    }
    return queries;
}

void check_subjects(const uint64_t* starts, const uint32_t* lengths, size_t n, uint64_t n_residues) {
    for (size_t i = 0; i < n; ++i) {
        if (lengths[i] > kMaxSubjectLength || starts[i] > n_residues || lengths[i] > n_residues - starts[i]) {
            throw std::invalid_argument("subject " + std::to_string(i) + " reaches beyond the residues");
        }
    }
}

std::vector<uint64_t> score_partition(const std::vector<std::pair<Rows, Table>>& profiles, int gap_open, int gap_extend,
                                      Array<const uint8_t, nb::ndim<1>> residues,
                                      Array<const uint64_t, nb::ndim<1>> starts,
                                      Array<const uint32_t, nb::ndim<1>> lengths, Array<int32_t, nb::ndim<2>> scores,
                                      const std::vector<int32_t>& floors, const std::string& instruction_set, int n_threads,
                                      nb::object progress) {
    const Kernels& kernels = kernels_named(instruction_set);
    const std::vector<Query> queries = checked_queries(profiles, gap_open, gap_extend, floors);
    const size_t n = lengths.shape(0);
    if (starts.shape(0) != n || n > UINT32_MAX) {
        throw std::invalid_argument("starts and lengths must have one element a subject");
    }
    if (scores.shape(0) != queries.size() || scores.shape(1) != n) {
        throw std::invalid_argument("scores must have shape (profiles, subjects)");
    }
    if (n_threads < 1 || n_threads > kMaxThreads) {
        throw std::invalid_argument("the number of threads must be 1 to 4096");
    }
    check_subjects(starts.data(), lengths.data(), n, residues.shape(0));

    const score::Poll poll = [&](uint64_t cells) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) {
            throw nb::python_error();
        }
        if (!progress.is_none() && cells > 0) {
            progress(cells);
        }
    };
    const score::Subjects subjects{residues.data(), starts.data(), lengths.data(), static_cast<uint32_t>(n)};
    int32_t* const out = scores.data();
    const nb::gil_scoped_release no_gil;
    return score::score_subjects(queries, subjects, out, kernels, n_threads, poll);
}

std::vector<std::pair<std::string, bool>> instruction_sets() {
    std::vector<std::pair<std::string, bool>> names;
    for (const score::InstructionSet& set : score::instruction_sets()) {
        names.emplace_back(set.kernels->name, set.usable);
    }
    return names;
}

}  // namespace

void bind_score(nb::module_& module) {
    module.def("score_partition", &score_partition, nb::arg("profiles").noconvert(), nb::arg("gap_open"), nb::arg("gap_extend"),
               nb::arg("residues").noconvert(), nb::arg("starts").noconvert(), nb::arg("lengths").noconvert(),
               nb::arg("scores").noconvert(), nb::arg("floors"), nb::arg("instruction_set"), nb::arg("n_threads"),
               nb::arg("progress") = nb::none(),
               "Local scores of every subject against every profile, into scores[profile, subject]; a score below its "
               "profile's floor may be any number below it.");
    module.def("instruction_sets", &instruction_sets, "(name, usable here) of every instruction set built, best first.");
}
}  // namespace swsearch
