#include "libfl/program/lines.h"

#include <inttypes.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
/* Time in which the bucket fills. */
#define FILLS_MS (FL_LINES_BURST / FL_LINES_RATE * 1000)

void fl_lines_init(struct fl_lines *lines, const struct fl_log *log)
{
    *lines = (struct fl_lines){.log = log};
    fl_bucket_start(&lines->bucket, FL_LINES_RATE, FL_LINES_BURST, 0);
}

static void lines_report_dropped(struct fl_lines *lines)
{
    if (lines->left_out > 0) {
        fl_log(lines->log, FL_LOG_WARNING, "program",
               "%" PRIu64 " lines of stderr were dropped: the program writes more than %" PRIu64
               " bytes a second",
               lines->left_out, FL_LINES_RATE);
        lines->left_out = 0;
    }
}

static void lines_write(struct fl_lines *lines, size_t len, uint64_t now_ms)
{
    uint64_t ns = (now_ms - lines->began_ms + FILLS_MS) * NS_PER_MS;

    if (fl_bucket_have(&lines->bucket, ns) < len + 1) {
        lines->left_out++;
        return;
    }
    fl_bucket_take(&lines->bucket, len + 1);
    lines_report_dropped(lines);
    fl_log(lines->log, FL_LOG_INFO, "program", "stderr: %.*s", (int)len, lines->text);
}

/* Length of the complete UTF-8 characters of a full line. */
static size_t lines_whole_length(const char *text, size_t len)
{
    size_t n = len;

    while (n > len - 4 && ((unsigned char)text[n] & 0xc0) == 0x80) {
        n--;
    }
    return ((unsigned char)text[n] & 0xc0) == 0x80 ? len : n;
}

static void lines_put(struct fl_lines *lines, char c, uint64_t now_ms)
{
    if (c == '\n') {
        if (lines->len > 0) {
            lines_write(lines, lines->len, now_ms);
        }
        lines->len = 0;
    } else if (lines->returned) {
        lines->len = 0; /* The following text replaces the line, as on a terminal. */
    }
    lines->returned = c == '\r';
    if (c == '\n' || c == '\r') {
        return;
    }
    lines->text[lines->len++] = c != '\0' ? c : ' ';
    if (lines->len > FL_LINES_TEXT) {
        size_t n = lines_whole_length(lines->text, FL_LINES_TEXT);

        lines_write(lines, n, now_ms);
        lines->len -= n;
        (void)memmove(lines->text, lines->text + n, lines->len);
    }
}

void fl_lines_take(struct fl_lines *lines, const char *bytes, size_t n, uint64_t now_ms)
{
    size_t i;

    if (!lines->begun) {
        lines->begun = true;
        lines->began_ms = now_ms;
    }
    for (i = 0; lines->log != NULL && i < n; i++) {
        lines_put(lines, bytes[i], now_ms);
    }
}

void fl_lines_end(struct fl_lines *lines, uint64_t now_ms)
{
    if (lines->log == NULL) {
        return;
    }
    if (lines->len > 0) {
        lines_write(lines, lines->len, now_ms);
        lines->len = 0;
    }
    lines_report_dropped(lines);
}
