/* Starts a program: fork(), setup of the child, exec(). Called by program.c; between fork() and
   exec() the child uses only async-signal-safe calls. */
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

/* All data of the child, allocated before fork(): after it, allocation is not allowed. */
struct child {
    const struct fl_program_conf *conf;
    const char *path;
    char **argv, **envp;
    int err_fd, status_fd;
    int inherited[FL_PROGRAM_INHERITED];
    pid_t parent;
};

/* Duplicates `fd` to a number of at least `above`. */
static int spawn_lift_fd(int *fd, int above)
{
    int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, above);

    if (lifted < 0) {
        return -1;
    }
    *fd = lifted;
    return 0;
}

/*
 * Puts the descriptors where the program expects them, and keeps all others from it: our sockets
 * and databases are private. They are marked close-on-exec, not closed, since status_fd must live
 * until exec().
 */
static int spawn_place_descriptors(struct child *c)
{
    const int above = 3 + (int)c->conf->n_inherited;
    int null_fd;
    size_t i;

    /* First to numbers that do not collide. */
    if (spawn_lift_fd(&c->status_fd, above) != 0 || spawn_lift_fd(&c->err_fd, above) != 0) {
        return -1;
    }
    for (i = 0; i < c->conf->n_inherited; i++) {
        if (spawn_lift_fd(&c->inherited[i], above) != 0) {
            return -1;
        }
    }
    null_fd = open("/dev/null", O_RDONLY);
    if (null_fd < 0) {
        return -1;
    }
    /* stdout is that of the client; stderr is our pipe. */
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

static int spawn_set_limits(const struct fl_program_conf *conf)
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

/* Only async-signal-safe calls: no allocation, no locks. */
FL_NORETURN static void child_main(struct child *c)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    static const int signals[] = {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT,
                                  SIGHUP,  SIGCHLD, SIGUSR1, SIGUSR2};
    sigset_t none;
    size_t i;
    int code;

    (void)setpgid(0, 0);
    /* The program does not outlive a killed parent, killed before this call or after. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != c->parent) {
        _exit(127);
    }
    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        (void)sigaction(signals[i], &plain, NULL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (spawn_place_descriptors(c) == 0 && spawn_set_limits(c->conf) == 0) {
        (void)execve(c->path, c->argv, c->envp);
    }
    code = errno;
    while (write(c->status_fd, &code, sizeof(code)) < 0 && errno == EINTR) {
    }
    _exit(127);
}

static size_t spawn_count(const char *const *list)
{
    size_t n = 0;

    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

/* Do two strings "NAME=value" have the same name? */
static bool spawn_same_name(const char *a, const char *b)
{
    size_t len = strcspn(b, "=");

    return strncmp(a, b, len) == 0 && a[len] == '=';
}

/* Our environment and the additions, which replace ours of the same name; strings are borrowed. */
static char **spawn_environment(const char *const *additions)
{
    size_t n = spawn_count((const char *const *)environ);
    size_t n_added = spawn_count(additions);
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
        for (j = 0; j < n_added && !spawn_same_name(environ[i], additions[j]); j++) {
        }
        if (j == n_added) {
            envp[used++] = environ[i];
        }
    }
    return envp;
}

static void spawn_close_pair(int fds[2])
{
    size_t i;

    for (i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

static int spawn_fork_and_exec(struct child *c, int status[2], pid_t *ret_pid, struct fl_err *err)
{
    int code;
    pid_t pid;
    ssize_t n;

    c->parent = getpid();
    pid = fork();
    if (pid == 0) {
        child_main(c);
    }
    if (pid < 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "starting '%.200s': %s", c->path,
                          strerror(errno));
    }
    (void)setpgid(pid, pid); /* Both processes call it, so the order does not matter. */
    (void)close(status[1]);
    status[1] = -1;
    /* The child writes an errno if exec() fails; end of file means success. */
    code = 0;
    do {
        n = read(status[0], &code, sizeof(code));
    } while (n < 0 && errno == EINTR);
    code = n == (ssize_t)sizeof(code) ? code : 0;
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
    size_t n = spawn_count(conf->argv);
    struct child c = {.conf = conf,
                      .path = path,
                      .argv = calloc(n + 1, sizeof(*c.argv)),
                      .envp = spawn_environment(conf->additions)};
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
        rv = spawn_fork_and_exec(&c, status_pipe, ret_pid, err);
    }
    if (rv != FL_OK) {
        goto done;
    }
    *ret_err_fd = err_pipe[0];
    err_pipe[0] = -1;
    (void)fcntl(*ret_err_fd, F_SETFL, O_NONBLOCK);
done:
    spawn_close_pair(err_pipe);
    spawn_close_pair(status_pipe);
    free(c.envp);
    free(c.argv);
    return rv;
}
