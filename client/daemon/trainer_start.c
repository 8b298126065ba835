#include "client/daemon/trainer_start.h"

#include <limits.h>
#include <stdio.h>

#include "libfl/base/backoff.h"

static const struct fl_backoff waits = {.first_ms = 1000, .cap_ms = 60000, .factor = 2};

static void start_work(void *arg)
{
    struct fl_trainer_starting *s = arg;

    s->err = (struct fl_err){0};
    s->code = fl_trainer_start(s->trainer, &s->samples, &s->evaluation_samples, &s->err);
}

static void trainer_start_failed(struct fl_trainer_starting *s, int code, const struct fl_err *err)
{
    uint64_t pause;

    s->failures += s->failures < UINT_MAX ? 1 : 0;
    pause = fl_backoff_base(&waits, s->failures);
    (void)snprintf(s->why, sizeof(s->why), "%s", fl_err_text(err, code));
    fl_log(s->jobs->log, FL_LOG_ERROR, "client",
           "the trainer failed to start, retrying in %llu s: %s", (unsigned long long)pause / 1000,
           s->why);
    fl_timer_start(s->timer, pause);
}

static void start_done(void *arg)
{
    struct fl_trainer_starting *s = arg;

    if (s->timer == NULL) {
        return; /* The client is shutting down. */
    }
    if (s->code == FL_OK) {
        s->ready = true;
        s->data->samples = s->samples;
        s->data->evaluation_samples = s->evaluation_samples;
    } else {
        trainer_start_failed(s, s->code, &s->err);
    }
    s->changed(s->arg);
}

static void trainer_start_attempt(void *arg)
{
    struct fl_trainer_starting *s = arg;

    if (fl_jobs_submit(s->jobs, start_work, start_done, s) != FL_OK) {
        trainer_start_failed(s, FL_ENOMEM, NULL);
    }
}

int fl_trainer_starting_begin(struct fl_trainer_starting *s)
{
    int rv = fl_timer_create(s->jobs->loop, trainer_start_attempt, s, &s->timer);

    if (rv != FL_OK) {
        return rv;
    }
    fl_timer_start(s->timer, 0);
    return FL_OK;
}

void fl_trainer_starting_stop(struct fl_trainer_starting *s)
{
    fl_timer_close(s->timer);
    s->timer = NULL;
}
