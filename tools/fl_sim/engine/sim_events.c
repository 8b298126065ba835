/*
 * What all files of a simulated federation use: its error, the agenda of events, the queue of
 * results for the coordinator, results of jobs. One thread, that of the federation.
 */
#include <stdlib.h>

#include "tools/fl_sim/engine/sim_federation_impl.h"

void fl__fed_fail(struct fl_fed *fed, int code, const struct fl_err *err, const char *what)
{
    if (fed->code == FL_OK) {
        fed->code = fl_err_set(&fed->err, code, "%s: %s", what, fl_err_text(err, code));
        fed->shell.stopped = true;
    }
}

const char *fl__fed_name(const struct fl_fed *fed, uint32_t client)
{
    struct fl_sim_client sim_client;

    fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, client, &sim_client);
    return sim_client.name;
}

void fl__message_free(struct fl__message *m)
{
    if (m != NULL) {
        fl_blob_unref(m->model);
        free(m->list);
        free(m->metrics[0]);
        free(m->metrics[1]);
        free(m);
    }
}

void fl__fed_at(struct fl_fed *fed, uint64_t at_us, enum fl__fed_kind kind, uint32_t client,
                uint32_t stamp, void *data)
{
    const struct fl_agenda_event event = {.at = at_us > fed->now_us ? at_us : fed->now_us,
                                          .rank1 = client / FL__FED_GROUP,
                                          .rank2 = (uint32_t)kind * FL__FED_GROUP +
                                                   client % FL__FED_GROUP,
                                          .words = {stamp, 0},
                                          .data = data};

    if (fl_agenda_push(&fed->agenda, &event) != FL_OK) {
        if (kind == FL__AT_MESSAGE) {
            fl__message_free(data);
        }
        fl__fed_fail(fed, FL_ENOMEM, NULL, "the agenda");
    }
}

struct fl__fed_answer *fl__fed_answer(struct fl_fed *fed, enum fl_event_type type)
{
    size_t cap = fed->cap_queue == 0 ? 64 : 2 * fed->cap_queue;
    struct fl__fed_answer *grown;

    /* All answers were taken: reuse the array from its start. */
    if (fed->first > 0 && fed->first == fed->n_queue) {
        fed->first = fed->n_queue = 0;
    }
    if (fed->n_queue == fed->cap_queue) {
        grown = realloc(fed->queue, cap * sizeof(*grown));
        if (grown == NULL) {
            fl__fed_fail(fed, FL_ENOMEM, NULL, "answers to the coordinator");
            return NULL;
        }
        fed->queue = grown;
        fed->cap_queue = cap;
    }
    fed->queue[fed->n_queue] = (struct fl__fed_answer){.event = {.type = type}};
    return &fed->queue[fed->n_queue++];
}

void fl__fed_step(struct fl_fed *fed, struct fl_event *event)
{
    fl_coord_shell_step(&fed->shell, event);
    while (fed->code == FL_OK && !fed->finished && fed->first < fed->n_queue) {
        struct fl__fed_answer a = fed->queue[fed->first++];

        if (a.job != NULL) {
            fl_coord_shell_done(&fed->shell, a.job);
        } else {
            fl_coord_shell_step(&fed->shell, &a.event);
        }
    }
}

bool fl__fed_replays(const struct fl_fed *fed)
{
    return fed->journal != NULL && fl_journal_replays(fed->journal);
}

int fl__fed_take(struct fl_fed *fed, struct fl_pool_job *job, enum fl_job_kind kind,
                 uint32_t client, struct fl_round_key key, struct fl_job_answer *ret)
{
    struct fl_err err = {0};
    int rv = FL_OK;

    *ret = (struct fl_job_answer){.code = FL_OK};
    if (fl__fed_replays(fed)) {
        rv = fl_journal_take(fed->journal, kind, client, key, ret, &err);
    } else if (job != NULL) {
        fl_job_take(job, ret);
        rv = fed->journal != NULL ? fl_journal_put(fed->journal, kind, client, key, ret) : FL_OK;
    } else
    { /* The job began before the commit that the journal ends with, so no result is needed. */
        ret->code = FL_ECANCELED;
    }
    if (rv != FL_OK) {
        fl_job_answer_done(ret);
        fl__fed_fail(fed, rv, &err, "the journal");
    }
    return rv;
}
