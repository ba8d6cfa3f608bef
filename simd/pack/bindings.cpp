// Bindings of simd/pack: a Python function that packs query profiles for the CUDA kernels. Sizes are checked here, so
// that it may rely on them.

#include <nanobind/stl/string.h>

#include "common/python.hpp"
#include "pack/profile.hpp"

namespace swsearch {
void bind_pack(nb::module_& module);

namespace {

// The rows of a query, checked that all of them lie inside its table.
pack::PackedRows checked_rows(const Array& rows_array, const Array& table_array) {
    const auto rows = view_of<const std::int32_t>(rows_array, "rows");
    const auto table = view_of<const std::int8_t, 2>(table_array, "table", kCodes);
    for (const std::int32_t row : rows) {
        check_that(row >= 0 && static_cast<std::size_t>(row) < table.length, "a row is not a row of the table");
    }
    return {rows.data, rows.length, table.data, table.length};
}

// What a word holds, by the name of the kernels' constant.
pack::Pairing pairing_named(const std::string& name) {
    if (name == "kTwoBlocks") return pack::Pairing::kTwoBlocks;
    if (name == "kTwoQueries") return pack::Pairing::kTwoQueries;
    check_that(name == "kOneScore", "pairing is not kTwoBlocks, kTwoQueries or kOneScore");
    return pack::Pairing::kOneScore;
}

pack::ScoreType type_named(const std::string& name) {
    if (name == "FastPair") return pack::ScoreType::kFast;
    if (name == "ShortPair") return pack::ScoreType::kShort;
    check_that(name == "Wide", "arithmetic is not FastPair, ShortPair or Wide");
    return pack::ScoreType::kWide;
}

void pack_strips(const Array& low_rows, const Array& low_table, const Array& high_rows, const Array& high_table,
                 std::size_t group, std::size_t words, std::size_t columns, const std::string& pairing,
                 const std::string& arithmetic, std::size_t first_row, std::size_t n_strips,
                 const OutputArray& out_array) {
    const auto out = view_of<std::uint32_t>(out_array, "out");
    const pack::TileShape tile{group, words, columns};
    check_that(group >= 1 && group <= 32 && words >= 1 && words <= 1024 && columns >= 1 && columns <= kCodes,
               "no tile has this shape");
    check_that(n_strips > 0 && out.length / n_strips == tile.strip_words() && out.length % n_strips == 0,
               "out has another number of words than the strips");
    pack::pack_strips(checked_rows(low_rows, low_table), checked_rows(high_rows, high_table), tile,
                      pairing_named(pairing), type_named(arithmetic), first_row, n_strips, out.data);
}

}  // namespace

void bind_pack(nb::module_& module) {
    module.def("pack_strips", &pack_strips, "low_rows"_a, "low_table"_a, "high_rows"_a, "high_table"_a, "group"_a,
               "words"_a, "columns"_a, "pairing"_a, "arithmetic"_a, "first_row"_a, "n_strips"_a, "out"_a);
}

}  // namespace swsearch
