/* Lines for a terminal (screen_lines.h). Pure: it asks nothing and prints nothing. */

#include "tools/screen/screen_lines.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/figures/share.h"

#define LINES_BYTES 8192
/* Lines of a wrapped text. */
#define LINES_WRAPPED 3

/* Bytes of the first `columns` characters of a clean text. */
static size_t lines_fit(const char *text, size_t columns)
{
    size_t len = strlen(text);
    size_t at = 0;

    while (at < len && columns > 0) {
        size_t n = fl_str_utf8((const uint8_t *)text + at, len - at);

        at += n > 0 ? n : 1;
        columns--;
    }
    return at < len ? at : len;
}

void fl_term_lines_add(struct fl_term_lines *d, const char *fmt, ...)
{
    char text[LINES_BYTES];
    va_list ap;

    if (d->used >= d->rows || d->rv != FL_OK) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)fl_str_clean(text);
    d->used++;
    d->rv = fl_buf_printf(d->out, "%.*s\n", (int)lines_fit(text, d->columns), text);
}

void fl_term_lines_wrapped(struct fl_term_lines *d, const char *label, const char *text)
{
    size_t width = d->columns > FL_TERM_INDENT + 10 ? d->columns - FL_TERM_INDENT : 10;
    unsigned i;

    for (i = 0; i < LINES_WRAPPED && (i == 0 || *text != '\0'); i++) {
        size_t n = lines_fit(text, width);
        size_t brk = n;
        const char *more = "";

        if (text[n] != '\0' && i + 1 == LINES_WRAPPED) {
            n = lines_fit(text, width - 3);
            brk = n;
            more = "...";
        } else if (text[n] != '\0') {
            while (brk > 0 && text[brk] != ' ') {
                brk--;
            }
            n = brk > 0 ? brk : n;
        }
        fl_term_lines_add(d, "%-*s%.*s%s", FL_TERM_INDENT, i == 0 ? label : "", (int)n, text, more);
        text += n;
        text += strspn(text, " ");
    }
}

const char *fl_term_lines_span(uint64_t ms, char out[32])
{
    uint64_t s = ms / 1000;

    if (s < 120) {
        (void)snprintf(out, 32, "%" PRIu64 " s", s);
    } else if (s < 7200) {
        (void)snprintf(out, 32, "%" PRIu64 " min", s / 60);
    } else if (s < 172800) {
        (void)snprintf(out, 32, "%" PRIu64 " h", s / 3600);
    } else {
        (void)snprintf(out, 32, "%" PRIu64 " d", s / 86400);
    }
    return out;
}

void fl_term_lines_rounds(struct fl_term_lines *d, const struct fl_round_rec *const *rounds,
                          size_t n)
{
    size_t first = n > FL_TERM_ROUNDS ? n - FL_TERM_ROUNDS : 0;
    size_t i;

    fl_term_lines_add(d, "%s", "");
    fl_term_lines_add(d, "%8s %8s %10s %9s %10s %12s %9s", "round", "selected", "responders",
                      "accuracy", "loss", "up", "seconds");
    for (i = first; i < n; i++) {
        const struct fl_round_rec *r = rounds[i];
        char accuracy[32] = "-";
        char loss[32] = "-";
        char up[32];

        if (r->accuracy >= 0.0) {
            (void)snprintf(accuracy, sizeof(accuracy), "%.4f", r->accuracy);
        }
        if (fl_share_measured(r->accuracy)) {
            (void)snprintf(loss, sizeof(loss), "%.4f", r->loss);
        }
        fl_term_lines_add(
            d, "%8" PRIu64 " %8u %10u %9s %10s %12s %9.1f", r->round, r->n_selected,
            r->n_responders, accuracy, loss, fl_str_bytes(up, sizeof(up), r->uplink_bytes),
            r->ended_ms > r->started_ms ? (double)(r->ended_ms - r->started_ms) / 1e3 : 0.0);
    }
}
