// Drives simd/align without Python, to be built with sanitizers: the path of random pairs, computed with every
// instruction set, with little or much memory, is rescored from its CIGAR and compared with the score of
// plain_gotoh.hpp. Subjects are heap blocks of exactly their length.

#include <memory>
#include <string>

#include "align/alignment.hpp"
#include "common/instruction_sets.hpp"
#include "plain_gotoh.hpp"

namespace {

std::int64_t rescored(const Pair& pair, const std::vector<std::uint8_t>& subject, const swsearch::align::Path& path) {
    return score_of_cigar(pair, subject, path.cigar, path.query_start, path.subject_start, path.end.query_end,
                          path.end.subject_end);
}

}  // namespace

// Argument: the number of random pairs.
int main(int, char** arguments) {
    using namespace swsearch::align;
    Random random{0x2545F4914F6CDD1Du};
    for (int n = std::atoi(arguments[1]); n > 0; --n) {
        Pair pair;
        pair.open = random.between(0, 14);
        pair.extend = random.between(pair.open == 0, 4);
        const std::int32_t high = n % 5 == 0 ? 127 : 9;
        std::vector<std::uint8_t> identity(32);
        for (std::uint32_t i = 0; i < 32; ++i) {
            identity[i] = static_cast<std::uint8_t>(i);
        }
        // Longer queries, of which only those with high scores come near the limit of 16 bits, would take most of the
        // time.
        std::vector<std::uint8_t> codes(1 + random.below(n % 7 != 0 ? 90 : high == 127 ? 700 : 400));
        for (std::int32_t row = 0; row < 20; ++row) {
            for (std::int32_t column = 0; column < 32; ++column) {
                pair.table.push_back(static_cast<std::int8_t>(
                    column == 31 ? -128 : row == column ? random.between(1, high) : random.between(-high, 1)));
            }
        }
        for (std::uint8_t& code : codes) {
            code = static_cast<std::uint8_t>(random.below(20));
            pair.rows.push_back(code);
        }
        std::vector<std::uint8_t> subject(codes);
        for (std::uint8_t& residue : subject) {
            residue = random.below(4) == 0 ? static_cast<std::uint8_t>(random.below(24)) : residue;
        }
        for (std::uint32_t edits = random.below(5); edits > 0 && subject.size() > 8; --edits) {
            const auto position = subject.begin() + random.below(static_cast<std::uint32_t>(subject.size()) - 4);
            random.below(2) == 0 ? void(subject.erase(position, position + 3)) : void(subject.insert(position, 4, std::uint8_t{2}));
        }
        const std::size_t columns = codes.size() > 400 ? 1250 : 2500;  // more than one block of columns
        while (n % 10 == 0 && subject.size() < columns) {
            subject.push_back(random.below(3) == 0 ? codes[subject.size() % codes.size()]
                                                   : static_cast<std::uint8_t>(random.below(24)));
        }
        const std::int64_t expected = plain_score(pair, subject);
        const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[subject.size()]);
        std::copy(subject.begin(), subject.end(), exact.get());
        std::string first;
        int n_sets = 0;
        for (const swsearch::InstructionSet& set : swsearch::instruction_sets()) {
            if (!set.usable) {
                continue;
            }
            const char* const name = set.name.c_str();
            const swsearch::Profile profile{pair.rows.data(), pair.table.data(), static_cast<std::int32_t>(codes.size()),
                                            20, pair.open, pair.extend};
            const Query query(profile, codes.data(), identity.data(), kernels_of(set.name));
            // Little memory divides a path into parts and these again. A long path in too little would only divide more
            // often: in 4 KiB, the longest pair took two thirds of the time of all pairs.
            const std::size_t little = std::max(std::size_t{1} << 12, codes.size() * subject.size() / 64);
            const std::size_t much = std::size_t{1} << 24;
            // Only the forward pass differs between the sets: the first traces back with both sizes, the others with one
            // of them, in turn.
            std::vector<std::size_t> sizes{(n + n_sets) % 2 == 0 ? much : little};
            if (n_sets++ == 0) {
                sizes = {much, little};
            }
            for (const std::size_t memory : sizes) {
                swsearch::Observer observer;
                Workspace workspace{memory, observer};
                const std::vector<Path> paths = find_paths(query, exact.get(), subject.size(), 3, 1, workspace);
                const Path path = paths.empty() ? Path{} : paths.front();
                for (std::size_t k = 1; k < paths.size(); ++k) {
                    REQUIRE(paths[k].end.score <= paths[k - 1].end.score, "%s: alignment %zu scores more", name, k);
                    REQUIRE(rescored(pair, subject, paths[k]) == paths[k].end.score, "%s: %s scores otherwise", name,
                            paths[k].cigar.c_str());
                }
                REQUIRE(path.end.score == expected, "%s: %d, not %lld", name, path.end.score,
                        static_cast<long long>(expected));
                REQUIRE(rescored(pair, subject, path) == expected, "%s: %s scores otherwise", name, path.cigar.c_str());
                first = first.empty() ? path.cigar : first;
                REQUIRE(path.cigar == first, "%s with %zu bytes: another path", name, memory);
                if (paths.empty()) {
                    continue;
                }
                const std::vector<Path> known = find_path_to(query, exact.get(), path.end, 1, workspace);
                REQUIRE(known.size() == 1 && known[0].cigar == path.cigar, "%s: another path to a given end", name);
                REQUIRE(known[0].subject_start == path.subject_start && known[0].end.subject_end == path.end.subject_end,
                        "%s: the path to a given end lies elsewhere", name);
            }
        }
    }
    std::puts("all paths agree");
}
