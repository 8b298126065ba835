/* Who is there, and what goes between a client and the server. */

#include <stdlib.h>

#include "tools/fl_sim/engine/sim_federation_impl.h"

/* --- who has something to do --- */

struct fl__active *fl__fed_active(struct fl_fed *fed, uint32_t client)
{
    struct fl__fed_client *c = &fed->clients[client];

    if (c->active == NULL) {
        c->active = calloc(1, sizeof(*c->active));
        if (c->active == NULL) {
            fl__fed_fail(fed, FL_ENOMEM, NULL, "a client");
            return NULL;
        }
        c->active->client = client;
        c->active->stamp = c->stamp;
    }
    return c->active;
}

void fl__active_free(struct fl_fed *fed, struct fl__active *a)
{
    fl_session_free(a->session);
    fl_model_cache_unref(a->model_cache);
    fl_job_free(a->training);
    fl_job_free(a->coding);
    fl_job_free(a->evaluation);
    fl_blob_unref(a->model);
    fl_job_answer_done(&a->result);
    free(a->units);
    fed->clients[a->client].active = NULL;
    fed->clients[a->client].stamp = a->stamp; /* What it had begun may still be on the agenda. */
    free(a);
}

/* --- coming and going --- */

/* Whether its machine is there, and until when that holds. */
static bool machine_up(const struct fl_fed *fed, uint32_t client, uint64_t *ret_until_us)
{
    *ret_until_us = UINT64_MAX;
    return fed->conf.world == NULL ||
           fl_world_up(fed->conf.world, client, fed->now_us, ret_until_us);
}

static void start_process(struct fl_fed *fed, uint32_t client)
{
    struct fl__active *a = fl__fed_active(fed, client);

    fed->clients[client].up = true;
    if (a != NULL) {
        fl__session_start(fed, a);
    }
}

/* What the process was doing ends; what it holds is on its disk. */
static void end_process(struct fl_fed *fed, struct fl__active *a)
{
    fl__fetch_cancel(fed, a);
    fl__push_cancel(fed, a);
    fl__model_cancel(fed, a);
    fl_job_free(a->training);
    a->training = NULL;
    a->training_key = (struct fl_round_key){0};
    a->awaits_training = 0;
    fl_job_free(a->evaluation);
    a->evaluation = NULL;
    a->evaluating = 0;
    a->awaits_evaluation = 0;
    fl_session_free(a->session);
    a->session = NULL;
    a->tick_us = 0;
    if (a->held.round == 0) {
        fl__active_free(fed, a);
    }
}

static void kill_process(struct fl_fed *fed, uint32_t client)
{
    struct fl__fed_client *c = &fed->clients[client];
    struct fl_fed_part *part = fl_account_part(&fed->account, client);
    struct fl__message *m;

    c->up = false;
    if (part != NULL && part->pushed_us == 0) {
        part->dropped = true;
    }
    if (c->joined != 0) {
        m = fl__fed_message(fed, FL__SAYS_LOST, client);
        if (m != NULL) {
            fl__fed_send(fed, m);
        }
    }
    c->connection++;
    if (c->active != NULL) {
        end_process(fed, c->active);
    }
}

void fl__fed_machine(struct fl_fed *fed, uint32_t client)
{
    struct fl__fed_client *c = &fed->clients[client];
    uint64_t until;
    bool there = machine_up(fed, client, &until);

    if (there && !c->up && !c->away) {
        start_process(fed, client);
    } else if (!there && c->up) {
        kill_process(fed, client);
    }
    if (until != UINT64_MAX) {
        fl__fed_at(fed, until, FL__AT_MACHINE, client, 0, NULL);
    }
}

void fl__fed_drop(struct fl_fed *fed, uint32_t client, uint64_t away_us)
{
    fed->clients[client].away = true;
    kill_process(fed, client);
    fl__fed_at(fed, fed->now_us + away_us, FL__AT_BACK, client, 0, NULL);
}

void fl__fed_back(struct fl_fed *fed, uint32_t client)
{
    uint64_t until;

    fed->clients[client].away = false;
    if (machine_up(fed, client, &until)) { /* Else it comes with its machine. */
        start_process(fed, client);
    }
}

/* At the beginning nobody has anything to do: a hello without a session. */
static void greet(struct fl_fed *fed, uint32_t client)
{
    struct fl__message *m;
    uint64_t latency = fl__fed_latency(fed, client);

    if (!fl_name_valid(fl__fed_name(fed, client))) {
        fl__fed_fail(fed, FL_EINVAL, NULL, fl__fed_name(fed, client));
        return;
    }
    fed->clients[client].up = true;
    fed->clients[client].connection = 1;
    m = fl__fed_message(fed, FL__SAYS_HELLO, client);
    if (m != NULL) { /* A connection stands after a round trip. */
        fed->account.sim.up_control_bytes += fl__message_bytes(fed, m);
        fl__fed_at(fed, fed->now_us + 3 * latency, FL__AT_MESSAGE, client, 0, m);
    }
}

void fl__fed_begin_clients(struct fl_fed *fed)
{
    uint64_t until;
    uint32_t i;

    for (i = 0; fed->code == FL_OK && i < fed->conf.sim_clients->n; i++) {
        if (machine_up(fed, i, &until)) {
            greet(fed, i);
        }
        if (until != UINT64_MAX) {
            fl__fed_at(fed, until, FL__AT_MACHINE, i, 0, NULL);
        }
    }
}
