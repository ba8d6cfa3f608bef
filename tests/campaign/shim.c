/* A library that is preloaded before libc (LD_PRELOAD). It numbers the system calls by which a program changes or reads
 * files of one folder, and at a chosen call it kills the program, sends it a signal, or makes the call fail.
 *
 * Only calls on files below the root are counted: files opened by a path below it, or by a relative path (the program
 * under test runs in the root). The page that `campaign_arm` maps is shared with the observing process and outlives the
 * kill: it holds the number of calls at offset 0 and the name of the faulted call from byte 64 on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, CREATE = 2, RENAME = 4, SYNC = 8, UNLINK = 16, READ = 32, OPEN = 64 };
enum { COUNT, KILL_BEFORE, KILL_AFTER, TORN, FAIL, SHORT, SIGNAL };

static int armed, action, value, sticky;
static unsigned classes;
static uint64_t at;
static char root[PATH_MAX];
static size_t root_length;
static unsigned char watched[1 << 16];
static struct page {
    _Atomic uint64_t calls;
    char unused[56];
    char what[1024];
} *page;

/* libc's own `syscall`: the one below is for the program under test. */
static long (*raw)(long, ...);

static void note(const char *call, const char *path) {
    size_t n = 0;
    for (const char *p = call; *p && n < 40; p++) page->what[n++] = *p;
    page->what[n++] = ' ';
    if (path)
        for (; *path && n < sizeof page->what - 1; path++) page->what[n++] = *path;
    page->what[n] = 0;
}

/* The action for a call of this class; COUNT means that the call proceeds normally. */
static int met(unsigned class, const char *call, const char *path) {
    if (!(classes & class)) return COUNT;
    uint64_t number = atomic_fetch_add(&page->calls, 1) + 1;
    if (number == at || (sticky && at && number > at)) {
        if (number == at) note(call, path);
        if (action == KILL_BEFORE) kill(0, SIGKILL);
        if (action == SIGNAL) {
            kill(getpid(), value);
            return COUNT;
        }
        return action;
    }
    return COUNT;
}

static const char *name_of(int fd) {
    static char name[PATH_MAX];
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof name - 1);
    name[n < 0 ? 0 : n] = 0;
    return name;
}

static int is_below(int folder, const char *path) {
    if (!armed || !path) return 0;
    if (path[0] == '/') return !strncmp(path, root, root_length);
    return folder == AT_FDCWD || (folder >= 0 && folder < (int)sizeof watched && watched[folder]);
}

static int is_watched(int fd) { return armed && fd >= 0 && fd < (int)sizeof watched && watched[fd]; }

static void after(int what) {
    if (what == KILL_AFTER || what == TORN) kill(0, SIGKILL);
}

static int fails(int what) {
    if (what == FAIL) errno = value;
    return what == FAIL;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

__attribute__((constructor(101))) static void find_raw(void) { raw = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"); }

/* Handles system calls that native code makes through syscall() for lack of a libc function: renameat2 with flags. */
long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    int what = COUNT;
    if (number == SYS_renameat2 && is_below((int)a[0], (const char *)a[1])) {
        what = met(RENAME, "renameat2", (const char *)a[3]);
        if (what == FAIL) {
            errno = value;
            return -1;
        }
    }
    long n = raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (what == KILL_AFTER || what == TORN) kill(0, SIGKILL);
    return n;
}

void campaign_arm(const char *below, const char *counter, long n, int what, int with, int for_good, unsigned of) {
    int fd = (int)raw(SYS_openat, AT_FDCWD, counter, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) _exit(97);
    page = mmap(0, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    raw(SYS_close, fd);
    if (page == MAP_FAILED) _exit(98);
    strncpy(root, below, sizeof root - 1);
    root_length = strlen(root);
    at = (uint64_t)n, action = what, value = with, sticky = for_good, classes = of;
    armed = 1;
}

__attribute__((constructor)) static void begin(void) {
    const char *below = getenv("CAMPAIGN_ROOT"), *rest = getenv("CAMPAIGN_FAULT"), *counter = getenv("CAMPAIGN_PAGE");
    long n;
    int what, with, for_good;
    unsigned of;
    if (below && rest && counter && sscanf(rest, "%ld %d %d %d %u", &n, &what, &with, &for_good, &of) == 5)
        campaign_arm(below, counter, n, what, with, for_good, of);
}

static int opened(int fd, int below) {
    if (fd >= 0 && fd < (int)sizeof watched) watched[fd] = (unsigned char)below;
    return fd;
}

#define OPEN_BODY(call, folder) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    } \
    int below = is_below(folder, path), what = COUNT; \
    if (below) { \
        int writes = (flags & (O_CREAT | O_TRUNC)) != 0; \
        what = met(writes ? CREATE : OPEN, #call, path); \
        if (fails(what)) return -1; \
    }

int open(const char *path, int flags, ...) {
    OPEN_BODY(open, AT_FDCWD)
    int fd = opened((int)raw(SYS_openat, AT_FDCWD, path, flags, mode), below);
    after(what);
    return fd;
}
int open64(const char *path, int flags, ...) {
    OPEN_BODY(open, AT_FDCWD)
    int fd = opened((int)raw(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode), below);
    after(what);
    return fd;
}
int openat(int folder, const char *path, int flags, ...) {
    OPEN_BODY(openat, folder)
    int fd = opened((int)raw(SYS_openat, folder, path, flags, mode), below);
    after(what);
    return fd;
}
int openat64(int folder, const char *path, int flags, ...) {
    OPEN_BODY(openat, folder)
    int fd = opened((int)raw(SYS_openat, folder, path, flags | O_LARGEFILE, mode), below);
    after(what);
    return fd;
}
int close(int fd) {
    if (armed && fd >= 0 && fd < (int)sizeof watched) watched[fd] = 0;
    return (int)raw(SYS_close, fd);
}

#define WRITE_BODY(call, size, whole, part) \
    if (!is_watched(fd)) return whole; \
    int what = met(WRITE, #call, classes & WRITE && page->calls + 1 == at ? name_of(fd) : ""); \
    if (fails(what)) return -1; \
    if ((what == SHORT || what == TORN) && size > 1) { \
        ssize_t n = part; \
        after(what); \
        return n; \
    } \
    ssize_t n = whole; \
    after(what); \
    return n;

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    WRITE_BODY(write, size, real(fd, data, size), real(fd, data, size / 2))
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    REAL(pwrite);
    WRITE_BODY(pwrite, size, real(fd, data, size, offset), real(fd, data, size / 2, offset))
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    REAL(pwrite64);
    WRITE_BODY(pwrite, size, real(fd, data, size, offset), real(fd, data, size / 2, offset))
}
ssize_t writev(int fd, const struct iovec *parts, int n_parts) {
    REAL(writev);
    WRITE_BODY(writev, n_parts, real(fd, parts, n_parts), real(fd, parts, n_parts / 2))
}

ssize_t read(int fd, void *data, size_t size) {
    REAL(read);
    if (!is_watched(fd)) return real(fd, data, size);
    int what = met(READ, "read", classes & READ ? name_of(fd) : "");
    if (fails(what)) return -1;
    ssize_t n = real(fd, data, what == SHORT && size > 1 ? size / 2 : size);
    after(what);
    return n;
}
static ssize_t read_at(int fd, void *data, size_t size, off64_t offset) {
    if (!is_watched(fd)) return raw(SYS_pread64, fd, data, size, offset);
    int what = met(READ, "pread", classes & READ ? name_of(fd) : "");
    if (fails(what)) return -1;
    ssize_t n = raw(SYS_pread64, fd, data, size, offset);
    after(what);
    return n;
}
ssize_t pread(int fd, void *data, size_t size, off_t offset) { return read_at(fd, data, size, offset); }
ssize_t pread64(int fd, void *data, size_t size, off64_t offset) { return read_at(fd, data, size, offset); }

#define SIMPLE(watch, class, call, name, result) \
    if (!(watch)) return result; \
    int what = met(class, #call, name); \
    if (fails(what)) return -1; \
    int n = (int)(result); \
    after(what); \
    return n;

int fsync(int fd) { SIMPLE(is_watched(fd), SYNC, fsync, name_of(fd), raw(SYS_fsync, fd)) }
int fdatasync(int fd) { SIMPLE(is_watched(fd), SYNC, fdatasync, name_of(fd), raw(SYS_fdatasync, fd)) }
int ftruncate(int fd, off_t size) { SIMPLE(is_watched(fd), WRITE, ftruncate, name_of(fd), raw(SYS_ftruncate, fd, size)) }
int ftruncate64(int fd, off64_t size) { SIMPLE(is_watched(fd), WRITE, ftruncate, name_of(fd), raw(SYS_ftruncate, fd, size)) }
int rename(const char *from, const char *to) {
    SIMPLE(is_below(AT_FDCWD, from), RENAME, rename, to, raw(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0))
}
int renameat(int a, const char *from, int b, const char *to) {
    SIMPLE(is_below(a, from), RENAME, renameat, to, raw(SYS_renameat2, a, from, b, to, 0))
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    SIMPLE(is_below(a, from), RENAME, renameat2, to, raw(SYS_renameat2, a, from, b, to, flags))
}
int unlink(const char *path) { SIMPLE(is_below(AT_FDCWD, path), UNLINK, unlink, path, raw(SYS_unlinkat, AT_FDCWD, path, 0)) }
int unlinkat(int folder, const char *path, int flags) {
    SIMPLE(is_below(folder, path), UNLINK, unlinkat, path, raw(SYS_unlinkat, folder, path, flags))
}
int rmdir(const char *path) {
    SIMPLE(is_below(AT_FDCWD, path), UNLINK, rmdir, path, raw(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR))
}
int mkdir(const char *path, mode_t mode) {
    SIMPLE(is_below(AT_FDCWD, path), CREATE, mkdir, path, raw(SYS_mkdirat, AT_FDCWD, path, mode))
}
int mkdirat(int folder, const char *path, mode_t mode) {
    SIMPLE(is_below(folder, path), CREATE, mkdirat, path, raw(SYS_mkdirat, folder, path, mode))
}
