/*
 * The rounds of bench/anchors: what server and clients do, in one thread, every update
 * arriving. Models are small, so everything stays in memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/anchors.h"
#include "client/train/trainer.h"
#include "libfl/data/synthetic.h"

#define CLIENTS        100
#define EVALUATE_EVERY 5

struct member {
    struct fl_dataset *train, *test;
    struct fl_trainer *trainer;
    float *own, *anchor, *mixture; /* personal own; NULL: none yet */
    bool mixed;                    /* `mixture` is of the round before */
    struct fl_buf *kept;           /* [solver keeps] */
    struct fl_train_result result;
    bool trained;
};

struct federation {
    const struct anchor_file *file;
    const struct anchor_row *row;
    double learning_rate; /* of this round */
    uint64_t seed, round;
    struct fl_strategy *strategy;
    struct fl_net *net;
    const struct fl_layout *layout;
    size_t count;
    float *theta, *theta_new;
    float *state[FL_AGG_MAX_STATE], *state_new[FL_AGG_MAX_STATE];
    float *told[FL_AGG_MAX_STATE]; /* what clients are told of them in this round */
    struct member members[CLIENTS];
    /* Of the open round. */
    uint32_t chosen[CLIENTS];
    size_t n_chosen;
    uint8_t *grant; /* [n_chosen][units] */
    uint32_t senders[CLIENTS];
    size_t n_senders;
    struct fl_codec_memory memory[CLIENTS][4];
};

static int open_members(struct federation *f, const struct fl_net_spec *spec, struct fl_err *err)
{
    const struct fl_server_training *training = f->row->training;
    const struct fl_strategy *s = f->strategy;
    struct fl_train_model model = {.layout = f->layout,
                                   .net = *spec,
                                   .solver = s->solver,
                                   .solver_options = s->options[FL_SLOT_SOLVER],
                                   .epochs = (uint32_t)training->epochs,
                                   .steps = (uint32_t)training->steps,
                                   .batch_size = (uint32_t)training->batch_size,
                                   .momentum = training->momentum,
                                   .weight_decay = training->weight_decay,
                                   .personal = s->personal,
                                   .personal_options = s->options[FL_SLOT_PERSONAL]};
    struct fl_synthetic *gen = NULL;
    size_t k;
    int rv = fl_synthetic_create(&f->file->data, &gen, err);

    for (k = 0; rv == FL_OK && k < CLIENTS; k++) {
        struct member *m = &f->members[k];

        rv = fl_synthetic_next(gen, &m->train, err);
        if (rv == FL_OK) {
            rv = fl_dataset_split(m->train, f->file->test_share, f->seed * CLIENTS + k, &m->test,
                                  err);
        }
        if (rv == FL_OK) {
            rv = fl_trainer_builtin(m->train, m->test, &m->trainer, err);
        }
        if (rv == FL_OK) {
            rv = fl_trainer_prepare(m->trainer, &model, err);
        }
        m->kept = calloc(fl_solver_keeps(s->solver->keeps) + 1, sizeof(*m->kept));
        rv = rv == FL_OK && m->kept == NULL ? FL_ENOMEM : rv;
    }
    fl_synthetic_free(gen);
    return rv;
}

static int open_federation(struct federation *f, struct fl_err *err)
{
    struct fl_net_spec spec;
    struct fl_rng rng;
    size_t i;
    int rv = fl_strategy_load(f->file->doc, f->row->algorithm, f->row->strategy, &f->strategy, err);

    rv = rv == FL_OK ? fl_net_preset(f->file->preset, &spec, err) : rv;
    rv = rv == FL_OK ? fl_net_create(&spec, 1, &f->net, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    f->layout = fl_net_layout(f->net);
    f->count = fl_layout_count(f->layout);
    f->theta = calloc(f->count, sizeof(float));
    f->theta_new = calloc(f->count, sizeof(float));
    f->grant = calloc(CLIENTS * fl_layout_units(f->layout), 1);
    rv = f->theta != NULL && f->theta_new != NULL && f->grant != NULL ? FL_OK : FL_ENOMEM;
    for (i = 0; rv == FL_OK && i < fl_strategy_states(f->strategy); i++) {
        f->state[i] = calloc(f->count, sizeof(float));
        f->state_new[i] = calloc(f->count, sizeof(float));
        f->told[i] = calloc(f->count, sizeof(float));
        rv = f->state[i] != NULL && f->state_new[i] != NULL && f->told[i] != NULL ? FL_OK
                                                                                  : FL_ENOMEM;
    }
    if (rv != FL_OK) {
        return rv;
    }
    fl_rng_key(&rng, f->seed, FL_RNG_INIT, 0, 0);
    fl_net_init(f->net, &rng);
    fl_net_get(f->net, f->theta);
    return open_members(f, &spec, err);
}

static void close_federation(struct federation *f)
{
    size_t keeps = f->strategy != NULL ? fl_solver_keeps(f->strategy->solver->keeps) : 0;
    size_t k;
    size_t i;

    for (k = 0; k < CLIENTS; k++) {
        struct member *m = &f->members[k];

        for (i = 0; m->kept != NULL && i < keeps; i++) {
            fl_buf_done(&m->kept[i]);
        }
        free(m->kept);
        fl_trainer_free(m->trainer);
        fl_dataset_free(m->train);
        fl_dataset_free(m->test);
        fl_train_result_done(&m->result);
        free(m->own);
        free(m->anchor);
        free(m->mixture);
    }
    for (i = 0; i < FL_AGG_MAX_STATE; i++) {
        free(f->state[i]);
        free(f->state_new[i]);
        free(f->told[i]);
    }
    free(f->theta);
    free(f->theta_new);
    free(f->grant);
    fl_net_free(f->net);
    fl_strategy_free(f->strategy);
}

/* --- a round --- */

static int pick(struct federation *f)
{
    const struct fl_strategy *s = f->strategy;
    double samples[CLIENTS];
    double scores[CLIENTS] = {0};
    double gamma = s->fraction->at(s->options[FL_SLOT_FRACTION], f->round);
    struct fl_select_input in = {.n = CLIENTS,
                                 .scores = scores,
                                 .samples = samples,
                                 .want = fl_fraction_count(gamma, CLIENTS)};
    struct fl_upload_input up = {.n_selected = in.want,
                                 .n_clients = in.want,
                                 .n_units = fl_layout_units(f->layout),
                                 .samples = samples};
    struct fl_rng rng;
    size_t k;
    int rv;

    for (k = 0; k < CLIENTS; k++) {
        samples[k] = (double)f->members[k].train->n;
    }
    fl_rng_key(&rng, f->seed, FL_RNG_SELECT, f->round, 0);
    rv = s->selection->pick(s->options[FL_SLOT_SELECTION], &in, &rng, f->chosen);
    f->n_chosen = in.want;
    if (rv == FL_OK) {
        fl_rng_key(&rng, f->seed, FL_RNG_PLAN, f->round, 0);
        rv = s->upload->plan(s->options[FL_SLOT_UPLOAD], &up, &rng, f->grant);
    }
    return rv;
}

static void start_of(struct federation *f, struct member *m, struct fl_train_task *task)
{
    task->model = f->theta;
    if (!f->strategy->personal->own) {
        return;
    }
    if (m->own == NULL) { /* At first all are the server's model. */
        m->own = malloc(f->count * sizeof(float));
        m->anchor = malloc(f->count * sizeof(float));
        m->mixture = malloc(f->count * sizeof(float));
        (void)memcpy(m->own, f->theta, f->count * sizeof(float));
        (void)memcpy(m->anchor, f->theta, f->count * sizeof(float));
    }
    if (m->mixed) {
        (void)memcpy(m->own, m->mixture, f->count * sizeof(float));
        (void)memcpy(m->anchor, m->mixture, f->count * sizeof(float));
        m->mixed = false;
    }
    task->model = m->own;
    task->anchor = m->anchor;
    task->raw = true;
}

static int train(struct federation *f, struct member *m, uint32_t k, bool evaluate,
                 struct fl_err *err)
{
    const struct fl_solver_ops *solver = f->strategy->solver;
    size_t keeps = fl_solver_keeps(solver->keeps);
    struct fl_solver_bytes inputs[FL_AGG_MAX_STATE] = {{0}};
    struct fl_solver_bytes kept[FL_AGG_MAX_STATE] = {{0}};
    struct fl_train_task task = {.round = f->round,
                                 .attempt = 1,
                                 .learning_rate = f->learning_rate,
                                 .seed = f->seed * 1000003 + f->round * CLIENTS + k,
                                 .n_selected = (uint32_t)f->n_chosen,
                                 .population = CLIENTS,
                                 .inputs = inputs,
                                 .kept = kept,
                                 .evaluate_trained = evaluate && f->strategy->personal->trained};
    size_t i;
    size_t j;
    int rv;

    start_of(f, m, &task);
    for (i = 0; i < fl_solver_names(solver->inputs); i++) {
        j = fl_strategy_told_from(f->strategy, solver->inputs[i]);
        if (j < fl_strategy_states(f->strategy)) {
            inputs[i] = (struct fl_solver_bytes){f->told[j], f->count * sizeof(float)};
        }
    }
    for (i = 0; i < keeps; i++) {
        kept[i] = (struct fl_solver_bytes){m->kept[i].data, m->kept[i].len};
    }
    fl_train_result_done(&m->result);
    rv = fl_trainer_run(m->trainer, &task, &m->result, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < keeps; i++) {
        fl_buf_done(&m->kept[i]);
        m->kept[i] = m->result.kept[i];
        m->result.kept[i] = (struct fl_buf){0};
    }
    if (f->strategy->personal->own) {
        (void)memcpy(m->own, m->result.delta, f->count * sizeof(float));
    }
    m->trained = true;
    return FL_OK;
}

static int open_unit(void *ctx, size_t client, size_t bundle, size_t unit,
                     struct fl_codec_decoder *d)
{
    struct federation *f = ctx;
    const struct member *m = &f->members[f->senders[client]];
    const struct fl_unit *u = fl_layout_unit(f->layout, unit);
    const uint8_t *block = bundle == 0 ? (const uint8_t *)m->result.delta
                                       : (const uint8_t *)m->result.sent[bundle - 1].data;
    struct fl_codec_memory *memory = &f->memory[client][bundle];
    struct fl_codec_reader reader;

    /* float32 is how the memory of this machine looks. */
    *memory = (struct fl_codec_memory){block + u->offset * sizeof(float), u->count * sizeof(float)};
    reader = fl_codec_memory_reader(memory);
    return fl_codec_open(d, &fl_codec_float32, f->layout, unit, &reader);
}

static int take_mixture(void *ctx, size_t client, size_t offset, const float *values, size_t n)
{
    struct federation *f = ctx;
    struct member *m = &f->members[f->senders[client]];

    (void)memcpy(m->mixture + offset, values, n * sizeof(float));
    m->mixed = true;
    return FL_OK;
}

static int aggregate(struct federation *f, struct fl_err *err)
{
    const struct fl_strategy *s = f->strategy;
    struct fl_agg_client clients[CLIENTS];
    struct fl_agg_job job = {.layout = f->layout,
                             .ops = s->aggregate,
                             .options = s->options[FL_SLOT_AGGREGATE],
                             .round = f->round,
                             .members = CLIENTS,
                             .clients = clients,
                             .open = open_unit,
                             .ctx = f,
                             .theta = f->theta,
                             .theta_new = f->theta_new,
                             .extra = s->solver->server,
                             .extra_options = s->options[FL_SLOT_SOLVER],
                             .state = (const float *const *)f->state,
                             .state_new = f->state_new,
                             .mixture = s->aggregate->mixes ? take_mixture : NULL};
    size_t units = fl_layout_units(f->layout);
    size_t who = 0;
    size_t i;
    int rv;

    f->n_senders = 0;
    for (i = 0; i < f->n_chosen; i++) {
        const struct member *m = &f->members[f->chosen[i]];

        if (memchr(f->grant + i * units, 1, units) == NULL) {
            continue;
        }
        clients[f->n_senders] =
            (struct fl_agg_client){.weight = (double)m->train->n, .units = f->grant + i * units};
        f->senders[f->n_senders++] = f->chosen[i];
    }
    job.n_clients = f->n_senders;
    rv = fl_aggregate_run(&job, &who, err);
    if (rv == FL_OK) {
        float *theta = f->theta;

        f->theta = f->theta_new;
        f->theta_new = theta;
        for (i = 0; i < FL_AGG_MAX_STATE; i++) {
            float *state = f->state[i];

            f->state[i] = f->state_new[i];
            f->state_new[i] = state;
        }
    }
    return rv;
}

/* --- evaluation --- */

static void best(struct anchor_result *ret, double correct, double samples, double mean)
{
    double weighted = correct / samples;

    ret->weighted = weighted > ret->weighted ? weighted : ret->weighted;
    ret->unweighted = mean > ret->unweighted ? mean : ret->unweighted;
}

/* Over all clients: their trained models when they report them, else the model for all. */
static int evaluate(struct federation *f, struct anchor_result *ret, struct fl_err *err)
{
    double correct = 0;
    double samples = 0;
    double mean = 0;
    size_t n = 0;
    size_t k;

    for (k = 0; k < CLIENTS; k++) {
        struct member *m = &f->members[k];
        struct fl_train_task task = {
            .round = f->round, .model = f->theta, .learning_rate = f->learning_rate};
        struct fl_train_evaluation received = {0};
        struct fl_train_evaluation found = {0};
        int rv = FL_OK;

        if (f->strategy->personal->trained) {
            found = m->result.trained;
        } else {
            task.seed = f->seed + f->round * CLIENTS + k;
            rv = fl_trainer_adapt(m->trainer, &task, &received, &found, err);
            found = f->strategy->personal->adapts ? found : received;
        }
        if (rv != FL_OK) {
            return rv;
        }
        if (found.samples > 0) {
            correct += (double)found.correct;
            samples += (double)found.samples;
            mean += (double)found.correct / (double)found.samples;
            n++;
        }
    }
    if (n > 0) {
        best(ret, correct, samples, mean / (double)n);
    }
    return FL_OK;
}

int anchor_run(const struct anchor_file *file, const struct anchor_row *row, uint64_t rounds,
               uint64_t seed, struct anchor_result *ret, struct fl_err *err)
{
    double rate = row->training->learning_rate;
    double decay = row->training->learning_rate_decay;
    struct federation *f = calloc(1, sizeof(*f));
    int rv = f != NULL ? FL_OK : FL_ENOMEM;
    size_t i;

    *ret = (struct anchor_result){0};
    if (rv == FL_OK) {
        f->file = file;
        f->row = row;
        f->seed = seed;
        rv = open_federation(f, err);
    }
    for (i = 1; rv == FL_OK && i <= rounds; i++) {
        bool shown = i % EVALUATE_EVERY == 0 || i == rounds;
        size_t k;

        f->round = i;
        f->learning_rate = rate * pow(decay, (double)(i - 1));
        rv = pick(f);
        for (k = 0; rv == FL_OK && k < fl_strategy_states(f->strategy); k++) {
            fl_strategy_tell(f->strategy, k, f->state[k], CLIENTS, f->told[k], f->count);
        }
        for (k = 0; rv == FL_OK && k < f->n_chosen; k++) {
            rv = train(f, &f->members[f->chosen[k]], f->chosen[k], shown, err);
        }
        rv = rv == FL_OK ? aggregate(f, err) : rv;
        rv = rv == FL_OK && shown ? evaluate(f, ret, err) : rv;
    }
    if (f != NULL) {
        close_federation(f);
        free(f);
    }
    return rv;
}
