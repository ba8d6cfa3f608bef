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

std::vector<std::pair<std::uint32_t, std::uint32_t>> equal_subjects(const Subjects& subjects, std::uint64_t part,
                                                                    std::uint64_t n_parts) {
    const std::uint32_t* const lengths = subjects.lengths;
    const auto residues = [&](std::uint32_t i) { return subjects.residues + subjects.starts[i]; };
    std::vector<Hashed> hashed;
    for (std::uint32_t i = 0; i < subjects.n; ++i) {
        const std::uint64_t hash = hash_of(residues(i), lengths[i]);
        if (hash % n_parts == part) {
            hashed.push_back({hash, i});
        }
    }
    // Negative, zero or positive, as memcmp.
    const auto compared = [&](const Hashed& a, const Hashed& b) {
        if (a.hash != b.hash) return a.hash < b.hash ? -1 : 1;
        if (lengths[a.number] != lengths[b.number]) return lengths[a.number] < lengths[b.number] ? -1 : 1;
        return std::memcmp(residues(a.number), residues(b.number), lengths[a.number]);
    };
    std::sort(hashed.begin(), hashed.end(), [&](const Hashed& a, const Hashed& b) {
        const int order = compared(a, b);
        return order < 0 || (order == 0 && a.number < b.number);
    });
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    std::size_t first = 0;
    for (std::size_t i = 1; i < hashed.size(); ++i) {
        if (compared(hashed[first], hashed[i]) == 0) {
            found.emplace_back(hashed[i].number, hashed[first].number);
        } else {
            first = i;
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace swsearch::index
