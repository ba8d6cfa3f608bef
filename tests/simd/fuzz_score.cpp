// A libFuzzer target for simd/score: bytes become a gap cost, a table, a query, subjects, threads and whether the
// search is cancelled; for any bytes, every instruction set must give the scores of plain_gotoh.hpp and stay inside its
// arrays.
//
//     clang++ -fsanitize=fuzzer,address … (tests/simd/test_native.py builds and runs it)

#include <array>
#include <cstddef>

#include "common/instruction_sets.hpp"
#include "plain_gotoh.hpp"
#include "score/search.hpp"

using namespace swsearch::score;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 8) {
        return 0;
    }
    Pair pair;
    const bool narrow = (data[1] & 2) != 0;  // fits kernels whose additions wrap
    pair.open = narrow ? data[0] % 18 : data[0] + (data[1] & 1 ? 16000 : 0);
    pair.extend = narrow ? data[2] % 4 : data[2];
    pair.extend += pair.open + pair.extend == 0;
    const std::size_t n_rows = 1 + data[3] % 40;
    const std::size_t n_query = 1 + data[4] % 100;
    const std::int32_t floor = data[5] | (data[6] & 1) << 8;
    const std::size_t copies = data[6] & 2 ? 40 : 1;  // enough subjects for bounds
    const int n_threads = 1 + (data[6] >> 2) % 3;
    const int band_rows = std::array<int, 3>{kChooseBand, 4, 6}[data[6] / 86];
    const bool cancels = (data[6] & 0x60) == 0x60;
    const std::size_t mean = 1 + data[7];
    data += 8;
    size -= 8;
    const auto byte = [&](std::size_t i) { return size == 0 ? std::uint8_t{0} : data[i % size]; };
    for (std::size_t i = 0; i < n_rows * 32; ++i) {
        // Code 31 is padding, not a letter: profiles score it -128.
        const int highest = narrow ? kWrappingHighest : 127;
        const int score = std::min<int>(static_cast<std::int8_t>(byte(i * 7)), highest);
        pair.table.push_back(static_cast<std::int8_t>(i % 32 == 31 ? -128 : score));
    }
    for (std::size_t i = 0; i < n_query; ++i) {
        pair.rows.push_back(static_cast<std::int32_t>(byte(i) % n_rows));
    }
    std::vector<std::uint64_t> starts;
    std::vector<std::uint32_t> lengths;
    std::vector<std::int64_t> expected;
    for (std::size_t first = 0; first < size;) {
        const std::size_t length = std::min(size - first, data[first] % (2 * mean));
        const std::int64_t score = plain_score(pair, {data + first, data + first + length});
        for (std::size_t i = 0; i < copies; ++i) {
            starts.push_back(first);
            lengths.push_back(static_cast<std::uint32_t>(length));
            expected.push_back(score);
        }
        first += length + 1;
    }
    const Query query{pair.rows.data(), pair.table.data(), static_cast<std::int32_t>(n_query),
                      static_cast<std::int32_t>(n_rows), pair.open, pair.extend};
    for (const swsearch::InstructionSet& set : swsearch::instruction_sets()) {
        if (!set.usable) {
            continue;
        }
        std::vector<std::int32_t> scores(lengths.size()), both(2 * lengths.size());
        const swsearch::Subjects subjects{data, starts.data(), lengths.data(), static_cast<std::uint32_t>(lengths.size())};
        const Kernels& all = kernels_of(set.name);
        const Kernels& kernels = all.wrapping != nullptr && fits_wrapping(query) ? *all.wrapping : all;
        swsearch::Observer observer;
        if (cancels) {
            bool ended = std::all_of(lengths.begin(), lengths.end(), [](std::uint32_t n) { return n == 0; });
            observer.request_stop();
            try {
                score_subjects({query}, Floors(std::vector<Floors::Step>{{0, {floor}}}), subjects, scores.data(), kernels, band_rows, {n_threads, observer});
            } catch (const swsearch::Stopped&) {
                ended = true;
            }
            REQUIRE(ended, "%s: a search that was told to stop went on", set.name.c_str());
            continue;
        }
        score_subjects({query, query}, Floors(std::vector<Floors::Step>{{0, {floor, floor}}}), subjects, both.data(), kernels, band_rows, {n_threads, observer});
        REQUIRE(std::equal(both.begin(), both.begin() + scores.size(), both.begin() + scores.size()), "%s: a query twice",
                set.name.c_str());
        std::copy_n(both.begin(), scores.size(), scores.begin());
        for (std::size_t i = 0; i < scores.size(); ++i) {
            REQUIRE(scores[i] == expected[i] || (expected[i] < floor && scores[i] < floor), "%s: %d, not %lld",
                    set.name.c_str(), scores[i], static_cast<long long>(expected[i]));
        }
    }
    return 0;
}
