/* Draws the screen of `flctl watch` (screen.h). Pure: it asks nothing and prints nothing. */

#include "tools/flctl/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"

#define SCREEN_LINE 8192
/* Lines of the sentence of `flctl why`, and rounds that are listed. */
#define WHY_LINES   3
#define WHY_INDENT  10
#define ROUND_LINES 5

/* Lines that were drawn, and those that fit. */
struct drawing {
    const struct fl_screen *screen;
    struct fl_buf *out;
    size_t rows;
    int rv; /* the first error */
};

/* Bytes of the first `columns` characters of a clean text. */
static size_t screen_fit(const char *text, size_t columns)
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

FL_PRINTF(2, 3) static void draw_line(struct drawing *d, const char *fmt, ...)
{
    char text[SCREEN_LINE];
    va_list ap;

    if (d->rows >= d->screen->rows || d->rv != FL_OK) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)fl_str_clean(text);
    d->rows++;
    d->rv = fl_buf_printf(d->out, "%.*s\n", (int)screen_fit(text, d->screen->columns), text);
}

/* Draw a text over several lines, broken at blanks; what does not fit ends with "...". */
static void draw_wrapped(struct drawing *d, const char *label, const char *text)
{
    size_t width = d->screen->columns > WHY_INDENT + 10 ? d->screen->columns - WHY_INDENT : 10;
    unsigned i;

    for (i = 0; i < WHY_LINES && (i == 0 || *text != '\0'); i++) {
        size_t n = screen_fit(text, width);
        size_t brk = n;
        const char *more = "";

        if (text[n] != '\0' && i + 1 == WHY_LINES) {
            n = screen_fit(text, width - 3);
            brk = n;
            more = "...";
        } else if (text[n] != '\0') {
            while (brk > 0 && text[brk] != ' ') {
                brk--;
            }
            n = brk > 0 ? brk : n;
        }
        draw_line(d, "%-*s%.*s%s", WHY_INDENT, i == 0 ? label : "", (int)n, text, more);
        text += n;
        text += strspn(text, " ");
    }
}

/* "3 s", "12 min", "5 h", "9 d". */
static const char *span_text(uint64_t ms, char out[32])
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

static void draw_head(struct drawing *d, const struct fl_wire_status *s)
{
    char up[32];
    char full[32];
    char wire_up[32];
    char wire_down[32];
    char uptime[32];
    char total[32] = "";
    const struct fl_round_rec *t = &s->totals;

    if (s->rounds_total != 0) {
        (void)snprintf(total, sizeof(total), " of %" PRIu64, s->rounds_total);
    }
    draw_line(d, "%s  (%s, fl %s, up %s)", s->federation, s->algorithm, s->version,
              span_text(s->uptime_ms, uptime));
    if (d->screen->trouble != NULL) {
        draw_line(d, "! %s", d->screen->trouble);
    }
    draw_line(d, "%-*s%s, round %" PRIu64 "%s, %" PRIu64 " committed%s", WHY_INDENT, "phase",
              s->phase, s->round, total, s->rounds_committed,
              s->failed_attempts > 0 ? ", attempts failed" : "");
    if (t->accuracy >= 0.0) {
        draw_line(d, "%-*s%.4f  loss %.4f", WHY_INDENT, "accuracy", t->accuracy, t->loss);
    } else {
        draw_line(d, "%-*s-  (not evaluated yet)", WHY_INDENT, "accuracy");
    }
    draw_line(d, "%-*s%s of %s up; with everything %s up, %s down", WHY_INDENT, "bytes",
              fl_str_bytes(up, sizeof(up), t->uplink_bytes),
              fl_str_bytes(full, sizeof(full), t->uplink_bytes_full),
              fl_str_bytes(wire_up, sizeof(wire_up), t->wire_up_bytes),
              fl_str_bytes(wire_down, sizeof(wire_down), t->wire_down_bytes));
    draw_line(d, "%-*s%" PRIu32 " connected of %" PRIu32 " known", WHY_INDENT, "clients",
              s->clients_connected, s->clients_known);
    draw_wrapped(d, "why", s->why);
}

static void draw_rounds(struct drawing *d, const struct fl_ctl_look *look)
{
    size_t first = look->n_rounds > ROUND_LINES ? look->n_rounds - ROUND_LINES : 0;
    size_t i;

    draw_line(d, "%s", "");
    draw_line(d, "%8s %8s %10s %9s %10s %12s %9s", "round", "selected", "responders", "accuracy",
              "loss", "up", "seconds");
    for (i = first; i < look->n_rounds; i++) {
        const struct fl_round_rec *r = &look->rounds[i].figures;
        char accuracy[32] = "-";
        char loss[32] = "-";
        char up[32];

        if (r->accuracy >= 0.0) {
            (void)snprintf(accuracy, sizeof(accuracy), "%.4f", r->accuracy);
            (void)snprintf(loss, sizeof(loss), "%.4f", r->loss);
        }
        draw_line(d, "%8" PRIu64 " %8u %10u %9s %10s %12s %9.1f", r->round, r->n_selected,
                  r->n_responders, accuracy, loss, fl_str_bytes(up, sizeof(up), r->uplink_bytes),
                  r->ended_ms > r->started_ms ? (double)(r->ended_ms - r->started_ms) / 1e3 : 0.0);
    }
}

/* --- clients --- */

/* Those that an operator looks for stand first. */
static unsigned client_rank(const struct fl_wire_client *c)
{
    if (c->quarantine[0] != '\0') {
        return 0;
    }
    if (strcmp(c->state, "rejected") == 0 || strcmp(c->state, "lost") == 0) {
        return 1;
    }
    if (strcmp(c->state, "idle") != 0 && strcmp(c->state, "gone") != 0) {
        return 2;
    }
    return c->connected ? 3 : 4;
}

static int client_compare(const void *a, const void *b)
{
    const struct fl_wire_client *x = *(const struct fl_wire_client *const *)a;
    const struct fl_wire_client *y = *(const struct fl_wire_client *const *)b;
    unsigned rank_x = client_rank(x);
    unsigned rank_y = client_rank(y);

    return rank_x != rank_y ? (rank_x < rank_y ? -1 : 1) : strcmp(x->name, y->name);
}

/* Why a client is left out, or its last error. */
static const char *client_note(const struct fl_wire_client *c)
{
    return c->quarantine[0] != '\0' ? c->quarantine : c->last_error;
}

static void draw_client(struct drawing *d, const struct fl_wire_client *c)
{
    char seen[32] = "now";
    uint64_t last_ms = c->figures.last_seen_ms;

    if (!c->connected) {
        (void)span_text(d->screen->now_ms > last_ms ? d->screen->now_ms - last_ms : 0, seen);
    }
    draw_line(d, "%-20.20s %-11s %9" PRIu64 " %8" PRIu64 " %8" PRIu64 " %5" PRIu64 " %8s", c->name,
              c->state, c->figures.samples, c->figures.n_accepted, c->figures.n_rejected,
              c->figures.n_lost, last_ms != 0 ? seen : "-");
    if (client_note(c)[0] != '\0') {
        draw_line(d, "  %s", client_note(c));
    }
}

/* How many of the clients fit, with a line for the number of the others. */
static size_t clients_fit(const struct fl_wire_client *const *list, size_t n, size_t rows)
{
    size_t used = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        size_t lines = client_note(list[i])[0] != '\0' ? 2 : 1;

        if (used + lines + (i + 1 < n ? 1 : 0) > rows) {
            return i;
        }
        used += lines;
    }
    return n;
}

static void draw_clients(struct drawing *d, const struct fl_ctl_look *look)
{
    const struct fl_wire_client **list =
        calloc(look->n_clients + 1, sizeof(const struct fl_wire_client *));
    size_t shown;
    size_t i;

    if (list == NULL) {
        d->rv = FL_ENOMEM;
        return;
    }
    for (i = 0; i < look->n_clients; i++) {
        list[i] = &look->clients[i];
    }
    qsort(list, look->n_clients, sizeof(const struct fl_wire_client *), client_compare);
    draw_line(d, "%s", "");
    draw_line(d, "%-20s %-11s %9s %8s %8s %5s %8s", "client", "state", "samples", "accepted",
              "rejected", "lost", "seen");
    shown = clients_fit(list, look->n_clients, d->screen->rows - d->rows);
    for (i = 0; i < shown; i++) {
        draw_client(d, list[i]);
    }
    if (shown < look->n_clients) {
        draw_line(d, "and %zu more: flctl clients", look->n_clients - shown);
    }
    free(list);
}

int fl_screen_draw(const struct fl_screen *screen, const struct fl_ctl_look *look,
                   struct fl_buf *out)
{
    struct drawing d = {.screen = screen, .out = out};

    draw_head(&d, &look->status);
    draw_rounds(&d, look);
    draw_clients(&d, look);
    return d.rv;
}
