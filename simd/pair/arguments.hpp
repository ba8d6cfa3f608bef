// What Python hands to the pair aligners, checked.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string>

#include "pair/pair.hpp"

namespace swsearch::pair {

using Letters = nanobind::ndarray<const std::uint16_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Table = nanobind::ndarray<const std::int8_t, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

constexpr std::int32_t max_cost = 16'383;

inline const Kernels& usable_kernels(const std::string& isa) {
    const Kernels* const kernels = kernels_named(isa.c_str());
    if (kernels == nullptr) {
        throw nanobind::value_error(("isa " + isa + " is unknown or not usable on this machine; choose auto").c_str());
    }
    return *kernels;
}

inline Costs checked_costs(const std::optional<Table>& table, std::int32_t match, std::int32_t mismatch,
                           std::int32_t gap_open, std::int32_t gap_extend, bool local) {
    for (const std::int32_t cost : {match, mismatch, gap_open, gap_extend}) {
        if (cost < -max_cost || cost > max_cost) throw nanobind::value_error("scores and gap costs range up to 16383");
    }
    if (gap_open < 0 || gap_extend < 0) throw nanobind::value_error("gap costs are not negative");
    if (local && gap_open + gap_extend == 0) throw nanobind::value_error("gaps would cost nothing");
    Costs costs{nullptr, 0, 0, match, mismatch, gap_open, gap_extend};
    if (table) {
        costs.table = table->data();
        costs.table_rows = table->shape(0);
        costs.table_columns = table->shape(1);
        if (costs.table_rows == 0 || costs.table_columns == 0) throw nanobind::value_error("the table is empty");
    }
    return costs;
}

inline void check_letters(const Letters& letters, std::size_t limit) {
    for (std::size_t i = 0; i < letters.size(); ++i) {
        if (letters.data()[i] >= limit) throw nanobind::value_error("a letter has no score");
    }
}

}  // namespace swsearch::pair
