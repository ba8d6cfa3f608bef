// Bindings of simd/score: Python functions that score many subjects against several queries, and that list the
// instruction sets of all kernels. Inputs and outputs are NumPy arrays. swsearch/_native.pyi describes the functions.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "common/instruction_sets.hpp"
#include "common/python.hpp"
#include "score/search.hpp"

namespace swsearch {

namespace {

constexpr std::int64_t kMaxQueryLength = std::int64_t{1} << 24;
constexpr std::int64_t kMaxSubjectLength = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);

constexpr const char* kBandMessage = "a band has 1, 4 or 6 rows";

bool is_band_size(int band_rows) {
    return std::find(std::begin(score::kBandSizes), std::end(score::kBandSizes), band_rows) !=
           std::end(score::kBandSizes);
}

using ProfileArrays = std::tuple<Array, Array, int, int>;  // rows, table, and the costs of gaps

score::Query checked_query(const ProfileArrays& profile) {
    const auto& [rows, table, gap_open, gap_extend] = profile;
    const score::Query query = checked_profile(view_of<const std::int32_t>(rows, "rows"),
                                               Passed<Table>::checked(table, "table"), gap_open, gap_extend);
    check_that(query.length >= 1 && query.length <= kMaxQueryLength && query.n_rows <= kMaxQueryLength,
               "a query has 1 to 16777216 residues and table rows");
    return query;
}

using FloorSteps = std::vector<std::pair<std::uint32_t, std::vector<std::int32_t>>>;
using Counts = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Counts score_partition(const std::vector<ProfileArrays>& profiles, Residues residues, Starts starts, Lengths lengths,
                       Matrix<std::int32_t> scores, const FloorSteps& floors, const std::string& instruction_set,
                       int n_threads, const nb::object& progress, int band_rows) {
    check_that(band_rows == score::kNoBand || band_rows == score::kChooseBand || is_band_size(band_rows), kBandMessage);
    std::vector<score::Floors::Step> steps;
    for (const auto& [shortest, floors_from] : floors) {
        check_that(floors_from.size() == profiles.size(), "floors must have one element a profile");
        check_that(steps.empty() ? shortest == 0 : shortest > steps.back().shortest,
                   "the lengths of floors must begin at 0 and ascend");
        steps.push_back({shortest, floors_from});
    }
    check_that(!steps.empty(), "there are no floors");
    std::vector<score::Query> queries;
    for (const ProfileArrays& profile : profiles) queries.push_back(checked_query(profile));
    const Subjects subjects = checked_subjects(residues, starts, lengths);
    for (std::uint32_t i = 0; i < subjects.n; ++i) {
        if (subjects.lengths[i] > kMaxSubjectLength)
            refuse("subject " + std::to_string(i) + " has more than 2147418112 residues");
    }
    const score::Kernels& kernels = score::fastest_kernels_of(instruction_set, queries);
    check_that(scores.length == queries.size() && scores.columns == subjects.n,
               "scores must have shape (profiles, subjects)");

    PythonPoll poll(progress);
    const nb::gil_scoped_release no_lock;
    Counts counts;
    for (const score::ScoreCounts& of_query :
         score::score_subjects(queries, score::Floors(std::move(steps)), subjects, scores.data, kernels, band_rows,
                               poll.threads(n_threads))) {
        counts.emplace_back(of_query.n_wide, of_query.n_bounded);
    }
    poll();
    return counts;
}

int bound_partition(const ProfileArrays& profile, Residues residues, Starts starts, Lengths lengths,
                    View<std::int32_t> bounds, int band_rows, const std::string& instruction_set) {
    check_that(is_band_size(band_rows), kBandMessage);
    const score::Query query = checked_query(profile);
    const score::Kernels& kernels = score::fastest_kernels_of(instruction_set, {query});
    check_that(query.open + query.extend <= kernels.max_gap[score::kBits8], "the gap costs exceed 8 bits");
    const Subjects subjects = checked_subjects(residues, starts, lengths);
    check_that(bounds.length == subjects.n, "bounds must have one element a subject");
    return score::bound_subjects(query, subjects, bounds.data, kernels, band_rows);
}

std::vector<std::pair<std::string, bool>> instruction_set_list() {
    std::vector<std::pair<std::string, bool>> list;
    for (const InstructionSet& set : instruction_sets()) list.emplace_back(set.name, set.usable);
    return list;
}

}  // namespace

void bind_score(nb::module_& module) {
    define(module, "score_partition", &score_partition,
           {"profiles", "residues", "starts", "lengths", "scores", "floors", "instruction_set", "n_threads"},
           "progress"_a = nb::none(), "band_rows"_a = score::kChooseBand);
    define(module, "bound_partition", &bound_partition,
           {"profile", "residues", "starts", "lengths", "bounds", "band_rows", "instruction_set"});
    module.def("instruction_sets", &instruction_set_list);
}

}  // namespace swsearch
