/* The clients of a simulated federation: availability, and the start of their processes. One
   thread, that of the federation. The client's session is in sim_session.c. */

#include "tools/fl_sim/engine/sim_federation_impl.h"

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

void fl__fed_machine(struct fl_fed *fed, uint32_t client)
{
    struct fl__fed_client *c = &fed->clients[client];
    uint64_t until;
    bool there = clients_machine_up(fed, client, &until);

    if (there && !c->up && !c->dropped) {
        clients_start_process(fed, client);
    } else if (!there && c->up) {
        fl__process_kill(fed, client);
    }
    if (until != UINT64_MAX) {
        fl__fed_at(fed, until, FL__AT_MACHINE, client, 0, NULL);
    }
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
    struct fl_wire_event hello =
        fl_session_message_of(&(struct fl_session_effect){.type = FL_CEFF_HELLO});
    struct fl__message *m;
    uint64_t latency = fl__fed_latency(fed, client);

    if (!fl_name_valid(fl__fed_name(fed, client))) {
        fl__fed_fail(fed, FL_EINVAL, NULL, fl__fed_name(fed, client));
        return;
    }
    fed->clients[client].up = true;
    fed->clients[client].connection = 1;
    fl__message_describe(fed, client, &hello.u.hello);
    m = fl__message_event(fed, client, &hello);
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
