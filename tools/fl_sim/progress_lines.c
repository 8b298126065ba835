/* Draws the progress of a run (progress_lines.h). Pure. */
#include "tools/fl_sim/progress_lines.h"

#include <inttypes.h>
#include <stdio.h>

#include "libfl/base/str.h"

static void lines_running(struct fl_term_lines *lines, const struct progress_running *r)
{
    char round[64];
    char accuracy[32] = "-";
    char up[32];
    char span[32];

    (void)snprintf(round, sizeof(round), r->rounds > 0 ? "%" PRIu64 " of %" PRIu64 : "%" PRIu64,
                   r->round, r->rounds);
    if (r->accuracy >= 0) {
        (void)snprintf(accuracy, sizeof(accuracy), "%.4f", r->accuracy);
    }
    fl_term_lines_add(lines, "%-24.24s %8" PRIu64 " %14s %9s %9s %9s", r->label, r->seed, round,
                      accuracy, fl_str_bytes(up, sizeof(up), r->bytes_up),
                      fl_term_lines_span(r->time_us / 1000, span));
}

void progress_lines(struct fl_term_lines *lines, const struct progress_shown *s)
{
    const struct fl_round_rec *last[FL_TERM_ROUNDS];
    char span[32];
    size_t i;

    fl_term_lines_add(lines, "%-*s%zu of %zu trials, for %s%s", FL_TERM_INDENT, "done", s->done,
                      s->trials, fl_term_lines_span(s->elapsed_ms, span), s->left);
    fl_term_lines_add(lines, "%-24s %8s %14s %9s %9s %9s", "trial", "seed", "round", "accuracy",
                      "up", "simulated");
    for (i = 0; i < s->n_running; i++) {
        lines_running(lines, &s->running[i]);
    }
    if (s->n_running > 0) {
        for (i = 0; i < s->running[0].n_last; i++) {
            last[i] = &s->running[0].last[i];
        }
        fl_term_lines_rounds(lines, last, s->running[0].n_last);
    }
}
