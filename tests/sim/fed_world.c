/* The world around a simulated federation: links, the hand that breaks things, the end. */
#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/folder.h"
#include "tests/sim/fed.h"

enum hand_tag {
    HAND_SERVER = 1, /* kill the server */
    HAND_CLIENT,
    HAND_CUT,
    HAND_CALM,
    HAND_FORGET,
    HAND_WISH,
    HAND_RESTART = 1000, /* + node */
    HAND_HEAL = 2000,    /* + client index */
    HAND_DIE = 3000      /* + node */
};

/* Longer than any attempt of a round with every deadline and back-off in it. */
#define FED_ROUND_MS 8000
/* As much of the trace as a failure shows. */
#define FED_TAIL 8000
/* How long something stays broken. */
#define FED_DOWN_MS 600

void fed_fail(struct fed *fed, const char *fmt, ...)
{
    va_list ap;

    if (fed->broken[0] == '\0') {
        va_start(ap, fmt);
        (void)vsnprintf(fed->broken, sizeof(fed->broken), fmt, ap);
        va_end(ap);
        fed_log(fed, "BROKEN: %s", fed->broken);
    }
}

void fed_log(struct fed *fed, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ck_assert_int_eq(fl_buf_printf(&fed->log, "[%6" PRIu64 "] %s\n", fl_sim_now(fed->sim), text),
                     FL_OK);
}

bool fed_chance(struct fed *fed, double rate)
{
    return !fed->calm && rate > 0 && fl_rng_unit(&fed->rng) < rate;
}

void fed_send(struct fed *fed, uint32_t from, uint32_t to, const struct fed_msg *msg)
{
    fl_sim_send(fed->sim, from, to, msg, sizeof(*msg));
}

void fed_set_wire(struct fed_msg *msg, struct fl_buf *wire)
{
    (void)memcpy(msg->wire, wire->data, wire->len);
    msg->n_wire = wire->len;
    fl_buf_done(wire);
}

uint64_t fed_hash(uint64_t a, uint64_t b)
{
    uint64_t both[2] = {a, b};

    return fl_hash64(both, sizeof(both));
}

static float unit; /* of what an entry of a model is a multiple */

void fed_floats(uint64_t number, float ret[FED_FLOATS])
{
    unsigned i;

    for (i = 0; i < FED_FLOATS; i++) {
        ret[i] = unit * (float)(fed_hash(number, i) & 0xffff);
    }
}

uint64_t fed_update(const char *name, uint64_t round, uint32_t attempt,
                    const float model[FED_FLOATS])
{
    return fed_hash(
        fed_hash(fl_hash64(name, strlen(name)), fl_hash64(model, FED_FLOATS * sizeof(*model))),
        fed_hash(round, attempt));
}

void fed_die_at(struct fed *fed, uint32_t node, uint64_t n, bool after)
{
    struct fed_writer *w =
        node == FED_SERVER ? &fed->server.writer : &fed->clients[node - FED_CLIENT0].writer;

    w->die_at = n;
    w->die_after = after;
}

/* --- the hand --- */

/* The next blow of a kind, after a span of about `mean`. */
static void plan_blow(struct fed *fed, enum hand_tag tag, uint64_t mean)
{
    if (mean > 0) {
        fl_sim_timer(fed->sim, FED_HAND,
                     fl_sim_now(fed->sim) + 1 + fl_rng_below(&fed->rng, 2 * mean), tag);
    }
}

static void kill_for_a_while(struct fed *fed, uint32_t node)
{
    if (fl_sim_alive(fed->sim, node)) {
        fl_sim_crash(fed->sim, node);
        fl_sim_timer(fed->sim, FED_HAND,
                     fl_sim_now(fed->sim) + 1 + fl_rng_below(&fed->rng, FED_DOWN_MS),
                     HAND_RESTART + node);
    }
}

void fed_died(struct fed *fed, uint32_t node)
{
    fed->n_deaths++;
    fed->n_server_deaths += node == FED_SERVER;
    if (fed->plan.restart_ms > 0) {
        fl_sim_timer(fed->sim, FED_HAND, fl_sim_now(fed->sim) + fed->plan.restart_ms,
                     HAND_RESTART + node);
    }
}

void fed_dies(struct fed *fed, uint32_t node)
{
    fl_sim_timer(fed->sim, FED_HAND, fl_sim_now(fed->sim), HAND_DIE + node);
}

void fed_hang_up(struct fed *fed, uint32_t i)
{
    fl_sim_partition(fed->sim, FED_SERVER, FED_CLIENT0 + i, true);
    fl_sim_timer(fed->sim, FED_HAND, fl_sim_now(fed->sim) + 1, HAND_HEAL + i);
}

static void blow(struct fed *fed, enum hand_tag tag)
{
    uint32_t i = (uint32_t)fl_rng_below(&fed->rng, fed->plan.n_clients);

    switch (tag) {
    case HAND_SERVER:
        kill_for_a_while(fed, FED_SERVER);
        plan_blow(fed, tag, fed->plan.server_crash_every);
        break;
    case HAND_CLIENT:
        kill_for_a_while(fed, FED_CLIENT0 + i);
        plan_blow(fed, tag, fed->plan.client_crash_every);
        break;
    case HAND_CUT:
        fl_sim_partition(fed->sim, FED_SERVER, FED_CLIENT0 + i, true);
        fl_sim_timer(fed->sim, FED_HAND,
                     fl_sim_now(fed->sim) + 1 + fl_rng_below(&fed->rng, FED_DOWN_MS),
                     HAND_HEAL + i);
        plan_blow(fed, tag, fed->plan.cut_every);
        break;
    case HAND_FORGET:
        if (fl_sim_alive(fed->sim, FED_SERVER)) {
            fl_sim_timer(fed->sim, FED_SERVER, fl_sim_now(fed->sim) + 1, FED_TAG_FORGET | i);
        }
        plan_blow(fed, tag, fed->plan.forget_every);
        break;
    case HAND_WISH:
        if (fl_sim_alive(fed->sim, FED_SERVER)) {
            fl_sim_timer(fed->sim, FED_SERVER, fl_sim_now(fed->sim) + 1,
                         FED_TAG_WISH |
                             (uint64_t)(fed_chance(fed, 0.5) ? FL_EV_PAUSE : FL_EV_ABORT_ROUND));
        }
        plan_blow(fed, tag, fed->plan.wish_every);
        break;
    case HAND_CALM:
    case HAND_RESTART:
    case HAND_HEAL:
    case HAND_DIE:
        break;
    }
}

/* No more trouble: everything lives and is connected. */
static void calm_down(struct fed *fed)
{
    struct fl_sim_link link = fed->plan.link;
    uint32_t i;

    fed->calm = true;
    fed_log(fed, "calm");
    link.break_rate = 0;
    for (i = 0; i < fed->plan.n_clients; i++) {
        fl_sim_set_link(fed->sim, FED_SERVER, FED_CLIENT0 + i, &link);
        fl_sim_partition(fed->sim, FED_SERVER, FED_CLIENT0 + i, false);
        fl_sim_start(fed->sim, FED_CLIENT0 + i);
    }
    fed_die_at(fed, FED_SERVER, 0, false);
    fl_sim_start(fed->sim, FED_SERVER);
}

static void hand_timer(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    struct fed *fed = ctx;

    (void)node;
    if (tag == HAND_CALM) {
        calm_down(fed);
    } else if (tag >= HAND_DIE) {
        fl_sim_crash(sim, (uint32_t)(tag - HAND_DIE));
    } else if (tag >= HAND_HEAL) {
        fl_sim_partition(sim, FED_SERVER, FED_CLIENT0 + (uint32_t)(tag - HAND_HEAL), false);
    } else if (tag >= HAND_RESTART) {
        fl_sim_start(sim, (uint32_t)(tag - HAND_RESTART));
    } else if (!fed->calm) {
        blow(fed, (enum hand_tag)tag);
    }
}

static const struct fl_sim_node_cbs hand_cbs = {.on_timer = hand_timer};

/* --- the world --- */

struct fed_plan fed_plan_of(uint64_t seed, const char *preset, unsigned n_clients)
{
    return (struct fed_plan){
        .seed = seed,
        .n_clients = n_clients,
        .preset = preset,
        .rounds = 5,
        .min_responders = 1,
        .over_selection = 1.0,
        .link = {.latency_ms = 5, .jitter_ms = 10},
        .disk_ms = 2,
        .train_ms_max = 200,
    };
}

static void add_client(struct fed *fed, unsigned i)
{
    struct fed_client *c = &fed->clients[i];
    uint32_t node = 0;

    c->fed = fed;
    c->index = i;
    c->samples = 10 + 7 * (uint64_t)i;
    (void)snprintf(c->name, sizeof(c->name), "c%02u", i);
    fl_rng_key(&c->rng, fed->plan.seed, FL_RNG_TEST, 0, i + 1);
    ck_assert_int_eq(fl_sim_add(fed->sim,
                                fed->plan.real_sessions ? &fed_session_cbs : &fed_client_cbs, fed,
                                &node),
                     FL_OK);
    ck_assert_uint_eq(node, FED_CLIENT0 + i);
    fl_sim_set_link(fed->sim, FED_SERVER, node, &fed->plan.link);
}

struct fed *fed_new(const struct fed_plan *plan)
{
    struct fed *fed = calloc(1, sizeof(*fed));
    uint32_t node = 0;
    unsigned i;

    ck_assert_ptr_nonnull(fed);
    fed->plan = *plan;
    unit = plan->broadcast != NULL ? 0x1p-14f : 1;
    fl_buf_init(&fed->log, 256u << 20);
    fl_rng_key(&fed->rng, plan->seed, FL_RNG_TEST, 0, 0);
    ck_assert_int_eq(fl_sim_create(plan->seed, &fed->sim), FL_OK);
    coord_check_init(&fed->check);
    fed_work_init(fed);
    fed_server_init(fed);
    ck_assert_int_eq(fl_sim_add(fed->sim, &hand_cbs, fed, &node), FL_OK);
    ck_assert_int_eq(fl_sim_add(fed->sim, &fed_server_cbs, fed, &node), FL_OK);
    for (i = 0; i < plan->n_clients; i++) {
        add_client(fed, i);
    }
    if (plan->dies != 0) {
        fed_die_at(fed, plan->dies, plan->dies_at, plan->dies_after);
    }
    fl_sim_start(fed->sim, FED_HAND);
    fl_sim_start(fed->sim, FED_SERVER);
    for (i = 0; i < plan->n_clients; i++) {
        if (i * plan->join_every_ms > 0) {
            fl_sim_timer(fed->sim, FED_HAND, i * plan->join_every_ms,
                         HAND_RESTART + FED_CLIENT0 + i);
        } else {
            fl_sim_start(fed->sim, FED_CLIENT0 + i);
        }
    }
    if (plan->calm_ms > 0) {
        plan_blow(fed, HAND_SERVER, plan->server_crash_every);
        plan_blow(fed, HAND_CLIENT, plan->client_crash_every);
        plan_blow(fed, HAND_CUT, plan->cut_every);
        plan_blow(fed, HAND_FORGET, plan->forget_every);
        plan_blow(fed, HAND_WISH, plan->wish_every);
        fl_sim_timer(fed->sim, FED_HAND, plan->calm_ms, HAND_CALM);
    }
    return fed;
}

void fed_run(struct fed *fed, uint64_t until_ms)
{
    while (!fed->finished && fed->broken[0] == '\0' && fl_sim_now(fed->sim) < until_ms &&
           fl_sim_step(fed->sim))
    {
    }
}

static void fail_with(const struct fed *fed, const char *what)
{
    size_t len = fed->log.len;
    size_t from = len > FED_TAIL ? len - FED_TAIL : 0;

    folder_remove(fed->dir);
    (void)fprintf(stderr, "...%.*s", (int)(len - from), (const char *)fed->log.data + from);
    ck_abort_msg("seed %" PRIu64 " (%s, %u clients, %s): %s", fed->plan.seed, fed->plan.preset,
                 fed->plan.n_clients, fed->plan.real_sessions ? "real sessions" : "scripted", what);
}

void fed_finish(struct fed *fed)
{
    fed_run(fed, fed->plan.calm_ms + (fed->plan.rounds + 1) * FED_ROUND_MS);
    if (fed_broken(fed) != NULL) {
        fail_with(fed, fed_broken(fed));
    }
    if (!fed->finished) {
        fail_with(fed, "the federation did not end in time");
    }
    if (fed->check.n_committed != fed->plan.rounds) {
        fail_with(fed, "not every round was committed exactly once");
    }
}

void fed_restart(struct fed *fed, uint64_t rounds)
{
    fed->plan.rounds = rounds;
    fed->server.conf.rounds = rounds;
    fed->finished = false;
    fl_sim_crash(fed->sim, FED_SERVER);
    fl_sim_start(fed->sim, FED_SERVER);
}

const char *fed_broken(const struct fed *fed)
{
    return fed->broken[0] != '\0' ? fed->broken : NULL;
}

void fed_free(struct fed *fed)
{
    unsigned i;

    for (i = 0; i < fed->plan.n_clients; i++) {
        fl_session_shell_free(fed->clients[i].shell);
    }
    fed_server_done(fed);
    fed_work_done(fed);
    fl_sim_free(fed->sim);
    coord_check_done(&fed->check);
    fl_buf_done(&fed->log);
    free(fed);
}
