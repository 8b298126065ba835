#include "libfl/net/failed_start.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libfl/base/backoff.h"
#include "libfl/base/buf.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/net/notify.h"

#define FIRST_PAUSE_MS 2000
/* Time beyond the pause after which systemd considers the start hung. */
#define MARGIN_MS 60000

uint64_t fl_start_pause_ms(unsigned failures, uint64_t longest_ms)
{
    const struct fl_backoff rule = {.first_ms = FIRST_PAUSE_MS, .cap_ms = longest_ms, .factor = 2};

    return failures < 2 ? 0 : fl_backoff_base(&rule, failures - 1);
}

/* False: there is no folder for the count. */
static bool count_file(char *out, size_t size)
{
    const char *dirs = getenv("RUNTIME_DIRECTORY");
    char dir[PATH_MAX];

    if (dirs == NULL || dirs[0] != '/') {
        return false;
    }
    (void)snprintf(dir, sizeof(dir), "%.*s", (int)strcspn(dirs, ":"), dirs);
    return fl_fs_join(out, size, dir, "failed-starts") == FL_OK;
}

/* An unreadable or invalid file counts as 0. */
static unsigned read_count(const char *path)
{
    struct fl_buf buf;
    uint64_t n = 0;
    char text[16] = "";

    fl_buf_init(&buf, sizeof(text));
    if (fl_fs_read(path, sizeof(text) - 1, &buf, NULL) == FL_OK) {
        (void)snprintf(text, sizeof(text), "%.*s", (int)buf.len, (const char *)buf.data);
        if (fl_str_to_u64(text, &n) != FL_OK || n > 1000) {
            n = 0;
        }
    }
    fl_buf_done(&buf);
    return (unsigned)n;
}

static void write_count(const char *path, unsigned n)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%u", n);

    if (fl_fs_replace(path, text, (size_t)len, /* sync= */ false, NULL) != FL_OK) {
        return; /* Not counted: the next pause does not grow. */
    }
}

/* A file that remains makes the next pause longer than necessary. */
static void remove_count(const char *path)
{
    if (fl_fs_remove(path) != FL_OK) {
        return;
    }
}

/* Returns false when a signal ended the pause. */
static bool pause_for(uint64_t ms)
{
    uint64_t end = fl_clock_ms() + ms;
    uint64_t now;
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    while ((now = fl_clock_ms()) < end) {
        struct timespec left = {.tv_sec = (time_t)((end - now) / 1000),
                                .tv_nsec = (long)((end - now) % 1000) * 1000000};

        if (sigtimedwait(&set, NULL, &left) > 0) {
            return false;
        }
    }
    return true;
}

bool fl_start_failed(const struct fl_log *log, uint64_t longest_ms)
{
    char path[PATH_MAX];
    char status[128];
    uint64_t pause;
    unsigned n;

    if (!count_file(path, sizeof(path))) {
        return true;
    }
    n = read_count(path) + 1;
    write_count(path, n);
    pause = fl_start_pause_ms(n, longest_ms);
    if (pause == 0) {
        return true;
    }
    fl_log(log, FL_LOG_NOTICE, "start",
           "start failed again, waiting before the next start failures=%u pause_s=%llu", n,
           (unsigned long long)pause / 1000);
    (void)snprintf(status, sizeof(status),
                   "start failed %u times, waiting %llu s before the next start", n,
                   (unsigned long long)pause / 1000);
    fl_notify_extend(pause + MARGIN_MS);
    fl_notify_status(status);
    if (!pause_for(pause)) {
        remove_count(path);
        return false;
    }
    return true;
}

void fl_start_succeeded(void)
{
    char path[PATH_MAX];

    if (count_file(path, sizeof(path))) {
        remove_count(path);
    }
}
