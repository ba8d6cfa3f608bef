// Equal subjects are found by sorting: by length and hash, then by residues, then by number.

#include "index/equal_subjects.hpp"

#include <algorithm>
#include <cstring>

namespace swsearch::index {

namespace {

// Multiplications by an odd constant (2^64 divided by the golden ratio), each after an exclusive or with 8 bytes; the
// padding of subjects of equal length is equal.
std::uint64_t hash_of(const std::uint8_t* residues, std::uint32_t length) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
    std::uint64_t hash = length;
    for (std::uint64_t i = 0; i < length; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, residues + i, 8);
        hash = (hash ^ word) * kOdd;
        hash ^= hash >> 29;
    }
    hash *= kOdd;
    return hash ^ (hash >> 32);
}

struct Hashed {
    std::uint64_t hash;
    std::uint32_t number;
};

}  // namespace

std::vector<std::pair<std::uint32_t, std::uint32_t>> equal_subjects(const View<const std::uint8_t>& residues,
                                                                    const View<const std::uint64_t>& starts,
                                                                    const View<const std::uint32_t>& lengths,
                                                                    std::uint64_t part, std::uint64_t n_parts) {
    std::vector<Hashed> subjects;
    for (std::uint32_t i = 0; i < starts.length; ++i) {
        const std::uint64_t hash = hash_of(residues.data + starts[i], lengths[i]);
        if (hash % n_parts == part) {
            subjects.push_back({hash, i});
        }
    }
    // Negative, zero or positive, as memcmp.
    const auto compared = [&](const Hashed& a, const Hashed& b) {
        if (a.hash != b.hash) return a.hash < b.hash ? -1 : 1;
        if (lengths[a.number] != lengths[b.number]) return lengths[a.number] < lengths[b.number] ? -1 : 1;
        return std::memcmp(residues.data + starts[a.number], residues.data + starts[b.number], lengths[a.number]);
    };
    std::sort(subjects.begin(), subjects.end(), [&](const Hashed& a, const Hashed& b) {
        const int order = compared(a, b);
        return order < 0 || (order == 0 && a.number < b.number);
    });
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    std::size_t first = 0;
    for (std::size_t i = 1; i < subjects.size(); ++i) {
        if (compared(subjects[first], subjects[i]) == 0) {
            found.emplace_back(subjects[i].number, subjects[first].number);
        } else {
            first = i;
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace swsearch::index
