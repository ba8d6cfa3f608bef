// Reads of sequences at given offsets of a file, and renames by the system call renameat2.

#include "pack/gather.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace swsearch::pack {

namespace {

// Values of <linux/fs.h>, which older systems hide from strict C++.
constexpr unsigned kNoReplace = 1;
constexpr unsigned kExchange = 2;

int renameat2(const char* from, const char* to, unsigned flags) {
#ifdef SYS_renameat2
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags) == 0 ? 0 : errno;
#else
    (void)from, (void)to, (void)flags;
    return ENOSYS;
#endif
}

int read_whole(int fd, std::uint8_t* out, std::size_t size, std::uint64_t offset) {
    while (size > 0) {
        const ssize_t got = pread(fd, out, size, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return EIO;
        out += got;
        size -= static_cast<std::size_t>(got);
        offset += static_cast<std::uint64_t>(got);
    }
    return 0;
}

}  // namespace

int gather(int fd, const std::uint64_t* from, const std::uint32_t* lengths, const std::uint64_t* to, std::size_t n,
           std::uint8_t* out, std::size_t out_size, std::uint8_t fill) {
    std::size_t filled = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t start = to[i];
        if (start > filled) std::memset(out + filled, fill, start - filled);
        if (const int error = read_whole(fd, out + start, lengths[i], from[i])) return error;
        filled = start + lengths[i];
    }
    if (out_size > filled) std::memset(out + filled, fill, out_size - filled);  // an empty output may be null
    return 0;
}

int rename_without_replacing(const char* from, const char* to) { return renameat2(from, to, kNoReplace); }

int exchange(const char* one, const char* other) { return renameat2(one, other, kExchange); }

}  // namespace swsearch::pack
