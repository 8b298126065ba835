/* The clients of a simulated federation: availability, connections, and messages between client and
   server. One thread, that of the federation. The client's session is in sim_session.c. */

#include <stdlib.h>

#include "tools/fl_sim/engine/sim_federation_impl.h"

/* --- active clients --- */

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

/* --- availability --- */

/* Is the client's machine up, and until when is that certain? */
static bool clients_machine_up(const struct fl_fed *fed, uint32_t client, uint64_t *ret_until_us)
{
    *ret_until_us = UINT64_MAX;
    return fed->conf.world == NULL ||
           fl_world_up(fed->conf.world, client, fed->now_us, ret_until_us);
}

static void clients_start_process(struct fl_fed *fed, uint32_t client)
{
    struct fl__active *a = fl__fed_active(fed, client);

    fed->clients[client].up = true;
    if (a != NULL) {
        fl__session_start(fed, a);
    }
}

/* The process stops its current work; its client state stays on disk. */
static void clients_end_process(struct fl_fed *fed, struct fl__active *a)
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

static void clients_kill_process(struct fl_fed *fed, uint32_t client)
{
    struct fl__fed_client *c = &fed->clients[client];
    struct fl_fed_part *part = fl_sim_account_part(&fed->account, client);
    struct fl__message *m;

    c->up = false;
    if (part != NULL && part->pushed_us == 0) {
        part->dropped = true;
    }
    if (c->joined != 0) {
        m = fl__fed_message(fed, FL__MSG_LOST, client);
        if (m != NULL) {
            fl__fed_send(fed, m);
        }
    }
    c->connection++;
    if (c->active != NULL) {
        clients_end_process(fed, c->active);
    }
}

void fl__fed_machine(struct fl_fed *fed, uint32_t client)
{
    struct fl__fed_client *c = &fed->clients[client];
    uint64_t until;
    bool there = clients_machine_up(fed, client, &until);

    if (there && !c->up && !c->dropped) {
        clients_start_process(fed, client);
    } else if (!there && c->up) {
        clients_kill_process(fed, client);
    }
    if (until != UINT64_MAX) {
        fl__fed_at(fed, until, FL__AT_MACHINE, client, 0, NULL);
    }
}

void fl__fed_drop(struct fl_fed *fed, uint32_t client, uint64_t down_us)
{
    fed->clients[client].dropped = true;
    clients_kill_process(fed, client);
    fl__fed_at(fed, fed->now_us + down_us, FL__AT_BACK, client, 0, NULL);
}

void fl__fed_back(struct fl_fed *fed, uint32_t client)
{
    uint64_t until;

    fed->clients[client].dropped = false;
    if (clients_machine_up(fed, client, &until))
    { /* Otherwise it connects when its machine comes up. */
        clients_start_process(fed, client);
    }
}

/* At the start no client has anything to do, so it sends a hello without a session. */
static void clients_send_hello(struct fl_fed *fed, uint32_t client)
{
    struct fl__message *m;
    uint64_t latency = fl__fed_latency(fed, client);

    if (!fl_name_valid(fl__fed_name(fed, client))) {
        fl__fed_fail(fed, FL_EINVAL, NULL, fl__fed_name(fed, client));
        return;
    }
    fed->clients[client].up = true;
    fed->clients[client].connection = 1;
    m = fl__fed_message(fed, FL__MSG_HELLO, client);
    if (m != NULL) { /* A connection is established after one round trip. */
        fed->account.sim.up_control_bytes += fl__message_bytes(fed, m);
        fl__fed_at(fed, fed->now_us + 3 * latency, FL__AT_MESSAGE, client, 0, m);
    }
}

void fl__fed_begin_clients(struct fl_fed *fed)
{
    uint64_t until;
    uint32_t i;

    for (i = 0; fed->code == FL_OK && i < fed->conf.sim_clients->n; i++) {
        if (clients_machine_up(fed, i, &until)) {
            clients_send_hello(fed, i);
        }
        if (until != UINT64_MAX) {
            fl__fed_at(fed, until, FL__AT_MACHINE, i, 0, NULL);
        }
    }
}
