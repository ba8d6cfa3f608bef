// The helpers that all bindings share: checked views of NumPy arrays, checked profiles and subjects, results as NumPy
// arrays, signals and progress.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "common/parallel_for.hpp"
#include "common/profile.hpp"
#include "common/view.hpp"

namespace swsearch {

namespace nb = nanobind;
using namespace nb::literals;

using Array = nb::ndarray<nb::ro>;
using OutputArray = nb::ndarray<>;

constexpr std::int32_t kMaxGapCost = 16'383;

[[noreturn]] inline void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

inline void check_that(bool condition, const char* message) {
    if (!condition) refuse(message);
}

// A view of an array of T with kDimensions dimensions, C-contiguous and in this machine's memory, with `columns`
// columns if they are given. Throws TypeError if the array differs.
template <class T, std::size_t kDimensions = 1, class SomeArray>
View<T> view_of(const SomeArray& array, const char* name, std::size_t columns = 0) {
    using Element = std::remove_const_t<T>;
    const auto require = [name](bool condition, const std::string& what) {
        if (!condition) throw nb::type_error((std::string(name) + " must " + what).c_str());
    };
    const char* const family = std::is_floating_point_v<Element> ? "float" : std::is_signed_v<Element> ? "int" : "uint";
    const std::string kind = family + std::to_string(8 * sizeof(Element));
    require(array.device_type() == nb::device::cpu::value, "be in this machine's memory");
    require(array.dtype() == nb::dtype<Element>(), "be an array of " + kind);
    const auto number = [](std::size_t n) { return std::to_string(n); };
    require(array.ndim() == kDimensions, "have " + number(kDimensions) + " dimensions, not " + number(array.ndim()));
    std::int64_t stride = 1;
    for (std::size_t i = kDimensions; i-- > 0;) {
        require(array.size() == 0 || array.shape(i) == 1 || array.stride(i) == stride, "be contiguous, in C order");
        stride *= static_cast<std::int64_t>(array.shape(i));
    }
    const std::size_t n_columns = kDimensions == 2 ? array.shape(1) : 1;
    require(columns == 0 || n_columns == columns, "have " + number(columns) + " columns, not " + number(n_columns));
    return {static_cast<T*>(array.data()), array.shape(0), n_columns};
}

// A profile, checked that all its rows lie inside its table and that its gaps have a cost.
inline Profile checked_profile(const Array& rows_array, const Array& table_array, std::int32_t gap_open,
                               std::int32_t gap_extend) {
    const auto rows = view_of<const std::int32_t>(rows_array, "rows");
    const auto table = view_of<const std::int8_t, 2>(table_array, "table", kCodes);
    for (const std::int32_t cost : {gap_open, gap_extend}) {
        check_that(cost >= 0 && cost <= kMaxGapCost, "gap costs range from 0 to 16383");
    }
    check_that(gap_open + gap_extend > 0, "gap costs of 0 and 0: gaps would cost nothing");
    check_that(rows.length <= 0x7FFFFFF0 && table.length <= 0x7FFFFFF0, "the query is longer than 2^31 residues");
    for (std::size_t i = 0; i < rows.length; ++i) {
        if (rows[i] < 0 || static_cast<std::size_t>(rows[i]) >= table.length) {
            refuse("rows[" + std::to_string(i) + "] is not a row of the table");
        }
    }
    const auto int32 = [](std::size_t n) { return static_cast<std::int32_t>(n); };
    return {rows.data, table.data, int32(rows.length), int32(table.length), gap_open, gap_extend};
}

// The last of some positions that do not decrease, or 0 if there is none. Throws if they do.
inline std::size_t last_position(const View<const std::int64_t>& positions, const char* message) {
    std::int64_t before = 0;
    for (const std::int64_t position : positions) {
        check_that(position >= before, message);
        before = position;
    }
    return static_cast<std::size_t>(before);
}

inline void check_inside(const View<const std::uint64_t>& starts, const View<const std::uint32_t>& lengths,
                         std::size_t n_residues) {
    check_that(starts.length == lengths.length, "starts and lengths differ in length");
    for (std::size_t i = 0; i < starts.length; ++i) {
        if (starts[i] > n_residues || lengths[i] > n_residues - starts[i]) {
            refuse("subject " + std::to_string(i) + " leaves the array of residues");
        }
    }
}

// Subjects, checked that all of them lie inside the residues.
inline Subjects checked_subjects(const Array& residues_array, const Array& starts_array, const Array& lengths_array) {
    const auto residues = view_of<const std::uint8_t>(residues_array, "residues");
    const auto starts = view_of<const std::uint64_t>(starts_array, "starts");
    const auto lengths = view_of<const std::uint32_t>(lengths_array, "lengths");
    check_that(starts.length <= UINT32_MAX, "there are more than 2^32 subjects");
    check_inside(starts, lengths, residues.length);
    return {residues.data, starts.data, lengths.data, static_cast<std::uint32_t>(starts.length)};
}

inline void check_threads(int n_threads) { check_that(n_threads >= 1, "the number of threads must be at least 1"); }

// A NumPy array that takes ownership of a vector's values.
template <class Value, std::size_t kDimensions>
auto array_of(std::vector<Value>&& values, const std::array<std::size_t, kDimensions>& shape) {
    auto* const owned = new std::vector<Value>(std::move(values));
    const nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<Value>*>(pointer); });
    return nb::ndarray<nb::numpy, Value>(owned->data(), kDimensions, shape.data(), owner);
}

// An observer, and a poll for parallel_for, called without Python's lock: it throws the exception that a signal handler
// raised, and calls `progress`, if given, with the number of cells computed since the previous call.
class PythonPoll {
   public:
    explicit PythonPoll(const nb::object& progress = nb::none()) : progress_(progress) {}

    void operator()() {
        const nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        const std::uint64_t cells = observer.cells_done();
        if (!progress_.is_none() && cells > reported_) progress_(cells - reported_);
        reported_ = cells;
    }

    Observer observer;

   private:
    nb::object progress_;
    std::uint64_t reported_ = 0;
};

}  // namespace swsearch
