/*
 * One run of the user's program: own process group, limits, time, and the tail of what
 * it wrote to stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/train/command_impl.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"

/* From SIGTERM to SIGKILL: long enough to write a checkpoint. */
#define TERM_GRACE_MS 2000
/* How often cancelling is looked at; the program's end wakes us at once. */
#define TICK_MS 50

extern char **environ;

struct tail {
    char data[FL__TAIL_SIZE];
    uint64_t n; /* bytes ever written */
};

struct running {
    pid_t pid;
    int err_fd;
    struct tail tail;
    uint64_t started_ms;
    uint64_t term_ms; /* when SIGTERM went out; 0: not */
    int why;          /* FL_OK, FL_ETIMEOUT, FL_ECANCELED */
};

int fl__program_find(const char *name, char *out, size_t size, struct fl_err *err)
{
    const char *path = getenv("PATH");
    char candidate[PATH_MAX];
    bool seen = false;

    if (strchr(name, '/') != NULL) {
        if (access(name, X_OK) != 0) {
            return fl_err_set(err, fl_err_from_errno(errno), "cannot run '%.200s': %s", name,
                              strerror(errno));
        }
        return fl_str_copy(out, size, name);
    }
    path = path != NULL ? path : "/usr/local/bin:/usr/bin:/bin";
    while (*path != '\0') {
        size_t len = strcspn(path, ":");
        int n =
            snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)len, len > 0 ? path : ".", name);

        if (n > 0 && (size_t)n < sizeof(candidate) && fl_fs_exists(candidate)) {
            if (access(candidate, X_OK) == 0) {
                return fl_str_copy(out, size, candidate);
            }
            seen = true;
        }
        path += len + (path[len] == ':' ? 1 : 0);
    }
    return fl_err_set(err, seen ? FL_EPERM : FL_ENOENT,
                      seen ? "'%.200s' in PATH may not be executed"
                           : "cannot find the program '%.200s' in PATH",
                      name);
}

/* Between fork() and exec() only calls that are safe there: no allocation, no locks. */
FL_NORETURN static void child_main(const struct fl__child *child, const char *program, char **argv,
                                   char **envp, int err_fd, int status_fd)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    struct rlimit limit = {.rlim_cur = child->memory_bytes, .rlim_max = child->memory_bytes};
    static const int signals[] = {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT,
                                  SIGHUP,  SIGCHLD, SIGUSR1, SIGUSR2};
    sigset_t none;
    size_t i;
    int null_fd;
    int code;

    (void)setpgid(0, 0);
    /* The program does not outlive a client that was killed. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        (void)sigaction(signals[i], &plain, NULL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    null_fd = open("/dev/null", O_RDONLY);
    /* stdout goes where the client's own messages go; stderr to us. */
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
        dup2(err_fd, STDERR_FILENO) < 0)
    {
        goto fail;
    }
    /* Sockets and databases of the client are none of the program's business. Marked, not
       closed: status_fd must live until exec. */
    (void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    if (child->memory_bytes > 0 && setrlimit(RLIMIT_AS, &limit) != 0) {
        goto fail;
    }
    if (child->descriptors > 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        child->descriptors < limit.rlim_max)
    {
        limit.rlim_cur = child->descriptors;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    (void)execve(program, argv, envp);
fail:
    code = errno;
    while (write(status_fd, &code, sizeof(code)) < 0 && errno == EINTR) {
    }
    _exit(127);
}

static char **with_task(const char *task_file)
{
    size_t size = strlen(task_file) + sizeof("FL_TASK=");
    size_t n = 0;
    char **envp;
    size_t i;
    size_t j = 0;

    while (environ[n] != NULL) {
        n++;
    }
    envp = calloc(n + 2, sizeof(*envp));
    if (envp == NULL) {
        return NULL;
    }
    envp[0] = malloc(size);
    if (envp[0] == NULL) {
        free(envp);
        return NULL;
    }
    (void)snprintf(envp[j++], size, "FL_TASK=%s", task_file);
    for (i = 0; i < n; i++) {
        if (strncmp(environ[i], "FL_TASK=", 8) != 0) {
            envp[j++] = environ[i];
        }
    }
    return envp;
}

/* The child says why it could not become the program; silence is success. */
static int exec_error(int status_fd)
{
    int code = 0;
    ssize_t n;

    do {
        n = read(status_fd, &code, sizeof(code));
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(code) ? code : 0;
}

static int start(const struct fl__child *child, struct running *r, struct fl_err *err)
{
    int err_pipe[2] = {-1, -1};
    int status_pipe[2] = {-1, -1};
    char program[PATH_MAX];
    char **argv = NULL;
    char **envp = NULL;
    size_t n = 0;
    int code = 0;
    int rv = fl__program_find(child->argv[0], program, sizeof(program), err);

    if (rv != FL_OK) {
        return rv;
    }
    while (child->argv[n] != NULL) {
        n++;
    }
    argv = calloc(n + 1, sizeof(*argv));
    envp = with_task(child->task_file);
    if (argv == NULL || envp == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "starting '%s': out of memory", program);
        goto out;
    }
    /* execve() does not write to its arguments; its type only lacks the const. */
    (void)memcpy(argv, child->argv, n * sizeof(*argv));
    if (pipe2(err_pipe, O_CLOEXEC) != 0 || pipe2(status_pipe, O_CLOEXEC) != 0) {
        rv = fl_err_set(err, fl_err_from_errno(errno), "starting '%s': %s", program,
                        strerror(errno));
        goto out;
    }
    r->started_ms = fl_clock_ms();
    r->pid = fork();
    if (r->pid == 0) {
        child_main(child, program, argv, envp, err_pipe[1], status_pipe[1]);
    }
    if (r->pid < 0) {
        rv = fl_err_set(err, fl_err_from_errno(errno), "starting '%s': %s", program,
                        strerror(errno));
        goto out;
    }
    (void)setpgid(r->pid, r->pid); /* Both sides do it: whoever comes first. */
    (void)close(status_pipe[1]);
    status_pipe[1] = -1;
    code = exec_error(status_pipe[0]);
    if (code != 0) {
        (void)waitpid(r->pid, NULL, 0);
        rv = fl_err_set(err, fl_err_from_errno(code), "cannot run '%s': %s", program,
                        strerror(code));
        goto out;
    }
    r->err_fd = err_pipe[0];
    err_pipe[0] = -1;
    (void)fcntl(r->err_fd, F_SETFL, O_NONBLOCK);
out:
    for (n = 0; n < 2; n++) {
        if (err_pipe[n] >= 0) {
            (void)close(err_pipe[n]);
        }
        if (status_pipe[n] >= 0) {
            (void)close(status_pipe[n]);
        }
    }
    if (envp != NULL) {
        free(envp[0]);
    }
    free(envp);
    free(argv);
    return rv;
}

/* Reads what is there. False when the other end is closed. */
static bool read_tail(struct running *r)
{
    char block[4096];
    ssize_t n;
    ssize_t i;

    for (;;) {
        n = read(r->err_fd, block, sizeof(block));
        if (n <= 0) {
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        }
        for (i = 0; i < n; i++) {
            r->tail.data[r->tail.n++ % FL__TAIL_SIZE] = block[i];
        }
    }
}

/* The tail in order. Returns its length. */
static size_t tail_bytes(const struct tail *tail, char out[FL__TAIL_SIZE])
{
    size_t len = tail->n < FL__TAIL_SIZE ? (size_t)tail->n : FL__TAIL_SIZE;
    uint64_t first = tail->n - len;
    size_t i;

    for (i = 0; i < len; i++) {
        out[i] = tail->data[(first + i) % FL__TAIL_SIZE];
    }
    return len;
}

/* Put the end of stderr behind the message of `err`, as much as it has room for, on one line. */
static void add_tail(struct fl_err *err, const char *text, size_t len)
{
    static const char link[] = "; its stderr ends: ";
    size_t used = strlen(err->msg);
    size_t room = sizeof(err->msg) - used;
    size_t show = FL__TAIL_SHOWN;
    size_t i;

    while (len > 0 && ((unsigned char)text[len - 1] <= ' ')) {
        len--;
    }
    if (len == 0 || room <= sizeof(link)) {
        return;
    }
    show = show < len ? show : len;
    show = show < room - sizeof(link) ? show : room - sizeof(link);
    (void)memcpy(err->msg + used, link, sizeof(link) - 1);
    used += sizeof(link) - 1;
    /* The end is what matters: that is where the message of an exception is. */
    for (i = len - show; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        err->msg[used++] = c < 0x20 || c == 0x7f ? ' ' : text[i];
    }
    err->msg[used] = '\0';
}

static void end_group(struct running *r, int why)
{
    if (r->term_ms == 0) {
        r->why = why;
        r->term_ms = fl_clock_ms();
        (void)kill(-r->pid, SIGTERM);
    } else if (fl_clock_ms() - r->term_ms >= TERM_GRACE_MS) {
        (void)kill(-r->pid, SIGKILL);
    }
}

/* Waits without reaping: as long as the leader is not reaped, its group number is ours. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

static int wait_for(const struct fl__child *child, struct running *r)
{
    bool open = true;
    int status = 0;

    while (!has_ended(r->pid)) {
        struct pollfd p = {.fd = open ? r->err_fd : -1, .events = POLLIN};

        (void)poll(&p, 1, TICK_MS);
        open = open && read_tail(r);
        if (r->term_ms != 0) {
            end_group(r, r->why);
        } else if (child->cancel != NULL && atomic_load(child->cancel)) {
            end_group(r, FL_ECANCELED);
        } else if (child->time_limit_ms > 0 &&
                   fl_clock_ms() - r->started_ms >= child->time_limit_ms) {
            end_group(r, FL_ETIMEOUT);
        }
    }
    (void)kill(-r->pid, SIGKILL); /* What the program left behind. */
    (void)read_tail(r);
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

int fl__child_run(const struct fl__child *child, struct fl_err *err)
{
    struct running r = {.pid = -1, .err_fd = -1};
    char tail[FL__TAIL_SIZE];
    size_t tail_len;
    int status;
    int rv = start(child, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    status = wait_for(child, &r);
    (void)close(r.err_fd);
    if (r.why == FL_ECANCELED) {
        return fl_err_set(err, FL_ECANCELED, "training was cancelled and '%.100s' ended",
                          child->argv[0]);
    }
    if (r.why == FL_ETIMEOUT) {
        rv = fl_err_set(err, FL_ETIMEOUT,
                        "'%.100s' was ended after its time limit of %" PRIu64 " ms%s",
                        child->argv[0], child->time_limit_ms, child->limit_note);
    } else if (WIFSIGNALED(status)) {
        rv = fl_err_set(err, FL_EIO, "'%.100s' was ended by signal %d (%s)", child->argv[0],
                        WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        rv = fl_err_set(err, FL_EIO, "'%.100s' ended with exit code %d", child->argv[0],
                        WEXITSTATUS(status));
    }
    if (rv != FL_OK) {
        tail_len = tail_bytes(&r.tail, tail);
        if (err != NULL) {
            add_tail(err, tail, tail_len);
        }
        if (fl_fs_replace(child->stderr_file, tail, tail_len, false, NULL) != FL_OK) {
            /* A convenience: the error says the same, only shorter. */
            return rv;
        }
    }
    return rv;
}
