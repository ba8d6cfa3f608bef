// Hashes of identifiers, and the search of a bucket of them with a hash table.

#include "index/identifiers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string>
#include <system_error>

#include "index/runs.hpp"

namespace swsearch::index {

namespace {

bool is_space(std::uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

struct Word {
    const std::uint8_t* begin;
    std::size_t size;
};

Word first_word(const std::uint8_t* begin, const std::uint8_t* end) {
    begin = std::find_if_not(begin, end, is_space);
    return {begin, static_cast<std::size_t>(std::find_if(begin, end, is_space) - begin)};
}

std::uint64_t mixed(std::uint64_t x) {
    for (int round = 0; round < 2; ++round) {
        x ^= x >> 32;
        x *= 0xD6E8FEB86659FD93;
    }
    return x ^ x >> 32;
}

std::uint64_t hash(const Word& word) {
    std::uint64_t value = word.size;
    for (std::size_t i = 0; i < word.size; i += 8) {
        std::uint64_t part = 0;
        std::memcpy(&part, word.begin + i, std::min<std::size_t>(8, word.size - i));
        value = mixed(value ^ part) + i;
    }
    return mixed(value);
}

// Reads identifiers by index and keeps the last one, with which a series of equal identifiers is compared.
class IdentifierReader {
   public:
    explicit IdentifierReader(const std::vector<HeaderFiles>& files) : files_(files) {}

    std::string read(std::uint64_t index) {
        const auto after = std::upper_bound(files_.begin(), files_.end(), index,
                                            [](std::uint64_t i, const HeaderFiles& files) { return i < files.first; });
        if (after == files_.begin()) throw std::invalid_argument("an index is before the first header");
        const HeaderFiles& files = *std::prev(after);
        const std::uint64_t i = index - files.first;
        std::array<std::uint64_t, 2> ends{};
        if (i == 0) {
            read_at(files.ends_fd, &ends[1], sizeof(ends[1]), 0);
        } else {
            read_at(files.ends_fd, ends.data(), sizeof(ends), (i - 1) * sizeof(ends[0]));
        }
        // Files may be damaged, and 2^32 exceeds every header that has been read.
        if (ends[1] < ends[0] || ends[1] - ends[0] > UINT32_MAX) throw std::system_error(EIO, std::generic_category());
        header_.resize(ends[1] - ends[0]);
        read_at(files.headers_fd, header_.data(), header_.size(), ends[0]);
        const Word word = first_word(header_.data(), header_.data() + header_.size());
        return {word.begin, word.begin + word.size};
    }

    bool equal(std::uint64_t known, std::uint64_t other) {
        if (known != known_index_) {
            known_ = read(known);
            known_index_ = known;
        }
        return known_ == read(other);
    }

   private:
    const std::vector<HeaderFiles>& files_;
    std::vector<std::uint8_t> header_;
    std::string known_;
    std::uint64_t known_index_ = UINT64_MAX;
};

}  // namespace

std::array<std::uint32_t, kBuckets> write_identifiers(const std::uint8_t* headers,
                                                      const View<const std::uint64_t>& ends,
                                                      const View<const std::uint8_t>& kept, std::uint32_t first, int fd,
                                                      std::uint64_t offset) {
    std::vector<Entry> entries;
    entries.reserve(ends.length);
    std::array<std::uint32_t, kBuckets> counts{};
    const auto bucket_of = [](const Entry& entry) { return entry.high >> 24; };
    for (std::size_t i = 0; i < ends.length; ++i) {
        if (kept.length > 0 && kept[i] == 0) continue;
        const std::uint64_t value = hash(first_word(headers + (i == 0 ? 0 : ends[i - 1]), headers + ends[i]));
        entries.push_back({static_cast<std::uint32_t>(value >> 32), static_cast<std::uint32_t>(value),
                           first + static_cast<std::uint32_t>(i)});
        ++counts[bucket_of(entries.back())];
    }
    std::array<std::size_t, kBuckets> next{};
    std::exclusive_scan(counts.begin(), counts.end(), next.begin(), std::size_t{0});
    std::vector<Entry> sorted(entries.size());
    for (const Entry& entry : entries) sorted[next[bucket_of(entry)]++] = entry;
    write_at(fd, sorted.data(), sorted.size() * sizeof(Entry), offset * sizeof(Entry));
    return counts;
}

Repeats find_repeats(int fd, const View<const std::uint64_t>& offsets, const View<const std::uint32_t>& counts,
                     std::uint64_t n_before, const std::vector<HeaderFiles>& files) {
    const auto n = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    std::vector<Entry> entries(n);
    Entry* to = entries.data();
    for (std::size_t run = 0; run < counts.length; ++run) {
        read_at(fd, to, counts[run] * sizeof(Entry), offsets[run] * sizeof(Entry));
        to += counts[run];
    }
    // An open hash table of the distinct identifiers' entries, at most half full. Zero marks a free slot.
    std::size_t size = 16;
    while (size < 2 * n) size *= 2;
    std::vector<std::uint32_t> table(size);
    IdentifierReader reader(files);
    Repeats repeats;
    for (std::size_t i = 0; i < n; ++i) {
        const Entry& entry = entries[i];
        std::size_t slot = entry.low & (size - 1);
        for (;; slot = (slot + 1) & (size - 1)) {
            if (table[slot] == 0) {
                table[slot] = static_cast<std::uint32_t>(i + 1);
                break;
            }
            const Entry& known = entries[table[slot] - 1];
            if (known.low == entry.low && known.high == entry.high && reader.equal(known.index, entry.index)) {
                if (entry.index >= n_before) {
                    ++repeats.n;
                    repeats.first = std::min<std::uint64_t>(repeats.first, entry.index);
                }
                break;
            }
        }
    }
    return repeats;
}

}  // namespace swsearch::index
