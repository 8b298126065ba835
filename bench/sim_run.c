#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/scratch.h"
#include "bench/sim.h"
#include "client/train/trainer.h"
#include "libfl/base/clock.h"
#include "tools/fl_sim/engine/sim_federation.h"

/* Of a phase: longer than any takes, as nobody is late here. */
#define FOREVER_MS 1000000000
#define MAX_ROUNDS 1000
/* Samples that clients share, when they have none of their own. */
#define POOL 4096
#define TEST 10000

struct bench {
    const struct sim_case *c;
    struct sim_figures *out;
    struct fl_strategy *strategy;
    struct fl_net_spec spec;
    struct fl_net *net; /* of the layout */
    struct fl_dataset *pool, *test;
    uint32_t *items; /* [pool->n] */
    char (*names)[24];
    struct fl_sim_clients sim_clients;
    uint64_t began_ns, last_ns;
    double last_cpu;
    double spans[MAX_ROUNDS], cpu[MAX_ROUNDS];
    size_t n_spans;
};

/* What this process computed, in seconds: what others do on the machine is no part of it. */
static double cpu_s(void)
{
    struct rusage u = {.ru_maxrss = 0};

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* --- clients --- */

static void sim_client(void *ctx, size_t client, struct fl_sim_client *ret)
{
    const struct bench *b = ctx;

    *ret = (struct fl_sim_client){
        .name = b->names[client], .samples = b->c->samples, .seed = client + 1};
}

/* A window of the pool: thousands of clients share what lies in memory. */
static int data(void *ctx, size_t client, struct fl_sim_client_data *ret, struct fl_err *err)
{
    const struct bench *b = ctx;
    size_t from = client * b->c->samples % (b->pool->n - b->c->samples + 1);
    struct fl_dataset *view = NULL;
    int rv = fl_dataset_view(b->pool, b->items + from, b->c->samples, &view, err);

    ret->train = view;
    ret->test = NULL;
    ret->of[0] = view;
    return rv;
}

static void release(void *ctx, struct fl_sim_client_data *of)
{
    (void)ctx;
    fl_dataset_free(of->of[0]);
}

static int make_noise(size_t n, size_t dim, size_t classes, struct fl_dataset **ret,
                      struct fl_err *err)
{
    const size_t dims[3] = {dim, 1, 1};
    struct fl_rng rng;
    float *x;
    size_t i;
    int rv = fl_dataset_create(FL_DATA_F32, n, dims, 1, ret, err);

    if (rv != FL_OK) {
        return rv;
    }
    x = (*ret)->x;
    fl_rng_seed(&rng, 1);
    for (i = 0; i < n * dim; i++) {
        x[i] = (float)fl_rng_normal(&rng);
    }
    for (i = 0; i < n; i++) {
        (*ret)->y[i] = (int32_t)fl_rng_below(&rng, classes);
    }
    (*ret)->classes = classes;
    return FL_OK;
}

static int make_data(struct bench *b, struct fl_err *err)
{
    size_t dim = fl_net_inputs(b->net);
    size_t n = b->c->samples > POOL ? b->c->samples : POOL;
    size_t i;
    int rv;

    if (b->c->data != NULL) {
        rv = fl_dataset_open(b->c->data, "train", &b->pool, err);
        rv = rv == FL_OK ? fl_dataset_open(b->c->data, "test", &b->test, err) : rv;
    } else {
        rv = make_noise(n, dim, fl_net_classes(b->net), &b->pool, err);
        rv = rv == FL_OK && b->c->evaluate_every > 0
                 ? make_noise(TEST, dim, fl_net_classes(b->net), &b->test, err)
                 : rv;
    }
    if (rv == FL_OK && b->pool->n < b->c->samples) {
        rv = fl_err_set(err, FL_EINVAL, "a client of %zu samples, there are %zu", b->c->samples,
                        b->pool->n);
    }
    if (rv != FL_OK) {
        return rv;
    }
    b->items = malloc(b->pool->n * sizeof(*b->items));
    b->names = malloc(b->c->clients * sizeof(*b->names));
    if (b->items == NULL || b->names == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%zu clients: out of memory", b->c->clients);
    }
    for (i = 0; i < b->pool->n; i++) {
        b->items[i] = (uint32_t)i;
    }
    for (i = 0; i < b->c->clients; i++) {
        (void)snprintf(b->names[i], sizeof(b->names[i]), "c%07zu", i);
    }
    b->sim_clients = (struct fl_sim_clients){
        .n = b->c->clients, .sim_client = sim_client, .data = data, .release = release, .ctx = b};
    return FL_OK;
}

/* --- the trainings of a round by themselves --- */

static int train_all(struct bench *b, struct fl_trainer *t, const float *theta, struct fl_err *err)
{
    struct fl_train_task task = {.model = theta, .asked.learning_rate = b->c->learning_rate};
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < b->c->selected; i++) {
        struct fl_sim_client_data of = {.train = NULL};
        struct fl_train_result made = {0};

        rv = data(b, i, &of, err);
        rv = rv == FL_OK ? fl_trainer_set_data(t, of.train, of.test, err) : rv;
        task.asked.key.round = 1;
        task.asked.seed = i;
        rv = rv == FL_OK ? fl_trainer_run(t, &task, &made, err) : rv;
        fl_train_result_done(&made);
        release(b, &of);
    }
    return rv;
}

/* Of solvers that need nothing beside the model; 0 of others. */
static int measure_training(struct bench *b, struct fl_err *err)
{
    const struct fl_solver_ops *solver = b->strategy->solver;
    const struct fl_train_model model = {.layout = fl_net_layout(b->net),
                                         .net = b->spec,
                                         .solver = solver,
                                         .solver_options =
                                             b->strategy->options[FL_COMPONENT_SOLVER],
                                         .epochs = b->c->epochs,
                                         .batch_size = b->c->batch};
    float *theta = calloc(fl_layout_count(model.layout), sizeof(*theta));
    struct fl_trainer *t = NULL;
    double from = 0;
    int turn;
    int rv = theta != NULL ? FL_OK : FL_ENOMEM;

    if (solver->inputs == NULL && rv == FL_OK) {
        rv = fl_trainer_builtin(b->pool, NULL, NULL, &t, err);
        rv = rv == FL_OK ? fl_trainer_prepare(t, &model, err) : rv;
        for (turn = 0; rv == FL_OK && turn < 2; turn++) { /* The first only warms up. */
            from = cpu_s();
            rv = train_all(b, t, theta, err);
        }
        b->out->train_ms = 1e3 * (cpu_s() - from);
    }
    fl_trainer_free(t);
    free(theta);
    return rv;
}

/* --- the federation --- */

static bool committed(void *ctx, const struct fl_round_rec *record, const struct fl_sim_round *sim)
{
    struct bench *b = ctx;
    uint64_t now = fl_clock_ns();
    double now_cpu = cpu_s();

    (void)sim;
    if (record->round == 1) {
        b->out->start_s = (double)(now - b->began_ns) / 1e9;
    } else if (b->n_spans < MAX_ROUNDS) {
        b->cpu[b->n_spans] = 1e3 * (now_cpu - b->last_cpu);
        b->spans[b->n_spans++] = (double)(now - b->last_ns) / 1e6;
    }
    if (record->accuracy >= 0) {
        b->out->accuracy = record->accuracy;
    }
    b->last_ns = now;
    b->last_cpu = now_cpu;
    return true;
}

static struct fl_fed_conf conf_of(struct bench *b, const char *dir)
{
    const struct sim_case *c = b->c;

    return (struct fl_fed_conf){.dir = dir,
                                .name = "bench",
                                .coord = {.seed = 1,
                                          .rounds = c->rounds + 1,
                                          .max_clients = (uint32_t)c->clients,
                                          .start_clients = (uint32_t)c->clients,
                                          .min_clients = 1,
                                          .min_responders = 1,
                                          .over_selection = 1,
                                          .train_ms = FOREVER_MS,
                                          .upload_ms = FOREVER_MS,
                                          .evaluate_ms = FOREVER_MS,
                                          .evaluate_every = c->evaluate_every,
                                          .evaluate_server = c->evaluate_every > 0,
                                          .learning_rate = c->learning_rate,
                                          .learning_rate_decay = 1,
                                          .strategy = b->strategy,
                                          .layout = fl_net_layout(b->net)},
                                .net = b->spec,
                                .training = {.epochs = c->epochs, .batch_size = c->batch},
                                .inputs = fl_net_inputs(b->net),
                                .classes = fl_net_classes(b->net),
                                .sim_clients = &b->sim_clients,
                                .test = b->test,
                                .threads = c->threads,
                                .watch = {.committed = committed, .ctx = b}};
}

static int run_rounds(struct bench *b, struct fl_err *err)
{
    char dir[256];
    struct fl_fed_conf conf;
    struct fl_fed *fed = NULL;
    enum fl_fed_end end = FL_FED_DONE;
    int rv = scratch_make(b->c->dir, "fl-sim", dir, sizeof(dir), err);

    if (rv != FL_OK) {
        return rv;
    }
    b->began_ns = b->last_ns = fl_clock_ns();
    conf = conf_of(b, dir);
    rv = fl_fed_create(&conf, &fed, err);
    rv = rv == FL_OK ? fl_fed_run(fed, &end, err) : rv;
    if (rv == FL_OK && end != FL_FED_DONE) {
        rv = fl_err_set(err, FL_ESTATE, "%s", fl_fed_why(fed));
    }
    fl_fed_free(fed);
    scratch_remove(dir);
    return rv;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sum_up(struct bench *b)
{
    size_t i;

    for (i = 0; i < b->n_spans; i++) {
        b->out->total_s += b->spans[i] / 1e3;
    }
    qsort(b->spans, b->n_spans, sizeof(b->spans[0]), rising);
    qsort(b->cpu, b->n_spans, sizeof(b->cpu[0]), rising);
    b->out->round_ms = b->n_spans > 0 ? b->spans[b->n_spans / 2] : 0;
    b->out->cpu_ms = b->n_spans > 0 ? b->cpu[b->n_spans / 2] : 0;
}

static int run_all(struct bench *b, struct fl_err *err)
{
    char algorithm[128];
    double share = (double)b->c->selected / (double)b->c->clients;
    int rv;

    (void)snprintf(algorithm, sizeof(algorithm), "%s-%.9g", b->c->algorithm, share);
    rv = fl_strategy_create(b->c->selected < b->c->clients ? algorithm : b->c->algorithm,
                            &b->strategy, err);
    rv = rv == FL_OK ? fl_net_preset(b->c->model, &b->spec, err) : rv;
    rv = rv == FL_OK ? fl_net_create(&b->spec, 1, &b->net, err) : rv;
    rv = rv == FL_OK ? make_data(b, err) : rv;
    if (rv == FL_OK) {
        b->out->parameters = fl_layout_count(fl_net_layout(b->net));
        rv = measure_training(b, err);
    }
    rv = rv == FL_OK ? run_rounds(b, err) : rv;
    sum_up(b);
    return rv;
}

/* --- its own process --- */

struct told {
    struct sim_figures figures;
    struct fl_err err;
    int rv;
};

static void child(const struct sim_case *c, int fd)
{
    struct told told = {.figures = {.accuracy = -1}};
    struct bench *b = calloc(1, sizeof(*b));

    told.rv = FL_ENOMEM;
    if (b != NULL) {
        b->c = c;
        b->out = &told.figures;
        told.rv = run_all(b, &told.err);
    }
    _exit(write(fd, &told, sizeof(told)) == (ssize_t)sizeof(told) ? 0 : 1);
}

int sim_run(const struct sim_case *c, struct sim_figures *ret, struct fl_err *err)
{
    struct rusage usage = {.ru_maxrss = 0};
    struct told told;
    int fds[2];
    int status;
    pid_t pid;
    bool good;

    if (pipe(fds) != 0 || (pid = fork()) < 0) {
        return fl_err_set(err, FL_EIO, "no process for a federation");
    }
    if (pid == 0) {
        child(c, fds[1]);
    }
    (void)close(fds[1]);
    good = read(fds[0], &told, sizeof(told)) == (ssize_t)sizeof(told);
    (void)close(fds[0]);
    if (wait4(pid, &status, 0, &usage) != pid || !good) {
        return fl_err_set(err, FL_EIO, "a federation of %zu clients died", c->clients);
    }
    if (told.rv != FL_OK) {
        return fl_err_set(err, told.rv, "%s", fl_err_text(&told.err, told.rv));
    }
    *ret = told.figures;
    ret->peak_mb = (double)usage.ru_maxrss / 1024;
    return FL_OK;
}
