// The packing of profile.hpp. The layout of a strip has the axes plane, column, unit of a plane, and word of a unit; a
// unit contains four consecutive words of a lane, and the units of a column are ordered by chunk of words, then lane.

#include "pack/profile.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "common/profile.hpp"

namespace swsearch::pack {

namespace {

constexpr std::size_t kUnitWords = 4;
constexpr std::size_t kPlaneUnits = 16;
constexpr std::int8_t kPadScore = -128;

// Four words, which compilers keep in a vector register: four columns of a row, or a unit.
using Words = std::uint32_t __attribute__((vector_size(16)));
constexpr std::size_t kWidth = sizeof(Words) / sizeof(std::uint32_t);
static_assert(kWidth == kUnitWords, "four rows of four columns become four units");

Words load(const std::uint32_t* from) {
    Words words;
    std::memcpy(&words, from, sizeof(words));
    return words;
}

// Compilers translate each of these initialisers to one shuffle of two registers.
std::array<Words, kWidth> transposed(const std::array<Words, kUnitWords>& rows) {
    const auto& [a, b, c, d] = rows;
    const Words ab0 = {a[0], b[0], a[1], b[1]}, ab2 = {a[2], b[2], a[3], b[3]};
    const Words cd0 = {c[0], d[0], c[1], d[1]}, cd2 = {c[2], d[2], c[3], d[3]};
    return {Words{ab0[0], ab0[1], cd0[0], cd0[1]}, Words{ab0[2], ab0[3], cd0[2], cd0[3]},
            Words{ab2[0], ab2[1], cd2[0], cd2[1]}, Words{ab2[2], ab2[3], cd2[2], cd2[3]}};
}

template <ScoreType kType>
std::uint32_t encoded(std::int8_t score) {
    if constexpr (kType == ScoreType::kFast) {  // the sign and magnitude of a 16-bit floating-point number
        return score < 0 ? 0x8000u | static_cast<std::uint32_t>(-score) : static_cast<std::uint32_t>(score);
    } else if constexpr (kType == ScoreType::kShort) {
        return static_cast<std::uint16_t>(score);
    } else {
        return static_cast<std::uint32_t>(static_cast<std::int32_t>(score));
    }
}

// The rows of a query as a kernel adds them, in the part of a word that begins at bit `shift`: `columns` encoded
// scores, filled up to a multiple of kWidth, for each row of the table, and a row of padding.
template <ScoreType kType>
class EncodedRows {
   public:
    EncodedRows(const PackedRows& query, std::size_t columns, std::size_t shift)
        : query_(query),
          columns_((columns + kWidth - 1) / kWidth * kWidth),
          scores_((query.n_table_rows + 1) * columns_, encoded<kType>(kPadScore) << shift) {
        for (std::size_t row = 0; row < query.n_table_rows; ++row) {
            for (std::size_t column = 1; column < columns; ++column) {
                scores_[row * columns_ + column] = encoded<kType>(query.table[row * kCodes + column - 1]) << shift;
            }
        }
    }

    const std::uint32_t* operator[](std::size_t row) const {
        const std::size_t of_table =
            row < query_.length ? static_cast<std::size_t>(query_.rows[row]) : query_.n_table_rows;
        return scores_.data() + of_table * columns_;
    }

   private:
    const PackedRows& query_;
    std::size_t columns_;
    std::vector<std::uint32_t> scores_;
};

// kParts: scores per word.
template <ScoreType kType, std::size_t kParts>
void pack(const PackedRows& low_rows, const PackedRows& high_rows, const TileShape& tile, Pairing pairing,
          std::size_t first_row, std::size_t n_strips, std::uint32_t* words) {
    std::vector<EncodedRows<kType>> queries;
    for (std::size_t part = 0; part < kParts; ++part) {
        const bool is_high = pairing == Pairing::kTwoQueries && part > 0;
        queries.emplace_back(is_high ? high_rows : low_rows, tile.columns, 32 / kParts * part);
    }
    const std::vector<std::uint32_t> nothing((tile.columns + kWidth - 1) / kWidth * kWidth, 0);
    const std::size_t n_chunks = tile.planes() * kPlaneUnits / tile.slots();
    const std::size_t lane_rows = tile.rows(pairing) / tile.group;
    const std::size_t below = pairing == Pairing::kTwoQueries ? 0 : tile.words;
    for (std::size_t strip = 0; strip < n_strips; ++strip) {
        for (std::size_t slot = 0; slot < tile.slots(); ++slot) {
            const std::size_t lane_row = first_row + strip * tile.rows(pairing) + slot % tile.group * lane_rows;
            for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
                std::array<std::array<const std::uint32_t*, kParts>, kUnitWords> scores;
                for (std::size_t i = 0; i < kUnitWords; ++i) {
                    const std::size_t k = chunk * kUnitWords + i;
                    for (std::size_t part = 0; part < kParts; ++part) {
                        scores[i][part] = k < tile.words ? queries[part][lane_row + part * below + k] : nothing.data();
                    }
                }
                const std::size_t unit = chunk * tile.slots() + slot;
                std::uint32_t* word =
                    words + (unit / kPlaneUnits * tile.columns * kPlaneUnits + unit % kPlaneUnits) * kUnitWords;
                const auto columns_from = [&](std::size_t column) {
                    std::array<Words, kUnitWords> rows;
                    for (std::size_t i = 0; i < kUnitWords; ++i) {
                        rows[i] = load(scores[i][0] + column);
                        for (std::size_t part = 1; part < kParts; ++part) rows[i] |= load(scores[i][part] + column);
                    }
                    return transposed(rows);
                };
                const auto store = [&](const Words& unit) {
                    std::memcpy(word, &unit, sizeof(unit));
                    word += kPlaneUnits * kUnitWords;
                };
                std::size_t column = 0;
                for (; column + kWidth <= tile.columns; column += kWidth) {
                    for (const Words& unit : columns_from(column)) store(unit);
                }
                if (column < tile.columns) {
                    const std::array<Words, kWidth> units = columns_from(column);
                    for (std::size_t i = 0; column + i < tile.columns; ++i) store(units[i]);
                }
            }
        }
        words += tile.strip_words();
    }
}

// The packing for a number of scores per word.
template <std::size_t kParts>
auto pack_of(ScoreType type) {
    return type == ScoreType::kFast    ? pack<ScoreType::kFast, kParts>
           : type == ScoreType::kShort ? pack<ScoreType::kShort, kParts>
                                       : pack<ScoreType::kWide, kParts>;
}

}  // namespace

void pack_strips(const PackedRows& low, const PackedRows& high, const TileShape& tile, Pairing pairing, ScoreType type,
                 std::size_t first_row, std::size_t n_strips, std::uint32_t* words) {
    const auto run = pairing == Pairing::kOneScore ? pack_of<1>(type) : pack_of<2>(type);
    run(low, high, tile, pairing, first_row, n_strips, words);
}

}  // namespace swsearch::pack
