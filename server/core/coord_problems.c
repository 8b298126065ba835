/*
 * The problems that the coordinator finds (problems.h): clients that are missing, slow or
 * quarantined, a round that diverged, a loss that rises. On the thread of the coordinator;
 * read-only.
 */
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"
#include "server/core/problems.h"

/* A client is slow when it takes this much longer than twice the time of the others. */
#define SLOW_MS UINT64_C(3000)

#define X(kind, word) word,
const char *const fl_problem_words[FL_PROBLEM_N] = {FL_PROBLEMS(X)};
#undef X

static void problem_names(struct fl_problem *p, const char *what, struct fl__names *names)
{
    if (names->total > 0) {
        (void)snprintf(p->text, sizeof(p->text), "%s: %.180s", what, fl__names_text(names));
    }
}

static void problem_missing(const struct fl_coord *c, struct fl__names *silent,
                            struct fl__names *closed)
{
    struct fl_order_at at = {0};
    uint32_t client;

    while ((client = fl_order_next(&c->clients.names, &at)) != FL__NONE) {
        const struct fl__client *live = &c->clients.live[client];

        if (!live->connected && c->clients.recs[client].samples > 0 && !live->ineligible) {
            fl__names_add(live->silent ? silent : closed, fl__coord_name(c, client));
        }
    }
}

static bool awaits_participants(const struct fl_coord *c)
{
    return c->sm.state == FL_PHASE_TRAINING || c->sm.state == FL_PHASE_UPLOADING;
}

/*
 * Those that hold up the federation: participants of the open round, or what a round needs. Their
 * sessions ended with their connection, or timed out in silence, as behind a firewall.
 */
static void problem_disconnected(const struct fl_coord *c, struct fl_problem of[FL_PROBLEM_N])
{
    struct fl__names closed = {.used = 0};
    struct fl__names silent = {.used = 0};
    size_t i;

    if (awaits_participants(c)) {
        for (i = 0; i < c->round.n; i++) {
            uint32_t client = c->round.parts[i].client;

            if (c->round.parts[i].state == fl__coord_round_wanted(c) &&
                !c->clients.live[client].connected) {
                fl__names_add(c->clients.live[client].silent ? &silent : &closed,
                              fl__coord_name(c, client));
            }
        }
    } else if (c->sm.state == FL_PHASE_IDLE && c->started && !c->round.closing &&
               c->clients.n_alive < fl__coord_need(c))
    {
        problem_missing(c, &silent, &closed);
    }
    problem_names(&of[FL_PROBLEM_DISCONNECTED], "disconnected", &closed);
    problem_names(&of[FL_PROBLEM_UNREACHABLE],
                  "nothing is received any more (host or network down, or a firewall) from",
                  &silent);
}

/* Since when the participant is slow, or never. */
static uint64_t slow_from(const struct fl_coord *c, size_t i)
{
    const struct fl__round *r = &c->round;
    bool uploads = c->sm.state == FL_PHASE_UPLOADING;
    uint64_t began = uploads ? r->live[i].asked_ms : r->opened_ms;
    uint64_t took = uploads ? r->upload_span_ms : r->trained_ms;

    if (uploads ? !r->half_uploaded || began == 0 : !r->straggler_timed) {
        return FL__NEVER;
    }
    return took < FL__NEVER / 4 ? began + 2 * took + SLOW_MS : FL__NEVER;
}

static void problem_slow(const struct fl_coord *c, uint64_t now_ms, struct fl_problem *p)
{
    struct fl__names names = {.used = 0};
    size_t i;

    for (i = 0; awaits_participants(c) && i < c->round.n; i++) {
        uint32_t client = c->round.parts[i].client;

        if (c->round.parts[i].state == fl__coord_round_wanted(c) &&
            c->clients.live[client].connected && now_ms >= slow_from(c, i))
        {
            fl__names_add(&names, fl__coord_name(c, client));
        }
    }
    problem_names(p, "slower than the others", &names);
}

void fl_coord_problems(const struct fl_coord *c, uint64_t now_ms, struct fl_problems *ret)
{
    const struct fl__list *quarantined = &c->clients.quarantined;
    struct fl_problem *of = ret->of;
    struct fl__names names = {.used = 0};

    if (c->pause.on && strstr(c->pause.reason, FL__DIVERGED) != NULL) {
        (void)snprintf(of[FL_PROBLEM_DIVERGED].text, FL_PROBLEM_TEXT, "%.250s", c->pause.reason);
    }
    if (fl_loss_trend_rises(&c->trend)) {
        (void)snprintf(of[FL_PROBLEM_LOSS_RISES].text, FL_PROBLEM_TEXT,
                       "the training loss has risen since round %llu",
                       (unsigned long long)c->trend.lowest_round);
        (void)snprintf(of[FL_PROBLEM_LOSS_RISES].more, sizeof(of[0].more),
                       " (from %.4g to %.4g, means of %d rounds)", c->trend.lowest, c->trend.mean,
                       FL_LOSS_TREND_ROUNDS);
    }
    if (c->restarted && now_ms < c->settle_ms) {
        problem_missing(c, &names, &names);
        problem_names(&of[FL_PROBLEM_RESTARTED], FL__RESTARTED, &names);
    }
    problem_disconnected(c, of);
    problem_slow(c, now_ms, &of[FL_PROBLEM_SLOW]);
    if (quarantined->n > 0) {
        (void)snprintf(of[FL_PROBLEM_QUARANTINED].text, FL_PROBLEM_TEXT,
                       "client '%s' is quarantined", fl__coord_name(c, quarantined->first));
        if (quarantined->n > 1) {
            (void)snprintf(of[FL_PROBLEM_QUARANTINED].more, sizeof(of[0].more), " (and %zu others)",
                           quarantined->n - 1);
        }
    }
}
