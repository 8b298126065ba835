/*
 * What is wrong with the federation (server/core/problems.h), and the text of `why`, which has all
 * of it: the status page, `flctl why`, STATUS of systemd and the metrics take their words from
 * here. Coordinator thread; read-only.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/base/utc.h"
#include "server/auth/auth.h"
#include "server/runtime/runtime_impl.h"

/* A certificate that expires within this time is a problem, as in deploy/prometheus. */
#define CERTIFICATE_MS UINT64_C(604800000)
/* Two clocks of one host never differ by so much: the records are its own. */
#define CLOCK_MS UINT64_C(60000)

static void problem_stall(const struct fl_runtime *runtime, struct fl_problem *p)
{
    struct fl_stall stall = fl_stall_find(runtime->setup.watch);

    if (stall.for_ms >= FL_STALL_REPORT_MS) {
        (void)snprintf(p->text, sizeof(p->text), FL_STALL_TEXT, runtime->setup.watch->state_dir);
        (void)snprintf(p->more, sizeof(p->more),
                       " for %" PRIu64 " s (thread %s), all deadlines are suspended",
                       stall.for_ms / 1000, stall.thread);
    }
}

/* The records of rounds are older than now, unless the clock of this host was set back. */
static void problem_clock(const struct fl_runtime *runtime, uint64_t wall_ms, struct fl_problem *p)
{
    uint64_t ended_ms = runtime->progress.totals.ended_ms;
    char last[FL_UTC_TEXT];

    if (ended_ms > wall_ms + CLOCK_MS && fl_utc_text((int64_t)(ended_ms / 1000), last)) {
        (void)snprintf(p->text, sizeof(p->text),
                       "the clock of this host is wrong: the last round was committed at %s", last);
        (void)snprintf(p->more, sizeof(p->more), ", %" PRIu64 " s from now",
                       (ended_ms - wall_ms) / 1000);
    }
}

static void problem_certificate(const struct fl_runtime *runtime, uint64_t wall_ms,
                                struct fl_problem *p)
{
    static const char *const whose[] = {"the certificate of this server",
                                        "the certificate of this server's issuer"};
    uint64_t ends_ms[2];
    char ends[FL_UTC_TEXT];
    size_t i;

    fl_auth_ends(runtime->setup.watch->auth, ends_ms);
    for (i = 0; i < 2 && p->text[0] == '\0'; i++) {
        if (ends_ms[i] != 0 && ends_ms[i] < wall_ms + CERTIFICATE_MS &&
            fl_utc_text((int64_t)(ends_ms[i] / 1000), ends))
        {
            (void)snprintf(p->text, sizeof(p->text), "%s %s at %s", whose[i],
                           ends_ms[i] <= wall_ms ? "expired" : "expires", ends);
        }
    }
}

void fl_runtime_problems(const struct fl_runtime *runtime, struct fl_problems *ret)
{
    uint64_t wall_ms = fl_clock_wall_ms();
    size_t i;

    *ret = (struct fl_problems){0};
    problem_stall(runtime, &ret->of[FL_PROBLEM_DISK_STALLED]);
    if (runtime->own_failure[0] != '\0') {
        (void)snprintf(ret->of[FL_PROBLEM_WORK_FAILED].text, FL_PROBLEM_TEXT,
                       "failed, retrying: %.235s", runtime->own_failure);
    }
    problem_clock(runtime, wall_ms, &ret->of[FL_PROBLEM_CLOCK]);
    problem_certificate(runtime, wall_ms, &ret->of[FL_PROBLEM_CERTIFICATE]);
    fl_runtime_problem_takeovers(runtime, &ret->of[FL_PROBLEM_CLONE]);
    fl_runtime_problem_unfit(runtime, &ret->of[FL_PROBLEM_UNFIT]);
    fl_coord_problems(runtime->coord, runtime->clock.last_ms, ret);
    for (i = 0; i < FL_PROBLEM_N; i++) {
        (void)fl_str_clean(ret->of[i].text);
    }
}

size_t fl_runtime_why(struct fl_runtime *runtime, char *text, size_t size, const char **missing,
                      size_t max)
{
    char round[FL_WIRE_MAX_TEXT];
    struct fl_problems problems;
    size_t used = 0;
    size_t n = 0;
    size_t i;

    fl_coord_why(runtime->coord, fl_runtime_now(runtime), round, sizeof(round), missing, max, &n);
    fl_runtime_add_takeovers(runtime, round, sizeof(round));
    fl_runtime_add_error(runtime, round, sizeof(round));
    fl_runtime_problems(runtime, &problems);
    text[0] = '\0';
    for (i = 0; i < FL_PROBLEM_N; i++) {
        const struct fl_problem *p = &problems.of[i];

        /* Most of them hold up the round: its sentence has their phrase. */
        if (p->text[0] != '\0' && strstr(round, p->text) == NULL && used < size) {
            used += (size_t)snprintf(text + used, size - used, "%s%s; ", p->text, p->more);
        }
    }
    if (used < size) {
        (void)snprintf(text + used, size - used, "%s", round);
    }
    return n < max ? n : max;
}
