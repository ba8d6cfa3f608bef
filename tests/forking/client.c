/* A stand-in for the interpreter (`python`) and for the command (`swsearch`): the process is a fork of a server.

The client sends its arguments, folder, environment, open descriptors, limits, ignored signals and process group to the
server's socket, which lies in its own folder. It then closes its descriptors, passes on the signals that it receives,
and ends as the process ends: with its exit code, or by its signal. If the client is killed, the server kills the
process. If the server cannot give the process what the environment asks of an interpreter, the client executes the
interpreter itself. The format of a request is described in `request.py`. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FAILED 98
#define MOST_DESCRIPTORS 200

extern char **environ;

struct message {
    int32_t kind;  /* 'P': the process began; 'S': it ended; 'X': execute the interpreter */
    int32_t value; /* its id; its status, as from waitpid; nothing */
};

static void fail(const char *what) {
    dprintf(2, "the client of the fork server: %s: %s\n", what, strerror(errno));
    _exit(FAILED);
}

static int open_descriptors(int *found) {
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) fail("/proc/self/fd");
    int n = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        int number = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || number == dirfd(folder)) continue;
        if (n == MOST_DESCRIPTORS) fail("too many descriptors");
        found[n++] = number;
    }
    closedir(folder);
    return n;
}

static void send_all(int server, const void *data, size_t n_bytes) {
    for (const char *rest = data; n_bytes > 0;) {
        ssize_t sent = send(server, rest, n_bytes, MSG_NOSIGNAL);
        if (sent < 0) fail("send");
        rest += sent;
        n_bytes -= (size_t)sent;
    }
}

static void send_request(int server, const int *descriptors, int n_descriptors, int argc, char **argv, int is_command) {
    char *text;
    size_t n_bytes;
    FILE *request = open_memstream(&text, &n_bytes);
    char folder[PATH_MAX];
    if (getcwd(folder, sizeof folder) == NULL) fail("getcwd");
    mode_t mask = umask(0);
    fprintf(request, "%s%c%d%c%d%c", folder, 0, (int)mask, 0, (int)getpgrp(), 0);
    for (int n = 0; n < n_descriptors; n++) fprintf(request, "%d ", descriptors[n]);
    fputc(0, request);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) fprintf(request, "%d ", number);
    }
    fputc(0, request);
    for (int kind = 0; kind < RLIMIT_NLIMITS; kind++) {
        struct rlimit limit;
        if (getrlimit(kind, &limit) != 0) fail("getrlimit");
        fprintf(request, "%lld:%lld ", (long long)limit.rlim_cur, (long long)limit.rlim_max);
    }
    fprintf(request, "%c%d%c", 0, argc - 1 + 2 * is_command, 0);
    if (is_command) fprintf(request, "-m%cswsearch%c", 0, 0);
    for (int n = 1; n < argc; n++) fprintf(request, "%s%c", argv[n], 0);
    for (char **variable = environ; *variable != NULL; variable++) fprintf(request, "%s%c", *variable, 0);
    fclose(request);

    uint32_t header[2] = {(uint32_t)n_bytes, (uint32_t)n_descriptors};
    struct iovec part = {header, sizeof header};
    union {
        char bytes[CMSG_SPACE(sizeof(int) * MOST_DESCRIPTORS)];
        struct cmsghdr aligned;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_descriptors > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n_descriptors);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n_descriptors);
        memcpy(CMSG_DATA(rights), descriptors, sizeof(int) * (size_t)n_descriptors);
    }
    if (sendmsg(server, &message, MSG_NOSIGNAL) != sizeof header) fail("sendmsg");
    send_all(server, text, n_bytes);
    umask(mask);
}

static void execute_interpreter(const char *folder, int argc, char **argv, int is_command) {
    char link[PATH_MAX], interpreter[PATH_MAX];
    snprintf(link, sizeof link, "%s/interpreter", folder);
    ssize_t length = readlink(link, interpreter, sizeof interpreter - 1);
    if (length < 0) fail("interpreter");
    interpreter[length] = 0;
    char **arguments = calloc((size_t)argc + 3, sizeof *arguments);
    int n = 0;
    arguments[n++] = interpreter;
    if (is_command) {
        arguments[n++] = "-m";
        arguments[n++] = "swsearch";
    }
    for (int given = 1; given < argc; given++) arguments[n++] = argv[given];
    execv(interpreter, arguments);
    fail(interpreter);
}

static void end_like(int status) {
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    int number = WTERMSIG(status);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(number, SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    raise(number);
    _exit(FAILED);
}

int main(int argc, char **argv) {
    char *own_path = strdup((const char *)getauxval(AT_EXECFN));
    char *own_name = strdup(own_path);
    const char *folder = dirname(own_path);
    int is_command = strcmp(basename(own_name), "swsearch") == 0;

    int descriptors[MOST_DESCRIPTORS];
    int n_descriptors = open_descriptors(descriptors);

    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    int opened = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int server = fcntl(opened, F_DUPFD_CLOEXEC, 3); /* not a standard stream, even if those are closed */
    if (server < 0) fail("socket");
    if (opened != server) close(opened);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder) >= (int)sizeof address.sun_path)
        fail("the socket's path is too long");
    if (connect(server, (struct sockaddr *)&address, sizeof address) != 0) fail(address.sun_path);
    send_request(server, descriptors, n_descriptors, argc, argv, is_command);

    int signals = -1;
    pid_t process = 0;
    for (;;) {
        struct message message;
        struct pollfd events[2] = {{.fd = server, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        if (poll(events, 2, -1) < 0) fail("poll");
        if (events[0].revents != 0) {
            if (recv(server, &message, sizeof message, MSG_WAITALL) != sizeof message) {
                errno = ECONNRESET;
                fail("the server has ended");
            }
            if (message.kind == 'S') end_like(message.value);
            if (message.kind == 'X') {
                sigprocmask(SIG_SETMASK, &before, NULL);
                execute_interpreter(folder, argc, argv, is_command);
            }
            process = message.value;
            signals = signalfd(-1, &all, SFD_CLOEXEC);
            for (int n = 0; n < n_descriptors; n++) close(descriptors[n]);
        } else if (events[1].revents != 0) {
            struct signalfd_siginfo received;
            if (read(signals, &received, sizeof received) == sizeof received && received.ssi_signo != SIGCHLD)
                kill(process, (int)received.ssi_signo);
        }
    }
}
