// Packs query profiles for the CUDA kernels: words of two scores or of one, in the order of a tile's lanes
// (cuda/search/tile.cuh). Inputs: the rows of a query's profile and a tile. Output: the words of some strips.

#pragma once

#include <cstddef>
#include <cstdint>

namespace swsearch::pack {

// How a kernel adds scores: FastPair, ShortPair and Wide of cuda/search/arithmetic.cuh.
enum class ScoreType { kFast, kShort, kWide };

// What a word holds: scores of two blocks of rows of one query, of two queries, or one score.
enum class Pairing { kTwoBlocks, kTwoQueries, kOneScore };

// Profile rows: `rows` are `length` row numbers of a table of `n_table_rows` rows of kCodes scores each.
struct PackedRows {
    const std::int32_t* rows;
    std::size_t length;
    const std::int8_t* table;
    std::size_t n_table_rows;
};

// The shape of a tile; see Tile in swsearch/engine/cuda/runtime/kernels.py.
struct TileShape {
    std::size_t group;
    std::size_t words;
    std::size_t columns;

    std::size_t rows(Pairing pairing) const { return group * words * (pairing == Pairing::kTwoBlocks ? 2 : 1); }
    std::size_t slots() const { return group > 8 ? group : 8; }
    std::size_t planes() const { return ((words + 3) / 4 * slots() + 15) / 16; }
    std::size_t strip_words() const { return planes() * columns * 16 * 4; }
};

// Writes n_strips * tile.strip_words() words. The first strip begins at `first_row` of each query; rows past a query's
// end score -128, as column 0 does. `high` is the query in the high halves, and is used only with kTwoQueries.
void pack_strips(const PackedRows& low, const PackedRows& high, const TileShape& tile, Pairing pairing, ScoreType type,
                 std::size_t first_row, std::size_t n_strips, std::uint32_t* words);

}  // namespace swsearch::pack
