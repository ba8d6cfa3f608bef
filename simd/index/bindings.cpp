// Bindings of simd/index: the steps of indexing that work on blocks of sequences. Sizes are checked here, so that the
// functions may rely on them. Python's lock is released, so that threads of Python can run several steps at once. A
// file that cannot be read or written raises OSError.

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <tuple>

#include "common/python.hpp"
#include "index/contained_subjects.hpp"
#include "index/equal_subjects.hpp"
#include "index/identifiers.hpp"
#include "index/records.hpp"
#include "index/runs.hpp"

namespace swsearch {

namespace {

// Runs a step without Python's lock. An error of the operating system becomes OSError, a contradiction ValueError.
template <class Step>
auto without_lock(const Step& step) {
    try {
        const nb::gil_scoped_release no_lock;
        return step();
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrno(PyExc_OSError);
    }
    throw nb::python_error();
}

nb::object read_records(View<std::uint8_t> text, View<const std::uint8_t> encode, bool is_fastq, bool skips) {
    check_that(encode.length == 256, "encode must have 256 elements");
    auto records = without_lock([&] {
        return is_fastq ? index::read_fastq(text.data, text.length, encode.data, skips)
                        : index::read_fasta(text.data, text.length, encode.data, skips);
    });
    if (!records.is_regular) return nb::none();
    index::InvalidRecords& refused = records.refused;
    return nb::make_tuple(
        records.n_residues, array_of(std::move(records.lengths)), array_of(std::move(records.headers)),
        array_of(std::move(records.header_ends)),
        nb::make_tuple(array_of(std::move(refused.numbers)), array_of(std::move(refused.problems)),
                       array_of(std::move(refused.residues)), array_of(std::move(refused.bytes)),
                       array_of(std::move(refused.headers)), array_of(std::move(refused.header_ends))));
}

std::size_t whole_records(View<const std::uint8_t> text, bool is_fastq) {
    return without_lock([&] {
        return is_fastq ? index::whole_fastq(text.data, text.length) : index::whole_fasta(text.data, text.length);
    });
}

auto write_run(View<const std::uint8_t> codes, Lengths lengths, std::uint32_t first, int residues_fd,
               std::uint64_t offset, int order_fd) {
    check_that(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) == codes.length,
               "the lengths are not those of the codes");
    check_that(lengths.length <= UINT32_MAX - first, "there are more than 2^32 subjects");
    auto groups = without_lock([&] {
        return index::write_run(codes.data, lengths.data, lengths.length, first, residues_fd, offset, order_fd);
    });
    return nb::make_tuple(array_of(std::move(groups.lengths)), array_of(std::move(groups.counts)));
}

auto run_positions(Lengths lengths, View<const std::uint32_t> counts, View<const std::uint32_t> order,
                   std::uint32_t first, View<const std::uint32_t> distinct, View<std::uint64_t> next) {
    check_that(lengths.length == counts.length && distinct.length == next.length, "arrays differ in length");
    return array_of(without_lock([&] {
        std::vector<std::uint32_t> local(order.begin(), order.end());
        for (std::uint32_t& i : local) i -= first;
        return index::run_positions({{lengths.begin(), lengths.end()}, {counts.begin(), counts.end()}}, local, distinct,
                                    next);
    }));
}

auto take_pieces(Lengths lengths, View<std::uint32_t> counts, View<std::uint64_t> next, View<const std::uint64_t> stops,
                 View<std::uint64_t> residues, View<std::uint64_t> subjects, View<const std::uint32_t> distinct,
                 View<std::uint32_t> next_to, std::uint64_t most) {
    const index::Cursors cursors{lengths, counts, next, stops, residues, subjects};
    check_that(lengths.length == counts.length && stops.length == next.length && residues.length == next.length &&
                   subjects.length == next.length && distinct.length == next_to.length && distinct.length > 0,
               "arrays differ in length");
    for (const std::uint64_t stop : stops) {
        check_that(stop <= lengths.length, "a run has groups that do not exist");
    }
    auto pieces = without_lock([&] { return index::take(cursors, distinct, next_to, most); });
    return nb::make_tuple(array_of(std::move(pieces.lengths)), array_of(std::move(pieces.counts)),
                          array_of(std::move(pieces.to)), array_of(std::move(pieces.residues)),
                          array_of(std::move(pieces.subjects)));
}

using PieceArrays = std::tuple<Array, Array, Array, Array, Array>;

index::PieceViews views_of(const PieceArrays& arrays) {
    const auto& [lengths, counts, to, residues, subjects] = arrays;
    const index::PieceViews pieces{
        view_of<const std::uint32_t>(lengths, "lengths"), view_of<const std::uint32_t>(counts, "counts"),
        view_of<const std::uint32_t>(to, "to"), view_of<const std::uint64_t>(residues, "residues"),
        view_of<const std::uint64_t>(subjects, "subjects")};
    const std::size_t n = pieces.lengths.length;
    check_that(pieces.counts.length == n && pieces.to.length == n && pieces.residues.length == n &&
                   pieces.subjects.length == n,
               "arrays differ in length");
    return pieces;
}

auto gather_residues(const std::vector<int>& fds, const PieceArrays& arrays, std::uint64_t base, std::uint8_t fill) {
    const index::PieceViews pieces = views_of(arrays);
    for (const std::uint64_t place : pieces.residues) {
        check_that(place >> index::kSpoolShift < fds.size(), "a piece lies in a spool that does not exist");
    }
    auto block = without_lock([&] { return index::gather_residues(fds, pieces, base, fill); });
    return nb::make_tuple(array_of(std::move(block.residues)), array_of(std::move(block.starts)),
                          array_of(std::move(block.lengths)));
}

auto gather_values(int fd, const PieceArrays& arrays) {
    const index::PieceViews pieces = views_of(arrays);
    return array_of(without_lock([&] { return index::gather_values(fd, pieces); }));
}

void check_header_ends(const View<const std::uint64_t>& ends, std::size_t n_bytes) {
    const bool ascend = std::is_sorted(ends.begin(), ends.end()) && (ends.length == 0 || ends.end()[-1] <= n_bytes);
    check_that(ascend, "a header ends before it begins, or beyond all headers");
}

auto write_fasta(View<const std::uint8_t> headers, View<const std::uint64_t> ends, View<const std::uint8_t> codes,
                 Lengths lengths, View<const std::uint8_t> decode, std::size_t width) {
    check_that(ends.length == lengths.length, "ends and lengths differ in length");
    check_that(decode.length == 256, "decode must have 256 elements");
    check_header_ends(ends, headers.length);
    check_that(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) == codes.length,
               "the lengths are not those of the codes");
    return array_of(without_lock([&] {
        return index::write_fasta(headers.data, ends.data, codes.data, lengths.data, lengths.length, decode.data,
                                  width);
    }));
}

bool residues_hold(Residues residues, Starts starts, Lengths lengths, View<const std::uint8_t> is_letter,
                   std::uint8_t fill) {
    check_that(starts.length == lengths.length, "arrays differ in length");
    check_that(is_letter.length == 256, "is_letter must have 256 elements");
    for (std::size_t i = 0; i < starts.length; ++i) {
        const std::uint64_t next = i + 1 < starts.length ? starts[i + 1] : residues.length;
        check_that(next <= residues.length && starts[i] <= next && lengths[i] <= next - starts[i],
                   "a subject overlaps another or leaves the residues");
    }
    return without_lock([&] {
        return index::residues_hold(residues.data, residues.length, starts.data, lengths.data, lengths.length,
                                    is_letter.data, fill);
    });
}

// Subjects, checked that their residues and padding lie inside the array, and that there is such a part of them.
Subjects checked_part(const Residues& residues, const Starts& starts, const Lengths& lengths, std::uint64_t part,
                      std::uint64_t n_parts) {
    check_that(starts.length == lengths.length && starts.length <= UINT32_MAX, "starts and lengths differ in length");
    check_that(part < n_parts, "there is no such part");
    for (std::size_t i = 0; i < starts.length; ++i) {
        check_that(starts[i] <= residues.length && index::room(lengths[i]) <= residues.length - starts[i],
                   "a subject leaves the array of residues");
    }
    return {residues.data, starts.data, lengths.data, static_cast<std::uint32_t>(starts.length)};
}

// Pairs of a subject and the first one with its residues.
auto equal_subjects(Residues residues, Starts starts, Lengths lengths, std::uint64_t part, std::uint64_t n_parts) {
    const Subjects subjects = checked_part(residues, starts, lengths, part, n_parts);
    return array_of_pairs(without_lock([&] { return index::equal_subjects(subjects, part, n_parts); }));
}

// Pairs of a subject and the last one that contains its residues.
auto contained_subjects(Residues residues, Starts starts, Lengths lengths, View<const std::uint8_t> chosen,
                        std::uint32_t shortest, std::uint64_t part, std::uint64_t n_parts, int n_threads) {
    const Subjects subjects = checked_part(residues, starts, lengths, part, n_parts);
    check_that(chosen.length == lengths.length, "chosen and lengths differ in length");
    PythonPoll poll;
    const Threads threads = poll.threads(n_threads);
    return array_of_pairs(without_lock(
        [&] { return index::contained_subjects(subjects, chosen.data, shortest, part, n_parts, threads); }));
}

auto copy_subjects(const std::vector<Array>& source_arrays, View<const std::uint16_t> which, Starts starts,
                   Lengths lengths) {
    std::vector<View<const std::uint8_t>> sources;
    for (const Array& source : source_arrays) sources.push_back(view_of<const std::uint8_t>(source, "source"));
    check_that(which.length == lengths.length && starts.length == lengths.length, "arrays differ in length");
    for (std::size_t i = 0; i < which.length; ++i) {
        check_that(which[i] < sources.size() && starts[i] <= sources[which[i]].length &&
                       lengths[i] <= sources[which[i]].length - starts[i],
                   "a subject leaves its source");
    }
    return array_of(without_lock(
        [&] { return index::copy_subjects(sources, which.data, starts.data, lengths.data, lengths.length); }));
}

auto write_identifiers(View<const std::uint8_t> headers, View<const std::uint64_t> ends, View<const std::uint8_t> kept,
                       std::uint32_t first, int fd, std::uint64_t offset) {
    check_that(kept.length == 0 || kept.length == ends.length, "kept and ends differ in length");
    check_that(ends.length <= UINT32_MAX - first, "there are more than 2^32 subjects");
    check_header_ends(ends, headers.length);
    const auto counts =
        without_lock([&] { return index::write_identifiers(headers.data, ends, kept, first, fd, offset); });
    return array_of(std::vector<std::uint32_t>(counts.begin(), counts.end()));
}

nb::tuple find_repeats(int fd, View<const std::uint64_t> offsets, View<const std::uint32_t> counts,
                       std::uint64_t n_before, const std::vector<std::tuple<std::uint64_t, int, int>>& sources) {
    check_that(offsets.length == counts.length, "offsets and counts differ in length");
    std::vector<index::HeaderFiles> files;
    for (const auto& [first, headers_fd, ends_fd] : sources) files.push_back({first, headers_fd, ends_fd});
    const auto repeats = without_lock([&] { return index::find_repeats(fd, offsets, counts, n_before, files); });
    return nb::make_tuple(repeats.n, repeats.n == 0 ? nb::none() : nb::object(nb::int_(repeats.first)));
}

}  // namespace

void bind_index(nb::module_& module) {
    define(module, "read_records", &read_records, {"text", "encode", "is_fastq", "skips"});
    define(module, "whole_records", &whole_records, {"text", "is_fastq"});
    define(module, "write_run", &write_run, {"codes", "lengths", "first", "residues_fd", "offset", "order_fd"});
    define(module, "run_positions", &run_positions, {"lengths", "counts", "order", "first", "distinct", "next"});
    define(module, "take_pieces", &take_pieces,
           {"lengths", "counts", "next", "stops", "residues", "subjects", "distinct", "next_to", "most"});
    define(module, "gather_residues", &gather_residues, {"fds", "pieces", "base", "fill"});
    define(module, "gather_values", &gather_values, {"fd", "pieces"});
    define(module, "write_fasta", &write_fasta, {"headers", "ends", "codes", "lengths", "decode", "width"});
    define(module, "residues_hold", &residues_hold, {"residues", "starts", "lengths", "is_letter", "fill"});
    define(module, "equal_subjects", &equal_subjects, {"residues", "starts", "lengths", "part", "n_parts"});
    define(module, "contained_subjects", &contained_subjects,
           {"residues", "starts", "lengths", "chosen", "shortest", "part", "n_parts", "threads"});
    define(module, "copy_subjects", &copy_subjects, {"sources", "which", "starts", "lengths"});
    define(module, "write_identifiers", &write_identifiers, {"headers", "ends", "kept", "first", "fd", "offset"});
    define(module, "find_repeats", &find_repeats, {"fd", "offsets", "counts", "n_before", "files"});
}

}  // namespace swsearch
