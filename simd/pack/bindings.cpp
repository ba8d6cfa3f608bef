// Bindings of simd/pack. Sizes are checked here, so that gather() may trust them; the lock is free while it reads.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include "pack/gather.hpp"

namespace nb = nanobind;

namespace swsearch {
void bind_pack(nanobind::module_& module);

namespace {

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

int gather(int fd, Column<std::uint64_t> from, Column<std::uint32_t> lengths, Column<std::uint64_t> to, Bytes out,
           std::uint8_t fill) {
    const std::size_t n = lengths.shape(0);
    const std::size_t size = out.shape(0);
    if (from.shape(0) != n || to.shape(0) != n) throw nb::value_error("from, lengths and to differ in length");
    std::uint64_t filled = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t start = to.data()[i];
        if (start < filled || start > size || lengths.data()[i] > size - start)
            throw nb::value_error("a sequence overlaps another or leaves the output");
        filled = start + lengths.data()[i];
    }
    nb::gil_scoped_release release;
    return pack::gather(fd, from.data(), lengths.data(), to.data(), n, out.data(), size, fill);
}

}  // namespace

void bind_pack(nanobind::module_& module) {
    module.def("gather", &gather, nb::arg("fd"), nb::arg("from_"), nb::arg("lengths"), nb::arg("to"), nb::arg("out"),
               nb::arg("fill"));
    // Names are bytes, for a file's name need not be text.
    module.def(
        "rename_without_replacing",
        [](const nb::bytes& from, const nb::bytes& to) { return pack::rename_without_replacing(from.c_str(), to.c_str()); },
        nb::arg("from_"), nb::arg("to"));
    module.def(
        "exchange", [](const nb::bytes& one, const nb::bytes& other) { return pack::exchange(one.c_str(), other.c_str()); },
        nb::arg("one"), nb::arg("other"));
}
}  // namespace swsearch
