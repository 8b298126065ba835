/*
 * The lanes' work for the coordinator. A job owns copies of all it needs, runs on its
 * lane and comes back to the coordinator's loop, where its answer is stepped in.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/srv/driver_state.h"

#define NO_CLIENT UINT32_MAX

struct job {
    struct fl_driver *driver;
    enum fl_effect_type type;
    uint64_t seq, round;
    uint32_t attempt;
    struct fl_part_rec *parts; /* deep copy */
    size_t n_parts;
    struct fl_client_rec *clients; /* of the parts, or all of them (COMMIT) */
    size_t n_clients;
    size_t population; /* all known clients */
    struct fl_round_rec record;
    bool want_distance;
    /* Inputs kept alive, and results. */
    struct fl_blob *theta;
    struct fl_model_state out;
    double *distance;
    struct fl_round_rec totals;
    double accuracy, loss;
    uint32_t bad_client;
    int code;
    struct fl_err err;
};

static void job_free(struct job *job)
{
    size_t i;

    for (i = 0; i < job->n_parts; i++) {
        free(job->parts[i].divergence);
        free(job->parts[i].units);
    }
    free(job->parts);
    free(job->clients);
    free(job->distance);
    fl_blob_unref(job->theta);
    fl_model_state_done(&job->out);
    free(job);
}

static void *copy_of(const void *data, size_t len)
{
    void *copy = data != NULL && len > 0 ? malloc(len) : NULL;

    if (copy != NULL) {
        (void)memcpy(copy, data, len);
    }
    return copy;
}

static bool copy_parts(struct job *job, const struct fl_effect *e, size_t n_units)
{
    size_t i;

    job->parts = calloc(e->n_parts > 0 ? e->n_parts : 1, sizeof(*job->parts));
    if (job->parts == NULL) {
        return false;
    }
    for (i = 0; i < e->n_parts; i++) {
        const struct fl_part_rec *from = &e->parts[i];

        job->parts[i] = *from;
        job->parts[i].divergence = copy_of(from->divergence, n_units * sizeof(float));
        job->parts[i].units = copy_of(from->units, n_units);
        job->n_parts = i + 1;
        if ((from->divergence != NULL) != (job->parts[i].divergence != NULL) ||
            (from->units != NULL) != (job->parts[i].units != NULL))
        {
            return false;
        }
    }
    return true;
}

/* Names and weights of the parts' clients, in the order of the parts. */
static bool copy_part_clients(struct job *job, const struct fl_driver *driver)
{
    size_t i;

    job->clients = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->clients));
    if (job->clients == NULL) {
        return false;
    }
    for (i = 0; i < job->n_parts; i++) {
        job->clients[i] = *fl_coord_client(driver->coord, job->parts[i].client);
    }
    job->n_clients = job->n_parts;
    return true;
}

static struct job *job_new(struct fl_driver *driver, const struct fl_effect *e)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return NULL;
    }
    job->driver = driver;
    job->type = e->type;
    job->seq = e->seq;
    job->round = e->round;
    job->attempt = e->attempt;
    job->want_distance = e->want_distance;
    job->bad_client = NO_CLIENT;
    if (e->record != NULL) {
        job->record = *e->record;
    }
    if (!copy_parts(job, e, fl_layout_units(driver->srv->conf->layout))) {
        job_free(job);
        return NULL;
    }
    if (e->n_clients > 0) {
        job->clients = copy_of(e->clients, e->n_clients * sizeof(*e->clients));
        job->n_clients = e->n_clients;
        if (job->clients == NULL) {
            job_free(job);
            return NULL;
        }
    }
    return job;
}

void fl_driver_work_failed(struct fl_driver *driver, uint64_t seq, int code, const char *reason,
                           uint32_t client)
{
    struct fl_event event = {.type = FL_EV_WORK_FAILED};

    fl_log(driver->srv->log, FL_LOG_ERROR, "server", "work failed: %s", reason);
    event.u.failed_work.seq = seq;
    event.u.failed_work.code = code;
    event.u.failed_work.reason = reason;
    event.u.failed_work.client = client;
    fl_driver_step(driver, &event);
}

/* A job that could not even be submitted: told after the effects of this step are done. */
struct unsubmitted {
    struct fl_driver *driver;
    uint64_t seq;
};

static void tell_unsubmitted(void *arg)
{
    struct unsubmitted *u = arg;

    fl_driver_work_failed(u->driver, u->seq, FL_ENOMEM, "out of memory", NO_CLIENT);
    free(u);
}

static void submit(struct fl_driver *driver, struct fl_lane *lane, struct job *job,
                   const struct fl_effect *e, fl_loop_cb work, fl_loop_cb done)
{
    struct unsubmitted *u;

    if (job != NULL && fl_lane_submit(lane, work, driver->loop, done, job) == FL_OK) {
        return;
    }
    if (job != NULL) {
        job_free(job);
    }
    u = malloc(sizeof(*u));
    if (u == NULL) {
        abort(); /* The state on disk is whole, systemd starts us again. */
    }
    *u = (struct unsubmitted){driver, e->seq};
    if (fl_loop_post(driver->loop, tell_unsubmitted, u) != FL_OK) {
        abort();
    }
}

static bool failed(struct job *job)
{
    if (job->code == FL_OK) {
        return false;
    }
    fl_driver_work_failed(job->driver, job->seq, job->code, fl_err_text(&job->err, job->code),
                          job->bad_client);
    return true;
}

/* --- records --- */

static void persist_work(void *arg)
{
    struct job *job = arg;
    struct fl_store *store = job->driver->store;

    switch (job->type) {
    case FL_EFF_PERSIST_CLIENT:
        job->code = fl_store_put_client(store, &job->clients[0], &job->err);
        break;
    case FL_EFF_PERSIST_SELECTION:
        job->code = fl_store_put_selection(store, job->round, job->attempt, job->parts,
                                           job->n_parts, &job->err);
        break;
    case FL_EFF_PERSIST_PLAN:
        job->code =
            fl_store_put_plan(store, job->round, job->attempt, job->parts, job->n_parts, &job->err);
        break;
    case FL_EFF_PERSIST_UPDATE:
        job->code = fl_store_put_update(store, job->round, job->attempt, &job->parts[0], &job->err);
        break;
    default:
        job->code = FL_EINVAL;
        break;
    }
}

static void persist_done(void *arg)
{
    struct job *job = arg;
    struct fl_event event = {.type = FL_EV_PERSISTED};

    if (!failed(job)) {
        event.u.seq = job->seq;
        fl_driver_step(job->driver, &event);
    }
    job_free(job);
}

void fl_driver_persist(struct fl_driver *driver, const struct fl_effect *e)
{
    submit(driver, driver->srv->db, job_new(driver, e), e, persist_work, persist_done);
}

/* --- aggregation --- */

struct aggregation {
    struct job *job;
    struct fl_spool_reader **readers;
};

/* Bundle 0 is the update, the only one that this version takes. */
static int open_unit(void *ctx, size_t client, size_t bundle, size_t unit,
                     struct fl_codec_decoder *d)
{
    struct aggregation *a = ctx;

    return bundle == 0 ? fl_spool_reader_unit(a->readers[client], unit, d) : FL_ENOENT;
}

static int open_readers(struct aggregation *a, struct fl_agg_client *clients)
{
    struct job *job = a->job;
    const struct fl_srv *srv = job->driver->srv;
    size_t i;

    for (i = 0; i < job->n_parts; i++) {
        int rv =
            fl_spool_reader_open(srv->state_dir, job->round, job->attempt, job->clients[i].name,
                                 srv->conf->layout, &a->readers[i], &job->err);

        if (rv != FL_OK) {
            job->bad_client = job->parts[i].client;
            return rv;
        }
        fl_spool_reader_share(a->readers[i], job->n_parts);
        clients[i].weight = (double)job->parts[i].samples;
        clients[i].units = fl_spool_reader_units(a->readers[i]);
    }
    return FL_OK;
}

static int allocate_result(struct job *job)
{
    struct fl_driver *driver = job->driver;
    size_t n = fl_driver_floats(driver);
    size_t i;
    int rv = fl_blob_create(n * sizeof(float), &job->out.theta);

    for (i = 0; rv == FL_OK && i < driver->n_state; i++) {
        job->out.state[i] = malloc(n * sizeof(float));
        rv = job->out.state[i] != NULL ? FL_OK : FL_ENOMEM;
    }
    job->distance = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->distance));
    return job->distance != NULL ? rv : FL_ENOMEM;
}

static int run_aggregation(struct aggregation *a, struct fl_agg_client *clients)
{
    struct job *job = a->job;
    struct fl_driver *driver = job->driver;
    const struct fl_strategy *strategy = driver->srv->conf->strategy;
    const float *state[FL_AGG_MAX_STATE];
    struct fl_agg_job run = {
        .layout = driver->srv->conf->layout,
        .ops = strategy->aggregate,
        .options = strategy->options[FL_SLOT_AGGREGATE],
        .round = job->round,
        .population = job->population,
        .n_clients = job->n_parts,
        .clients = clients,
        .open = open_unit,
        .ctx = a,
        .theta = (const float *)(const void *)fl_blob_data(job->theta),
        .theta_new = (float *)(void *)fl_blob_fill(job->out.theta),
        .state = state,
        .state_new = job->out.state,
        .want_distance = job->want_distance,
        .distance = job->distance,
    };
    size_t who = job->n_parts;
    size_t i;
    int rv;

    for (i = 0; i < FL_AGG_MAX_STATE; i++) {
        /* Read only here; the coordinator replaces it when this job is done. */
        state[i] = driver->current.state[i];
    }
    rv = fl_aggregate_run(&run, &who, &job->err);
    if (rv != FL_OK && who < job->n_parts) {
        job->bad_client = job->parts[who].client;
    }
    return rv;
}

static void aggregate_work(void *arg)
{
    struct job *job = arg;
    struct aggregation a = {.job = job};
    size_t n = job->n_parts > 0 ? job->n_parts : 1;
    struct fl_agg_client *clients = calloc(n, sizeof(*clients));
    size_t i;

    a.readers = calloc(n, sizeof(struct fl_spool_reader *));
    job->code = clients != NULL && a.readers != NULL ? allocate_result(job) : FL_ENOMEM;
    if (job->code == FL_OK) {
        job->code = open_readers(&a, clients);
    }
    if (job->code == FL_OK) {
        job->code = run_aggregation(&a, clients);
    }
    for (i = 0; a.readers != NULL && i < job->n_parts; i++) {
        fl_spool_reader_close(a.readers[i]);
    }
    free(a.readers);
    free(clients);
}

static void aggregate_done(void *arg)
{
    struct job *job = arg;
    struct fl_driver *driver = job->driver;
    struct fl_event event = {.type = FL_EV_AGGREGATED};

    if (!failed(job)) {
        fl_model_state_done(&driver->next);
        driver->next = job->out;
        job->out = (struct fl_model_state){0};
        event.u.aggregated.seq = job->seq;
        event.u.aggregated.distance = job->want_distance ? job->distance : NULL;
        fl_driver_step(driver, &event);
    }
    job_free(job);
}

void fl_driver_aggregate(struct fl_driver *driver, const struct fl_effect *e)
{
    struct job *job = job_new(driver, e);

    if (job != NULL && !copy_part_clients(job, driver)) {
        job_free(job);
        job = NULL;
    }
    if (job != NULL) {
        job->theta = fl_blob_ref(driver->current.theta);
        job->population = fl_coord_clients(driver->coord);
    }
    submit(driver, driver->srv->work, job, e, aggregate_work, aggregate_done);
}

/* --- evaluation --- */

static void evaluate_work(void *arg)
{
    struct job *job = arg;
    struct fl_driver *driver = job->driver;
    const struct fl_dataset *test = driver->test;
    size_t piece = fl_net_piece(driver->net);
    float *x = malloc(piece * test->dim * sizeof(*x));
    int32_t *y = malloc(piece * sizeof(*y));
    uint32_t *idx = malloc(piece * sizeof(*idx));
    double loss = 0.0;
    size_t correct = 0;
    size_t at;

    if (x == NULL || y == NULL || idx == NULL) {
        job->code = FL_ENOMEM;
        goto done;
    }
    fl_net_set(driver->net, (const float *)(const void *)fl_blob_data(job->theta));
    for (at = 0; at < test->n && !atomic_load(&driver->cancel); at += piece) {
        size_t n = test->n - at < piece ? test->n - at : piece;
        double loss_sum = 0.0;
        size_t good = 0;
        size_t i;

        for (i = 0; i < n; i++) {
            idx[i] = (uint32_t)(at + i);
        }
        fl_dataset_gather(test, idx, n, x, y);
        fl_net_evaluate(driver->net, x, y, n, &loss_sum, &good);
        loss += loss_sum;
        correct += good;
    }
    job->accuracy = (double)correct / (double)test->n;
    job->loss = loss / (double)test->n;
done:
    free(x);
    free(y);
    free(idx);
}

static void evaluate_done(void *arg)
{
    struct job *job = arg;
    struct fl_event event = {.type = FL_EV_EVALUATED};

    if (!failed(job)) {
        event.u.evaluated.seq = job->seq;
        event.u.evaluated.accuracy = job->accuracy;
        event.u.evaluated.loss = job->loss;
        fl_driver_step(job->driver, &event);
    }
    job_free(job);
}

void fl_driver_evaluate(struct fl_driver *driver, const struct fl_effect *e)
{
    struct job *job = job_new(driver, e);
    struct fl_blob *theta = driver->next.theta != NULL ? driver->next.theta : driver->current.theta;

    if (job != NULL) {
        job->theta = fl_blob_ref(theta);
    }
    submit(driver, driver->srv->work, job, e, evaluate_work, evaluate_done);
}

/* --- commit --- */

static void commit_work(void *arg)
{
    struct job *job = arg;
    struct fl_driver *driver = job->driver;
    const struct fl_server_conf *conf = driver->srv->conf;
    const char *dir = driver->srv->state_dir;
    const struct fl_model_state *model =
        driver->next.theta != NULL ? &driver->next : &driver->current;
    const float *state[FL_AGG_MAX_STATE];
    size_t i;

    for (i = 0; i < FL_AGG_MAX_STATE; i++) {
        state[i] = model->state[i];
    }
    job->code = fl_models_save(dir, job->record.round, conf->layout,
                               (const float *)(const void *)fl_blob_data(model->theta), state,
                               driver->state_names, driver->n_state, true, &job->err);
    if (job->code == FL_OK) {
        job->code =
            fl_store_commit(driver->store, &job->record, job->clients, job->n_clients, &job->err);
    }
    if (job->code == FL_OK) {
        struct fl_err err = {0};
        int rv = fl_models_prune(dir, job->record.round,
                                 (uint32_t)fl_options_int(conf->checkpoints, "keep"),
                                 (uint32_t)fl_options_int(conf->checkpoints, "every"), &err);

        if (rv != FL_OK) { /* The round is safe; old files only take room. */
            fl_log(driver->srv->log, FL_LOG_WARNING, "server",
                   "old checkpoints cannot be removed, ignoring: %s", fl_err_text(&err, rv));
        }
    }
}

static void report_round(struct fl_driver *driver, const struct fl_round_rec *r)
{
    char up[32];
    char full[32];
    char accuracy[48] = "";

    if (r->accuracy >= 0.0) {
        (void)snprintf(accuracy, sizeof(accuracy), " accuracy=%.4f loss=%.4f", r->accuracy,
                       r->loss);
        driver->accuracy = r->accuracy;
        driver->loss = r->loss;
    }
    fl_log(driver->srv->log, FL_LOG_NOTICE, "server",
           "round %llu committed: selected=%u responders=%u%s train_loss=%.4f uplink='%s' of '%s'",
           (unsigned long long)r->round, r->n_selected, r->n_responders, accuracy, r->train_loss,
           fl_str_bytes(up, sizeof(up), r->uplink_bytes),
           fl_str_bytes(full, sizeof(full), r->uplink_bytes_full));
    driver->totals.round = r->round;
    driver->totals.uplink_bytes += r->uplink_bytes;
    driver->totals.uplink_bytes_full += r->uplink_bytes_full;
    driver->totals.downlink_bytes += r->downlink_bytes;
    driver->totals.feedback_bytes += r->feedback_bytes;
}

static void commit_done(void *arg)
{
    struct job *job = arg;
    struct fl_driver *driver = job->driver;
    struct fl_event event = {.type = FL_EV_COMMITTED};

    if (!failed(job)) {
        if (driver->next.theta != NULL) {
            fl_model_state_done(&driver->current);
            driver->current = driver->next;
            driver->next = (struct fl_model_state){0};
        }
        report_round(driver, &job->record);
        event.u.seq = job->seq;
        fl_driver_step(driver, &event);
    }
    job_free(job);
}

void fl_driver_commit(struct fl_driver *driver, const struct fl_effect *e)
{
    submit(driver, driver->srv->db, job_new(driver, e), e, commit_work, commit_done);
}
