// The search for repeated identifiers in bounded memory. The identifier of a header is its first word. The hashes of
// all identifiers are written to a spool file, each block's sorted into buckets by their highest bits; then each bucket
// is searched on its own. Identifiers with equal hashes are compared in the files of the headers, so the result is
// exact.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/view.hpp"

namespace swsearch::index {

constexpr std::size_t kBuckets = 256;

// An identifier's hash in two parts, and the index of its subject.
struct Entry {
    std::uint32_t high;
    std::uint32_t low;
    std::uint32_t index;
};

// Hashes the identifiers of headers, which begin at index `first`, and writes their entries to a file from entry
// `offset` on, bucket after bucket, in each by ascending index. If `kept` has elements, only the headers whose element
// is not 0 have entries. Returns the number of entries of each bucket.
std::array<std::uint32_t, kBuckets> write_identifiers(const std::uint8_t* headers,
                                                      const View<const std::uint64_t>& ends,
                                                      const View<const std::uint8_t>& kept, std::uint32_t first, int fd,
                                                      std::uint64_t offset);

// The files of some headers: the header with index i is the (i - first)-th of them.
struct HeaderFiles {
    std::uint64_t first;
    int headers_fd;
    int ends_fd;
};

// Repeated identifiers of a bucket: their number, and the smallest index of one; UINT64_MAX if there is none.
struct Repeats {
    std::uint64_t n = 0;
    std::uint64_t first = UINT64_MAX;
};

// The subjects with an index of at least `n_before` whose identifier is that of a subject with a smaller index.
// `offsets` and `counts` are the bucket's ranges of entries in the file, by ascending index; `files` are sorted by
// `first`.
Repeats find_repeats(int fd, const View<const std::uint64_t>& offsets, const View<const std::uint32_t>& counts,
                     std::uint64_t n_before, const std::vector<HeaderFiles>& files);

}  // namespace swsearch::index
