// Bindings of simd/domains: posterior decoding for swsearch/domains/decoding.py, which describes it, and the numbers of
// files of models for swsearch/query/hmm.py.

#include <algorithm>

#include "common/python.hpp"
#include "domains/domains.hpp"

namespace swsearch {

namespace {

// Whether all values are from 0 to `most`.
void check_values(const View<const double>& values, double most, const char* message) {
    check_that(std::all_of(values.begin(), values.end(), [most](double one) { return one >= 0.0 && one <= most; }),
               message);
}

nb::tuple tuple_of(domains::Domain&& domain) {
    std::vector<double> composition(domain.composition.begin(), domain.composition.end());
    return nb::make_tuple(domain.first, domain.last, domain.total.value, domain.total.exponent, domain.accuracy,
                          array_of(std::move(composition)), array_of_pairs(domain.pairs));
}

nb::list decode_domains(Matrix<const double> odds, Matrix<const double> transitions, View<const double> entry,
                        Residues residues, Starts starts, Lengths lengths, View<const std::int64_t> least,
                        int n_threads) {
    constexpr double kMostOdds = 1e6;
    check_that(entry.length > 0, "the model is empty");
    require_columns(odds, "odds", entry.length);
    require_columns(transitions, "transitions", entry.length);
    check_that(odds.length == kCodes && transitions.length == domains::kTransitions,
               "there is one row of odds for each residue code, and one for each transition");
    check_values(odds, kMostOdds, "the odds of a pair are out of range");
    check_values(transitions, 1.0, "a probability of a transition is out of range");
    check_values(entry, 1.0, "a probability of a beginning is out of range");
    const Subjects subjects = checked_subjects(residues, starts, lengths);
    check_that(least.length == subjects.n, "there is one least total for each subject");
    PythonPoll poll;
    std::vector<domains::Decoded> found;
    {
        const nb::gil_scoped_release no_lock;
        found = domains::decode({entry.length, odds.data, transitions.data, entry.data}, subjects, least.data,
                                poll.threads(n_threads));
    }
    nb::list list;
    for (domains::Decoded& of_subject : found) {
        nb::list several;
        for (domains::Domain& domain : of_subject.domains) several.append(tuple_of(std::move(domain)));
        list.append(nb::make_tuple(of_subject.total.value, of_subject.total.exponent, several));
    }
    return list;
}

nb::tuple leading_numbers(const nb::bytes& text, std::size_t first, std::size_t step, std::size_t n_columns,
                          std::size_t word, double star) {
    check_that(step > 0 && n_columns > 0, "the step and the number of columns must be at least 1");
    domains::LeadingNumbers found;
    {
        const nb::gil_scoped_release no_lock;
        found = domains::leading_numbers({text.c_str(), text.size()}, first, step, n_columns, word, star);
    }
    const std::size_t n_lines = found.letters.size();
    return nb::make_tuple(array_of<double, 2>(std::move(found.values), {n_lines, n_columns}),
                          nb::bytes(found.letters.data(), n_lines));
}

}  // namespace

void bind_domains(nb::module_& module) {
    define(module, "decode_domains", &decode_domains,
           {"odds", "transitions", "entry", "residues", "starts", "lengths", "least"}, "n_threads"_a = 1);
    define(module, "leading_numbers", &leading_numbers, {"text", "first", "step", "n_columns", "word", "star"});
}

}  // namespace swsearch
