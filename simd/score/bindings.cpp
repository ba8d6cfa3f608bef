// Bindings of simd/score: Python functions that score many subjects against several queries, and that list the
// instruction sets of all kernels. Inputs and outputs are NumPy arrays.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>

#include "common/instruction_sets.hpp"
#include "common/python.hpp"
#include "score/search.hpp"

namespace swsearch {
void bind_score(nb::module_& module);

namespace {

constexpr std::int64_t kMaxQueryLength = std::int64_t{1} << 24;
constexpr std::int64_t kMaxSubjectLength = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);

constexpr const char* kBandMessage = "a band has 1, 4 or 6 rows";

bool is_band_size(int band_rows) {
    return std::find(std::begin(score::kBandSizes), std::end(score::kBandSizes), band_rows) !=
           std::end(score::kBandSizes);
}

using FloorSteps = std::vector<std::pair<std::uint32_t, std::vector<std::int32_t>>>;
using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Counts score_partition(const std::vector<std::pair<Array, Array>>& profiles, int gap_open, int gap_extend,
                       const Array& residues, const Array& starts, const Array& lengths,
                       const OutputArray& scores_array, const std::vector<std::int32_t>& floors,
                       const std::string& instruction_set, int n_threads, const nb::object& progress, int band_rows,
                       const FloorSteps& longer) {
    check_that(band_rows == score::kNoBand || band_rows == score::kChooseBand || is_band_size(band_rows), kBandMessage);
    check_that(floors.size() == profiles.size(), "floors must have one element a profile");
    std::vector<score::Floors::Step> steps{{0, floors}};
    for (const auto& [shortest, floors_from] : longer) {
        check_that(floors_from.size() == profiles.size(), "floors must have one element a profile");
        check_that(shortest > steps.back().shortest, "the lengths of floors must ascend");
        steps.push_back({shortest, floors_from});
    }
    check_threads(n_threads);
    std::vector<score::Query> queries;
    for (const auto& [rows, table] : profiles) {
        const Profile profile = checked_profile(rows, table, gap_open, gap_extend);
        check_that(profile.length >= 1 && profile.length <= kMaxQueryLength && profile.n_rows <= kMaxQueryLength,
                   "a query has 1 to 16777216 residues and table rows");
        queries.push_back(profile);
    }
    const Subjects subjects = checked_subjects(residues, starts, lengths);
    for (std::uint32_t i = 0; i < subjects.n; ++i) {
        if (subjects.lengths[i] > kMaxSubjectLength)
            refuse("subject " + std::to_string(i) + " has more than 2147418112 residues");
    }
    const score::Kernels& kernels = score::fastest_kernels_of(instruction_set, queries);
    const auto scores = view_of<std::int32_t, 2>(scores_array, "scores");
    check_that(scores.length == queries.size() && scores.columns == subjects.n,
               "scores must have shape (profiles, subjects)");

    PythonPoll poll(progress);
    const nb::gil_scoped_release no_lock;
    Counts counts;
    for (const score::ScoreCounts& of_query :
         score::score_subjects(queries, score::Floors(std::move(steps)), subjects, scores.data, kernels, band_rows,
                               n_threads, poll.observer, std::ref(poll))) {
        counts.emplace_back(of_query.n_wide, of_query.n_bounded);
    }
    poll();
    return counts;
}

int bound_partition(const std::pair<Array, Array>& query, int gap_open, int gap_extend, const Array& residues,
                    const Array& starts, const Array& lengths, const OutputArray& bounds_array, int band_rows,
                    const std::string& instruction_set) {
    check_that(is_band_size(band_rows), kBandMessage);
    const Profile profile = checked_profile(query.first, query.second, gap_open, gap_extend);
    check_that(profile.length >= 1 && profile.length <= kMaxQueryLength && profile.n_rows <= kMaxQueryLength,
               "a query has 1 to 16777216 residues and table rows");
    const score::Kernels& kernels = score::fastest_kernels_of(instruction_set, {profile});
    check_that(gap_open + gap_extend <= kernels.max_gap[score::kBits8], "the gap costs exceed 8 bits");
    const Subjects subjects = checked_subjects(residues, starts, lengths);
    const auto bounds = view_of<std::int32_t>(bounds_array, "bounds");
    check_that(bounds.length == subjects.n, "bounds must have one element a subject");
    return score::bound_subjects(profile, subjects, bounds.data, kernels, band_rows);
}

std::vector<std::pair<std::string, bool>> instruction_set_list() {
    std::vector<std::pair<std::string, bool>> list;
    for (const InstructionSet& set : instruction_sets()) list.emplace_back(set.name, set.usable);
    return list;
}

}  // namespace

void bind_score(nb::module_& module) {
    module.def("score_partition", &score_partition, "profiles"_a, "gap_open"_a, "gap_extend"_a, "residues"_a,
               "starts"_a, "lengths"_a, "scores"_a, "floors"_a, "instruction_set"_a, "n_threads"_a,
               "progress"_a = nb::none(), "band_rows"_a = score::kChooseBand, "longer"_a = FloorSteps{},
               "Local scores of every subject against every profile, into scores[profile, subject]; a score below its "
               "floor may be any number below it. longer: (shortest length, floors) of longer subjects.");
    module.def(
        "bound_partition", &bound_partition, "profile"_a, "gap_open"_a, "gap_extend"_a, "residues"_a, "starts"_a,
        "lengths"_a, "bounds"_a, "band_rows"_a, "instruction_set"_a,
        "Upper bounds of the local scores of every subject, into bounds. Returns the number from which on a bound is "
        "-1 instead.");
    module.def(
        "instruction_sets", &instruction_set_list,
        "(name, usable here) of every instruction set that is built, best first; for all functions of this module.");
}

}  // namespace swsearch
