// Bindings of simd/pack: Python functions that copy sequences from a file into an array, and rename files. Sizes are
// checked here, so that gather() may rely on them; Python's lock is released while gather() reads.

#include "common/python.hpp"
#include "pack/gather.hpp"

namespace swsearch {
void bind_pack(nb::module_& module);

namespace {

int gather(int fd, const Array& from_array, const Array& lengths_array, const Array& to_array, const OutputArray& out_array,
           std::uint8_t fill) {
    const auto from = view_of<const std::uint64_t>(from_array, "from_");
    const auto lengths = view_of<const std::uint32_t>(lengths_array, "lengths");
    const auto to = view_of<const std::uint64_t>(to_array, "to");
    const auto out = view_of<std::uint8_t>(out_array, "out");
    check_that(from.length == lengths.length && to.length == lengths.length, "from, lengths and to differ in length");
    std::uint64_t filled = 0;
    for (std::size_t i = 0; i < lengths.length; ++i) {
        check_that(to[i] >= filled && to[i] <= out.length && lengths[i] <= out.length - to[i],
                   "a sequence overlaps another or leaves the output");
        filled = to[i] + lengths[i];
    }
    const nb::gil_scoped_release no_lock;
    return pack::gather(fd, from.data, lengths.data, to.data, lengths.length, out.data, out.length, fill);
}

}  // namespace

void bind_pack(nb::module_& module) {
    module.def("gather", &gather, "fd"_a, "from_"_a, "lengths"_a, "to"_a, "out"_a, "fill"_a);
    // Names are bytes, because the name of a file need not be text.
    module.def(
        "rename_without_replacing",
        [](const nb::bytes& from, const nb::bytes& to) { return pack::rename_without_replacing(from.c_str(), to.c_str()); },
        "from_"_a, "to"_a);
    module.def(
        "exchange", [](const nb::bytes& one, const nb::bytes& other) { return pack::exchange(one.c_str(), other.c_str()); },
        "one"_a, "other"_a);
}

}  // namespace swsearch
