// Renames by the system call renameat2.

#include "pack/rename.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace

int rename_without_replacing(const char* from, const char* to) { return renameat2(from, to, kNoReplace); }

int exchange(const char* one, const char* other) { return renameat2(one, other, kExchange); }

}  // namespace swsearch::pack
