/*
 * The network and device model: rates, latency, training time, availability and failures of each
 * client as pure functions of (seed, client, time, round). Loading is in load.c. A loaded model is
 * read-only: any thread.
 */
#include "tools/fl_sim/world/world.h"

#include <math.h>
#include <stdlib.h>

#include "tools/fl_sim/world/world_impl.h"

static double world_draw(const struct fl_world *world, enum fl__prop prop, uint64_t client)
{
    struct fl_rng rng;

    if (world->props[prop].kind == FL__CONSTANT) {
        return world->props[prop].a;
    }
    fl__world_key(&rng, world->seed, prop, client);
    return fl__dist_draw(&world->props[prop], world->seed, client, &rng);
}

/* A generator of its own for each (a, b). */
static double world_draw_event(const struct fl_world *world, enum fl__prop prop, uint64_t client,
                               uint64_t a, uint64_t b)
{
    struct fl_rng rng;

    if (world->props[prop].kind == FL__CONSTANT) {
        return world->props[prop].a;
    }
    fl__world_key2(&rng, world->seed, prop, client, a, b);
    return fl__dist_draw(&world->props[prop], world->seed, client, &rng);
}

/* --- loading --- */

int fl_world_load(const struct fl_world_ask *ask, struct fl_world **ret, struct fl_err *err)
{
    static const enum fl__unit_kind units[FL__N_PROPS] = {
        [FL__UPLINK] = FL__RATE,         [FL__DOWNLINK] = FL__RATE,
        [FL__LATENCY] = FL__TIME,        [FL__MEMORY] = FL__SIZE,
        [FL__TRAIN_FIXED] = FL__TIME,    [FL__TRAIN_SPEED] = FL__SPEED,
        [FL__TRAIN_JITTER] = FL__NUMBER, [FL__DROP_CHANCE] = FL__SHARE,
        [FL__DROP_AT] = FL__SHARE,       [FL__DROP_DISCONNECTED] = FL__TIME,
        [FL__UP_FROM] = FL__TIME,        [FL__UP_FOR] = FL__TIME,
    };
    size_t i;
    struct fl_world *world;
    int rv;

    if (ask->n == 0) {
        return fl_err_set(err, FL_ECONF,
                          "a network and device model without clients: at least 1 is needed");
    }
    world = calloc(1, sizeof(*world));
    if (world == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for a network and device model");
    }
    world->seed = ask->seed;
    world->n = ask->n;
    for (i = 0; i < FL__N_PROPS; i++) {
        fl__dist_set(&world->props[i], units[i], 0);
    }
    world->props[FL__DROP_AT].kind = FL__UNIFORM;
    world->props[FL__DROP_AT].b = 1;
    rv = ask->node != NULL ? fl__world_read(world, ask, err) : FL_OK;
    if (rv != FL_OK) {
        fl_world_free(world);
        return rv;
    }
    *ret = world;
    return FL_OK;
}

void fl_world_free(struct fl_world *world)
{
    size_t i;

    if (world == NULL) {
        return;
    }
    for (i = 0; i < FL__N_PROPS; i++) {
        fl__dist_done(&world->props[i]);
    }
    while (world->tables != NULL) {
        struct fl__table *next = world->tables->next;

        fl__table_free(world->tables);
        world->tables = next;
    }
    fl__trace_free(world->availability);
    fl__trace_free(world->bandwidth);
    free(world);
}

/* --- queries --- */

uint64_t fl_world_clients(const struct fl_world *world)
{
    return world->n;
}

struct fl_world_server fl_world_server(const struct fl_world *world)
{
    return world->server;
}

void fl_world_client(const struct fl_world *world, uint64_t client, struct fl_world_client *ret)
{
    FL_REQUIRE(client < world->n);
    *ret = (struct fl_world_client){
        .up = world_draw(world, FL__UPLINK, client),
        .down = world_draw(world, FL__DOWNLINK, client),
        .latency_us = fl__us(world_draw(world, FL__LATENCY, client)),
        .train_us = fl__us(world_draw(world, FL__TRAIN_FIXED, client)),
        .samples_per_s = world_draw(world, FL__TRAIN_SPEED, client),
        .jitter = world_draw(world, FL__TRAIN_JITTER, client),
        .memory = (uint64_t)world_draw(world, FL__MEMORY, client),
        .drop_chance = world_draw(world, FL__DROP_CHANCE, client),
    };
}

void fl_world_link(const struct fl_world *world, uint64_t client, uint64_t t_us, double *ret_up,
                   double *ret_down, uint64_t *ret_until_us)
{
    const struct fl__span *span = NULL;

    FL_REQUIRE(client < world->n);
    *ret_until_us = UINT64_MAX;
    if (world->bandwidth != NULL) {
        span = fl__trace_at(world->bandwidth, world->seed, client, t_us, ret_until_us);
    }
    *ret_up =
        span != NULL && world->bandwidth->has_up ? span->up : world_draw(world, FL__UPLINK, client);
    *ret_down = span != NULL && world->bandwidth->has_down
                    ? span->down
                    : world_draw(world, FL__DOWNLINK, client);
}

uint64_t fl_world_train_us(const struct fl_world *world, uint64_t client, uint64_t round,
                           uint64_t samples)
{
    double speed = world_draw(world, FL__TRAIN_SPEED, client);
    double jitter = world_draw(world, FL__TRAIN_JITTER, client);
    double seconds = world_draw(world, FL__TRAIN_FIXED, client);

    FL_REQUIRE(client < world->n);
    seconds += speed > 0 ? (double)samples / speed : 0;
    if (jitter > 0) {
        struct fl_rng rng;

        fl__world_key2(&rng, world->seed, FL__DRAW_JITTER, client, round, 0);
        seconds *= exp(jitter * fl_rng_normal(&rng));
    }
    return fl__us(fl__within(FL__TIME, seconds));
}

/*
 * The client is up in one window of each period. Windows are counted from the one that began before
 * time 0, and are at most as long as a period, so that at most one contains a given time.
 */
static bool world_in_window(const struct fl_world *world, uint64_t client, uint64_t t_us,
                            uint64_t *ret_until_us)
{
    uint64_t period = world->period_us;
    uint64_t from = fl__us(world_draw(world, FL__UP_FROM, client)) % period;
    uint64_t since = t_us + (period - from); /* index of the first window that can contain it */
    uint64_t window = since / period;
    uint64_t into = since % period;
    uint64_t len = fl__us(world_draw_event(world, FL__UP_FOR, client, window, 0));
    bool up = into < len;

    *ret_until_us = t_us + ((up && len < period ? len : period) - into);
    return up;
}

bool fl_world_up(const struct fl_world *world, uint64_t client, uint64_t t_us,
                 uint64_t *ret_until_us)
{
    FL_REQUIRE(client < world->n);
    if (world->availability != NULL) {
        return fl__trace_at(world->availability, world->seed, client, t_us, ret_until_us) != NULL;
    }
    if (world->windows) {
        return world_in_window(world, client, t_us, ret_until_us);
    }
    *ret_until_us = UINT64_MAX;
    return true;
}

bool fl_world_drop(const struct fl_world *world, uint64_t client, uint64_t round, uint64_t attempt,
                   double *ret_share, uint64_t *ret_away_us)
{
    double chance = world_draw(world, FL__DROP_CHANCE, client);
    struct fl_rng rng;

    FL_REQUIRE(client < world->n);
    if (chance <= 0) {
        return false;
    }
    fl__world_key2(&rng, world->seed, FL__DRAW_DROP, client, round, attempt);
    if (fl_rng_unit(&rng) >= chance) {
        return false;
    }
    *ret_share = world_draw_event(world, FL__DROP_AT, client, round, attempt);
    *ret_away_us = fl__us(world_draw_event(world, FL__DROP_DISCONNECTED, client, round, attempt));
    return true;
}
