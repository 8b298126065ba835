/* Client numbers of the coordinator, and its messages to clients: operations of the shell. One
   thread, that of the federation. */

#include <stdlib.h>

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

void fl__fed_send_command(void *ctx, const struct fl_effect *e)
{
    struct fl_fed *fed = ctx;
    const struct fl_wire_command command = fl_coord_command_of(&fed->shell, e);
    uint32_t client = fl__fed_client_of(fed, e->client);
    struct fl__message *m = NULL;
    struct fl_fed_part *p;

    if (e->type == FL_EFF_PLAN && fed->account.planned_us == 0) {
        fed->account.planned_us = fed->now_us;
    }
    if (client != UINT32_MAX && fed->clients[client].joined != 0) {
        m = fl__message_command(fed, client, &command);
    }
    if (m == NULL) {
        return;
    }
    m->connection = fed->clients[client].joined;
    m->personal_model = e->personal_model;
    if (e->type == FL_EFF_EVALUATE_CLIENT && !fl__fed_replays(fed)) {
        m->model = fl_blob_ref(fl_progress_model(&fed->progress)->theta);
    }
    p = e->type == FL_EFF_PLAN ? fl_sim_account_part(&fed->account, client) : NULL;
    if (p != NULL) {
        p->planned_us = fed->now_us;
    }
    fl__fed_send(fed, m);
}

/* A client that sent a hello gets its number; the Welcome is its first message. */
void fl__fed_admit(void *ctx, const struct fl_effect *e)
{
    const struct fl_wire_command welcome = {.type = FL_WIRE_WELCOME};
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
        m = fl__message_command(fed, fed->joining, &welcome);
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
