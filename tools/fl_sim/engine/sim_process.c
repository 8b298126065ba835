/* The processes of active clients: their state, and their end. One thread, that of the federation.
   They are started in clients.c, their sessions are in sim_session.c. */
#include <stdlib.h>

#include "tools/fl_sim/engine/sim_federation_impl.h"

struct fl__active *fl__fed_active(struct fl_fed *fed, uint32_t client)
{
    struct fl__fed_client *c = &fed->clients[client];

    if (c->active == NULL) {
        c->active = calloc(1, sizeof(*c->active));
        if (c->active == NULL) {
            fl__fed_fail(fed, FL_ENOMEM, NULL, "a client");
            return NULL;
        }
        c->active->fed = fed;
        c->active->client = client;
        c->active->stamp = c->stamp;
    }
    return c->active;
}

void fl__active_free(struct fl_fed *fed, struct fl__active *a)
{
    fl_session_shell_free(a->shell);
    fl_model_cache_unref(a->model_cache);
    fl_pool_job_free(a->training);
    fl_pool_job_free(a->coding);
    fl_pool_job_free(a->evaluation);
    fl_blob_unref(a->model);
    fl_job_answer_done(&a->result);
    fl_job_answer_done(&a->code);
    free(a->units);
    fed->clients[a->client].active = NULL;
    /* Events of its previous activity may still be on the agenda. */
    fed->clients[a->client].stamp = a->stamp;
    free(a);
}

/* The process stops its current work; its client state stays on disk. */
static void process_end(struct fl_fed *fed, struct fl__active *a)
{
    fl__fetch_cancel(fed, a);
    fl__push_cancel(fed, a);
    fl__model_cancel(fed, a);
    fl_pool_job_free(a->training);
    a->training = NULL;
    a->training_key = (struct fl_round_key){0};
    a->awaits_training = 0;
    fl_pool_job_free(a->evaluation);
    a->evaluation = NULL;
    a->evaluating = 0;
    a->awaits_evaluation = 0;
    fl_session_shell_free(a->shell);
    a->shell = NULL;
    a->tick_us = 0;
    if (a->pending.round == 0) {
        fl__active_free(fed, a);
    }
}

void fl__process_kill(struct fl_fed *fed, uint32_t client)
{
    struct fl__fed_client *c = &fed->clients[client];
    struct fl_fed_part *part = fl_sim_account_part(&fed->account, client);
    struct fl__message *m;

    c->up = false;
    if (part != NULL && part->pushed_us == 0) {
        part->dropped = true;
    }
    if (c->joined != 0) {
        m = fl__message_lost(fed, client);
        if (m != NULL) {
            fl__fed_send(fed, m);
        }
    }
    c->connection++;
    if (c->active != NULL) {
        process_end(fed, c->active);
    }
    fl__collusion_dropped(fed);
}

void fl__fed_drop(struct fl_fed *fed, uint32_t client, uint64_t down_us)
{
    fed->clients[client].dropped = true;
    fl__process_kill(fed, client);
    fl__fed_at(fed, fed->now_us + down_us, FL__AT_BACK, client, 0, NULL);
}
