// What all bindings share: functions of checked views of NumPy arrays, checked profiles and subjects, results as NumPy
// arrays, signals and progress.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
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

inline void require(bool condition, const char* name, const std::string& what) {
    if (!condition) throw nb::type_error((std::string(name) + " must " + what).c_str());
}

template <class T>
void require_columns(const View<T>& view, const char* name, std::size_t n) {
    require(view.columns == n, name, "have " + std::to_string(n) + " columns, not " + std::to_string(view.columns));
}

// A view of an array of T with kDimensions dimensions, C-contiguous and in this machine's memory. Throws TypeError if
// the array differs.
template <class T, std::size_t kDimensions = 1, class SomeArray>
View<T> view_of(const SomeArray& array, const char* name) {
    using Element = std::remove_const_t<T>;
    const char* const family = std::is_floating_point_v<Element> ? "float" : std::is_signed_v<Element> ? "int" : "uint";
    const std::string kind = family + std::to_string(8 * sizeof(Element));
    require(array.device_type() == nb::device::cpu::value, name, "be in this machine's memory");
    require(array.dtype() == nb::dtype<Element>(), name, "be an array of " + kind);
    require(array.ndim() == kDimensions, name,
            "have " + std::to_string(kDimensions) + " dimensions, not " + std::to_string(array.ndim()));
    std::int64_t stride = 1;
    for (std::size_t i = kDimensions; i-- > 0;) {
        require(array.size() == 0 || array.shape(i) == 1 || array.stride(i) == stride, name,
                "be contiguous, in C order");
        stride *= static_cast<std::int64_t>(array.shape(i));
    }
    return {static_cast<T*>(array.data()), array.shape(0), kDimensions == 2 ? array.shape(1) : 1};
}

// An array of two dimensions, with kColumns columns if that is not 0. (One of one dimension is a View.)
template <class T, std::size_t kColumns = 0>
struct Matrix : View<T> {};

// What Python passes for a parameter of a bound function, and its conversion.
template <class Parameter>
struct Passed {
    using Type = Parameter;
    static Parameter checked(Type passed, const char*) { return passed; }
};
template <class T>
struct Passed<View<T>> {
    using Type = const std::conditional_t<std::is_const_v<T>, Array, OutputArray>&;
    static View<T> checked(Type passed, const char* name) { return view_of<T>(passed, name); }
};
template <class T, std::size_t kColumns>
struct Passed<Matrix<T, kColumns>> {
    using Type = typename Passed<View<T>>::Type;
    static Matrix<T, kColumns> checked(Type passed, const char* name) {
        const View<T> view = view_of<T, 2>(passed, name);
        if (kColumns > 0) require_columns(view, name, kColumns);
        return {view};
    }
};
template <class T>
struct Passed<std::optional<Matrix<T>>> {
    using Type = const std::optional<Array>&;
    static std::optional<Matrix<T>> checked(Type passed, const char* name) {
        if (!passed) return std::nullopt;
        return Passed<Matrix<T>>::checked(*passed, name);
    }
};

template <class Parameter>
auto argument(const char* name) {
    if constexpr (std::is_same_v<typename Passed<Parameter>::Type, const std::optional<Array>&>) {
        return nb::arg(name).none();
    } else {
        return nb::arg(name);
    }
}

template <class Result, class... Parameters, std::size_t... kIndices, class... Extras>
void define_named(nb::module_& module, const char* name, Result (*function)(Parameters...),
                  const std::array<const char*, sizeof...(Parameters)>& names, std::index_sequence<kIndices...>,
                  const Extras&... extras) {
    using All = std::tuple<Parameters...>;
    module.def(
        name,
        [function, names](typename Passed<Parameters>::Type... passed) {
            auto next = [name = names.begin()]() mutable { return *name++; };
            const All arguments{Passed<Parameters>::checked(passed, next())...};  // from left to right
            return std::apply(function, arguments);
        },
        argument<std::tuple_element_t<kIndices, All>>(names[kIndices])..., extras...);
}

// Binds a function with the names of its parameters, those with a default value excepted, which follow as nb::arg.
// Arrays that are not as the type of their parameter requires raise TypeError with its name.
template <class Result, class... Parameters, std::size_t kNames, class... Extras>
void define(nb::module_& module, const char* name, Result (*function)(Parameters...),
            const char* const (&names)[kNames], const Extras&... extras) {
    std::array<const char*, sizeof...(Parameters)> all{};
    std::copy(names, names + kNames, all.begin());
    define_named(module, name, function, all, std::make_index_sequence<kNames>(), extras...);
}

using Rows = View<const std::int32_t>;
using Table = Matrix<const std::int8_t, kCodes>;
using Residues = View<const std::uint8_t>;
using Starts = View<const std::uint64_t>;
using Lengths = View<const std::uint32_t>;

// A profile, checked that all its rows lie inside its table and that its gaps have a cost.
inline Profile checked_profile(const Rows& rows, const Table& table, std::int32_t gap_open, std::int32_t gap_extend) {
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

inline void check_inside(const Starts& starts, const Lengths& lengths, std::size_t n_residues) {
    check_that(starts.length == lengths.length, "starts and lengths differ in length");
    for (std::size_t i = 0; i < starts.length; ++i) {
        if (starts[i] > n_residues || lengths[i] > n_residues - starts[i]) {
            refuse("subject " + std::to_string(i) + " leaves the array of residues");
        }
    }
}

// Subjects, checked that all of them lie inside the residues.
inline Subjects checked_subjects(const Residues& residues, const Starts& starts, const Lengths& lengths) {
    check_that(starts.length <= UINT32_MAX, "there are more than 2^32 subjects");
    check_inside(starts, lengths, residues.length);
    return {residues.data, starts.data, lengths.data, static_cast<std::uint32_t>(starts.length)};
}

inline void check_threads(int n) { check_that(n >= 1, "the number of threads must be at least 1"); }

// A NumPy array that takes ownership of a vector's values.
template <class Value, std::size_t kDimensions>
auto array_of(std::vector<Value>&& values, const std::array<std::size_t, kDimensions>& shape) {
    auto* const owned = new std::vector<Value>(std::move(values));
    const nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<Value>*>(pointer); });
    return nb::ndarray<nb::numpy, Value>(owned->data(), kDimensions, shape.data(), owner);
}

template <class Value>
auto array_of(std::vector<Value>&& values) {
    const std::size_t n = values.size();
    return array_of<Value, 1>(std::move(values), {n});
}

inline auto array_of_pairs(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
    std::vector<std::uint32_t> numbers;
    for (const auto& [first, second] : pairs) numbers.insert(numbers.end(), {first, second});
    return array_of<std::uint32_t, 2>(std::move(numbers), {pairs.size(), 2});
}

// How a call from Python is watched: its poll throws the exception that a signal handler raised, and calls `progress`,
// if given, with the number of cells computed since the previous call. It is called without Python's lock.
class PythonPoll {
   public:
    explicit PythonPoll(const nb::object& progress = nb::none()) : progress_(progress) {}

    // The threads of the call, checked that there is one. They are not watched if the call is short.
    Threads threads(int n, bool is_long = true) {
        check_threads(n);
        return {n, observer, is_long ? std::function<void()>(std::ref(*this)) : nullptr};
    }

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

// Each folder binds its own functions.
void bind_align(nb::module_& module);
void bind_context(nb::module_& module);
void bind_domains(nb::module_& module);
void bind_index(nb::module_& module);
void bind_msa(nb::module_& module);
void bind_pack(nb::module_& module);
void bind_pair(nb::module_& module);
void bind_pssm(nb::module_& module);
void bind_score(nb::module_& module);
void bind_statistics(nb::module_& module);

}  // namespace swsearch
