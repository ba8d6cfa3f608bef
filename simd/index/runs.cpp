// The external merge sort of subjects by length.

#include "index/runs.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace swsearch::index {

namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr unsigned kDigitBits = 11;
constexpr std::uint32_t kDigits = 1U << kDigitBits;

[[noreturn]] void fail(int error) { throw std::system_error(error, std::generic_category()); }

// A buffer in front of a file; the destructor does not write its rest.
class BufferedWriter {
   public:
    BufferedWriter(int fd, std::uint64_t offset) : fd_(fd), offset_(offset) { buffer_.reserve(kBufferBytes); }

    void write(const std::uint8_t* from, std::size_t size) {
        if (size > kBufferBytes - buffer_.size()) flush();
        if (size > kBufferBytes) {
            write_at(fd_, from, size, offset_);
            offset_ += size;
        } else {
            buffer_.insert(buffer_.end(), from, from + size);
        }
    }

    void flush() {
        write_at(fd_, buffer_.data(), buffer_.size(), offset_);
        offset_ += buffer_.size();
        buffer_.clear();
    }

   private:
    int fd_;
    std::uint64_t offset_;
    std::vector<std::uint8_t> buffer_;
};

std::size_t index_of(const View<const std::uint32_t>& distinct, std::uint32_t length) {
    const std::uint32_t* const found = std::lower_bound(distinct.begin(), distinct.end(), length);
    if (found == distinct.end() || *found != length)
        throw std::invalid_argument("a length is not in the table of lengths");
    return static_cast<std::size_t>(found - distinct.begin());
}

// Calls copy(first, stop) for ranges of pieces whose subjects are neighbours in the spools. The caller ensures that the
// pieces of a run are neighbours.
template <class Copy>
void for_neighbours(const PieceViews& pieces, const Copy& copy) {
    const std::size_t n = pieces.lengths.length;
    for (std::size_t first = 0, stop; first < n; first = stop) {
        stop = first + 1;
        while (stop < n && pieces.subjects[stop] == pieces.subjects[stop - 1] + pieces.counts[stop - 1] &&
               pieces.residues[stop] ==
                   pieces.residues[stop - 1] + std::uint64_t{pieces.counts[stop - 1]} * pieces.lengths[stop - 1]) {
            ++stop;
        }
        copy(first, stop);
    }
}

}  // namespace

void write_at(int fd, const void* from, std::size_t size, std::uint64_t offset) {
    const auto* bytes = static_cast<const std::uint8_t*>(from);
    while (size > 0) {
        const ssize_t put = pwrite(fd, bytes, size, static_cast<off_t>(offset));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail(errno);
        bytes += put;
        size -= static_cast<std::size_t>(put);
        offset += static_cast<std::uint64_t>(put);
    }
}

void read_at(int fd, void* to, std::size_t size, std::uint64_t offset) {
    auto* bytes = static_cast<std::uint8_t*>(to);
    while (size > 0) {
        const ssize_t got = pread(fd, bytes, size, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(errno);
        if (got == 0) fail(EIO);
        bytes += got;
        size -= static_cast<std::size_t>(got);
        offset += static_cast<std::uint64_t>(got);
    }
}

std::vector<std::uint32_t> order_by_length(const std::uint32_t* lengths, std::size_t n) {
    std::vector<std::uint32_t> order(n), other(n);
    std::iota(order.begin(), order.end(), 0U);
    const std::uint32_t longest = n == 0 ? 0 : *std::max_element(lengths, lengths + n);
    for (unsigned shift = 0; shift < 32 && longest >> shift > 0; shift += kDigitBits) {
        std::vector<std::size_t> next(kDigits + 1);
        const auto digit = [&](std::uint32_t i) { return lengths[i] >> shift & (kDigits - 1); };
        for (std::uint32_t i = 0; i < n; ++i) ++next[digit(i)];
        std::exclusive_scan(next.begin(), next.end(), next.begin(), std::size_t{0});
        for (const std::uint32_t i : order) other[next[digit(i)]++] = i;
        order.swap(other);
    }
    return order;
}

Groups write_run(const std::uint8_t* codes, const std::uint32_t* lengths, std::size_t n, std::uint32_t first,
                 int residues_fd, std::uint64_t offset, int order_fd) {
    std::vector<std::uint64_t> starts(n);
    std::exclusive_scan(lengths, lengths + n, starts.begin(), std::uint64_t{0});
    std::vector<std::uint32_t> order = order_by_length(lengths, n);
    Groups groups;
    BufferedWriter out(residues_fd, offset);
    for (std::uint32_t& i : order) {
        const std::uint32_t length = lengths[i];
        if (groups.lengths.empty() || groups.lengths.back() != length) {
            groups.lengths.push_back(length);
            groups.counts.push_back(0);
        }
        ++groups.counts.back();
        out.write(codes + starts[i], length);
        i += first;
    }
    out.flush();
    write_at(order_fd, order.data(), n * sizeof(order[0]), std::uint64_t{first} * sizeof(order[0]));
    return groups;
}

std::vector<std::uint32_t> run_positions(const Groups& groups, const std::vector<std::uint32_t>& order,
                                         const View<const std::uint32_t>& distinct, const View<std::uint64_t>& next) {
    constexpr std::uint32_t kNone = UINT32_MAX;
    std::vector<std::uint32_t> positions(order.size(), kNone);
    std::size_t i = 0;
    for (std::size_t g = 0; g < groups.lengths.size(); ++g) {
        std::uint64_t& position = next[index_of(distinct, groups.lengths[g])];
        for (std::uint32_t j = 0; j < groups.counts[g]; ++j, ++i) {
            if (i >= order.size() || order[i] >= order.size() || positions[order[i]] != kNone) {
                throw std::invalid_argument("order and groups do not describe a run");
            }
            positions[order[i]] = static_cast<std::uint32_t>(position++);
        }
    }
    if (i != order.size()) throw std::invalid_argument("order and groups do not describe a run");
    return positions;
}

Pieces take(const Cursors& cursors, const View<const std::uint32_t>& distinct, const View<std::uint32_t>& next_to,
            std::uint64_t most) {
    Pieces pieces;
    const std::uint32_t last_length = distinct[distinct.length - 1];
    for (std::size_t run = 0; run < cursors.next.length && most > 0; ++run) {
        std::uint64_t& g = cursors.next[run];
        while (g < cursors.stops[run] && cursors.lengths[g] <= last_length && most > 0) {
            const std::uint32_t length = cursors.lengths[g];
            const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(cursors.counts[g], most));
            std::uint32_t& to = next_to[index_of(distinct, length)];
            pieces.lengths.push_back(length);
            pieces.counts.push_back(count);
            pieces.to.push_back(to);
            pieces.residues.push_back(cursors.residues[run]);
            pieces.subjects.push_back(cursors.subjects[run]);
            to += count;
            most -= count;
            cursors.residues[run] += std::uint64_t{count} * length;
            cursors.subjects[run] += count;
            cursors.counts[g] -= count;
            if (cursors.counts[g] == 0) ++g;
        }
    }
    return pieces;
}

std::uint64_t PieceViews::n_subjects() const { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

StoredBlock gather_residues(const std::vector<int>& residues_fds, const PieceViews& pieces, std::uint64_t base,
                            std::uint8_t fill) {
    StoredBlock block;
    const std::uint64_t n = pieces.n_subjects();
    block.lengths.resize(n);
    for (std::size_t p = 0; p < pieces.lengths.length; ++p) {
        if (pieces.to[p] > n || pieces.counts[p] > n - pieces.to[p])
            throw std::invalid_argument("a piece leaves the block");
        std::fill_n(block.lengths.begin() + pieces.to[p], pieces.counts[p], pieces.lengths[p]);
    }
    // The pieces have as many subjects as the block, so they overlap if one place has none. An overlap of subjects of
    // different lengths would be written beyond a subject's room.
    if (std::find(block.lengths.begin(), block.lengths.end(), 0U) != block.lengths.end()) {
        throw std::invalid_argument("the pieces are not a block");
    }
    block.starts.resize(n);
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < n; ++i) {
        block.starts[i] = base + size;
        size += room(block.lengths[i]);
    }
    block.residues.resize(size);
    std::vector<std::uint8_t> buffer;
    for_neighbours(pieces, [&](std::size_t first, std::size_t stop) {
        const std::uint64_t place = pieces.residues[first];
        const std::uint64_t n_bytes =
            pieces.residues[stop - 1] + std::uint64_t{pieces.counts[stop - 1]} * pieces.lengths[stop - 1] - place;
        const int residues_fd = residues_fds.at(place >> kSpoolShift);
        const std::uint64_t from = place & ((std::uint64_t{1} << kSpoolShift) - 1);
        // Long subjects are read in place, so that the buffer stays small.
        const bool in_place = n_bytes > kBufferBytes;
        if (!in_place) {
            buffer.resize(n_bytes);
            read_at(residues_fd, buffer.data(), n_bytes, from);
        }
        std::uint64_t at = 0;
        for (std::size_t p = first; p < stop; ++p) {
            const std::uint32_t length = pieces.lengths[p];
            const std::uint64_t padding = room(length) - length;
            for (std::uint32_t i = 0; i < pieces.counts[p]; ++i, at += length) {
                std::uint8_t* const to = block.residues.data() + (block.starts[pieces.to[p] + i] - base);
                if (in_place) {
                    read_at(residues_fd, to, length, from + at);
                } else {
                    std::memcpy(to, buffer.data() + at, length);
                }
                std::memset(to + length, fill, padding);
            }
        }
    });
    return block;
}

std::vector<std::uint32_t> gather_values(int fd, const PieceViews& pieces) {
    std::vector<std::uint32_t> values(pieces.n_subjects()), buffer;
    for_neighbours(pieces, [&](std::size_t first, std::size_t stop) {
        const std::uint64_t from = pieces.subjects[first];
        buffer.resize(pieces.subjects[stop - 1] + pieces.counts[stop - 1] - from);
        read_at(fd, buffer.data(), buffer.size() * sizeof(buffer[0]), from * sizeof(buffer[0]));
        const std::uint32_t* next = buffer.data();
        for (std::size_t p = first; p < stop; ++p) {
            if (pieces.to[p] > values.size() || pieces.counts[p] > values.size() - pieces.to[p]) {
                throw std::invalid_argument("a piece leaves the block");
            }
            std::copy_n(next, pieces.counts[p], values.begin() + pieces.to[p]);
            next += pieces.counts[p];
        }
    });
    return values;
}

std::vector<std::uint8_t> copy_subjects(const std::vector<View<const std::uint8_t>>& sources,
                                        const std::uint16_t* which, const std::uint64_t* starts,
                                        const std::uint32_t* lengths, std::size_t n) {
    std::vector<std::uint8_t> codes;
    codes.reserve(std::accumulate(lengths, lengths + n, std::uint64_t{0}));
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t* const from = sources[which[i]].data + starts[i];
        codes.insert(codes.end(), from, from + lengths[i]);
    }
    return codes;
}

}  // namespace swsearch::index
