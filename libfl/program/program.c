/*
 * A program of the user as a child process (program.h): search in PATH, stderr, memory limit,
 * termination and exit status. One call at a time; only fl_program_reap() waits. fork() and exec()
 * are in spawn.c.
 */
#include "libfl/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/base/buf.h"
#include "libfl/base/str.h"
#include "libfl/program/lines.h"
#include "libfl/program/program_impl.h"

/* Interval of the check of the group's memory, which reads /proc for every process. */
#define MEMORY_MS 500

struct fl_program {
    char *name;
    pid_t pid;
    int err_fd; /* -1: closed */
    bool reaped;
    char tail[FL_PROGRAM_TAIL];
    uint64_t tail_bytes; /* bytes written in total */
    struct fl_lines lines;
    uint64_t now_ms; /* of the last fl_program_look() */
    bool ending;
    uint64_t term_ms;        /* when SIGTERM was sent */
    uint64_t resident_limit; /* 0: none */
    uint64_t looked_ms;      /* last check of the memory; 0: not yet */
    uint64_t over_bytes;     /* resident memory when it was killed for the limit; 0: it was not */
};

/* 0, or an errno why the file cannot be executed. */
static int program_exec_errno(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || access(path, X_OK) != 0) {
        return errno;
    }
    return S_ISDIR(st.st_mode) ? EISDIR : 0;
}

int fl_program_find(const char *name, char *out, size_t size, struct fl_err *err)
{
    const char *path = getenv("PATH");
    char candidate[PATH_MAX];
    bool seen = false;
    int why;

    if (name[0] == '\0') {
        return fl_err_set(err, FL_ENOENT, "expected the name of a program, found an empty one");
    }
    if (strchr(name, '/') != NULL) {
        why = program_exec_errno(name);
        return why == 0 ? fl_str_copy(out, size, name)
                        : fl_err_set(err, why == EISDIR ? FL_EPERM : fl_err_from_errno(why),
                                     "cannot run '%.200s': %s", name, strerror(why));
    }
    path = path != NULL ? path : "/usr/local/bin:/usr/bin:/bin";
    while (*path != '\0') {
        size_t len = strcspn(path, ":");
        int n =
            snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)len, len > 0 ? path : ".", name);

        why = n > 0 && (size_t)n < sizeof(candidate) ? program_exec_errno(candidate) : ENOENT;
        if (why == 0) {
            return fl_str_copy(out, size, candidate);
        }
        seen = seen || why == EACCES;
        path += len + (path[len] == ':' ? 1 : 0);
    }
    return fl_err_set(err, seen ? FL_EPERM : FL_ENOENT,
                      seen ? "'%.200s' in PATH may not be executed"
                           : "cannot find the program '%.200s' in PATH",
                      name);
}

int fl_program_start(const struct fl_program_conf *conf, struct fl_program **ret,
                     struct fl_err *err)
{
    struct fl_program *p = calloc(1, sizeof(*p));
    char path[PATH_MAX];
    int rv;

    if (p == NULL || (p->name = fl_str_dup(conf->argv[0])) == NULL) {
        free(p);
        return fl_err_set(err, FL_ENOMEM, "starting '%.200s': out of memory", conf->argv[0]);
    }
    fl_lines_init(&p->lines, conf->log);
    p->resident_limit = conf->memory_of == FL_PROGRAM_RESIDENT_MEMORY ? conf->memory_bytes : 0;
    rv = fl_program_find(conf->argv[0], path, sizeof(path), err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__program_spawn(conf, path, &p->pid, &p->err_fd, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = p;
    return FL_OK;
fail:
    free(p->name);
    free(p);
    return rv;
}

/* --- stderr --- */

int fl_program_stderr(const struct fl_program *p)
{
    return p->err_fd;
}

/* Reads the available data. */
static void program_read_stderr(struct fl_program *p)
{
    char block[4096];
    ssize_t n = 1;
    ssize_t i;

    while (p->err_fd >= 0 && n > 0) {
        n = read(p->err_fd, block, sizeof(block));
        for (i = 0; i < n; i++) {
            p->tail[p->tail_bytes++ % FL_PROGRAM_TAIL] = block[i];
        }
        if (n > 0) {
            fl_lines_take(&p->lines, block, (size_t)n, p->now_ms);
        }
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            (void)close(p->err_fd);
            p->err_fd = -1;
        }
    }
}

size_t fl_program_tail(const struct fl_program *p, char out[FL_PROGRAM_TAIL])
{
    size_t len = p->tail_bytes < FL_PROGRAM_TAIL ? (size_t)p->tail_bytes : FL_PROGRAM_TAIL;
    uint64_t first = p->tail_bytes - len;
    size_t i;

    for (i = 0; i < len; i++) {
        out[i] = p->tail[(first + i) % FL_PROGRAM_TAIL];
    }
    return len;
}

/* Puts the text on one line, in place: each line end with its indentation becomes a space. Returns
   its length. */
static size_t program_join_lines(char *text, size_t len)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c > ' ' && c != 0x7f) {
            text[n++] = text[i];
        } else if (n > 0 && text[n - 1] != ' ') {
            text[n++] = ' ';
        }
    }
    return n > 0 && text[n - 1] == ' ' ? n - 1 : n;
}

/* The start of the last `show` bytes, moved to the start of a line if one is among them. */
static size_t program_last_lines(const char *text, size_t len, size_t show)
{
    size_t first = len > show ? len - show : 0;
    const char *end =
        first > 0 && text[first - 1] != '\n' ? memchr(text + first, '\n', len - first) : NULL;
    size_t line = end != NULL ? (size_t)(end - text) + 1 : first;

    return line < len && strspn(text + line, " \t\r\n") < len - line ? line : first;
}

void fl_program_add_tail(const struct fl_program *p, struct fl_err *err)
{
    static const char link[] = "; its stderr ends: ";
    char text[FL_PROGRAM_TAIL + 1];
    size_t len = fl_program_tail(p, text);
    size_t room;
    size_t used;
    size_t first;

    if (err == NULL) {
        return;
    }
    used = strlen(err->msg);
    room = sizeof(err->msg) - used;
    while (len > 0 && ((unsigned char)text[len - 1] <= ' ')) {
        len--;
    }
    if (len == 0 || room <= sizeof(link)) {
        return;
    }
    text[len] = '\0';
    room -= sizeof(link);
    /* Only the end is kept, as it has the message of an exception. */
    first =
        program_last_lines(text, len, room < FL_PROGRAM_TAIL_SHOWN ? room : FL_PROGRAM_TAIL_SHOWN);
    len = program_join_lines(text + first, len - first);
    (void)memcpy(err->msg + used, link, sizeof(link) - 1);
    used += sizeof(link) - 1;
    (void)memcpy(err->msg + used, text + first, len);
    err->msg[used + len] = '\0';
}

/* --- exit --- */

bool fl_program_look(struct fl_program *p, uint64_t now_ms)
{
    siginfo_t info = {0};
    uint64_t bytes;

    if (p->reaped) {
        return true;
    }
    p->now_ms = now_ms;
    program_read_stderr(p);
    if (p->resident_limit != 0 && !p->ending &&
        (p->looked_ms == 0 || now_ms - p->looked_ms >= MEMORY_MS))
    {
        p->looked_ms = now_ms;
        bytes = fl__program_resident(p->pid);
        if (bytes > p->resident_limit) {
            p->over_bytes = bytes;
            fl_program_end(p, now_ms);
        }
    }
    if (p->ending && now_ms - p->term_ms >= FL_PROGRAM_GRACE_MS) {
        (void)kill(-p->pid, SIGKILL);
    }
    /* Waits without reaping: until the leader is reaped, its group number is not reused. */
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == p->pid;
}

void fl_program_end(struct fl_program *p, uint64_t now_ms)
{
    if (!p->ending && !p->reaped) {
        p->ending = true;
        p->term_ms = now_ms;
        (void)kill(-p->pid, SIGTERM);
    }
}

bool fl_program_ending(const struct fl_program *p)
{
    return p->ending;
}

/* The exit status in the format of waitpid(). */
static int program_reap(struct fl_program *p)
{
    siginfo_t info;
    int status = 0;

    while (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    (void)kill(-p->pid, SIGKILL); /* Kills the remaining processes of the group. */
    program_read_stderr(p);
    fl_lines_end(&p->lines, p->now_ms);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
    }
    p->reaped = true;
    return status;
}

int fl_program_reap(struct fl_program *p, struct fl_err *err)
{
    char has[32];
    char may[32];
    int status;

    FL_REQUIRE(!p->reaped);
    status = program_reap(p);
    if (p->over_bytes > 0) {
        return fl_err_set(err, FL_ELIMIT,
                          "'%.100s' was killed, out of memory: it used %s, over its limit of %s",
                          p->name, fl_str_bytes(has, sizeof(has), p->over_bytes),
                          fl_str_bytes(may, sizeof(may), p->resident_limit));
    }
    if (WIFSIGNALED(status)) {
        return fl_err_set(err, FL_EIO, "'%.100s' was killed by signal %d (%s)", p->name,
                          WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return fl_err_set(err, FL_EIO, "'%.100s' ended with exit code %d", p->name,
                          WEXITSTATUS(status));
    }
    return FL_OK;
}

void fl_program_free(struct fl_program *p)
{
    if (p == NULL) {
        return;
    }
    if (!p->reaped) {
        (void)kill(-p->pid, SIGKILL);
        (void)program_reap(p);
    }
    if (p->err_fd >= 0) {
        (void)close(p->err_fd);
    }
    free(p->name);
    free(p);
}
