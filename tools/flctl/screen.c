/* Draws the screen of `flctl watch` (screen.h). Pure: it asks nothing and prints nothing. */

#include "tools/flctl/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/figures/share.h"
#include "tools/screen/screen_lines.h"

static void draw_head(struct fl_term_lines *d, const struct fl_screen *screen,
                      const struct fl_wire_status *s)
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
    fl_term_lines_add(d, "%s  (%s, fl %s, up %s)", s->federation, s->algorithm, s->version,
                      fl_term_lines_span(s->uptime_ms, uptime));
    if (screen->trouble != NULL) {
        fl_term_lines_add(d, "! %s", screen->trouble);
    }
    fl_term_lines_add(d, "%-*s%s, round %" PRIu64 "%s, %" PRIu64 " committed%s", FL_TERM_INDENT,
                      "phase", s->phase, s->round, total, s->rounds_committed,
                      s->failed_attempts > 0 ? ", attempts failed" : "");
    if (t->accuracy >= 0.0) {
        fl_term_lines_add(d, "%-*s%.4f  loss %.4f", FL_TERM_INDENT, "accuracy", t->accuracy,
                          t->loss);
    } else if (fl_share_is_none(t->accuracy)) {
        fl_term_lines_add(d, "%-*s%.4f", FL_TERM_INDENT, "loss", t->loss);
    } else {
        fl_term_lines_add(d, "%-*s-  (not evaluated yet)", FL_TERM_INDENT, "accuracy");
    }
    fl_term_lines_add(d, "%-*s%s of %s up; with everything %s up, %s down", FL_TERM_INDENT, "bytes",
                      fl_str_bytes(up, sizeof(up), t->uplink_bytes),
                      fl_str_bytes(full, sizeof(full), t->uplink_bytes_full),
                      fl_str_bytes(wire_up, sizeof(wire_up), t->wire_up_bytes),
                      fl_str_bytes(wire_down, sizeof(wire_down), t->wire_down_bytes));
    fl_term_lines_add(d, "%-*s%" PRIu32 " connected of %" PRIu32 " known", FL_TERM_INDENT,
                      "clients", s->clients_connected, s->clients_known);
    fl_term_lines_wrapped(d, "why", s->why);
}

/* The newest rounds only: the others are not drawn. */
static void draw_rounds(struct fl_term_lines *d, const struct fl_ctl_look *look)
{
    size_t n = look->n_rounds < FL_TERM_ROUNDS ? look->n_rounds : FL_TERM_ROUNDS;
    const struct fl_round_rec *rounds[FL_TERM_ROUNDS];
    size_t i;

    for (i = 0; i < n; i++) {
        rounds[i] = &look->rounds[look->n_rounds - n + i].figures;
    }
    fl_term_lines_rounds(d, rounds, n);
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

static void draw_client(struct fl_term_lines *d, uint64_t now_ms, const struct fl_wire_client *c)
{
    char seen[32] = "now";
    uint64_t last_ms = c->figures.last_seen_ms;

    if (!c->connected) {
        (void)fl_term_lines_span(now_ms > last_ms ? now_ms - last_ms : 0, seen);
    }
    fl_term_lines_add(d, "%-20.20s %-11s %9" PRIu64 " %8" PRIu64 " %8" PRIu64 " %5" PRIu64 " %8s",
                      c->name, c->state, c->figures.samples, c->figures.n_accepted,
                      c->figures.n_rejected, c->figures.n_lost, last_ms != 0 ? seen : "-");
    if (client_note(c)[0] != '\0') {
        fl_term_lines_add(d, "  %s", client_note(c));
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

static void draw_clients(struct fl_term_lines *d, uint64_t now_ms, const struct fl_ctl_look *look)
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
    fl_term_lines_add(d, "%s", "");
    fl_term_lines_add(d, "%-20s %-11s %9s %8s %8s %5s %8s", "client", "state", "samples",
                      "accepted", "rejected", "lost", "seen");
    shown = clients_fit(list, look->n_clients, d->rows - d->used);
    for (i = 0; i < shown; i++) {
        draw_client(d, now_ms, list[i]);
    }
    if (shown < look->n_clients) {
        fl_term_lines_add(d, "and %zu more: flctl clients", look->n_clients - shown);
    }
    free(list);
}

int fl_screen_draw(const struct fl_screen *screen, const struct fl_ctl_look *look,
                   struct fl_buf *out)
{
    struct fl_term_lines d = {.columns = screen->columns, .rows = screen->rows, .out = out};

    draw_head(&d, screen, &look->status);
    draw_rounds(&d, look);
    draw_clients(&d, screen->now_ms, look);
    return d.rv;
}
