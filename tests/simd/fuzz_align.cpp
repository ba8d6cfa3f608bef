// A fuzz target for simd/align: bytes become a gap cost, a table, a query, a subject, a memory limit and ends that may
// be wrong; every instruction set must give paths with the score of plain_gotoh.hpp and stay inside its arrays.

#include <string>

#include "align/alignment.hpp"
#include "common/instruction_sets.hpp"
#include "fuzz_bytes.hpp"
#include "plain_gotoh.hpp"

using namespace swsearch::align;

namespace {

constexpr std::int32_t high_costs[] = {100, 1000, 16000, 16383};

std::int64_t path_score(const Pair& pair, const std::vector<std::uint8_t>& subject, const Path& path) {
    return score_of_cigar(pair, subject, path.cigar, path.query_start, path.subject_start, path.end.query_end,
                          path.end.subject_end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes{data, size};
    Pair pair;
    pair.open = bytes.byte() % 32;
    pair.extend = bytes.byte() % 8;
    const std::uint8_t flags = bytes.byte();
    if (flags & 1) pair.open = high_costs[bytes.byte() % 4];
    if (flags & 2) pair.extend = high_costs[bytes.byte() % 4];
    pair.extend += pair.open + pair.extend == 0;
    const std::size_t n_rows = 1 + bytes.below(30);
    const std::size_t n_query = bytes.below(flags & 4 ? 600 : 90);  // none is a query as well
    const std::size_t n_subject = bytes.below(flags & 8 ? 2400 : 200);
    const std::size_t most = 1 + bytes.below(4);
    const std::int32_t floor = 1 + static_cast<std::int32_t>(bytes.below(64));
    const std::size_t memory = std::size_t{1} << bytes.below(25);
    const End claimed{static_cast<std::int32_t>(bytes.word() & 0x7FFFFFFF) >> bytes.below(31), bytes.below(n_query + 1),
                      bytes.below(n_subject + 1)};
    const std::int32_t high = flags & 16 ? 127 : 8;
    for (std::size_t i = 0; i < n_rows * 32; ++i) {
        const std::size_t row = i / 32, column = i % 32;
        const auto drawn = static_cast<std::int32_t>(bytes.at(i * 5) % (2 * high)) - high;
        pair.table.push_back(static_cast<std::int8_t>(column == 31 ? -128 : row == column ? std::max(1, drawn) : drawn));
    }
    std::vector<std::uint8_t> codes, identity(32), subject;
    for (std::size_t i = 0; i < 32; ++i) identity[i] = static_cast<std::uint8_t>(i);
    for (std::size_t i = 0; i < n_query; ++i) {
        pair.rows.push_back(static_cast<std::int32_t>(bytes.at(i) % n_rows));
        codes.push_back(static_cast<std::uint8_t>(bytes.at(i) % n_rows));
    }
    for (std::size_t j = 0; j < n_subject; ++j) {
        subject.push_back(bytes.at(j + j / 31) % 3 == 0 ? bytes.at(7 * j) : static_cast<std::uint8_t>(bytes.at(j) % n_rows));
    }
    const std::int64_t plain = plain_score(pair, subject);
    const std::int64_t expected = plain >= floor ? plain : 0;
    std::string first;
    const swsearch::Profile profile{pair.rows.data(), pair.table.data(), static_cast<std::int32_t>(n_query),
                                    static_cast<std::int32_t>(n_rows), pair.open, pair.extend};
    for (const swsearch::InstructionSet& set : swsearch::instruction_sets()) {
        if (!set.usable) continue;
        const char* const name = set.name.c_str();
        const Query query(profile, codes.data(), identity.data(), kernels_of(set.name));
        swsearch::Observer observer;
        Workspace workspace{memory, observer};
        const std::vector<Path> paths = find_paths(query, subject.data(), n_subject, most, floor, workspace);
        REQUIRE((paths.empty() ? 0 : paths[0].end.score) == expected, "%s: %d, not %lld", name,
                paths.empty() ? 0 : paths[0].end.score, static_cast<long long>(expected));
        std::string all;
        for (const Path& path : paths) {
            REQUIRE(path.end.score >= floor && path_score(pair, subject, path) == path.end.score, "%s: %s scores otherwise",
                    name, path.cigar.c_str());
            all += path.cigar + ";" + std::to_string(path.subject_start) + ";";
        }
        first = first.empty() ? all : first;
        REQUIRE(all == first, "%s: other paths", name);
        if (!paths.empty()) {
            const std::vector<Path> known = find_path_to(query, subject.data(), paths[0].end, floor, workspace);
            REQUIRE(known.size() == 1 && known[0].cigar == paths[0].cigar, "%s: another path to the end", name);
        }
        // An end that does not belong to a path: any result must stay inside the pair.
        for (const Path& path : find_path_to(query, subject.data(), claimed, floor, workspace)) {
            REQUIRE(path_score(pair, subject, path) == path.end.score, "%s: a path to a wrong end scores otherwise", name);
        }
        swsearch::Observer stopped;
        Workspace interrupted{memory, stopped};
        stopped.request_stop();
        try {
            find_paths(query, subject.data(), n_subject, most, floor, interrupted);
        } catch (const swsearch::Stopped&) {
        }
    }
    return 0;
}
