// A fuzz target for simd/pair: bytes become costs, a table or none, two sequences, free ends, threads and a memory
// limit; every instruction set must give the score of a plain recurrence, and all must give one path with that score.

#include <string>

#include "common/instruction_sets.hpp"
#include "fuzz_bytes.hpp"
#include "pair/pair.hpp"
#include "plain_gotoh.hpp"

namespace {

using swsearch::pair::BoundaryMode;
using swsearch::pair::kQueryEnd;
using swsearch::pair::kQueryStart;
using swsearch::pair::kSubjectEnd;
using swsearch::pair::kSubjectStart;
using swsearch::pair::Scoring;

std::int64_t letter_score(const Scoring& costs, std::uint16_t a, std::uint16_t b) {
    if (costs.table != nullptr) return costs.table[a * costs.table_columns + b];
    return a == b ? costs.match : costs.mismatch;
}

// The score according to docs/design/diamond.md, cell by cell.
std::int64_t plain_pair(const std::vector<std::uint16_t>& query, const std::vector<std::uint16_t>& subject,
                        const Scoring& costs) {
    const BoundaryMode& ends = costs.boundary;
    constexpr std::int64_t never = INT64_MIN / 2;
    const auto border = [&](std::size_t k, bool free) {
        return free || k == 0 ? 0 : -(costs.gap_open + static_cast<std::int64_t>(k) * costs.gap_extend);
    };
    const std::size_t n = query.size(), m = subject.size();
    std::vector<std::int64_t> h(m + 1), f(m + 1, never);
    for (std::size_t j = 0; j <= m; ++j) h[j] = border(j, ends.free(kSubjectStart));
    std::int64_t best = ends.local ? 0 : ends.free(kQueryEnd) ? h[m] : never;
    for (std::size_t i = 1; i <= n; ++i) {
        std::int64_t diagonal = h[0];
        std::int64_t e = never;
        h[0] = border(i, ends.free(kQueryStart));
        for (std::size_t j = 1; j <= m; ++j) {
            e = std::max(h[j - 1] - costs.gap_open, e) - costs.gap_extend;
            f[j] = std::max(h[j] - costs.gap_open, f[j]) - costs.gap_extend;
            std::int64_t here = std::max({diagonal + letter_score(costs, query[i - 1], subject[j - 1]), e, f[j]});
            if (ends.local) here = std::max<std::int64_t>(here, 0);
            diagonal = h[j];
            h[j] = here;
            if (ends.local) best = std::max(best, here);
        }
        if (!ends.local && ends.free(kQueryEnd)) best = std::max(best, h[m]);
    }
    if (ends.local) return best;
    best = std::max(best, h[m]);
    for (std::size_t j = 0; ends.free(kSubjectEnd) && j <= m; ++j) best = std::max(best, h[j]);
    return best;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace swsearch::pair;
    Bytes bytes{data, size};
    const std::uint8_t flags = bytes.byte();
    const bool local = (flags & 1) != 0;
    const std::uint32_t n_letters = flags & 8 ? 1 + bytes.below(40) : 1 + bytes.below(5);
    const std::int32_t scale = flags & 16 ? 16383 : 12;
    std::int32_t open = static_cast<std::int32_t>(bytes.word() % static_cast<std::uint32_t>(scale + 1));
    const std::int32_t extend = static_cast<std::int32_t>(bytes.word() % static_cast<std::uint32_t>(scale + 1));
    if (flags & 32) open = 0;
    if (local && open + extend == 0) open = 1;
    const std::int32_t match = static_cast<std::int32_t>(bytes.word() % static_cast<std::uint32_t>(2 * scale)) - scale / 2;
    const std::int32_t mismatch = -static_cast<std::int32_t>(bytes.word() % static_cast<std::uint32_t>(scale));
    const std::size_t n_query = bytes.below(flags & 64 ? 700 : 100);
    const std::size_t n_subject = bytes.below(flags & 64 ? 700 : 100);
    const bool by_table = bytes.flag();
    const std::uint32_t drawn = bytes.below(3 * 16);
    const int threads = 1 + static_cast<int>(drawn % 3);
    const unsigned sides = (flags & 2 ? kQueryStart | kQueryEnd : 0u) | (flags & 4 ? kSubjectStart | kSubjectEnd : 0u);
    const BoundaryMode ends{local, sides ^ drawn / 3};
    const std::size_t memory = std::size_t{1} << bytes.below(22);
    std::vector<std::int8_t> table;
    for (std::size_t i = 0; by_table && i < std::size_t{n_letters} * (n_letters + 3); ++i) {
        table.push_back(static_cast<std::int8_t>(bytes.at(i * 3)));
    }
    const Scoring costs{by_table ? table.data() : nullptr, n_letters, n_letters + 3, match, mismatch, open, extend, ends};
    const std::uint32_t spread = !by_table && flags & 128 ? 0xFFF0 / n_letters : 1;  // letters that need 16 bits
    std::vector<std::uint16_t> query, subject;
    for (std::size_t i = 0; i < n_query; ++i) query.push_back(static_cast<std::uint16_t>(bytes.at(i) % n_letters * spread));
    for (std::size_t j = 0; j < n_subject; ++j) {
        subject.push_back(static_cast<std::uint16_t>(bytes.at(j + j / 29) % n_letters * spread));
    }
    const std::int64_t expected = plain_pair(query, subject, costs);
    std::string first;
    for (const swsearch::InstructionSet& set : swsearch::instruction_sets()) {
        if (!set.usable) continue;
        const char* const name = set.name.c_str();
        const Kernels& kernels = kernels_of(set.name);
        const swsearch::pair::Pair pair(PairProblem{costs, query.data(), n_query, subject.data(), n_subject});
        swsearch::Observer observer;
        const Best best = find_best(pair, kernels, {threads, observer});
        REQUIRE(best.score == expected, "%s: %d, not %lld", name, best.score, static_cast<long long>(expected));
        const PairPath path = find_path(pair, kernels, memory, {threads, observer});
        REQUIRE(path.end.score == expected && path.end.row == best.row && path.end.column == best.column, "%s: another end", name);
        std::size_t i = path.query_start, j = path.subject_start;
        std::int64_t score = 0;
        std::string text;
        for (const auto& [operation, length] : path.runs) {
            text += operation + std::to_string(length);
            if (operation == 'M') {
                for (std::size_t k = 0; k < length; ++k, ++i, ++j) score += letter_score(costs, query.at(i), subject.at(j));
            } else {
                score -= costs.gap_open + static_cast<std::int64_t>(length) * costs.gap_extend;
                (operation == 'I' ? i : j) += length;
            }
        }
        REQUIRE(i == path.end.row && j == path.end.column && score == expected, "%s: the path %s scores %lld", name, text.c_str(),
                static_cast<long long>(score));
        text += " " + std::to_string(path.query_start) + " " + std::to_string(path.subject_start);
        first = first.empty() ? text : first;
        REQUIRE(text == first, "%s: another path", name);
        swsearch::Observer stopped;
        stopped.request_stop();
        try {
            find_path(pair, kernels, memory, {threads, stopped});
        } catch (const swsearch::Stopped&) {
        }
    }
    return 0;
}
