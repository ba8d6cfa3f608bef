// The oracle of the native tests: Gotoh's recurrence for one pair, cell by cell in 64-bit integers, written from its
// definition and independent of simd/, and the score of a path; also the random inputs that the harnesses draw.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define REQUIRE(condition, ...)                                      \
    do {                                                             \
        if (!(condition)) {                                          \
            std::fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);     \
            std::fprintf(stderr, __VA_ARGS__);                       \
            std::fprintf(stderr, "\n");                              \
            std::abort();                                            \
        }                                                            \
    } while (false)

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

// The score of a path of pairs and gaps from node (i, j); aborts if it leaves the pair or ends elsewhere than promised.
inline std::int64_t score_of_cigar(const Pair& query, const std::vector<std::uint8_t>& subject, const std::string& cigar,
                                   std::size_t i, std::size_t j, std::size_t query_end, std::size_t subject_end) {
    std::int64_t score = 0;
    for (std::size_t at = 0; at < cigar.size();) {
        const auto count = static_cast<std::size_t>(std::strtoull(cigar.c_str() + at, nullptr, 10));
        at = cigar.find_first_not_of("0123456789", at);
        const char kind = cigar[at++];
        if (kind == 'I' || kind == 'D') {
            score -= query.open + static_cast<std::int64_t>(count) * query.extend;
            (kind == 'I' ? i : j) += count;
            continue;
        }
        for (std::size_t k = 0; k < count; ++k, ++i, ++j) {
            REQUIRE(i < query.rows.size() && j < subject.size(), "the path %s leaves the pair", cigar.c_str());
            score += query.table[static_cast<std::size_t>(query.rows[i]) * 32 + (subject[j] & 31)];
        }
    }
    REQUIRE(i == query_end && j == subject_end, "the path %s leaves its ends", cigar.c_str());
    return score;
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
