// Subjects that may be contained are sorted by the hash of their first residues, their length, and the hash of all.
// Then each position of each subject is looked up: in a table of bits, of which few are set, three for each of them,
// and then among them.

#include "index/contained_subjects.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

namespace swsearch::index {

namespace {

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 divided by the golden ratio
constexpr std::uint32_t kWindow = 16;                // residues that are looked up first
constexpr std::uint64_t kBitsEach = 16;              // of the table, for each subject that may be contained
constexpr std::uint64_t kMostWork = 50;              // residues that are compared for each one of a subject
constexpr std::size_t kBlock = 1024;                 // subjects that a thread takes at a time

std::uint64_t window_hash(const std::uint8_t* residues) {
    std::uint64_t first, second;
    std::memcpy(&first, residues, 8);
    std::memcpy(&second, residues + 8, 8);
    const std::uint64_t mixed = (first * kOdd ^ (second + kOdd)) * (kOdd ^ first >> 32);
    return mixed ^ mixed >> 29;
}

// The hash of some residues, from that of all but the last `n`, which begin at `residues`: the value of a polynomial at
// kOdd, modulo 2^64.
std::uint64_t extended_hash(std::uint64_t hash, const std::uint8_t* residues, std::uint32_t n) {
    constexpr std::uint64_t kSquare = kOdd * kOdd;
    std::uint32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const std::uint64_t first = residues[i] * kOdd + residues[i + 1];
        const std::uint64_t second = residues[i + 2] * kOdd + residues[i + 3];
        hash = hash * (kSquare * kSquare) + first * kSquare + second;
    }
    for (; i < n; ++i) {
        hash = hash * kOdd + residues[i];
    }
    return hash;
}

struct Candidate {
    std::uint64_t window;
    std::uint64_t hash;
    std::uint32_t length;
    std::uint32_t number;

    bool operator<(const Candidate& other) const {
        if (window != other.window) return window < other.window;
        return length != other.length ? length < other.length : hash < other.hash;
    }
};

// The subjects that may be contained.
class Candidates {
   public:
    explicit Candidates(std::vector<Candidate>&& found) : sorted_(std::move(found)) {
        std::sort(sorted_.begin(), sorted_.end());
        while (std::uint64_t{1} << log_ < sorted_.size()) ++log_;
        bits_.resize(kBitsEach << log_ >> 6);
        first_.resize((std::size_t{1} << log_) + 1);
        for (const Candidate& each : sorted_) {
            bits_[word(each.window)] |= three_bits(each.window);
            ++first_[bucket(each.window) + 1];
        }
        std::partial_sum(first_.begin(), first_.end(), first_.begin());
    }

    // Calls found(number) for each candidate that may begin at `residues`, of which `n` follow: the hashes are equal.
    // Returns the number of residues that were hashed, or that found compares.
    template <class Found>
    std::uint64_t look_up(const std::uint8_t* residues, std::uint32_t n, const Found& found) const {
        const std::uint64_t window = window_hash(residues);
        const std::uint64_t bits = three_bits(window);
        if ((bits_[word(window)] & bits) != bits) return 0;
        const auto begin = sorted_.begin() + first_[bucket(window)];
        const auto end = sorted_.begin() + first_[bucket(window) + 1];
        std::uint64_t hash = 0, n_compared = 0;
        std::uint32_t length = 0;
        auto next = std::lower_bound(begin, end, Candidate{window, 0, 0, 0});
        while (next != end && next->window == window && next->length <= n) {
            hash = extended_hash(hash, residues + length, next->length - length);
            length = next->length;
            next = std::lower_bound(next, end, Candidate{window, hash, length, 0});
            for (; next != end && next->window == window && next->length == length && next->hash == hash; ++next) {
                found(next->number);
                n_compared += length;
            }
            // The first one that is longer, past other subjects of this length.
            next = std::lower_bound(next, end, Candidate{window, 0, length + 1, 0});
        }
        return length + n_compared;
    }

   private:
    // Candidates whose hashes have the same first bits lie side by side, from first_[bucket] on.
    std::uint64_t bucket(std::uint64_t window) const { return window >> (64 - log_); }
    std::uint64_t word(std::uint64_t window) const { return (window >> 18) & (bits_.size() - 1); }
    static std::uint64_t three_bits(std::uint64_t window) {
        return std::uint64_t{1} << (window & 63) | std::uint64_t{1} << (window >> 6 & 63) |
               std::uint64_t{1} << (window >> 12 & 63);
    }

    std::vector<Candidate> sorted_;
    std::vector<std::uint64_t> bits_;
    std::vector<std::uint32_t> first_;
    int log_ = 6;
};

}  // namespace

std::vector<std::pair<std::uint32_t, std::uint32_t>> contained_subjects(const Subjects& subjects,
                                                                        const std::uint8_t* chosen,
                                                                        std::uint32_t shortest, std::uint64_t part,
                                                                        std::uint64_t n_parts, const Threads& threads) {
    const std::uint32_t n = subjects.n;
    const std::uint32_t* const lengths = subjects.lengths;
    const auto residues = [&](std::uint32_t i) { return subjects.residues + subjects.starts[i]; };
    std::vector<Candidate> found;
    for (std::uint32_t i = 0; i < n; ++i) {
        if (chosen[i] == 0 || lengths[i] < std::max(shortest, kWindow)) continue;
        const std::uint8_t* const first = residues(i);
        const std::uint64_t window = window_hash(first);
        if ((window >> 32) % n_parts == part) {
            found.push_back({window, extended_hash(0, first, lengths[i]), lengths[i], i});
        }
    }
    const Candidates candidates(std::move(found));
    // Of each subject, the last one that contains it, which does not depend on the threads. None contains the first.
    std::vector<std::atomic<std::uint32_t>> last(n);
    parallel_for((n + kBlock - 1) / kBlock, threads, [&](std::size_t block, std::size_t) {
        const auto stop = static_cast<std::uint32_t>(std::min<std::size_t>((block + 1) * kBlock, n));
        for (auto whole = static_cast<std::uint32_t>(block * kBlock); whole < stop; ++whole) {
            if (chosen[whole] == 0) continue;
            const std::uint8_t* const first = residues(whole);
            std::uint64_t n_done = 0;
            for (std::uint32_t at = 0; at + kWindow <= lengths[whole] && n_done <= kMostWork * lengths[whole]; ++at) {
                // A subject begins at its own first residue, and is no longer than itself.
                const std::uint32_t most = at == 0 ? lengths[whole] - 1 : lengths[whole] - at;
                n_done += candidates.look_up(first + at, most, [&](std::uint32_t number) {
                    if (std::memcmp(first + at, residues(number), lengths[number]) != 0) return;
                    std::uint32_t known = last[number];
                    while (known < whole && !last[number].compare_exchange_weak(known, whole)) {
                    }
                });
            }
        }
    });
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t i = 0; i < n; ++i) {
        if (last[i] != 0) pairs.emplace_back(i, last[i]);
    }
    return pairs;
}

}  // namespace swsearch::index
