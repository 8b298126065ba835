#include "bench/peers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void die(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", bench_name, what);
    exit(EXIT_FAILURE);
}

void must(int rv, const char *what)
{
    if (rv != FL_OK) {
        (void)fprintf(stderr, "%s: %s: %s\n", bench_name, what, fl_strerror(rv));
        exit(EXIT_FAILURE);
    }
}

void must_err(int rv, const struct fl_err *err)
{
    if (rv != FL_OK) {
        die(fl_err_text(err, rv));
    }
}

void peers_open_files(void)
{
    struct rlimit files = {0};

    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

pid_t peer_start(void (*run)(const void *ctx, int fd), const void *ctx, int *ret_fd)
{
    int fds[2];
    pid_t pid;

    if (pipe(fds) != 0) {
        die("pipe");
    }
    pid = fork();
    if (pid < 0) {
        die("fork");
    }
    if (pid == 0) {
        (void)close(fds[0]);
        run(ctx, fds[1]);
        exit(EXIT_SUCCESS);
    }
    (void)close(fds[1]);
    *ret_fd = fds[0];
    return pid;
}

void peer_send(int fd, const void *data, size_t len)
{
    if (write(fd, data, len) != (ssize_t)len) {
        die("pipe");
    }
}

void peer_receive(int fd, void *data, size_t len, const char *what)
{
    if (read(fd, data, len) != (ssize_t)len) {
        die(what);
    }
}

void peer_kill(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

bool peer_echo(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_piece piece = {.data = data, .len = len};

    (void)ctx;
    must(fl_call_send(call, &piece, 1), "echo");
    return true;
}

void peer_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status, const char *message)
{
    (void)call;
    (void)ctx;
    (void)status;
    (void)message;
}
