// Drives simd/score without Python, to be built with sanitizers: every kernel of every instruction set that runs here,
// and the search around them with threads and floors, against plain_gotoh.hpp. Every array is a heap block of exactly
// the size promised, so that a read or write beyond it is seen. Exits with 0, or aborts at the first difference.

#include <cstring>
#include <memory>

#include "plain_gotoh.hpp"
#include "score/search.hpp"

using namespace swsearch::score;

namespace {

struct Case {
    Pair pair;
    std::vector<std::vector<std::uint8_t>> subjects;
    std::vector<std::int64_t> expected;
};

Query query_of(const Pair& pair, std::int32_t floor) {
    return {pair.rows.data(), pair.table.data(), static_cast<std::int32_t>(pair.rows.size()),
            static_cast<std::int32_t>(pair.table.size() / 32), pair.open, pair.extend, floor};
}

// Scores near the borders of bytes and words come from queries whose letters score much or from long copies of them.
Case random_case(Random& random, std::uint32_t longest_query, std::uint32_t longest_subject, std::uint32_t n) {
    static const std::int32_t opens[] = {0, 0, 1, 5, 11, 40, 120, 300, 16383};
    static const std::int32_t extends[] = {0, 1, 1, 2, 7, 100, 16383};
    Case made;
    made.pair.open = opens[random.below(9)];
    made.pair.extend = extends[random.below(7)];
    made.pair.extend += made.pair.open + made.pair.extend == 0;
    const std::uint32_t n_rows = random.below(4) == 0 ? 33 + random.below(20) : 1 + random.below(24);
    const std::int32_t high = random.below(3) == 0 ? 127 : random.between(1, 20);
    for (std::uint32_t i = 0; i < n_rows * 32; ++i) {
        made.pair.table.push_back(static_cast<std::int8_t>(i % 32 == 31 ? -128 : random.between(-high, high)));
    }
    std::vector<std::uint8_t> good;
    for (std::uint32_t i = 1 + random.below(longest_query); i > 0; --i) {
        const auto row = static_cast<std::int32_t>(random.below(n_rows));
        made.pair.rows.push_back(row);
        const std::int8_t* scores = made.pair.table.data() + row * 32;
        good.push_back(static_cast<std::uint8_t>(std::max_element(scores, scores + 31) - scores));
    }
    for (std::uint32_t s = 0; s < n; ++s) {
        std::vector<std::uint8_t> subject(random.below(longest_subject + 1));
        for (std::uint8_t& residue : subject) {
            residue = static_cast<std::uint8_t>(random.below(31) | (random.below(2) << 7));
        }
        if (random.below(3) == 0 && !subject.empty()) {
            const std::size_t count = 1 + random.below(static_cast<std::uint32_t>(std::min(good.size(), subject.size())));
            std::copy_n(good.begin(), count, subject.begin());
        }
        made.expected.push_back(plain_score(made.pair, subject));
        made.subjects.push_back(subject);
    }
    return made;
}

template <class Scratch>
void with_scratch(std::size_t bytes, const Scratch& use) {
    auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    use(memory);
    std::free(memory);
}

void check_kernels(const Kernels& kernels, const Case& made) {
    const std::int32_t stop = 0;
    std::uint64_t cells = 0;
    const Control control{&stop, &cells};
    const Query query = query_of(made.pair, 0);
    for (int width = 0; width < kWidths; ++width) {
        if (query.open + query.extend > kernels.max_gap[width]) {
            continue;
        }
        const std::int64_t largest = kernels.largest[width];
        const auto lanes = static_cast<std::size_t>(kernels.lanes[width]);
        for (std::size_t first = 0; first < made.subjects.size(); first += lanes) {
            std::vector<Subject> batch;
            std::uint32_t longest = 0;
            for (std::size_t i = first; i < std::min(first + lanes, made.subjects.size()); ++i) {
                const auto length = static_cast<std::uint32_t>(made.subjects[i].size());
                batch.push_back({made.subjects[i].data(), length});
                longest = std::max(longest, length);
            }
            std::vector<std::int32_t> scores(batch.size());
            const auto run = [&](ManyKernel kernel) {
                with_scratch(kernels.many_scratch[width](query, longest), [&](std::uint8_t* scratch) {
                    kernel(query, batch.data(), static_cast<int>(batch.size()), scratch, scores.data(), control);
                });
            };
            run(kernels.many[width]);
            for (std::size_t i = 0; i < batch.size(); ++i) {
                const std::int64_t expected = made.expected[first + i];
                REQUIRE(scores[i] == (expected >= largest ? kSaturated : expected), "%s width %d: %d, not %lld",
                        kernels.name, width, scores[i], static_cast<long long>(expected));
            }
            if (width == kBits8) {
                run(kernels.bound);
                for (std::size_t i = 0; i < batch.size(); ++i) {
                    const std::int64_t expected = made.expected[first + i];
                    const std::int64_t slack = query.open + kColumnsPerPass * query.extend;
                    REQUIRE(scores[i] == kSaturated ? expected + slack >= largest
                                                    : scores[i] >= expected && scores[i] <= std::max(expected, slack) + slack,
                            "%s bound: %d for %lld", kernels.name, scores[i], static_cast<long long>(expected));
                }
            }
        }
        for (std::size_t i = 0; i < std::min<std::size_t>(made.subjects.size(), 12); ++i) {
            std::int32_t score = 0;
            const Subject subject{made.subjects[i].data(), static_cast<std::uint32_t>(made.subjects[i].size())};
            with_scratch(kernels.one_scratch[width](query), [&](std::uint8_t* scratch) {
                kernels.one[width](query, subject, scratch, &score, control);
            });
            REQUIRE(score == (made.expected[i] >= largest ? kSaturated : made.expected[i]),
                    "%s one, width %d: %d, not %lld", kernels.name, width, score,
                    static_cast<long long>(made.expected[i]));
        }
    }
}

void check_search(const Kernels& kernels, const Case& made, std::int32_t floor, int n_threads) {
    std::vector<std::uint64_t> starts;
    std::vector<std::uint32_t> lengths;
    std::vector<std::uint8_t> residues;
    for (const std::vector<std::uint8_t>& subject : made.subjects) {
        starts.push_back(residues.size());
        lengths.push_back(static_cast<std::uint32_t>(subject.size()));
        residues.insert(residues.end(), subject.begin(), subject.end());
    }
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[residues.size()]);
    std::copy(residues.begin(), residues.end(), exact.get());
    const auto n = static_cast<std::uint32_t>(lengths.size());
    std::vector<std::int32_t> scores(2 * lengths.size());
    const std::vector<Query> queries{query_of(made.pair, floor), query_of(made.pair, 0)};
    std::uint64_t reported = 0;
    score_subjects(queries, {exact.get(), starts.data(), lengths.data(), n}, scores.data(), kernels, n_threads,
                   [&](std::uint64_t cells) { reported += cells; });
    REQUIRE(reported == 2 * residues.size() * made.pair.rows.size(), "%s: progress does not add up", kernels.name);
    for (std::uint32_t i = 0; i < n; ++i) {
        REQUIRE(scores[n + i] == made.expected[i], "%s search: %d, not %lld", kernels.name, scores[n + i],
                static_cast<long long>(made.expected[i]));
        REQUIRE(scores[i] == made.expected[i] || (made.expected[i] < floor && scores[i] < floor),
                "%s search, floor %d: %d, not %lld", kernels.name, floor, scores[i],
                static_cast<long long>(made.expected[i]));
    }
}

}  // namespace

// Argument: how many random cases.
int main(int, char** arguments) {
    Random random{0x9E3779B97F4A7C15u};
    const int n_cases = std::atoi(arguments[1]);
    for (int i = 0; i < n_cases; ++i) {
        const bool blocks = i == 0;  // one case whose query is longer than a block of rows
        const Case small = random_case(random, blocks ? 2300 : 90, blocks ? 40 : 120, blocks ? 6 : 150);
        // Enough subjects for bounds, and one that is long enough to go in windows.
        Case large = random_case(random, 12, 24, 2200);
        large.subjects.emplace_back(9000, std::uint8_t{3});
        large.expected.push_back(plain_score(large.pair, large.subjects.back()));
        for (const InstructionSet& set : instruction_sets()) {
            if (set.usable) {
                check_kernels(*set.kernels, small);
                check_search(*set.kernels, large, random.between(1, 300), 1 + i % 3);
            }
        }
    }
    std::puts("all scores agree");
}
