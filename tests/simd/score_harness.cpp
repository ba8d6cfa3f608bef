// Drives simd/score without Python, to be built with sanitizers: every kernel of every usable instruction set, and the
// search that calls them with threads and floors, compared with plain_gotoh.hpp. Every array is a heap block of exactly
// the promised size, so that a read or write beyond it is detected. Exits with 0, or aborts at the first difference.

#include <cstring>
#include <memory>

#include "common/instruction_sets.hpp"
#include "plain_gotoh.hpp"
#include "score/group.hpp"
#include "score/search.hpp"

using namespace swsearch::score;

namespace {

// Queries with the same gap costs, and the score of each against each subject.
struct Case {
    std::vector<Pair> pairs;
    std::vector<std::vector<std::uint8_t>> subjects;
    std::vector<std::vector<std::int64_t>> expected;
};

Query query_of(const Pair& pair) {
    return {pair.rows.data(), pair.table.data(), static_cast<std::int32_t>(pair.rows.size()),
            static_cast<std::int32_t>(pair.table.size() / 32), pair.open, pair.extend};
}

void add_subject(Case& made, const std::vector<std::uint8_t>& subject) {
    for (std::size_t q = 0; q < made.pairs.size(); ++q) {
        made.expected[q].push_back(plain_score(made.pairs[q], subject));
    }
    made.subjects.push_back(subject);
}

// Adds the rows of a table, some of which also occur in other tables of the same call.
void add_table(Pair& pair, Random& random, std::uint32_t n_rows, std::int32_t high, const std::vector<std::int8_t>& known) {
    for (std::uint32_t row = 0; row < n_rows; ++row) {
        const std::uint32_t old = random.below(40);
        for (std::uint32_t code = 0; code < 32; ++code) {
            const std::int32_t drawn = random.between(-high, high);
            pair.table.push_back(old * 32 < known.size() ? known[old * 32 + code]
                                                         : static_cast<std::int8_t>(code == 31 ? -128 : drawn));
        }
    }
}

// Scores near the limits of bytes and words come from queries of high-scoring letters, or from long copies of them.
Case random_case(Random& random, std::uint32_t longest_query, std::uint32_t longest_subject, std::uint32_t n) {
    static const std::int32_t opens[] = {0, 0, 1, 5, 11, 40, 120, 300, 16383};
    static const std::int32_t extends[] = {0, 1, 1, 2, 7, 100, 16383};
    Case made;
    const std::int32_t open = opens[random.below(9)];
    std::int32_t extend = extends[random.below(7)];
    extend += open + extend == 0;
    const std::int32_t high = random.below(3) == 0 ? 127 : random.between(1, 26);
    std::vector<std::uint8_t> good;
    for (std::uint32_t q = 1 + random.below(3); q > 0; --q) {
        const std::uint32_t n_rows = random.below(4) == 0 ? 33 + random.below(20) : 1 + random.below(24);
        Pair pair;
        pair.open = open;
        pair.extend = extend;
        add_table(pair, random, n_rows, high, made.pairs.empty() ? std::vector<std::int8_t>{} : made.pairs.back().table);
        for (std::uint32_t i = 1 + random.below(longest_query); i > 0; --i) {
            const auto row = static_cast<std::int32_t>(random.below(n_rows));
            pair.rows.push_back(row);
            const std::int8_t* scores = pair.table.data() + row * 32;
            good.push_back(static_cast<std::uint8_t>(std::max_element(scores, scores + 31) - scores));
        }
        made.pairs.push_back(pair);
    }
    made.expected.resize(made.pairs.size());
    for (std::uint32_t s = 0; s < n; ++s) {
        std::vector<std::uint8_t> subject(random.below(longest_subject + 1));
        for (std::uint8_t& residue : subject) {
            residue = static_cast<std::uint8_t>(random.below(31) | (random.below(2) << 7));
        }
        if (random.below(3) == 0 && !subject.empty()) {
            const auto first = random.below(static_cast<std::uint32_t>(good.size()));
            const std::size_t count =
                1 + random.below(static_cast<std::uint32_t>(std::min(good.size() - first, subject.size())));
            std::copy_n(good.begin() + first, count, subject.begin());
        }
        add_subject(made, subject);
    }
    return made;
}

template <class Scratch>
void with_scratch(std::size_t bytes, const Scratch& use) {
    auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    use(memory);
    std::free(memory);
}

void check_many(const char* name, const Kernels& kernels, int width, const Group& group, const Case& made) {
    const std::int32_t stop = 0;
    std::uint64_t cells = 0;
    const Control control{&stop, &cells};
    const std::int64_t largest = kernels.largest_many[width];
    const auto lanes = static_cast<std::size_t>(kernels.lanes[width]);
    for (std::size_t first = 0; first < made.subjects.size(); first += lanes) {
        std::vector<Subject> batch;
        std::uint32_t longest = 0;
        for (std::size_t i = first; i < std::min(first + lanes, made.subjects.size()); ++i) {
            const auto length = static_cast<std::uint32_t>(made.subjects[i].size());
            batch.push_back({made.subjects[i].data(), length});
            longest = std::max(longest, length);
        }
        std::vector<std::int32_t> scores(batch.size() * group.queries.size());
        const auto run = [&](ManyKernel kernel) {
            const Query* const queries = group.queries.data();
            with_scratch(kernels.many_scratch[width](queries, group.size(), longest), [&](std::uint8_t* scratch) {
                kernel(queries, group.size(), batch.data(), static_cast<int>(batch.size()), scratch, scores.data(), control);
            });
        };
        const auto each = [&](const auto& check) {
            for (std::size_t q = 0; q < group.queries.size(); ++q) {
                for (std::size_t i = 0; i < batch.size(); ++i) {
                    check(scores[q * batch.size() + i], made.expected[group.numbers[q]][first + i]);
                }
            }
        };
        run(kernels.many[width]);
        each([&](std::int32_t score, std::int64_t expected) {
            REQUIRE(score == (expected >= largest ? kSaturated : expected), "%s width %d: %d, not %lld", name,
                    width, score, static_cast<long long>(expected));
        });
        if (width == kBits8) {
            const std::int64_t slack = made.pairs[0].open + kColumnsPerPass * made.pairs[0].extend;
            for (int kernel = 0; kernel < kBoundKernels; ++kernel) {
                const bool exact_cells = kBandSizes[kernel] == 1;
                const std::int64_t largest_bound = kernels.largest_bound[kernel];
                run(kernels.bounds[kernel]);
                each([&](std::int32_t score, std::int64_t expected) {
                    REQUIRE(score == kSaturated ? !exact_cells || expected + slack >= largest_bound
                                                : score < largest_bound && score >= expected &&
                                                      (!exact_cells || score <= std::max(expected, slack) + slack),
                            "%s bound of %d rows: %d for %lld", name, kBandSizes[kernel], score,
                            static_cast<long long>(expected));
                });
            }
        }
    }
}

void check_one(const char* name, const Kernels& kernels, int width, const Query& query, const std::vector<std::int64_t>& expected,
               const Case& made) {
    const std::int32_t stop = 0;
    std::uint64_t cells = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(made.subjects.size(), 12); ++i) {
        std::int32_t score = 0;
        const Subject subject{made.subjects[i].data(), static_cast<std::uint32_t>(made.subjects[i].size())};
        with_scratch(kernels.one_scratch[width](query), [&](std::uint8_t* scratch) {
            kernels.one[width](query, subject, scratch, &score, {&stop, &cells});
        });
        REQUIRE(score == (expected[i] >= kernels.largest[width] ? kSaturated : expected[i]),
                "%s one, width %d: %d, not %lld", name, width, score, static_cast<long long>(expected[i]));
    }
}

// Runs every kernel, with the queries in groups as in a search.
void check_kernels(const char* name, const Kernels& kernels, const Case& made) {
    std::vector<Query> queries;
    for (const Pair& pair : made.pairs) {
        queries.push_back(query_of(pair));
    }
    const std::vector<Group> groups = group_queries(queries, std::vector<int>(queries.size(), 0));
    for (int width = 0; width < kWidths; ++width) {
        if (queries[0].open + queries[0].extend > kernels.max_gap[width]) {
            continue;
        }
        for (const Group& group : groups) {
            check_many(name, kernels, width, group, made);
        }
        for (std::size_t q = 0; q < queries.size(); ++q) {
            check_one(name, kernels, width, queries[q], made.expected[q], made);
        }
    }
}

// Runs a search with each query twice, once with floors, which are higher for longer subjects.
void check_search(const char* name, const Kernels& kernels, const Case& made, std::int32_t floor, int band_rows,
                  int n_threads) {
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
    std::vector<Query> queries;
    std::vector<Floors::Step> steps{{0, {}}, {11, {}}, {16, {}}};
    std::uint64_t cells = 0;
    for (const Pair& pair : made.pairs) {
        for (const bool floored : {true, false}) {
            queries.push_back(query_of(pair));
            for (Floors::Step& step : steps) {
                step.floors.push_back(floored ? floor + static_cast<std::int32_t>(step.shortest) : 0);
            }
        }
        cells += 2 * residues.size() * pair.rows.size();
    }
    std::vector<std::int32_t> scores(queries.size() * lengths.size());
    swsearch::Observer observer;
    score_subjects(queries, Floors(steps), {exact.get(), starts.data(), lengths.data(), n}, scores.data(), kernels, band_rows,
                   {n_threads, observer, [] {}});
    REQUIRE(observer.cells_done() == cells, "%s: progress does not add up", name);
    for (std::size_t q = 0; q < queries.size(); ++q) {
        for (std::uint32_t i = 0; i < n; ++i) {
            const std::int32_t score = scores[q * n + i];
            const std::int64_t expected = made.expected[q / 2][i];
            const std::int32_t lowest = q % 2 == 1 ? 0 : floor + (lengths[i] < 11 ? 0 : lengths[i] < 16 ? 11 : 16);
            REQUIRE(score == expected || (expected < lowest && score < lowest), "%s search, floor %d: %d, not %lld", name,
                    lowest, score, static_cast<long long>(expected));
        }
    }
}

bool fit_wrapping(const Case& made) {
    return std::all_of(made.pairs.begin(), made.pairs.end(), [](const Pair& pair) { return fits_wrapping(query_of(pair)); });
}

}  // namespace

// Argument: the number of random cases.
int main(int, char** arguments) {
    Random random{0x9E3779B97F4A7C15u};
    const int n_cases = std::atoi(arguments[1]);
    const int band_rows[] = {kChooseBand, 6, 4, 1, kNoBand};
    for (int i = 0; i < n_cases; ++i) {
        const bool blocks = i == 0;  // one case whose query is longer than a block of rows
        const Case small = random_case(random, blocks ? 2300 : 90, blocks ? 40 : 120, blocks ? 6 : 150);
        // Enough subjects for bounds, and one that is long enough to be scored in windows.
        Case large = random_case(random, 12, 24, 2200);
        add_subject(large, std::vector<std::uint8_t>(9000, 3));
        for (const swsearch::InstructionSet& set : swsearch::instruction_sets()) {
            if (set.usable) {
                const Kernels& kernels = kernels_of(set.name);
                const std::string one_port = set.name + ", one port";
                const std::string wrapping = set.name + ", wrapping";
                const std::int32_t floor = random.between(1, 300);
                check_kernels(set.name.c_str(), kernels, small);
                check_search(set.name.c_str(), kernels, large, floor, band_rows[i % 5], 1 + i % 3);
                if (kernels.one_port != nullptr) {
                    check_kernels(one_port.c_str(), *kernels.one_port, small);
                }
                if (kernels.wrapping != nullptr && fit_wrapping(small)) {
                    check_kernels(wrapping.c_str(), *kernels.wrapping, small);
                }
                if (kernels.wrapping != nullptr && fit_wrapping(large)) {
                    check_search(wrapping.c_str(), *kernels.wrapping, large, floor, band_rows[i % 5], 1 + i % 3);
                }
            }
        }
    }
    std::puts("all scores agree");
}
