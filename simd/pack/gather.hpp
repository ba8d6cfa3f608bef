// Functions for packing on disk: gather() copies subjects from the order of the FASTA file to stored order, and
// rename_without_replacing() renames a file without overwriting another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace swsearch::pack {

// Copies n sequences from a file into memory. Sequence i consists of bytes [from[i], from[i] + lengths[i]) of the file
// `fd` and is written to out + to[i]; `to` is ascending, and sequences do not overlap there. Bytes of out that belong
// to no sequence are set to `fill`. Returns 0, EIO if the file ends early, or the errno of the read that failed.
int gather(int fd, const std::uint64_t* from, const std::uint32_t* lengths, const std::uint64_t* to, std::size_t n,
           std::uint8_t* out, std::size_t out_size, std::uint8_t fill);

// Calls renameat2(2) with RENAME_NOREPLACE, or with RENAME_EXCHANGE, which swaps two entries atomically. Returns 0 or
// errno; EINVAL or ENOSYS if the file system or the kernel does not support it.
int rename_without_replacing(const char* from, const char* to);
int exchange(const char* one, const char* other);

}  // namespace swsearch::pack
