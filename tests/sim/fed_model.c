/* What the world knows of a simulated federation, and what must come of it. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

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

/* --- who is in it --- */

static void forget(struct fed_model *model, uint32_t i)
{
    model->sent[i] = false;
    model->has_own[i] = false;
}

void fed_model_forget(struct fed *fed, uint32_t i)
{
    forget(&fed->server.model, i);
    forget(&fed->server.next, i);
}

/* Field by field: what stands between them is nobody's. */
static bool same_size(const struct fl_round_size *a, const struct fl_round_size *b)
{
    return a->selected == b->selected && a->population == b->population &&
           a->members == b->members && a->epoch == b->epoch && a->capped == b->capped;
}

void fed_model_size(struct fed *fed, const struct fl_effect *e)
{
    struct fed_server *s = &fed->server;
    size_t least = 0;
    size_t most = fed->plan.n_clients + fed->n_forgotten; /* Before a crash more may be known. */
    unsigned i;

    if (s->sized_round == e->round && s->sized_attempt == e->attempt &&
        !same_size(&s->size, &e->size)) {
        fed_fail(fed,
                 "round %" PRIu64 ".%" PRIu32 " had %" PRIu32 " selected of %" PRIu32 ", %" PRIu32
                 " members and epoch %" PRIu64 ", now %" PRIu32 " of %" PRIu32 ", %" PRIu32
                 " and %" PRIu64,
                 e->round, e->attempt, s->size.selected, s->size.population, s->size.members,
                 s->size.epoch, e->size.selected, e->size.population, e->size.members,
                 e->size.epoch);
    }
    s->sized_round = e->round;
    s->sized_attempt = e->attempt;
    s->size = e->size;
    for (i = 0; i < fed->plan.n_clients; i++) {
        /* It was counted in this epoch, so it has a control. */
        least += s->model.has_own[i] && s->model.counted[i] >= e->size.epoch;
    }
    least = least > fed->plan.population ? least : fed->plan.population;
    most = most > fed->plan.population ? most : fed->plan.population;
    /* With `own` nothing is summed, and a client that is gone may have been counted since. */
    if (!fed->plan.own && (e->size.members < least || e->size.members > most)) {
        fed_fail(fed, "round %" PRIu64 ".%" PRIu32 " has %" PRIu32 " members, not %zu to %zu",
                 e->round, e->attempt, e->size.members, least, most);
    }
}

/* --- what they make --- */

/* The model that client `i` starts from in the open round. */
static void start_of(const struct fed *fed, uint32_t i, float ret[FED_FLOATS])
{
    const struct fed_model *m = &fed->server.model;

    if (fed->plan.own && !m->sent[i] && m->has_own[i]) {
        fed_floats(m->own[i], ret);
        return;
    }
    (void)memcpy(ret, fed->plan.own && m->sent[i] ? m->personal_model[i] : m->theta,
                 sizeof(m->theta));
}

static uint64_t made_by(const struct fed *fed, uint32_t i, uint64_t round, uint32_t attempt)
{
    float start[FED_FLOATS];

    start_of(fed, i, start);
    return fed_update(fed->clients[i].name, round, attempt, start);
}

/* What it then sends: its model, or how far it moved. */
static void update_of(const struct fed *fed, uint32_t i, uint64_t round, uint32_t attempt,
                      float ret[FED_FLOATS])
{
    float start[FED_FLOATS];
    unsigned k;

    start_of(fed, i, start);
    fed_floats(made_by(fed, i, round, attempt), ret);
    for (k = 0; k < FED_FLOATS && !fed->plan.own; k++) {
        ret[k] -= start[k];
    }
}

/* The bytes of a payload of an upload as they were announced; 0 where nothing is. */
static void part_of(const struct fed_push *push, const char *payload, float ret[FED_FLOATS])
{
    size_t at = 0;
    size_t i;

    (void)memset(ret, 0, FED_FLOATS * sizeof(*ret));
    for (i = 0; i < push->n_parts; i++) {
        const struct fl_wire_part *part = &push->parts[i];

        if (strcmp(part->payload, payload) == 0) {
            (void)memcpy(ret + (size_t)2 * part->unit, push->bytes + at, (size_t)part->bytes);
        }
        at += (size_t)part->bytes;
    }
}

void fed_model_stored(struct fed *fed, uint32_t i, const struct fed_push *push)
{
    struct fed_upload *u = &fed->server.uploads[i];
    float update[FED_FLOATS];
    float want[FED_FLOATS];
    unsigned k;

    *u = (struct fed_upload){.round = push->key.round, .attempt = push->key.attempt};
    (void)memcpy(u->units, push->units, sizeof(u->units));
    part_of(push, "update", update);
    update_of(fed, i, push->key.round, push->key.attempt, want);
    for (k = 0; k < FED_FLOATS; k++) {
        bool sent = u->units[fed_unit(k)] != 0;

        if (sent && memcmp(&update[k], &want[k], sizeof(want[k])) != 0) {
            fed_fail(fed, "the update of %s is of another model", fed->clients[i].name);
        }
    }
}

/* --- the next model --- */

struct sums {
    double theta[FED_FLOATS], weight[FED_FLOATS];
};

/* One accepted update goes in. */
static void add(struct fed *fed, const struct fl_aggregation *a, size_t part, struct sums *sums)
{
    struct fed_server *s = &fed->server;
    uint32_t i = fed_named(fed, a->clients[part].name);
    double weight = fed->plan.own ? (double)a->parts[part].samples : 1;
    const struct fed_upload *u = &s->uploads[i];
    float update[FED_FLOATS];
    unsigned k;

    if (u->round != a->round || u->attempt != a->attempt) {
        fed_fail(fed, "%s is aggregated without an upload", fed->clients[i].name);
        return;
    }
    if (memcmp(u->units, a->parts[part].units, FED_UNITS) != 0) {
        fed_fail(fed, "%s sent other units than it was asked for", fed->clients[i].name);
    }
    update_of(fed, i, a->round, a->attempt, update);
    for (k = 0; k < FED_FLOATS; k++) {
        if (u->units[fed_unit(k)] != 0) {
            sums->theta[k] += weight * (double)update[k];
            sums->weight[k] += weight;
        }
    }
    s->next.sent[i] = true;
}

/* What the server keeps of earlier steps beside entry `k`. */
static double rest_of(const struct fed *fed, const struct fl_model_state *model, unsigned k)
{
    return fed->plan.broadcast != NULL
               ? (double)fl_blob_floats(model->state[fed_state(fed, FL_BROADCAST_REST)])[k]
               : 0;
}

/* The mean of what was sent; of numbers up to 65536 in single precision. */
static void check_theta(struct fed *fed, const struct fl_aggregation *a, const struct sums *sums)
{
    struct fed_model *next = &fed->server.next;
    unsigned k;

    (void)memcpy(next->theta, fl_blob_floats(a->next.model.theta), sizeof(next->theta));
    for (k = 0; k < FED_FLOATS; k++) {
        double from = fed->plan.own && sums->weight[k] > 0 ? 0 : (double)fed->server.model.theta[k];
        double want = from + (sums->weight[k] > 0 ? sums->theta[k] / sums->weight[k] : 0);

        double made = (double)next->theta[k];

        if (fed->plan.broadcast != NULL) {
            want += rest_of(fed, a->model, k);
            made += rest_of(fed, &a->next.model, k);
        }
        if (!(fabs(made - want) < (fed->plan.broadcast != NULL ? 1e-5 : 0.05))) {
            fed_fail(fed, "round %" PRIu64 ": entry %u of the model is %g, of these updates %g",
                     a->round, k, made, want);
        }
    }
}

static void take_personal_models(struct fed *fed, const struct fl_aggregation *a)
{
    struct fed_model *next = &fed->server.next;
    const struct fl_personal_models *m = a->next.personal_models;
    size_t n = m != NULL ? fl_personal_models_count(m) : 0;
    size_t j;

    if (fed->plan.own && n != a->n_parts) {
        fed_fail(fed, "of %zu models %zu were mixed", a->n_parts, n);
    }
    for (j = 0; j < n; j++) {
        uint32_t i = fed_named(fed, fl_personal_models_name(m, j));
        struct fl_file *file = fl_personal_models_file(m, j);

        ck_assert_uint_lt(i, FED_MAX);
        if (!next->sent[i] ||
            fl_file_read(file, 0, next->personal_model[i], sizeof(next->theta)) != FL_OK) {
            fed_fail(fed, "the personalized model of %s cannot be read", fed->clients[i].name);
        }
        fl_file_unref(file);
    }
}

void fed_model_aggregated(struct fed *fed, const struct fl_aggregation *a)
{
    struct fed_server *s = &fed->server;
    struct sums sums = {.theta = {0}};
    size_t i;

    s->next = s->model;
    (void)memset(s->next.sent, 0, sizeof(s->next.sent));
    for (i = 0; i < a->n_parts; i++) {
        add(fed, a, i, &sums);
    }
    check_theta(fed, a, &sums);
    take_personal_models(fed, a);
}

void fed_model_count(struct fed *fed, const struct fl_effect *e)
{
    struct fed_server *s = &fed->server;
    size_t k;

    for (k = 0; k < e->n_clients; k++) {
        const struct fl_client_rec *rec = &e->clients[k];
        uint32_t i = fed_named(fed, rec->name);

        if (rec->counted_round != e->round) {
            continue;
        }
        if (rec->counted_update != s->next.sent[i]) {
            fed_fail(fed, "%s is counted %s update", rec->name,
                     rec->counted_update ? "with an" : "without its");
        }
        s->next.has_own[i] = true;
        s->next.counted[i] = rec->counted_round;
        s->next.own[i] = made_by(fed, i, rec->counted_round, rec->counted_attempt);
    }
}

void fed_model_committed(struct fed *fed, uint64_t round)
{
    struct fed_server *s = &fed->server;

    if (round == s->committed + 1) {
        s->model = s->next;
        s->committed = round;
    } else if (round != s->committed) {
        fed_fail(fed, "round %" PRIu64 " is on disk after %" PRIu64, round, s->committed);
    }
}

/* --- both sides --- */

/*
 * What client `i` will have kept once it hears which of its rounds was counted last. One that was
 * forgotten and not counted since will drop what it has with its next task.
 */
static void check_client(struct fed *fed, uint32_t i, const struct fl_client_rec *rec,
                         uint64_t epoch, double sum[FED_FLOATS], double scaffold[FED_FLOATS])
{
    struct fl_round_key counted = {rec->counted_round, rec->counted_attempt};
    struct fed_kept kept;
    float own[FED_FLOATS];
    unsigned k;

    if (rec->counted_round == 0 && fed->forgotten[i]) {
        return;
    }
    fed_work_settled(fed, i, counted, epoch, &kept);
    for (k = 0; k < FED_FLOATS; k++) {
        sum[k] += (double)kept.control[k];
        scaffold[k] += (double)kept.scaffold[k];
    }
    fed_floats(fed->server.model.own[i], own);
    if (rec->counted_round != 0 && fed->plan.own && memcmp(kept.own, own, sizeof(own)) != 0) {
        fed_fail(fed, "%s has another model of its own", rec->name);
    }
}

/* In the first round of an epoch the sum is 0, whatever the checkpoint before it holds. */
static void check_sums(struct fed *fed, uint64_t epoch, const double sum[FED_FLOATS],
                       const double scaffold[FED_FLOATS])
{
    const struct fl_model_state *m = &fed->server.progress.committed.model;
    const bool begins = epoch > fed->server.committed;
    size_t controls = fed_state(fed, "control_sum");
    size_t scaffolds = fed_state(fed, "scaffold_sum");
    unsigned k;

    for (k = 0; k < FED_FLOATS; k++) {
        double control = begins ? 0 : (double)fl_blob_floats(m->state[controls])[k];
        double of_scaffold = begins ? 0 : (double)fl_blob_floats(m->state[scaffolds])[k];

        if (!fed->plan.rebuild && !(fabs(sum[k] - control) < 0.5)) {
            fed_fail(fed, "round %" PRIu64 ": the control of entry %u is not the clients' sum",
                     fed->server.committed, k);
        }
        /* One rounding a round on either side, of numbers that a handful of clients make. */
        if (!(fabs(scaffold[k] - of_scaffold) <= 1e-5)) {
            fed_fail(fed, "round %" PRIu64 ": the controls of entry %u add up to %g, not %g",
                     fed->server.committed, k, scaffold[k], of_scaffold);
        }
    }
}

void fed_model_check(struct fed *fed)
{
    const struct fl_model_state *m = &fed->server.progress.committed.model;
    struct fl_coord_resume disk = fed_disk_read(fed);
    double sum[FED_FLOATS] = {0};
    double scaffold[FED_FLOATS] = {0};
    uint64_t epoch;
    size_t k;

    for (k = 0; k < disk.n_clients; k++) {
        uint32_t i = fed_named(fed, disk.clients[k].name);

        if (i < FED_MAX) {
            check_client(fed, i, &disk.clients[k], disk.epoch, sum, scaffold);
        }
    }
    epoch = disk.epoch;
    fl_store_resume_done(&disk);
    if (memcmp(fl_blob_floats(m->theta), fed->server.model.theta, sizeof(float) * FED_FLOATS) != 0)
    {
        fed_fail(fed, "the model of round %" PRIu64 " is another", fed->server.committed);
    }
    if (!fed->plan.own) {
        check_sums(fed, epoch, sum, scaffold);
    }
}
