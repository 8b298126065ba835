/*
 * A row of a table: its federation in this process (tools/fl_sim/engine/federation.h), every client
 * in every round that draws it, every update arriving.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/anchors.h"
#include "bench/scratch.h"
#include "tools/fl_sim/engine/federation.h"

#define CLIENTS        100
#define EVALUATE_EVERY 5
/* Of a phase: longer than any takes, as nobody is late here. */
#define FOREVER_MS 1000000000

struct run {
    const struct anchor_file *file;
    const struct anchor_row *row;
    uint64_t rounds, seed;
    struct fl_strategy *strategy;
    struct fl_net *net; /* of the layout */
    char dir[64];
    struct fl_dataset *train[CLIENTS], *test[CLIENTS];
    char names[CLIENTS][16];
    struct fl_people people;
    struct fl_eval_rec newest[CLIENTS]; /* what each client found last */
    struct anchor_result *result;
};

/* --- what is found --- */

static void reported(void *ctx, size_t client, const struct fl_job_answer *report)
{
    struct run *run = ctx;

    if (report->has_trained) {
        run->newest[client] = report->trained;
    }
}

static void evaluated(void *ctx, size_t client, const struct fl_eval_rec *received,
                      const struct fl_eval_rec *adapted)
{
    struct run *run = ctx;

    if (!run->strategy->personal->trained) {
        run->newest[client] = run->strategy->personal->adapts ? *adapted : *received;
    }
}

/* Over all clients: their trained models when they report them, else the model for all. */
static bool committed(void *ctx, const struct fl_round_rec *record, const struct fl_sim_round *sim)
{
    struct run *run = ctx;
    double correct = 0;
    double samples = 0;
    double shares = 0;
    double n = 0;
    size_t k;

    (void)sim;
    if (record->round % EVALUATE_EVERY != 0 && record->round != run->rounds) {
        return true;
    }
    for (k = 0; k < CLIENTS; k++) {
        const struct fl_eval_rec *e = &run->newest[k];

        if (e->samples > 0) {
            correct += (double)e->correct;
            samples += (double)e->samples;
            shares += (double)e->correct / (double)e->samples;
            n++;
        }
    }
    if (n > 0) {
        run->result->weighted = fmax(run->result->weighted, correct / samples);
        run->result->unweighted = fmax(run->result->unweighted, shares / n);
    }
    return true;
}

static void person(void *ctx, size_t client, struct fl_person *ret)
{
    const struct run *run = ctx;

    *ret = (struct fl_person){run->names[client], run->train[client]->n, run->test[client]->n,
                              run->seed * CLIENTS + client};
}

static int data(void *ctx, size_t client, struct fl_person_data *ret, struct fl_err *err)
{
    const struct run *run = ctx;

    (void)err;
    *ret = (struct fl_person_data){run->train[client], run->test[client], {NULL}};
    return FL_OK;
}

static void release(void *ctx, struct fl_person_data *of)
{
    (void)ctx;
    (void)of;
}

/* --- the federation --- */

static struct fl_fed_conf conf_of(struct run *run, const struct fl_net_spec *spec)
{
    const struct fl_server_training *training = run->row->training;

    return (struct fl_fed_conf){
        .dir = run->dir,
        .name = "anchors",
        .coord = {.seed = run->seed,
                  .rounds = run->rounds,
                  .population = CLIENTS,
                  .start_clients = CLIENTS,
                  .min_responders = 1,
                  .over_selection = 1,
                  .train_ms = FOREVER_MS,
                  .upload_ms = FOREVER_MS,
                  .evaluate_ms = FOREVER_MS,
                  .evaluate_every = EVALUATE_EVERY,
                  .evaluate_clients = !run->strategy->personal->trained,
                  .learning_rate = training->learning_rate,
                  .learning_rate_decay = training->learning_rate_decay,
                  .strategy = run->strategy,
                  .layout = fl_net_layout(run->net)},
        .net = *spec,
        .training = {.epochs = (uint32_t)training->epochs,
                     .steps = (uint32_t)training->steps,
                     .batch_size = (uint32_t)training->batch_size,
                     .momentum = training->momentum,
                     .weight_decay = training->weight_decay},
        .inputs = fl_net_inputs(run->net),
        .classes = fl_net_classes(run->net),
        .people = &run->people,
        .watch = {.reported = reported, .evaluated = evaluated, .committed = committed, .ctx = run},
    };
}

static int make_clients(struct run *run, struct fl_err *err)
{
    struct fl_synthetic *gen = NULL;
    size_t k;
    int rv = fl_synthetic_create(&run->file->data, &gen, err);

    for (k = 0; rv == FL_OK && k < CLIENTS; k++) {
        (void)snprintf(run->names[k], sizeof(run->names[k]), "c%03zu", k);
        rv = fl_synthetic_next(gen, &run->train[k], err);
        if (rv == FL_OK) {
            rv = fl_dataset_split(run->train[k], run->file->test_share, run->seed * CLIENTS + k,
                                  &run->test[k], err);
        }
    }
    fl_synthetic_free(gen);
    run->people = (struct fl_people){CLIENTS, person, data, release, run};
    return rv;
}

static int run_all(struct run *run, struct fl_err *err)
{
    struct fl_net_spec spec;
    struct fl_fed_conf conf;
    struct fl_fed *fed = NULL;
    enum fl_fed_end end = FL_FED_DONE;
    int rv = fl_strategy_load(run->file->doc, run->row->algorithm, run->row->strategy,
                              &run->strategy, err);

    rv = rv == FL_OK ? fl_net_preset(run->file->preset, &spec, err) : rv;
    rv = rv == FL_OK ? fl_net_create(&spec, 1, &run->net, err) : rv;
    rv = rv == FL_OK ? make_clients(run, err) : rv;
    if (rv == FL_OK) {
        conf = conf_of(run, &spec);
        rv = fl_fed_create(&conf, &fed, err);
    }
    rv = rv == FL_OK ? fl_fed_run(fed, &end, err) : rv;
    if (rv == FL_OK && end != FL_FED_DONE) {
        rv = fl_err_set(err, FL_ESTATE, "%s", fl_fed_why(fed));
    }
    fl_fed_free(fed);
    return rv;
}

int anchor_run(const struct anchor_file *file, const struct anchor_row *row, uint64_t rounds,
               uint64_t seed, struct anchor_result *ret, struct fl_err *err)
{
    struct run *run = calloc(1, sizeof(*run));
    size_t k;
    int rv;

    *ret = (struct anchor_result){0};
    if (run == NULL) {
        return FL_ENOMEM;
    }
    run->file = file;
    run->row = row;
    run->rounds = rounds;
    run->seed = seed;
    run->result = ret;
    /* In memory where there is a place for that: nobody waits for a disk. */
    rv = scratch_make(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", "fl-anchors", run->dir,
                      sizeof(run->dir), err);
    if (rv == FL_OK) {
        rv = run_all(run, err);
        scratch_remove(run->dir);
    }
    for (k = 0; k < CLIENTS; k++) {
        fl_dataset_free(run->train[k]);
        fl_dataset_free(run->test[k]);
    }
    fl_net_free(run->net);
    fl_strategy_free(run->strategy);
    free(run);
    return rv;
}
