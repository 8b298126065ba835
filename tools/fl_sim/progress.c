/*
 * The progress of a run: a block of lines where stdout and stderr are terminals (progress_lines.h),
 * else one line where stderr is, else nothing. All of it goes to stderr, where notes and errors go
 * too: they stand above it. Plain ANSI sequences: up, erasing. Any thread.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/progress_lines.h"
#include "tools/fl_sim/run.h"

/* Update interval that a user can follow. */
#define INTERVAL_MS    200
#define PROGRESS_BYTES ((size_t)64 << 10)
/* Of a terminal that does not tell its size. */
#define PROGRESS_COLUMNS 80
#define PROGRESS_ROWS    24

struct progress {
    pthread_mutex_t lock;
    bool quiet;
    bool shown; /* stderr is a terminal */
    bool block; /* stdout too: lines instead of one line */
    bool line;  /* it is displayed */
    size_t n_lines;
    size_t trials, done;
    uint64_t begun_ms, drawn_ms;
    uint64_t rounds; /* rounds run, and rounds to run in each trial; 0: not known */
    uint64_t of_rounds;
    struct progress_running running[PROGRESS_TRIALS]; /* in the order of their first round */
    size_t n_running;
};

int progress_new(size_t trials, bool quiet, struct progress **ret)
{
    struct progress *p = calloc(1, sizeof(*p));

    if (p == NULL) {
        return FL_ENOMEM;
    }
    (void)pthread_mutex_init(&p->lock, NULL);
    p->quiet = quiet;
    p->shown = !quiet && isatty(STDERR_FILENO) != 0;
    p->block = p->shown && isatty(STDOUT_FILENO) != 0;
    p->trials = trials;
    p->begun_ms = fl_clock_ms();
    *ret = p;
    return FL_OK;
}

static void progress_clear_locked(struct progress *p)
{
    if (p->line && p->block) {
        (void)fprintf(stderr, "\033[%zuA\r\033[J", p->n_lines);
    } else if (p->line) {
        (void)fputs("\r\033[K", stderr);
    }
    p->line = false;
}

void progress_clear(struct progress *p)
{
    (void)pthread_mutex_lock(&p->lock);
    progress_clear_locked(p);
    (void)pthread_mutex_unlock(&p->lock);
}

void progress_note(struct progress *p, const char *text)
{
    if (p->quiet) {
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    progress_clear_locked(p);
    (void)fprintf(stderr, "fl-sim run: %s\n", text);
    (void)pthread_mutex_unlock(&p->lock);
}

void progress_free(struct progress *p)
{
    if (p != NULL) {
        progress_clear(p);
        (void)pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

/* "3 h 12 min", "12.3 s" */
static const char *progress_span_text(char *out, size_t size, double ms)
{
    double s = ms / 1000;

    if (s < 100) {
        (void)snprintf(out, size, "%.1f s", s);
    } else if (s < 7200) {
        (void)snprintf(out, size, "%.0f min", s / 60);
    } else if (s < 172800) {
        (void)snprintf(out, size, "%.1f h", s / 3600);
    } else {
        (void)snprintf(out, size, "%.1f days", s / 86400);
    }
    return out;
}

/* Estimates the remaining time from the progress so far. */
static void progress_time_left(const struct progress *p, uint64_t now_ms, char *out, size_t size)
{
    double all = (double)p->of_rounds * (double)p->trials;
    double share = all > 0 ? (double)p->rounds / all : 0;
    char span[32];

    out[0] = '\0';
    if (share > 0 && share <= 1) {
        double left = (double)(now_ms - p->begun_ms) * (1 - share) / share;

        (void)snprintf(out, size, ", %s left", progress_span_text(span, sizeof(span), left));
    }
}

/* The trial of `at`, newly begun or not; NULL: more run than are drawn. */
static struct progress_running *progress_of(struct progress *p, const struct progress_at *at)
{
    size_t i;

    for (i = 0; i < p->n_running; i++) {
        if (p->running[i].seed == at->seed &&
            strncmp(p->running[i].label, at->label, PROGRESS_LABEL - 1) == 0)
        {
            return &p->running[i];
        }
    }
    if (p->n_running == PROGRESS_TRIALS) {
        return NULL;
    }
    p->running[p->n_running] = (struct progress_running){.seed = at->seed};
    (void)snprintf(p->running[p->n_running].label, PROGRESS_LABEL, "%s", at->label);
    return &p->running[p->n_running++];
}

static void progress_keep(struct progress *p, const struct progress_at *at)
{
    struct progress_running *r = progress_of(p, at);

    if (r == NULL) {
        return;
    }
    r->round = at->round;
    r->rounds = at->rounds;
    r->accuracy = at->accuracy;
    r->bytes_up = at->bytes_up;
    r->time_us = at->time_us;
    if (r->n_last == FL_TERM_ROUNDS) {
        (void)memmove(&r->last[0], &r->last[1], (FL_TERM_ROUNDS - 1) * sizeof(r->last[0]));
        r->n_last--;
    }
    r->last[r->n_last++] = *at->record;
}

/* In one write, and one row shorter than the terminal, which would scroll. */
static void progress_draw_block(struct progress *p)
{
    uint64_t now_ms = fl_clock_ms();
    struct fl_term_lines lines = {.columns = PROGRESS_COLUMNS, .rows = PROGRESS_ROWS};
    struct fl_buf text;
    char left[64];

    if (p->line && now_ms - p->drawn_ms < INTERVAL_MS) {
        return;
    }
    progress_time_left(p, now_ms, left, sizeof(left));
    fl_terminal_size(STDERR_FILENO, &lines.columns, &lines.rows);
    lines.rows = lines.rows > 1 ? lines.rows - 1 : 1;
    fl_buf_init(&text, PROGRESS_BYTES);
    lines.out = &text;
    progress_lines(&lines, &(struct progress_shown){.trials = p->trials,
                                                    .done = p->done,
                                                    .elapsed_ms = now_ms - p->begun_ms,
                                                    .left = left,
                                                    .running = p->running,
                                                    .n_running = p->n_running});
    progress_clear_locked(p);
    if (lines.rv == FL_OK) {
        (void)fwrite(text.data, 1, text.len, stderr);
        p->line = true;
        p->n_lines = lines.used;
        p->drawn_ms = now_ms;
    }
    (void)fflush(stderr);
    fl_buf_done(&text);
}

static void progress_draw(struct progress *p, const struct progress_at *at)
{
    uint64_t now_ms = fl_clock_ms();
    char accuracy_text[48] = "";
    char up[32];
    char span[32];
    char left[64];

    if (p->line && now_ms - p->drawn_ms < INTERVAL_MS) {
        return;
    }
    progress_time_left(p, now_ms, left, sizeof(left));
    if (at->accuracy >= 0) {
        (void)snprintf(accuracy_text, sizeof(accuracy_text), " accuracy %.4f,", at->accuracy);
    }
    progress_clear_locked(p);
    (void)fprintf(stderr, "%zu of %zu trials; %s seed %llu: round %llu,%s %s up, %s simulated%s",
                  p->done, p->trials, at->label, (unsigned long long)at->seed,
                  (unsigned long long)at->round, accuracy_text,
                  fl_str_bytes(up, sizeof(up), at->bytes_up),
                  progress_span_text(span, sizeof(span), (double)at->time_us / 1000), left);
    (void)fflush(stderr);
    p->line = true;
    p->drawn_ms = now_ms;
}

void progress_round(struct progress *p, const struct progress_at *at)
{
    (void)pthread_mutex_lock(&p->lock);
    p->rounds++;
    p->of_rounds = at->rounds > p->of_rounds ? at->rounds : p->of_rounds;
    if (p->block) {
        progress_keep(p, at);
        progress_draw_block(p);
    } else if (p->shown) {
        progress_draw(p, at);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void progress_trial(struct progress *p, const char *label, uint64_t seed)
{
    size_t i;

    (void)pthread_mutex_lock(&p->lock);
    p->done++;
    for (i = 0; i < p->n_running; i++) {
        if (p->running[i].seed == seed &&
            strncmp(p->running[i].label, label, PROGRESS_LABEL - 1) == 0) {
            p->n_running--;
            (void)memmove(&p->running[i], &p->running[i + 1],
                          (p->n_running - i) * sizeof(p->running[0]));
            break;
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
}
