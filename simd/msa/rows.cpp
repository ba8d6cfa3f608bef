#include "msa/rows.hpp"

#include <cstring>

namespace swsearch::msa {
namespace {

constexpr std::size_t kBlock = Rows::kBlock;

// Bytes that compilers keep in one or two vector registers; a comparison gives 255 for true.
using Bytes = std::uint8_t __attribute__((vector_size(16)));
constexpr std::size_t kVectors = kBlock / sizeof(Bytes);

std::size_t padded(std::size_t n_columns) { return (n_columns + kBlock - 1) / kBlock * kBlock; }

Bytes load(const std::uint8_t* from) {
    Bytes bytes;
    std::memcpy(&bytes, from, sizeof(bytes));
    return bytes;
}

// The sum of the bytes, each of which is at most kVectors.
std::size_t sum(const Bytes& bytes) {
    std::uint64_t halves[2];
    std::memcpy(halves, &bytes, sizeof(bytes));
    return ((halves[0] + halves[1]) * 0x0101010101010101u) >> 56;
}

}  // namespace

Rows::Rows(const std::uint8_t* codes, const std::vector<std::uint32_t>& order, std::size_t n_columns,
           std::uint8_t n_kinds)
    : n_columns_(n_columns), codes_(order.size() * padded(n_columns), kNoResidue), rows_(order.size()) {
    for (std::size_t i = 0; i < order.size(); ++i) {
        std::uint8_t* const row = codes_.data() + i * padded(n_columns);
        Row& known = rows_[i];
        known = {row, 0, 0, 0};
        for (std::size_t column = 0; column < n_columns; ++column) {
            const std::uint8_t code = codes[order[i] * n_columns + column];
            if (code >= n_kinds) continue;
            row[column] = code;
            if (known.residues++ == 0) known.first = column;
            known.last = column + 1;
        }
    }
}

Agreement compare(const Row& a, const Row& b, std::size_t first, std::size_t last, std::size_t enough) {
    Agreement found;
    for (std::size_t start = first / kBlock * kBlock; start < last; start += kBlock) {
        Bytes common{}, different{};
        for (std::size_t i = 0; i < kVectors; ++i) {
            const Bytes x = load(a.codes + start + i * sizeof(Bytes));
            const Bytes y = load(b.codes + start + i * sizeof(Bytes));
            const Bytes both = reinterpret_cast<Bytes>((x | y) < Rows::kNoResidue);
            common -= both;
            different -= both & reinterpret_cast<Bytes>(x != y);
        }
        found.common += sum(common);
        found.different += sum(different);
        if (found.different >= enough) break;
    }
    return found;
}

}  // namespace swsearch::msa
