/*
 * fl-clientd --status: reads the report of the running client at the socket of its state folder
 * (status_socket.h) and prints it. Blocking, with a time limit; it changes nothing.
 */

#include "client/daemon/status_command.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/daemon/status_socket.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"

/* A loop that answers no reader for so long hangs. */
#define ANSWER_MS 30000

static int status_connect(const char *state_dir, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/" FL_STATUS_SOCKET_NAME,
                         state_dir) >= sizeof(address.sun_path))
    {
        return ENAMETOOLONG;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int code = errno;

        (void)close(fd);
        return code;
    }
    *ret_fd = fd;
    return 0;
}

/* Up to the end of the stream. False: it did not end in time, or is too long. */
static bool status_read(int fd, struct fl_buf *out)
{
    uint64_t end_ms = fl_clock_ms() + ANSWER_MS;
    char piece[16384];

    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        uint64_t now_ms = fl_clock_ms();
        int polled;
        ssize_t n;

        if (now_ms >= end_ms) {
            return false;
        }
        polled = poll(&ready, 1, (int)(end_ms - now_ms));
        if (polled < 0 && errno == EINTR) {
            continue;
        }
        if (polled <= 0) {
            return false;
        }
        n = read(fd, piece, sizeof(piece));
        if (n == 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0 && fl_buf_add(out, piece, (size_t)n) != FL_OK) {
            return false;
        }
    }
}

/* Splits the answer: its first line has code and lengths. False: of another version. */
static bool status_parse(const struct fl_buf *answer, bool json, int *ret_code, const char **ret,
                         size_t *ret_len)
{
    const char *line = (const char *)answer->data;
    const char *end = answer->len > 0 ? memchr(line, '\n', answer->len) : NULL;
    char head[128] = "";
    size_t lengths[2];
    char *at = head + strlen(FL_STATUS_SOCKET_MAGIC);
    uint64_t numbers[3];
    size_t i;

    if (end == NULL || (size_t)(end - line) >= sizeof(head)) {
        return false;
    }
    (void)memcpy(head, line, (size_t)(end - line));
    if (strncmp(head, FL_STATUS_SOCKET_MAGIC, strlen(FL_STATUS_SOCKET_MAGIC)) != 0) {
        return false;
    }
    for (i = 0; i < 3; i++) {
        char *word = *at == ' ' ? at + 1 : at;

        at = word + strcspn(word, " ");
        if (*at != '\0') {
            *at++ = '\0';
        }
        if (fl_str_to_u64(word, &numbers[i]) != FL_OK || numbers[i] > FL_STATUS_SOCKET_BYTES) {
            return false;
        }
    }
    lengths[0] = (size_t)numbers[1];
    lengths[1] = (size_t)numbers[2];
    if ((size_t)(end + 1 - line) + lengths[0] + lengths[1] != answer->len) {
        return false;
    }
    *ret_code = numbers[0] == 0 ? FL_STATUS_WORKS : FL_STATUS_NEEDS_OWNER;
    *ret = end + 1 + (json ? lengths[0] : 0);
    *ret_len = lengths[json];
    return true;
}

/* No client answers at the socket: does one run? */
static int status_absent(const char *state_dir, int why)
{
    long holder = fl_fs_lock_holder(state_dir);

    if (why == EACCES || why == EPERM) {
        (void)fprintf(stderr,
                      "fl-clientd: cannot read '%s/" FL_STATUS_SOCKET_NAME
                      "': permission denied; run it as root or as the user of the client\n",
                      state_dir);
        return FL_STATUS_NEEDS_OWNER;
    }
    if (holder == 0) {
        (void)fprintf(stderr,
                      "fl-clientd: no client runs with the state folder '%s': start it (systemctl "
                      "start fl-clientd), and see its log if it has ended by itself\n",
                      state_dir);
        return FL_STATUS_NOT_RUNNING;
    }
    (void)fprintf(stderr,
                  "fl-clientd: the client of '%s' runs (process %ld) and does not answer at "
                  "'%s/" FL_STATUS_SOCKET_NAME "': %s; see its log\n",
                  state_dir, holder, state_dir, strerror(why));
    return FL_STATUS_NEEDS_OWNER;
}

int fl_status_command(const struct fl_client_conf *conf, bool json)
{
    const char *state_dir = conf->main->state_dir;
    struct fl_buf answer;
    const char *text = NULL;
    size_t len = 0;
    int exit_code = FL_STATUS_NEEDS_OWNER;
    int fd = -1;
    int why = status_connect(state_dir, &fd);

    if (why != 0) {
        return status_absent(state_dir, why);
    }
    fl_buf_init(&answer, FL_STATUS_SOCKET_BYTES);
    if (!status_read(fd, &answer)) {
        exit_code = status_absent(state_dir, ETIMEDOUT);
    } else if (!status_parse(&answer, json, &exit_code, &text, &len)) {
        (void)fprintf(
            stderr, "fl-clientd: the client of '%s' answers as another version does: restart it\n",
            state_dir);
    } else if (fwrite(text, 1, len, stdout) != len || fflush(stdout) != 0) {
        (void)fprintf(stderr, "fl-clientd: cannot write to standard output\n");
        exit_code = FL_STATUS_NEEDS_OWNER;
    }
    (void)close(fd);
    fl_buf_done(&answer);
    return exit_code;
}
