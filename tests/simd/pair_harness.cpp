// Drives simd/pair without Python, to be built with sanitizers: local scores of random pairs in every instruction set,
// with scores from comparison or from a table, below and above the range of 8-bit lanes, compared with plain_gotoh.hpp;
// global paths of the same pairs, compared between instruction sets, threads and memory limits.

#include <memory>
#include <string>

#include "common/instruction_sets.hpp"
#include "pair/pair.hpp"
#include "plain_gotoh.hpp"

namespace {

using swsearch::pair::PairPath;

std::string text_of(const PairPath& path) {
    std::string text = std::to_string(path.end.score);
    for (const auto& [operation, length] : path.runs) text += " " + std::to_string(length) + operation;
    return text;
}

// Arrays of exactly the length of a sequence, so that the sanitizer detects a read beyond it.
std::unique_ptr<std::uint16_t[]> exact(const std::vector<std::uint16_t>& letters) {
    std::unique_ptr<std::uint16_t[]> copy(new std::uint16_t[letters.size()]);
    std::copy(letters.begin(), letters.end(), copy.get());
    return copy;
}

}  // namespace

// Argument: the number of random pairs.
int main(int, char** arguments) {
    using namespace swsearch::pair;
    ::Random random{0x9E3779B97F4A7C15u};
    for (int n = std::atoi(arguments[1]); n > 0; --n) {
        const std::uint32_t n_letters = n % 4 == 0 ? 20 : 4;
        const std::int32_t match = random.between(1, n % 3 == 0 ? 90 : 3);
        const std::int32_t mismatch = -random.between(1, 4);
        const std::int32_t open = random.between(0, 12);
        const std::int32_t extend = random.between(1, 3);
        std::vector<std::uint16_t> query(1 + random.below(n % 5 == 0 ? 1'500 : 600));
        for (std::uint16_t& letter : query) letter = static_cast<std::uint16_t>(random.below(n_letters));
        std::vector<std::uint16_t> subject(query);
        for (std::uint16_t& letter : subject) {
            if (random.below(n % 2 == 0 ? 2 : 6) == 0) letter = static_cast<std::uint16_t>(random.below(n_letters));
        }
        subject.resize(1 + random.below(static_cast<std::uint32_t>(2 * subject.size())));

        ::Pair plain;
        plain.open = open;
        plain.extend = extend;
        for (std::uint32_t row = 0; row < n_letters; ++row) {
            for (std::uint32_t column = 0; column < 32; ++column) {
                plain.table.push_back(static_cast<std::int8_t>(row == column ? match : mismatch));
            }
        }
        plain.rows.assign(query.begin(), query.end());
        const std::int64_t expected = plain_score(plain, {subject.begin(), subject.end()});

        const auto rows = exact(query);
        const auto columns = exact(subject);
        std::string path;
        for (const swsearch::InstructionSet& set : swsearch::instruction_sets()) {
            if (!set.usable) continue;
            const char* const name = set.name.c_str();
            const Kernels& kernels = kernels_of(set.name);
            for (const bool by_table : {false, true}) {
                const auto problem = [&](bool is_local) {
                    const std::int8_t* const table = by_table ? plain.table.data() : nullptr;
                    return PairProblem{{table, n_letters, 32, match, mismatch, open, extend, {is_local, 0}},
                                       rows.get(), query.size(), columns.get(), subject.size()};
                };
                for (const int threads : {1, 3}) {
                    swsearch::Observer observer;
                    const swsearch::pair::Pair local(problem(true));
                    const Best best = find_best(local, kernels, {threads, observer});
                    REQUIRE(best.score == expected, "%s, %d threads: %d, not %lld", name, threads, best.score,
                            static_cast<long long>(expected));
                    const swsearch::pair::Pair global(problem(false));
                    const std::string found = text_of(find_path(global, kernels, random.below(40'000), {threads, observer}));
                    path = path.empty() ? found : path;
                    REQUIRE(found == path, "%s, %d threads: another path", name, threads);
                }
            }
        }
    }
    std::puts("all pairs agree");
}
