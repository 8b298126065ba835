/*
 * The account of a simulated round (account.h): times of phases and bytes. One thread, that of the
 * federation.
 */
#include "tools/fl_sim/engine/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fl_sim_account_begin(struct fl_sim_account *a, uint64_t now_us)
{
    fl_sim_round_init(&a->sim);
    a->ended_us = now_us;
    a->opened_us = a->first_us = a->uploads_us = a->planned_us = 0;
    a->n_parts = 0;
    a->missing[0] = '\0';
    a->last_report = a->last_push = SIZE_MAX;
}

static int account_by_client(const void *a, const void *b)
{
    size_t x = ((const struct fl_fed_part *)a)->client;
    size_t y = ((const struct fl_fed_part *)b)->client;

    return (x > y) - (x < y);
}

int fl_sim_account_select(struct fl_sim_account *a, size_t n)
{
    struct fl_fed_part *grown;

    if (n > a->cap_parts) {
        grown = realloc(a->parts, n * sizeof(*grown));
        if (grown == NULL) {
            return FL_ENOMEM;
        }
        a->parts = grown;
        a->cap_parts = n;
    }
    a->n_parts = 0;
    return FL_OK;
}

void fl_sim_account_selected(struct fl_sim_account *a, size_t n)
{
    a->n_parts = n;
    if (n > 1) {
        qsort(a->parts, n, sizeof(*a->parts), account_by_client);
    }
}

void fl_sim_account_open(struct fl_sim_account *a, uint64_t now_us)
{
    size_t i;

    if (a->sim.n_attempts++ == 0) {
        a->first_us = now_us;
    }
    a->opened_us = now_us;
    a->uploads_us = a->planned_us = 0;
    a->missing[0] = '\0';
    a->last_report = a->last_push = SIZE_MAX;
    for (i = 0; i < a->n_parts; i++) {
        a->parts[i].selected_us = now_us;
    }
}

struct fl_fed_part *fl_sim_account_part(struct fl_sim_account *a, size_t client)
{
    const struct fl_fed_part key = {.client = client};

    return a->n_parts == 0
               ? NULL
               : bsearch(&key, a->parts, a->n_parts, sizeof(*a->parts), account_by_client);
}

/* --- where the time went --- */

static uint64_t account_since(uint64_t later, uint64_t earlier)
{
    return later > earlier ? later - earlier : 0;
}

/*
 * From the time a client's task was sent until its report, or until `until` when the phase ended
 * without its report: the time that is neither download nor training is latency.
 */
static void account_add_training(struct fl_sim_round *sim, const struct fl_fed_part *p,
                                 uint64_t latency_us, uint64_t span_us)
{
    uint64_t download = account_since(account_since(p->fetched_us, p->tasked_us), 2 * latency_us);
    uint64_t training = account_since(p->trained_us, p->fetched_us);

    download = download < span_us ? download : span_us;
    training = training < span_us - download ? training : span_us - download;
    sim->download_us += download;
    sim->training_us += training;
    sim->message_us += span_us - download - training;
}

static void account_add_upload(struct fl_sim_round *sim, const struct fl_fed_part *p,
                               uint64_t span_us)
{
    uint64_t upload = account_since(p->sent_us, p->sending_us);

    upload = upload < span_us ? upload : span_us;
    sim->upload_us += upload;
    sim->message_us += span_us - upload;
}

/* Task to upload without a plan: the chain of the client whose upload came last. */
static void account_close_without_plan(struct fl_sim_account *a, uint64_t end_us)
{
    size_t last = a->last_push != SIZE_MAX ? a->last_push : a->last_report;
    const struct fl_fed_part *p = last != SIZE_MAX ? &a->parts[last] : NULL;
    uint64_t reached = p == NULL              ? a->opened_us
                       : a->last_push == last ? p->pushed_us
                                              : p->reported_us;
    uint64_t split;

    if (p != NULL && a->last_push == last) {
        /* Report and upload leave together when the training has ended. */
        split = account_since(p->trained_us, a->opened_us) < account_since(reached, a->opened_us)
                    ? account_since(p->trained_us, a->opened_us)
                    : account_since(reached, a->opened_us);
        account_add_training(&a->sim, p, p->latency_us, split);
        account_add_upload(&a->sim, p, account_since(reached, a->opened_us) - split);
    } else if (p != NULL) {
        account_add_training(&a->sim, p, p->latency_us, account_since(reached, a->opened_us));
    }
    a->sim.late_us += account_since(end_us, reached);
}

/* Two chains: that of the last report before the plan, and that of the last upload after it. */
static void account_close_with_plan(struct fl_sim_account *a, uint64_t end_us)
{
    const struct fl_fed_part *r = a->last_report != SIZE_MAX ? &a->parts[a->last_report] : NULL;
    const struct fl_fed_part *u = a->last_push != SIZE_MAX ? &a->parts[a->last_push] : NULL;
    uint64_t reported =
        r != NULL && r->reported_us < a->planned_us ? r->reported_us : a->planned_us;
    uint64_t pushed = u != NULL ? u->pushed_us : a->planned_us;

    if (r != NULL) {
        account_add_training(&a->sim, r, r->latency_us, account_since(reported, a->opened_us));
        a->sim.late_us += account_since(a->planned_us, reported);
    } else {
        a->sim.late_us += account_since(a->planned_us, a->opened_us);
    }
    if (u != NULL) {
        account_add_upload(&a->sim, u, account_since(pushed, a->planned_us));
    }
    a->sim.late_us += account_since(end_us, pushed);
}

static void account_close_phase(struct fl_sim_account *a, uint64_t now_us)
{
    uint64_t uploads = a->uploads_us != 0 ? a->uploads_us : now_us;
    size_t last = a->last_push != SIZE_MAX ? a->last_push : a->last_report;
    const char *by = a->missing[0] != '\0' ? a->missing
                     : last != SIZE_MAX    ? a->parts[last].name
                                           : "";

    a->sim.time_us = now_us;
    a->sim.wall_us = now_us - a->ended_us;
    a->sim.wait_clients_us = account_since(a->first_us, a->ended_us);
    a->sim.retry_us = account_since(a->opened_us, a->first_us);
    a->sim.evaluation_us = account_since(now_us, uploads);
    if (a->planned_us != 0) {
        account_close_with_plan(a, uploads);
    } else {
        account_close_without_plan(a, uploads);
    }
    (void)snprintf(a->sim.waiting_for, sizeof(a->sim.waiting_for), "%s", by);
}

void fl_sim_account_end(struct fl_sim_account *a, uint64_t now_us)
{
    account_close_phase(a, now_us);
}

void fl_sim_account_done(struct fl_sim_account *a)
{
    free(a->parts);
    *a = (struct fl_sim_account){.n_parts = 0};
}
