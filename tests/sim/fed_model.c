/* What the server of a simulated federation makes of updates, and what must come of it. */
#include <inttypes.h>
#include <string.h>

#include <math.h>

#include "tests/sim/fed.h"

uint32_t fed_named(const struct fed *fed, const char *name)
{
    uint32_t i = 0;

    while (i < fed->plan.n_clients && strcmp(name, fed->clients[i].name) != 0) {
        i++;
    }
    return i < fed->plan.n_clients ? i : FED_MAX;
}

uint32_t fed_index(const struct fed *fed, uint32_t number)
{
    const struct fl_client_rec *rec = fl_coord_part_client(fed->server.coord, number);
    uint32_t i = rec != NULL ? fed_named(fed, rec->name) : FED_MAX;

    return i < FED_MAX ? i : UINT32_MAX;
}

void fed_model_forget(struct fed_model *model, uint32_t i)
{
    unsigned l;

    for (l = 0; l < FED_UNITS; l++) {
        model->ghost[l] += model->share[i][l];
        model->float_ghost[l] += model->float_share[i][l];
    }
    model->n_ghosts += model->has_own[i];
    model->sent[i] = false;
    model->has_own[i] = false;
    (void)memset(model->share[i], 0, sizeof(model->share[i]));
    (void)memset(model->float_share[i], 0, sizeof(model->float_share[i]));
}

uint64_t fed_model_start(const struct fed *fed, const struct fed_model *model, uint32_t i)
{
    if (!fed->plan.own) {
        return model->theta;
    }
    return model->sent[i] ? model->mixture[i] : model->has_own[i] ? model->own[i] : model->theta;
}

/* Is `u` what client `i` makes of the model of its round? Every unit that it was asked for. */
static bool is_made_of(const struct fed *fed, const struct fed_upload *u, uint32_t i)
{
    uint64_t from = fed_model_start(fed, &fed->server.model, i);
    float start[FED_FLOATS] = {0};
    float made[FED_FLOATS];
    unsigned k;

    if (!fed->plan.own) { /* Else it sends its model, not a displacement. */
        fed_floats(from, start);
    }
    fed_floats(fed_update(fed->clients[i].name, u->round, u->attempt, from), made);
    for (k = 0; k < FED_FLOATS; k++) {
        float sent = u->units[fed_unit(k)] != 0 ? made[k] - start[k] : 0;

        if (memcmp(&u->update[k], &sent, sizeof(sent)) != 0) {
            return false;
        }
    }
    return true;
}

/* One accepted update goes in. */
static void add(struct fed *fed, const struct fl_effect *e, const struct fl_part_rec *part)
{
    struct fed_server *s = &fed->server;
    uint32_t i = fed_index(fed, part->client);
    const char *name = fed->clients[i].name;
    const struct fed_upload *u = &s->uploads[i];
    unsigned l;

    if (u->round != e->round || u->attempt != e->attempt) {
        fed_fail(fed, "%s is aggregated without an upload", name);
        return;
    }
    if (!is_made_of(fed, u, i)) {
        fed_fail(fed, "the update of %s is of another model", name);
    }
    if (memcmp(u->units, part->units, FED_UNITS) != 0) {
        fed_fail(fed, "%s sent other units than it was asked for", name);
    }
    s->next.theta = fed_mix(s->next.theta, name, u->update, u->units);
    for (l = 0; l < FED_UNITS; l++) {
        s->next.control[l] += u->units[l] != 0 ? u->change[l] : 0;
        s->next.share[i][l] += u->units[l] != 0 ? u->change[l] : 0;
        s->next.float_share[i][l] += u->units[l] != 0 ? (double)u->float_change[l] : 0;
    }
    s->next.sent[i] = true;
}

void fed_model_size(struct fed *fed, const struct fl_effect *e)
{
    struct fed_server *s = &fed->server;
    size_t least = s->model.n_ghosts;
    size_t most = fed->plan.n_clients + fed->n_forgotten; /* Before a crash more may be known. */
    unsigned i;

    if (s->sized_round == e->round && s->sized_attempt == e->attempt &&
        memcmp(&s->size, &e->size, sizeof(s->size)) != 0)
    {
        fed_fail(fed, "round %" PRIu64 ".%" PRIu32 " had %" PRIu32 " members, now it has %" PRIu32,
                 e->round, e->attempt, s->size.members, e->size.members);
    }
    s->sized_round = e->round;
    s->sized_attempt = e->attempt;
    s->size = e->size;
    for (i = 0; i < fed->plan.n_clients; i++) {
        least += s->model.has_own[i]; /* It was counted, so it has a control. */
    }
    least = least > fed->plan.population ? least : fed->plan.population;
    most = most > fed->plan.population ? most : fed->plan.population;
    if (e->size.members < least || e->size.members > most) {
        fed_fail(fed, "round %" PRIu64 ".%" PRIu32 " has %" PRIu32 " members, not %zu to %zu",
                 e->round, e->attempt, e->size.members, least, most);
    }
}

/* The real part of the solver, on one entry of each unit that somebody sent. */
static void sum_controls(struct fed *fed, const struct fl_effect *e)
{
    struct fed_server *s = &fed->server;
    unsigned l;
    size_t i;

    for (l = 0; l < FED_UNITS; l++) {
        const float *state = &s->model.sum[l];
        float *state_new = &s->next.sum[l];
        double change = 0;
        double scaled = 0;
        const double *means = &change;
        struct fl_agg_block block = {.n = 1,
                                     .round = e->round,
                                     .members = e->size.members,
                                     .means = &means,
                                     .scaled = &scaled,
                                     .state = &state,
                                     .state_new = &state_new};

        for (i = 0; i < e->n_parts; i++) {
            const struct fed_upload *u = &s->uploads[fed_index(fed, e->parts[i].client)];

            if (u->units[l] != 0) {
                block.n_senders++;
                change += (double)u->float_change[l];
                scaled -= (double)u->pull[l];
            }
        }
        if (block.n_senders > 0) {
            change /= (double)block.n_senders;
            scaled /= (double)block.n_senders;
            fl_solver_scaffold.server->step(s->scaffold, &block);
        }
    }
}

void fed_model_aggregate(struct fed *fed, const struct fl_effect *e)
{
    struct fed_server *s = &fed->server;
    size_t i;

    fed_model_size(fed, e);
    s->next = s->model;
    (void)memset(s->next.sent, 0, sizeof(s->next.sent));
    for (i = 0; i < e->n_parts; i++) {
        add(fed, e, &e->parts[i]);
    }
    sum_controls(fed, e);
    for (i = 0; i < fed->plan.n_clients; i++) {
        s->next.mixture[i] = s->next.sent[i] ? fed_hash(s->next.theta, i) : 0;
    }
}

void fed_model_commit(struct fed *fed, const struct fl_effect *e)
{
    struct fed_server *s = &fed->server;
    size_t k;

    for (k = 0; k < e->n_clients; k++) {
        const struct fl_client_rec *rec = &e->clients[k];
        uint32_t i = fed_index(fed, rec->id);

        if (rec->counted_round != e->round) {
            continue;
        }
        if (rec->counted_update != s->next.sent[i]) {
            fed_fail(fed, "%s is counted %s update", rec->name,
                     rec->counted_update ? "with an" : "without its");
        }
        s->next.has_own[i] = true;
        s->next.own[i] = fed_update(rec->name, rec->counted_round, rec->counted_attempt,
                                    fed_model_start(fed, &s->model, i));
    }
}

/*
 * What client `i` will have kept once it hears which of its rounds was counted last. One that was
 * forgotten and not counted since will drop what it has with its next task.
 */
static void check_client(struct fed *fed, uint32_t i, const struct fl_client_rec *rec,
                         uint64_t sum[FED_UNITS], double float_sum[FED_UNITS])
{
    struct fl_round_key counted = {rec->counted_round, rec->counted_attempt};
    struct fed_kept kept;
    float own[FED_FLOATS];
    unsigned l;

    if (rec->counted_round == 0 && fed->forgotten[i]) {
        return;
    }
    fed_work_settled(fed, i, counted, &kept);
    for (l = 0; l < FED_UNITS; l++) {
        sum[l] += (uint64_t)(int64_t)kept.control[fed_at(l)];
        float_sum[l] += (double)kept.scaffold[fed_at(l)];
    }
    fed_floats(fed->server.model.own[i], own);
    if (rec->counted_round != 0 && fed->plan.own && memcmp(kept.own, own, sizeof(own)) != 0) {
        fed_fail(fed, "%s has another model of its own", rec->name);
    }
}

void fed_model_check(struct fed *fed)
{
    struct fed_store store;
    uint64_t sum[FED_UNITS] = {0};
    double float_sum[FED_UNITS] = {0};
    size_t k;
    uint32_t i;
    unsigned l;

    fed_store_read(fed->sim, fed, &store);
    for (k = 0; k < store.n_clients; k++) {
        i = fed_named(fed, store.clients[k].name);
        if (i < FED_MAX) {
            check_client(fed, i, &store.clients[k], sum, float_sum);
        }
    }
    for (l = 0; l < FED_UNITS; l++) { /* Of a forgotten client its control stays in the sum. */
        sum[l] += fed->server.model.ghost[l];
        float_sum[l] += fed->server.model.float_ghost[l];
        if (sum[l] != fed->server.model.control[l]) {
            fed_fail(fed, "round %" PRIu64 ": the control of unit %u is not the clients' sum",
                     store.committed, l);
        }
        /* One rounding a round on either side, of numbers that a handful of clients make. */
        if (!(fabs(float_sum[l] - (double)fed->server.model.sum[l]) <= 1e-5)) {
            fed_fail(fed, "round %" PRIu64 ": the controls of unit %u add up to %g, not %g",
                     store.committed, l, float_sum[l], (double)fed->server.model.sum[l]);
        }
    }
}
