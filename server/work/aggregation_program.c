#include "server/work/aggregation_program.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/program/persistent.h"

/* Room for so many clients at first, then for twice as many, so that few rounds restart it. */
#define CLIENTS_LEAST 8u

struct fl_aggregation_program {
    struct fl_persistent *program;
    struct fl_agg_program limits; /* without argv */
    const struct fl_layout *layout;
    const struct fl_net_spec *net;
    size_t capacity; /* clients for which the memory has room; 0: not described yet */
    /* The current round. */
    struct fl_program_round round;
    struct fl_persistent_update *updates; /* [capacity] */
    double *scores;                       /* [capacity] */
    struct fl_persistent_answer answer;
};

int fl_aggregation_program_create(const struct fl_aggregation_program_conf *conf,
                                  struct fl_aggregation_program **ret, struct fl_err *err)
{
    const struct fl_strategy *s = conf->strategy;
    struct fl_agg_program limits = s->aggregate->program(s->options[FL_COMPONENT_AGGREGATE]);
    const struct fl_persistent_conf program = {.argv = limits.argv,
                                               .client = conf->federation,
                                               .purpose = "aggregate",
                                               .memory_bytes = limits.memory,
                                               .memory_of = FL_PROGRAM_RESIDENT_MEMORY,
                                               .descriptors = conf->descriptors,
                                               .start_limit_ms = limits.start_limit_ms,
                                               .cancel_grace_ms = FL_PROGRAM_GRACE_MS,
                                               .log = conf->log};
    struct fl_aggregation_program *p = calloc(1, sizeof(*p));
    int rv;

    if (p == NULL) {
        return fl_err_set(err, FL_ENOMEM, "program of the aggregation: out of memory");
    }
    p->limits = limits;
    p->limits.argv = NULL;
    p->layout = conf->layout;
    p->net = conf->net;
    rv = fl_persistent_create(&program, &p->program, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_persistent_start(p->program, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (!fl_persistent_can(p->program, FL_PERSISTENT_AGGREGATE)) {
        rv = fl_err_set(err, FL_EUNIMPL,
                        "'%.100s' cannot aggregate: its `ready` has no \"aggregate\" in `can`; a "
                        "Python script calls fl_strategy.run() (docs/trainers.md)",
                        limits.argv[0]);
        goto fail;
    }
    *ret = p;
    return FL_OK;
fail:
    fl_aggregation_program_free(p);
    return rv;
}

void fl_aggregation_program_free(struct fl_aggregation_program *p)
{
    if (p == NULL) {
        return;
    }
    if (p->program != NULL) {
        fl_persistent_stop(p->program);
    }
    fl_persistent_free(p->program);
    free(p->updates);
    free(p->scores);
    free(p);
}

/* Room for the updates of n clients. */
static int program_make_room(struct fl_aggregation_program *p, size_t n, struct fl_err *err)
{
    struct fl_persistent_model model = {.layout = p->layout,
                                        .input = p->net->input,
                                        .n_input = p->net->n_input,
                                        .layers = p->net->layers,
                                        .n_layers = p->net->n_layers,
                                        .state_bytes = (size_t)p->limits.state_limit};
    size_t capacity = p->capacity > 0 ? p->capacity : CLIENTS_LEAST;
    struct fl_persistent_update *updates;
    double *scores;
    int rv;

    if (n <= p->capacity) {
        return FL_OK;
    }
    while (capacity < n) {
        capacity *= 2;
    }
    updates = calloc(capacity, sizeof(*updates));
    scores = calloc(capacity, sizeof(*scores));
    if (updates == NULL || scores == NULL) {
        free(updates);
        free(scores);
        return fl_err_set(err, FL_ENOMEM, "program of the aggregation: out of memory");
    }
    free(p->updates);
    free(p->scores);
    p->updates = updates;
    p->scores = scores;
    p->capacity = 0;
    model.clients = capacity;
    rv = fl_persistent_describe(p->program, &model, p->limits.start_limit_ms, err);
    if (rv != FL_OK) {
        return rv;
    }
    p->capacity = capacity;
    return FL_OK;
}

/* The federation's seed must not be seen through that of a round. */
static uint64_t program_seed(const struct fl_program_round *round)
{
    struct fl_rng rng;

    fl_rng_key(&rng, round->seed, FL_RNG_PROGRAM, round->round, 0);
    return fl_rng_u64(&rng);
}

static int program_make(void *ctx, double *step, struct fl_err *err)
{
    struct fl_aggregation_program *p = ctx;
    const struct fl_program_round *round = &p->round;
    const struct fl_persistent_round given = {
        .updates = p->updates,
        .n = round->n_parts,
        .state = round->kept != NULL ? fl_blob_data(round->kept) : NULL,
        .state_len = round->kept != NULL ? fl_blob_len(round->kept) : 0,
        .step = step,
        .scores = p->scores};
    const struct fl_persistent_task task = {
        .kind = FL_PERSISTENT_AGGREGATE,
        .given = {[FL_PERSISTENT_MODEL] = round->theta},
        .asked = {.key = {round->round, round->attempt}, .seed = program_seed(round)},
        .aggregate = &given,
        .limit_ms = p->limits.limit_ms,
        .limit_note = " (strategy.aggregate.limit)",
        .cancel = round->cancel};

    return fl_persistent_run(p->program, &task, &p->answer, err);
}

int fl_aggregation_program_begin(struct fl_aggregation_program *p,
                                 const struct fl_program_round *round, struct fl_agg_whole *ret,
                                 struct fl_err *err)
{
    struct fl_persistent_room room;
    size_t kept = round->kept != NULL ? fl_blob_len(round->kept) : 0;
    size_t i;
    int rv;

    p->answer = (struct fl_persistent_answer){.state_bytes = 0};
    if (kept > p->limits.state_limit) {
        return fl_err_set(err, FL_ELIMIT,
                          "the state that the program of the aggregation keeps has %zu bytes, "
                          "expected at most %llu: raise strategy.aggregate.state_limit",
                          kept, (unsigned long long)p->limits.state_limit);
    }
    rv = program_make_room(p, round->n_parts, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_persistent_prepare(p->program, round->cancel, &room, err);
    if (rv != FL_OK) {
        return rv;
    }
    p->round = *round;
    for (i = 0; i < round->n_parts; i++) {
        p->updates[i] = (struct fl_persistent_update){.client = round->clients[i].name,
                                                      .samples = round->parts[i].samples,
                                                      .steps = round->parts[i].steps,
                                                      .train_loss = round->parts[i].train_loss};
    }
    *ret = (struct fl_agg_whole){.updates = room.updates,
                                 .mean = room.mean,
                                 .weights = room.weights,
                                 .make = program_make,
                                 .ctx = p};
    return FL_OK;
}

int fl_aggregation_program_kept(struct fl_aggregation_program *p, struct fl_blob **ret,
                                struct fl_err *err)
{
    struct fl_blob *kept = NULL;
    int rv;

    *ret = NULL;
    if (p->answer.state_bytes == 0) {
        return FL_OK;
    }
    rv = fl_blob_create((size_t)p->answer.state_bytes, &kept);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_persistent_state(p->program, fl_blob_fill(kept), fl_blob_len(kept), err);
    if (rv != FL_OK) {
        fl_blob_unref(kept);
        return rv;
    }
    *ret = kept;
    return FL_OK;
}

const double *fl_aggregation_program_scores(const struct fl_aggregation_program *p)
{
    return p->answer.has_scores ? p->scores : NULL;
}
