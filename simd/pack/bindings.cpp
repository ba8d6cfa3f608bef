// Bindings of simd/pack: a Python function that packs query profiles for the CUDA kernels. Sizes are checked here, so
// that it may rely on them.

#include <nanobind/stl/string.h>

#include "common/python.hpp"
#include "pack/profile.hpp"

namespace swsearch {

namespace {

// The rows of a query, checked that all of them lie inside its table.
pack::PackedRows checked_rows(const Rows& rows, const Table& table) {
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

void pack_strips(Rows low_rows, Table low_table, Rows high_rows, Table high_table, std::size_t group, std::size_t words,
                 std::size_t columns, const std::string& pairing, const std::string& arithmetic, std::size_t first_row,
                 std::size_t n_strips, View<std::uint32_t> out) {
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
    define(module, "pack_strips", &pack_strips,
           {"low_rows", "low_table", "high_rows", "high_table", "group", "words", "columns", "pairing", "arithmetic",
            "first_row", "n_strips", "out"});
}

}  // namespace swsearch
