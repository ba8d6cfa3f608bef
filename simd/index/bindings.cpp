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
void bind_index(nb::module_& module);

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

template <class Value>
auto vector_of(std::vector<Value>&& values) {
    const std::size_t n = values.size();
    return array_of<Value, 1>(std::move(values), {n});
}

nb::object read_records(const OutputArray& text_array, const Array& encode_array, bool is_fastq, bool skips) {
    const auto text = view_of<std::uint8_t>(text_array, "text");
    const auto encode = view_of<const std::uint8_t>(encode_array, "encode");
    check_that(encode.length == 256, "encode must have 256 elements");
    auto records = without_lock([&] {
        return is_fastq ? index::read_fastq(text.data, text.length, encode.data, skips)
                        : index::read_fasta(text.data, text.length, encode.data, skips);
    });
    if (!records.is_regular) return nb::none();
    index::InvalidRecords& refused = records.refused;
    return nb::make_tuple(
        records.n_residues, vector_of(std::move(records.lengths)), vector_of(std::move(records.headers)),
        vector_of(std::move(records.header_ends)),
        nb::make_tuple(vector_of(std::move(refused.numbers)), vector_of(std::move(refused.problems)),
                       vector_of(std::move(refused.residues)), vector_of(std::move(refused.bytes)),
                       vector_of(std::move(refused.headers)), vector_of(std::move(refused.header_ends))));
}

std::size_t whole_records(const Array& text_array, bool is_fastq) {
    const auto text = view_of<const std::uint8_t>(text_array, "text");
    return without_lock([&] {
        return is_fastq ? index::whole_fastq(text.data, text.length) : index::whole_fasta(text.data, text.length);
    });
}

auto write_run(const Array& codes_array, const Array& lengths_array, std::uint32_t first, int residues_fd,
               std::uint64_t offset, int order_fd) {
    const auto codes = view_of<const std::uint8_t>(codes_array, "codes");
    const auto lengths = view_of<const std::uint32_t>(lengths_array, "lengths");
    check_that(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) == codes.length,
               "the lengths are not those of the codes");
    check_that(lengths.length <= UINT32_MAX - first, "there are more than 2^32 subjects");
    auto groups = without_lock([&] {
        return index::write_run(codes.data, lengths.data, lengths.length, first, residues_fd, offset, order_fd);
    });
    return nb::make_tuple(vector_of(std::move(groups.lengths)), vector_of(std::move(groups.counts)));
}

auto run_positions(const Array& lengths_array, const Array& counts_array, const Array& order_array, std::uint32_t first,
                   const Array& distinct_array, const OutputArray& next_array) {
    const auto lengths = view_of<const std::uint32_t>(lengths_array, "lengths");
    const auto counts = view_of<const std::uint32_t>(counts_array, "counts");
    const auto order = view_of<const std::uint32_t>(order_array, "order");
    const auto distinct = view_of<const std::uint32_t>(distinct_array, "distinct");
    const auto next = view_of<std::uint64_t>(next_array, "next");
    check_that(lengths.length == counts.length && distinct.length == next.length, "arrays differ in length");
    return vector_of(without_lock([&] {
        std::vector<std::uint32_t> local(order.begin(), order.end());
        for (std::uint32_t& i : local) i -= first;
        return index::run_positions({{lengths.begin(), lengths.end()}, {counts.begin(), counts.end()}}, local, distinct,
                                    next);
    }));
}

auto take_pieces(const Array& lengths_array, const OutputArray& counts_array, const OutputArray& next_array,
                 const Array& stops_array, const OutputArray& residues_array, const OutputArray& subjects_array,
                 const Array& distinct_array, const OutputArray& next_to_array, std::uint64_t most) {
    const index::Cursors cursors{view_of<const std::uint32_t>(lengths_array, "lengths"),
                                 view_of<std::uint32_t>(counts_array, "counts"),
                                 view_of<std::uint64_t>(next_array, "next"),
                                 view_of<const std::uint64_t>(stops_array, "stops"),
                                 view_of<std::uint64_t>(residues_array, "residues"),
                                 view_of<std::uint64_t>(subjects_array, "subjects")};
    const auto distinct = view_of<const std::uint32_t>(distinct_array, "distinct");
    const auto next_to = view_of<std::uint32_t>(next_to_array, "next_to");
    const std::size_t n_runs = cursors.next.length;
    check_that(cursors.lengths.length == cursors.counts.length && cursors.stops.length == n_runs &&
                   cursors.residues.length == n_runs && cursors.subjects.length == n_runs &&
                   distinct.length == next_to.length && distinct.length > 0,
               "arrays differ in length");
    for (const std::uint64_t stop : cursors.stops) {
        check_that(stop <= cursors.lengths.length, "a run has groups that do not exist");
    }
    auto pieces = without_lock([&] { return index::take(cursors, distinct, next_to, most); });
    return nb::make_tuple(vector_of(std::move(pieces.lengths)), vector_of(std::move(pieces.counts)),
                          vector_of(std::move(pieces.to)), vector_of(std::move(pieces.residues)),
                          vector_of(std::move(pieces.subjects)));
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
    return nb::make_tuple(vector_of(std::move(block.residues)), vector_of(std::move(block.starts)),
                          vector_of(std::move(block.lengths)));
}

auto gather_values(int fd, const PieceArrays& arrays) {
    const index::PieceViews pieces = views_of(arrays);
    return vector_of(without_lock([&] { return index::gather_values(fd, pieces); }));
}

void check_header_ends(const View<const std::uint64_t>& ends, std::size_t n_bytes) {
    const bool ascend = std::is_sorted(ends.begin(), ends.end()) && (ends.length == 0 || ends.end()[-1] <= n_bytes);
    check_that(ascend, "a header ends before it begins, or beyond all headers");
}

auto write_fasta(const Array& headers_array, const Array& ends_array, const Array& codes_array,
                 const Array& lengths_array, const Array& decode_array, std::size_t width) {
    const auto headers = view_of<const std::uint8_t>(headers_array, "headers");
    const auto ends = view_of<const std::uint64_t>(ends_array, "ends");
    const auto codes = view_of<const std::uint8_t>(codes_array, "codes");
    const auto lengths = view_of<const std::uint32_t>(lengths_array, "lengths");
    const auto decode = view_of<const std::uint8_t>(decode_array, "decode");
    check_that(ends.length == lengths.length, "ends and lengths differ in length");
    check_that(decode.length == 256, "decode must have 256 elements");
    check_header_ends(ends, headers.length);
    check_that(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) == codes.length,
               "the lengths are not those of the codes");
    return vector_of(without_lock([&] {
        return index::write_fasta(headers.data, ends.data, codes.data, lengths.data, lengths.length, decode.data,
                                  width);
    }));
}

bool residues_hold(const Array& residues_array, const Array& starts_array, const Array& lengths_array,
                   const Array& is_letter_array, std::uint8_t fill) {
    const auto residues = view_of<const std::uint8_t>(residues_array, "residues");
    const auto starts = view_of<const std::uint64_t>(starts_array, "starts");
    const auto lengths = view_of<const std::uint32_t>(lengths_array, "lengths");
    const auto is_letter = view_of<const std::uint8_t>(is_letter_array, "is_letter");
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

// The subjects of three arrays, and a part of them.
struct StoredSubjects {
    View<const std::uint8_t> residues;
    View<const std::uint64_t> starts;
    View<const std::uint32_t> lengths;

    StoredSubjects(const Array& residues_array, const Array& starts_array, const Array& lengths_array,
                   std::uint64_t part, std::uint64_t n_parts)
        : residues(view_of<const std::uint8_t>(residues_array, "residues")),
          starts(view_of<const std::uint64_t>(starts_array, "starts")),
          lengths(view_of<const std::uint32_t>(lengths_array, "lengths")) {
        check_that(starts.length == lengths.length && starts.length <= UINT32_MAX,
                   "starts and lengths differ in length");
        check_that(part < n_parts, "there is no such part");
        for (std::size_t i = 0; i < starts.length; ++i) {
            const std::uint64_t padded = (std::uint64_t{lengths[i]} + 15) / 16 * 16;
            check_that(starts[i] <= residues.length && padded <= residues.length - starts[i],
                       "a subject leaves the array of residues");
        }
    }
};

auto array_of_pairs(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
    std::vector<std::uint32_t> numbers;
    for (const auto& [first, second] : pairs) {
        numbers.push_back(first);
        numbers.push_back(second);
    }
    return array_of<std::uint32_t, 2>(std::move(numbers), {pairs.size(), 2});
}

// Pairs of a subject and the first one with its residues.
auto equal_subjects(const Array& residues_array, const Array& starts_array, const Array& lengths_array,
                    std::uint64_t part, std::uint64_t n_parts) {
    const StoredSubjects of(residues_array, starts_array, lengths_array, part, n_parts);
    return array_of_pairs(
        without_lock([&] { return index::equal_subjects(of.residues, of.starts, of.lengths, part, n_parts); }));
}

// Pairs of a subject and the last one that contains its residues.
auto contained_subjects(const Array& residues_array, const Array& starts_array, const Array& lengths_array,
                        const Array& chosen_array, std::uint32_t shortest, std::uint64_t part, std::uint64_t n_parts,
                        int n_threads) {
    const StoredSubjects of(residues_array, starts_array, lengths_array, part, n_parts);
    const auto chosen = view_of<const std::uint8_t>(chosen_array, "chosen");
    check_that(chosen.length == of.lengths.length, "chosen and lengths differ in length");
    check_threads(n_threads);
    PythonPoll poll;
    return array_of_pairs(without_lock([&] {
        return index::contained_subjects(of.residues, of.starts, of.lengths, chosen, shortest, part, n_parts, n_threads,
                                         std::ref(poll));
    }));
}

auto copy_subjects(const std::vector<Array>& source_arrays, const Array& which_array, const Array& starts_array,
                   const Array& lengths_array) {
    std::vector<View<const std::uint8_t>> sources;
    for (const Array& source : source_arrays) sources.push_back(view_of<const std::uint8_t>(source, "source"));
    const auto which = view_of<const std::uint16_t>(which_array, "which");
    const auto starts = view_of<const std::uint64_t>(starts_array, "starts");
    const auto lengths = view_of<const std::uint32_t>(lengths_array, "lengths");
    check_that(which.length == lengths.length && starts.length == lengths.length, "arrays differ in length");
    for (std::size_t i = 0; i < which.length; ++i) {
        check_that(which[i] < sources.size() && starts[i] <= sources[which[i]].length &&
                       lengths[i] <= sources[which[i]].length - starts[i],
                   "a subject leaves its source");
    }
    return vector_of(without_lock(
        [&] { return index::copy_subjects(sources, which.data, starts.data, lengths.data, lengths.length); }));
}

auto write_identifiers(const Array& headers_array, const Array& ends_array, const Array& kept_array,
                       std::uint32_t first, int fd, std::uint64_t offset) {
    const auto headers = view_of<const std::uint8_t>(headers_array, "headers");
    const auto ends = view_of<const std::uint64_t>(ends_array, "ends");
    const auto kept = view_of<const std::uint8_t>(kept_array, "kept");
    check_that(kept.length == 0 || kept.length == ends.length, "kept and ends differ in length");
    check_that(ends.length <= UINT32_MAX - first, "there are more than 2^32 subjects");
    check_header_ends(ends, headers.length);
    const auto counts =
        without_lock([&] { return index::write_identifiers(headers.data, ends, kept, first, fd, offset); });
    return vector_of(std::vector<std::uint32_t>(counts.begin(), counts.end()));
}

nb::tuple find_repeats(int fd, const Array& offsets_array, const Array& counts_array, std::uint64_t n_before,
                       const std::vector<std::tuple<std::uint64_t, int, int>>& sources) {
    const auto offsets = view_of<const std::uint64_t>(offsets_array, "offsets");
    const auto counts = view_of<const std::uint32_t>(counts_array, "counts");
    check_that(offsets.length == counts.length, "offsets and counts differ in length");
    std::vector<index::HeaderFiles> files;
    for (const auto& [first, headers_fd, ends_fd] : sources) files.push_back({first, headers_fd, ends_fd});
    const auto repeats = without_lock([&] { return index::find_repeats(fd, offsets, counts, n_before, files); });
    return nb::make_tuple(repeats.n, repeats.n == 0 ? nb::none() : nb::object(nb::int_(repeats.first)));
}

}  // namespace

void bind_index(nb::module_& module) {
    module.def("read_records", &read_records, "text"_a, "encode"_a, "is_fastq"_a, "skips"_a);
    module.def("whole_records", &whole_records, "text"_a, "is_fastq"_a);
    module.def("write_run", &write_run, "codes"_a, "lengths"_a, "first"_a, "residues_fd"_a, "offset"_a, "order_fd"_a);
    module.def("run_positions", &run_positions, "lengths"_a, "counts"_a, "order"_a, "first"_a, "distinct"_a, "next"_a);
    module.def("take_pieces", &take_pieces, "lengths"_a, "counts"_a, "next"_a, "stops"_a, "residues"_a, "subjects"_a,
               "distinct"_a, "next_to"_a, "most"_a);
    module.def("gather_residues", &gather_residues, "fds"_a, "pieces"_a, "base"_a, "fill"_a);
    module.def("gather_values", &gather_values, "fd"_a, "pieces"_a);
    module.def("write_fasta", &write_fasta, "headers"_a, "ends"_a, "codes"_a, "lengths"_a, "decode"_a, "width"_a);
    module.def("residues_hold", &residues_hold, "residues"_a, "starts"_a, "lengths"_a, "is_letter"_a, "fill"_a);
    module.def("equal_subjects", &equal_subjects, "residues"_a, "starts"_a, "lengths"_a, "part"_a, "n_parts"_a);
    module.def("contained_subjects", &contained_subjects, "residues"_a, "starts"_a, "lengths"_a, "chosen"_a,
               "shortest"_a, "part"_a, "n_parts"_a, "threads"_a);
    module.def("copy_subjects", &copy_subjects, "sources"_a, "which"_a, "starts"_a, "lengths"_a);
    module.def("write_identifiers", &write_identifiers, "headers"_a, "ends"_a, "kept"_a, "first"_a, "fd"_a, "offset"_a);
    module.def("find_repeats", &find_repeats, "fd"_a, "offsets"_a, "counts"_a, "n_before"_a, "files"_a);
}

}  // namespace swsearch
