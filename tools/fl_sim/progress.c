/* The progress line of a run on stderr. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/run.h"

/* Update interval that a user can follow. */
#define INTERVAL_MS 200

struct progress {
    pthread_mutex_t lock;
    bool quiet;
    bool shown; /* stderr is a terminal */
    bool line;  /* the line is displayed */
    size_t trials, done;
    uint64_t begun_ms, drawn_ms;
    uint64_t rounds; /* rounds run, and rounds to run in each trial; 0: not known */
    uint64_t of_rounds;
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
    p->trials = trials;
    p->begun_ms = fl_clock_ms();
    *ret = p;
    return FL_OK;
}

static void progress_clear_locked(struct progress *p)
{
    if (p->line) {
        (void)fputs("\r\033[K", stderr);
        p->line = false;
    }
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
    if (p->shown) {
        progress_draw(p, at);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void progress_trial(struct progress *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->done++;
    (void)pthread_mutex_unlock(&p->lock);
}
