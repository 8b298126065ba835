/*
 * `flctl watch`: shows the screen (screen.c) in the terminal and asks the server once a second; q
 * quits. Plain ANSI sequences of every terminal: the alternate screen, the position of the cursor,
 * erasing. Without a terminal one screen is printed. Main thread; a signal that ends the program
 * gives the terminal back as it was.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "tools/flctl/screen.h"
#include "tools/screen/screen_lines.h"

#define WATCH_ASK_MS  1000
#define WATCH_ROUNDS  20
#define WATCH_CALL_MS 5000
#define WATCH_MAX     ((size_t)1 << 20)

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

/* For the handler of signals, which has no argument. */
static struct termios watch_before;

static void watch_leave(void)
{
    ssize_t n = write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);

    (void)n;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &watch_before);
}

static void watch_on_end(int signum)
{
    watch_leave();
    _exit(128 + signum);
}

static void watch_on_resize(int signum)
{
    (void)signum; /* It ends the wait for a key. */
}

static void watch_enter(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct termios raw = watch_before;
    struct sigaction end = {.sa_handler = watch_on_end};
    struct sigaction resize = {.sa_handler = watch_on_resize};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    ssize_t n;
    size_t i;

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)sigaction(ends[i], &end, NULL);
    }
    (void)sigaction(SIGWINCH, &resize, NULL);
    (void)sigaction(SIGTSTP, &ignore, NULL); /* Its screen would stay behind. */
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    n = write(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1);
    (void)n;
}

/* --- asking and drawing --- */

static int watch_ask(struct fl_ctl_args *args, struct fl_ctl_look *look, struct fl_err *err)
{
    int code = fl_ctl_look_status(args, look, err);

    if (code != FL_CTL_OK) {
        return code;
    }
    code = fl_ctl_look_rounds(args, WATCH_ROUNDS, look, err);
    if (code != FL_CTL_OK) {
        return code;
    }
    return fl_ctl_look_clients(args, look, err);
}

/* One write, so that no half screen is seen. */
static int watch_show(const struct fl_buf *text, struct fl_buf *frame)
{
    size_t at = 0;
    size_t sent = 0;
    int rv;

    fl_buf_clear(frame);
    rv = fl_buf_printf(frame, "\033[H");
    while (rv == FL_OK && at < text->len) {
        const char *line = (const char *)text->data + at;
        size_t n = (size_t)((const char *)memchr(line, '\n', text->len - at) - line);

        /* The last line has no line end: it would scroll. */
        rv = fl_buf_printf(frame, "%s%.*s\033[K", at > 0 ? "\r\n" : "", (int)n, line);
        at += n + 1;
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_printf(frame, "\033[J");
    while (rv == FL_OK && sent < frame->len) {
        ssize_t n = write(STDOUT_FILENO, frame->data + sent, frame->len - sent);

        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return FL_EIO;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    return rv;
}

/* Draws what is known; `trouble` NULL: the server answers. */
static int watch_draw(const struct fl_ctl_look *look, const char *trouble, bool plain)
{
    struct fl_screen screen;
    struct fl_buf text;
    struct fl_buf frame;
    int rv;

    screen = (struct fl_screen){.columns = FL_SCREEN_COLUMNS,
                                .rows = FL_SCREEN_ROWS,
                                .now_ms = fl_clock_wall_ms(),
                                .trouble = trouble};
    fl_terminal_size(STDOUT_FILENO, &screen.columns, &screen.rows);
    fl_buf_init(&text, WATCH_MAX);
    fl_buf_init(&frame, 2 * WATCH_MAX);
    rv = fl_screen_draw(&screen, look, &text);
    if (rv != FL_OK) {
        goto done;
    }
    if (plain) {
        rv = fwrite(text.data, 1, text.len, stdout) == text.len && fflush(stdout) == 0 ? FL_OK
                                                                                       : FL_EIO;
        goto done;
    }
    rv = watch_show(&text, &frame);
done:
    fl_buf_done(&text);
    fl_buf_done(&frame);
    return rv;
}

/* Waits for a key; true: it was q, or nobody can press one any more. */
static bool watch_quits(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = '\0';

    if (poll(&fd, 1, WATCH_ASK_MS) <= 0) {
        return false;
    }
    errno = 0;
    return read(STDIN_FILENO, &key, 1) <= 0 ? errno != EINTR : key == 'q' || key == 'Q';
}

/* Until q; a server that does not answer is asked again, what it said last stays. */
static int watch_run(struct fl_ctl_args *args, struct fl_ctl_look *look)
{
    struct fl_err err = {0};
    bool answers = true;
    int rv;

    for (;;) {
        struct fl_ctl_look next = {0};

        rv = watch_draw(look, answers ? NULL : err.msg, /* plain= */ false);
        if (rv != FL_OK) {
            return FL_CTL_FAILED;
        }
        if (watch_quits()) {
            return FL_CTL_OK;
        }
        err = (struct fl_err){0};
        answers = watch_ask(args, &next, &err) == FL_CTL_OK;
        if (answers) {
            fl_ctl_look_done(look);
            *look = next;
        } else {
            fl_ctl_look_done(&next);
        }
    }
}

int fl_ctl_watch(struct fl_ctl_args *args, int n, char **words)
{
    struct fl_ctl_look look = {0};
    struct fl_err err = {0};
    int code;

    if (n > 1) {
        (void)fprintf(stderr, "flctl: watch: unexpected argument '%s' (see flctl --help)\n",
                      fl_str_clean(words[1]));
        return FL_CTL_USAGE;
    }
    args->call_ms = WATCH_CALL_MS;
    code = watch_ask(args, &look, &err);
    if (code != FL_CTL_OK) {
        (void)fprintf(stderr, "flctl: watch: %s\n", err.msg);
        goto done;
    }
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &watch_before) != 0) {
        code = watch_draw(&look, NULL, /* plain= */ true) == FL_OK ? FL_CTL_OK : FL_CTL_FAILED;
        goto done;
    }
    watch_enter();
    code = watch_run(args, &look);
    watch_leave();
done:
    fl_ctl_look_done(&look);
    return code;
}
