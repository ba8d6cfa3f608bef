// The packing of profile.hpp. The layout of a strip has the axes plane, column, unit of a plane, and word of a unit; a
// unit contains four consecutive words of a lane, and the units of a column are ordered by chunk of words, then lane.

#include "pack/profile.hpp"

#include <array>
#include <vector>

#include "common/profile.hpp"

namespace swsearch::pack {

namespace {

constexpr std::size_t kUnitWords = 4;
constexpr std::size_t kPlaneUnits = 16;
constexpr std::int8_t kPadScore = -128;

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

// The rows of a query as a kernel adds them: `columns` encoded scores for each row of the table, and a row of padding.
template <ScoreType kType>
class EncodedRows {
public:
    EncodedRows(const PackedRows& query, std::size_t columns)
        : query_(query), columns_(columns), scores_((query.n_table_rows + 1) * columns, encoded<kType>(kPadScore)) {
        for (std::size_t row = 0; row < query.n_table_rows; ++row) {
            for (std::size_t column = 1; column < columns; ++column) {
                scores_[row * columns + column] = encoded<kType>(query.table[row * kCodes + column - 1]);
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

template <ScoreType kType>
void pack(const PackedRows& low_rows, const PackedRows& high_rows, const TileShape& tile, Halves halves,
          std::size_t first_row, std::size_t n_strips, std::uint32_t* words) {
    const EncodedRows<kType> low(low_rows, tile.columns);
    const EncodedRows<kType> high(high_rows, tile.columns);
    const std::vector<std::uint32_t> nothing(tile.columns, 0);
    const bool is_single = halves == Halves::kSingle;
    const std::size_t n_chunks = tile.planes() * kPlaneUnits / tile.slots();
    const std::size_t lane_rows = tile.rows(halves) / tile.group;
    const std::size_t below = halves == Halves::kRowBlocks ? tile.words : 0;
    for (std::size_t strip = 0; strip < n_strips; ++strip) {
        for (std::size_t slot = 0; slot < tile.slots(); ++slot) {
            const std::size_t lane_row = first_row + strip * tile.rows(halves) + slot % tile.group * lane_rows;
            for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
                std::array<const std::uint32_t*, kUnitWords> low_scores;
                std::array<const std::uint32_t*, kUnitWords> high_scores;
                for (std::size_t i = 0; i < kUnitWords; ++i) {
                    const std::size_t k = chunk * kUnitWords + i;
                    low_scores[i] = k < tile.words ? low[lane_row + k] : nothing.data();
                    high_scores[i] = k < tile.words && !is_single ? high[lane_row + below + k] : nothing.data();
                }
                const std::size_t unit = chunk * tile.slots() + slot;
                std::uint32_t* word =
                    words + (unit / kPlaneUnits * tile.columns * kPlaneUnits + unit % kPlaneUnits) * kUnitWords;
                for (std::size_t column = 0; column < tile.columns; ++column) {
                    for (std::size_t i = 0; i < kUnitWords; ++i) {
                        word[i] = high_scores[i][column] << 16 | low_scores[i][column];
                    }
                    word += kPlaneUnits * kUnitWords;
                }
            }
        }
        words += tile.strip_words();
    }
}

}  // namespace

void pack_strips(const PackedRows& low, const PackedRows& high, const TileShape& tile, Halves halves, ScoreType type,
                 std::size_t first_row, std::size_t n_strips, std::uint32_t* words) {
    const auto run = type == ScoreType::kFast    ? pack<ScoreType::kFast>
                     : type == ScoreType::kShort ? pack<ScoreType::kShort>
                                                 : pack<ScoreType::kWide>;
    run(low, high, tile, halves, first_row, n_strips, words);
}

}  // namespace swsearch::pack
