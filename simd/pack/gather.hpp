// Packing on disk: subjects copied from the order of the FASTA into stored order, and renames that cannot overwrite.
#pragma once

#include <cstddef>
#include <cstdint>

namespace swsearch::pack {

// Copies n sequences from a file into memory. Sequence i lies at bytes [from[i], from[i] + lengths[i]) of the file `fd`
// and goes to out + to[i]; `to` grows, and sequences do not overlap there. Bytes of out that belong to no sequence
// become `fill`. Returns 0, EIO where the file ends early, or the errno of the read that failed.
int gather(int fd, const std::uint64_t* from, const std::uint32_t* lengths, const std::uint64_t* to, std::size_t n,
           std::uint8_t* out, std::size_t out_size, std::uint8_t fill);

// renameat2(2) with RENAME_NOREPLACE, or with RENAME_EXCHANGE, which swaps two entries in one step. Returns 0 or errno;
// EINVAL or ENOSYS where the file system or the kernel does not offer it.
int rename_without_replacing(const char* from, const char* to);
int exchange(const char* one, const char* other);

}  // namespace swsearch::pack
