#include "client/daemon/invitation_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "libfl/base/fs.h"

/* With surrounding blanks and the line end. */
#define LINE_MAX_BYTES ((size_t)FL_INVITE_MAX + 512)

bool fl_invitation_in_arguments(int argc, char **argv)
{
    bool found = false;
    int i;

    for (i = 1; i < argc; i++) {
        char *at = strstr(argv[i], "fl1:");

        if (at != NULL && (at == argv[i] || at[-1] == '=')) {
            explicit_bzero(at, strlen(at));
            found = true;
        }
    }
    return found;
}

const char *fl_invitation_credential(char *out, size_t size)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");

    if (folder == NULL || fl_fs_join(out, size, folder, "invitation") != FL_OK ||
        !fl_fs_exists(out)) {
        return NULL;
    }
    return out;
}

/* Reads all data up to `size`, or the first line of a terminal. FL_ELIMIT: there is more. */
static int invitation_read_fd(int fd, bool line, char *out, size_t size, size_t *ret_len)
{
    size_t len = 0;

    for (;;) {
        ssize_t n = read(fd, out + len, size - len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fl_err_from_errno(errno);
        }
        len += (size_t)n;
        if (n == 0 || (line && memchr(out, '\n', len) != NULL)) {
            *ret_len = len;
            return FL_OK;
        }
        if (len == size) {
            return FL_ELIMIT;
        }
    }
}

/*
 * Disables the terminal's echo: a displayed invitation could be used by the next person at the
 * screen.
 */
static int invitation_prompt(int fd, char *out, size_t size, size_t *ret_len)
{
    struct termios before;
    struct termios silent;
    bool hides = tcgetattr(fd, &before) == 0;
    int rv;

    (void)fputs("the invitation (a line that begins with fl1:), then Enter: ", stderr);
    (void)fflush(stderr);
    if (hides) {
        silent = before;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        hides = tcsetattr(fd, TCSAFLUSH, &silent) == 0;
    }
    rv = invitation_read_fd(fd, /* line= */ true, out, size, ret_len);
    if (hides) {
        (void)tcsetattr(fd, TCSAFLUSH, &before);
    }
    (void)fputs("\n", stderr);
    return rv;
}

static int invitation_read_file(const char *path, char *out, size_t size, size_t *ret_len,
                                struct fl_err *err)
{
    const char *from = path != NULL ? path : "standard input";
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    int rv;

    if (fd < 0) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved), "cannot open the invitation '%s': %s",
                          path, strerror(saved));
    }
    rv = path == NULL && isatty(fd) ? invitation_prompt(fd, out, size, ret_len)
                                    : invitation_read_fd(fd, /* line= */ false, out, size, ret_len);
    if (path != NULL) {
        (void)close(fd);
    }
    if (rv == FL_ELIMIT) {
        return fl_err_set(err, FL_EFORMAT,
                          "%s: expected the line of an invitation, found more than %zu bytes", from,
                          size);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read the invitation from %s: %s", from, fl_strerror(rv));
    }
    return FL_OK;
}

int fl_invitation_read(const char *path, struct fl_invite *ret, struct fl_err *err)
{
    char line[LINE_MAX_BYTES];
    size_t len = 0;
    int rv = invitation_read_file(path, line, sizeof(line), &len, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_invite_parse(line, len, ret, err);
    if (rv != FL_OK) {
        rv = fl_err_wrap(err, rv, "%s", path != NULL ? path : "standard input");
    }
done:
    explicit_bzero(line, sizeof(line));
    return rv;
}
