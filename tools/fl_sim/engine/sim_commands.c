/* Client numbers of the coordinator, and its messages to clients: operations of the shell. One
   thread, that of the federation. */

#include <stdlib.h>
#include <string.h>

#include "server/work/commit.h"
#include "tools/fl_sim/engine/sim_federation_impl.h"

uint32_t fl__fed_client_of(const struct fl_fed *fed, uint32_t number)
{
    return number < fed->cap_numbers ? fed->by_number[number] : UINT32_MAX;
}

static int commands_set_number(struct fl_fed *fed, uint32_t number, uint32_t client)
{
    size_t cap = fed->cap_numbers == 0 ? 64 : fed->cap_numbers;
    uint32_t *grown;
    size_t i;

    while (cap <= number) {
        cap *= 2;
    }
    if (cap != fed->cap_numbers) {
        grown = realloc(fed->by_number, cap * sizeof(*grown));
        if (grown == NULL) {
            return FL_ENOMEM;
        }
        for (i = fed->cap_numbers; i < cap; i++) {
            grown[i] = UINT32_MAX;
        }
        fed->by_number = grown;
        fed->cap_numbers = cap;
    }
    fed->by_number[number] = client;
    return FL_OK;
}

static struct fl__message *commands_new_message(struct fl_fed *fed, const struct fl_effect *e,
                                                enum fl__message_type type)
{
    uint32_t client = fl__fed_client_of(fed, e->client);
    struct fl__message *m = NULL;

    if (client != UINT32_MAX && fed->clients[client].joined != 0) {
        m = fl__fed_message(fed, type, client);
    }
    if (m != NULL) {
        m->key = (struct fl_round_key){e->round, e->attempt};
        m->connection = fed->clients[client].joined;
    }
    return m;
}

/* The upload mask of a message; false: out of memory, and the message is freed. */
static bool commands_put_mask(struct fl_fed *fed, struct fl__message *m, const uint8_t *units)
{
    size_t n = fl_layout_units(fed->federation.layout);

    if (units != NULL) {
        m->units = malloc(n + 1);
        if (m->units == NULL) {
            fl__message_free(m);
            fl__fed_fail(fed, FL_ENOMEM, NULL, "a plan");
            return false;
        }
        (void)memcpy(m->units, units, n);
    }
    return true;
}

void fl__fed_send_task(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;
    struct fl__message *m = commands_new_message(fed, e, FL__MSG_TASK);

    if (m == NULL || !commands_put_mask(fed, m, e->units)) {
        return;
    }
    m->task = e->task;
    m->personal_model = e->personal_model;
    fl__fed_send(fed, m);
}

void fl__fed_send_plan(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;
    struct fl__message *m = commands_new_message(fed, e, FL__MSG_PLAN);
    struct fl_fed_part *p;

    if (fed->account.planned_us == 0) {
        fed->account.planned_us = fed->now_us;
    }
    if (m != NULL && commands_put_mask(fed, m, e->units)) {
        p = fl_sim_account_part(&fed->account, m->client);
        if (p != NULL) {
            p->planned_us = fed->now_us;
        }
        fl__fed_send(fed, m);
    }
}

void fl__fed_send_verdict(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;
    struct fl__message *m = commands_new_message(fed, e,
                                                 e->type == FL_EFF_ACCEPTED   ? FL__MSG_ACCEPTED
                                                 : e->type == FL_EFF_REJECTED ? FL__MSG_REJECTED
                                                                              : FL__MSG_DISMISSED);

    if (m != NULL) {
        fl__fed_send(fed, m);
    }
}

void fl__fed_send_evaluate(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;
    struct fl__message *m = commands_new_message(fed, e, FL__MSG_EVALUATE);

    if (m != NULL) {
        if (!fl__fed_replays(fed)) {
            m->model = fl_blob_ref(fl_progress_model(&fed->progress)->theta);
        }
        m->rate = fl_coord_learning_rate(&fed->conf.coord, e->round);
        fl__fed_send(fed, m);
    }
}

/* A client that sent a hello gets its number; the Welcome is its first message. */
void fl__fed_admit(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;
    struct fl__message *m;

    if (fed->joining == UINT32_MAX) {
        return;
    }
    if (e->client == UINT32_MAX) {
        struct fl_err err = {0};

        (void)fl_err_set(&err, FL_ESTATE, "not admitted: %s", e->text);
        fl__fed_fail(fed, FL_ESTATE, &err, fl__fed_name(fed, fed->joining));
        return;
    }
    fed->clients[fed->joining].number = e->client;
    if (commands_set_number(fed, e->client, fed->joining) != FL_OK) {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "the numbers of clients");
    }
    if (fed->clients[fed->joining].active != NULL) {
        m = fl__fed_message(fed, FL__MSG_WELCOME, fed->joining);
        if (m != NULL) {
            fl__fed_send(fed, m);
        }
    }
}

void fl__fed_release(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;
    struct fl__fed_answer *answer = fl__fed_answer(fed, FL_EV_RELEASED);
    uint32_t client = fl__fed_client_of(fed, e->client);

    if (client != UINT32_MAX) {
        fed->clients[client].number = UINT32_MAX;
        fed->by_number[e->client] = UINT32_MAX;
    }
    if (answer != NULL) {
        answer->event.u.client = e->client;
    }
}
