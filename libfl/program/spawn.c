/* From fork() to exec(). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/program/program_impl.h"

extern char **environ;

/* What the child needs, made before fork(): behind it nothing may be allocated. */
struct child {
    const struct fl_program_conf *conf;
    const char *path;
    char **argv, **envp;
    int err_fd, status_fd;
    int inherited[FL_PROGRAM_INHERITED];
    pid_t parent;
};

/* `fd` at a number from `above` on. */
static int lift(int *fd, int above)
{
    int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, above);

    if (lifted < 0) {
        return -1;
    }
    *fd = lifted;
    return 0;
}

/*
 * Descriptors stand where the program looks for them, and no others are open to it: sockets and
 * databases of ours are none of its business. They are marked, not closed, since status_fd
 * must live until exec.
 */
static int place_descriptors(struct child *c)
{
    const int above = 3 + (int)c->conf->n_inherited;
    int null_fd;
    size_t i;

    /* First out of the way of each other. */
    if (lift(&c->status_fd, above) != 0 || lift(&c->err_fd, above) != 0) {
        return -1;
    }
    for (i = 0; i < c->conf->n_inherited; i++) {
        if (lift(&c->inherited[i], above) != 0) {
            return -1;
        }
    }
    null_fd = open("/dev/null", O_RDONLY);
    if (null_fd < 0) {
        return -1;
    }
    /* stdout goes where the client's own messages go; stderr to us. */
    if (dup2(null_fd, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
        dup2(c->err_fd, STDERR_FILENO) < 0)
    {
        return -1;
    }
    for (i = 0; i < c->conf->n_inherited; i++) {
        if (dup2(c->inherited[i], 3 + (int)i) < 0) {
            return -1;
        }
    }
    (void)close_range((unsigned)above, ~0u, CLOSE_RANGE_CLOEXEC);
    return 0;
}

static int limit_resources(const struct fl_program_conf *conf)
{
    struct rlimit limit = {.rlim_cur = conf->memory_bytes, .rlim_max = conf->memory_bytes};

    if (conf->memory_bytes > 0 && conf->memory_of == FL_PROGRAM_ADDRESS_SPACE &&
        setrlimit(RLIMIT_AS, &limit) != 0)
    {
        return -1;
    }
    if (conf->descriptors > 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        conf->descriptors < limit.rlim_max)
    {
        limit.rlim_cur = conf->descriptors;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    return 0;
}

/* Only calls that are safe behind fork(): no allocation, no locks. */
FL_NORETURN static void child_main(struct child *c)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    static const int signals[] = {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT,
                                  SIGHUP,  SIGCHLD, SIGUSR1, SIGUSR2};
    sigset_t none;
    size_t i;
    int code;

    (void)setpgid(0, 0);
    /* The program does not outlive one that was killed, before this or after. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != c->parent) {
        _exit(127);
    }
    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        (void)sigaction(signals[i], &plain, NULL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (place_descriptors(c) == 0 && limit_resources(c->conf) == 0) {
        (void)execve(c->path, c->argv, c->envp);
    }
    code = errno;
    while (write(c->status_fd, &code, sizeof(code)) < 0 && errno == EINTR) {
    }
    _exit(127);
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

/* Both are "NAME=value": is it the same name? */
static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(b, "=");

    return strncmp(a, b, len) == 0 && a[len] == '=';
}

/* Ours and the additions, which come before ours of the same name; texts are borrowed. */
static char **environment(const char *const *additions)
{
    size_t n = count((const char *const *)environ);
    size_t n_added = count(additions);
    char **envp = calloc(n + n_added + 1, sizeof(*envp));
    size_t used = n_added;
    size_t i;
    size_t j;

    if (envp == NULL) {
        return NULL;
    }
    /* execve() does not write to them; its type only lacks the const. */
    if (n_added > 0) {
        (void)memcpy(envp, additions, n_added * sizeof(*envp));
    }
    for (i = 0; i < n; i++) {
        for (j = 0; j < n_added && !same_name(environ[i], additions[j]); j++) {
        }
        if (j == n_added) {
            envp[used++] = environ[i];
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

static void close_pair(int fds[2])
{
    size_t i;

    for (i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

static int fork_and_exec(struct child *c, int status[2], pid_t *ret_pid, struct fl_err *err)
{
    int code;
    pid_t pid;

    c->parent = getpid();
    pid = fork();
    if (pid == 0) {
        child_main(c);
    }
    if (pid < 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "starting '%.200s': %s", c->path,
                          strerror(errno));
    }
    (void)setpgid(pid, pid); /* Both sides do it: whoever comes first. */
    (void)close(status[1]);
    status[1] = -1;
    code = exec_error(status[0]);
    if (code != 0) {
        (void)waitpid(pid, NULL, 0);
        return fl_err_set(err, fl_err_from_errno(code), "cannot run '%.200s': %s", c->path,
                          strerror(code));
    }
    *ret_pid = pid;
    return FL_OK;
}

int fl__program_spawn(const struct fl_program_conf *conf, const char *path, pid_t *ret_pid,
                      int *ret_err_fd, struct fl_err *err)
{
    size_t n = count(conf->argv);
    struct child c = {.conf = conf,
                      .path = path,
                      .argv = calloc(n + 1, sizeof(*c.argv)),
                      .envp = environment(conf->additions)};
    int err_pipe[2] = {-1, -1};
    int status_pipe[2] = {-1, -1};
    size_t i;
    int rv;

    FL_REQUIRE(conf->n_inherited <= FL_PROGRAM_INHERITED);
    for (i = 0; i < conf->n_inherited; i++) {
        c.inherited[i] = conf->inherited[i];
    }
    if (c.argv == NULL || c.envp == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "starting '%.200s': out of memory", path);
    } else if (pipe2(err_pipe, O_CLOEXEC) != 0 || pipe2(status_pipe, O_CLOEXEC) != 0) {
        rv = fl_err_set(err, fl_err_from_errno(errno), "starting '%.200s': %s", path,
                        strerror(errno));
    } else {
        (void)memcpy(c.argv, conf->argv, n * sizeof(*c.argv));
        c.err_fd = err_pipe[1];
        c.status_fd = status_pipe[1];
        rv = fork_and_exec(&c, status_pipe, ret_pid, err);
    }
    if (rv == FL_OK) {
        *ret_err_fd = err_pipe[0];
        err_pipe[0] = -1;
        (void)fcntl(*ret_err_fd, F_SETFL, O_NONBLOCK);
    }
    close_pair(err_pipe);
    close_pair(status_pipe);
    free(c.envp);
    free(c.argv);
    return rv;
}
