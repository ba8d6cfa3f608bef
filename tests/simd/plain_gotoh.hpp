// The oracle of the native tests: Gotoh's recurrence for one pair, cell by cell in 64-bit integers, written from its
// definition and independent of simd/; also the random inputs that the harnesses draw.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Pair {
    std::vector<std::int32_t> rows;   // table row of each query position
    std::vector<std::int8_t> table;   // 32 scores per row
    std::int32_t open = 0;
    std::int32_t extend = 1;
};

inline std::int64_t plain_score(const Pair& query, const std::vector<std::uint8_t>& subject) {
    constexpr std::int64_t never = INT64_MIN / 2;
    const std::size_t m = query.rows.size();
    std::vector<std::int64_t> h(m + 1, 0);
    std::vector<std::int64_t> e(m + 1, never);
    std::int64_t best = 0;
    for (const std::uint8_t residue : subject) {
        std::int64_t diagonal = 0;
        std::int64_t f = never;
        for (std::size_t i = 1; i <= m; ++i) {
            const auto index = static_cast<std::size_t>(query.rows[i - 1]) * 32 + (residue & 31);
            e[i] = std::max(h[i] - query.open, e[i]) - query.extend;
            f = std::max(h[i - 1] - query.open, f) - query.extend;
            const std::int64_t here = std::max({std::int64_t{0}, diagonal + query.table[index], e[i], f});
            diagonal = h[i];
            h[i] = here;
            best = std::max(best, here);
        }
    }
    return best;
}

// A separate generator (xorshift), so that every platform draws the same numbers.
struct Random {
    std::uint64_t state;
    std::uint32_t below(std::uint32_t n) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<std::uint32_t>((state >> 20) % n);
    }
    std::int32_t between(std::int32_t low, std::int32_t high) {
        return low + static_cast<std::int32_t>(below(static_cast<std::uint32_t>(high - low + 1)));
    }
};

#define REQUIRE(condition, ...)                                      \
    do {                                                             \
        if (!(condition)) {                                          \
            std::fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);     \
            std::fprintf(stderr, __VA_ARGS__);                       \
            std::fprintf(stderr, "\n");                              \
            std::abort();                                            \
        }                                                            \
    } while (false)
