// A fuzz target for simd/msa: bytes become the rows of an alignment, of which some are offered. The query is taken
// always, and no two equal rows are if there is a limit on identity; Neff is the same for any number of threads.

#include <cmath>

#include "fuzz_bytes.hpp"
#include "msa/effective_number.hpp"
#include "msa/selection.hpp"
#include "plain_gotoh.hpp"

using namespace swsearch::msa;

namespace {

// Whether two equal rows were taken; their identity is above any limit below 100.
bool has_equal_rows(const std::vector<std::uint8_t>& codes, std::size_t n_columns, const std::vector<std::uint32_t>& order,
                    const std::vector<std::uint8_t>& taken) {
    for (std::size_t i = 1; i < order.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (!taken[i] || !taken[j]) continue;
            const auto* const a = codes.data() + order[i] * n_columns;
            if (std::equal(a, a + n_columns, codes.data() + order[j] * n_columns)) return true;
        }
    }
    return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes{data, size};
    const std::uint8_t flags = bytes.byte();
    const std::size_t n_rows = 1 + bytes.below(40), n_columns = 1 + bytes.below(flags & 1 ? 200 : 30);
    const std::uint8_t n_kinds = static_cast<std::uint8_t>(1 + bytes.below(32));
    const int max_identity = static_cast<int>(bytes.below(101)), min_identity = static_cast<int>(bytes.below(128));
    const std::int64_t at_least = flags & 2 ? bytes.below(60) : 0;
    std::vector<std::uint8_t> codes(n_rows * n_columns);
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t start = bytes.at(3 * i) % (n_columns + 1), stop = n_columns - bytes.at(5 * i) % (n_columns + 1);
        for (std::size_t c = 0; c < n_columns; ++c) {
            const std::uint8_t code = bytes.at(i * 31 + c) % 8 == 0 ? bytes.at(i + c * 7) : bytes.at(c) % 32;
            codes[i * n_columns + c] = (flags & 4) && (c < start || c >= stop) ? 31 : code;
        }
    }
    std::vector<std::uint32_t> order{bytes.below(static_cast<std::uint32_t>(n_rows))}, every;
    for (std::uint32_t row = 0; row < n_rows; ++row) {
        const auto* const first = codes.data() + row * n_columns;
        const bool has_residue = std::any_of(first, first + n_columns, [&](std::uint8_t code) { return code < n_kinds; });
        if (has_residue && bytes.at(row) % 8 != 0) order.push_back(row);
        every.push_back(row);
    }
    const Rows offered(codes.data(), order, n_columns, n_kinds);
    const std::vector<std::uint8_t> taken = select(offered, n_rows, {max_identity, min_identity, at_least});
    REQUIRE(taken.size() == order.size() && taken[0] == 1, "the query is left out");
    REQUIRE(max_identity >= 100 || offered[0].residues == 0 || !has_equal_rows(codes, n_columns, order, taken),
            "%d percent: equal rows", max_identity);
    const Rows all(codes.data(), every, n_columns, n_kinds);
    const double neff = effective_number(all, 1);
    REQUIRE(std::isfinite(neff) && neff >= 0.0 && neff <= 32.0 + 1e-9, "Neff is %g", neff);
    REQUIRE(effective_number(all, 3) == neff, "Neff depends on the threads");
    return 0;
}
