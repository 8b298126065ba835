/*
 * Aggregation on the work lane: the spool files of the responders in, the next model, the
 * vectors beside it and the personal mixtures out.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/srv/driver_jobs.h"

/* What a pass reads beside the update, at most. */
#define TAKES_MAX (FL_SPOOL_MAX_BUNDLES * 2)

struct aggregation {
    struct fl_job *job;
    struct fl_spool_reader **readers;
    struct fl_agg_client *clients;
    size_t spool_bundle[TAKES_MAX]; /* by bundle of the pass: where it stands in the upload */
    size_t n_bundles;
    struct fl_mixtures_writer *mixtures; /* NULL: nobody gets one */
    size_t *place;                       /* [n_parts] in the mixtures; SIZE_MAX: none */
};

/* Names and weights of the parts' clients, in the order of the parts. */
static bool copy_part_clients(struct fl_job *job, const struct fl_driver *driver)
{
    size_t i;

    job->clients = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->clients));
    if (job->clients == NULL) {
        return false;
    }
    for (i = 0; i < job->n_parts; i++) {
        job->clients[i] = *fl_coord_part_client(driver->coord, job->parts[i].client);
    }
    job->n_clients = job->n_parts;
    return true;
}

/* Where a bundle that the aggregation takes stands in an upload. */
static size_t sent_as(const char *const *sends, const char *name)
{
    size_t i = 0;

    while (sends != NULL && sends[i] != NULL && strcmp(sends[i], name) != 0) {
        i++;
    }
    return 1 + i; /* One that is not sent is in no file: reading says so. */
}

static void map_takes(struct aggregation *a, const char *const *takes, const char *const *sends)
{
    for (; takes != NULL && *takes != NULL; takes++) {
        FL_REQUIRE(a->n_bundles < TAKES_MAX);
        a->spool_bundle[a->n_bundles++] = sent_as(sends, *takes);
    }
}

static void map_bundles(struct aggregation *a)
{
    const struct fl_strategy *s = a->job->driver->srv->conf->strategy;
    const char *const *sends = fl_solver_sends(s->solver, s->options[FL_SLOT_SOLVER]);

    a->spool_bundle[0] = 0;
    a->n_bundles = 1;
    map_takes(a, s->aggregate->takes, sends);
    map_takes(a, s->solver->server != NULL ? s->solver->server->takes : NULL, sends);
}

static int open_unit(void *ctx, size_t client, size_t bundle, size_t unit,
                     struct fl_codec_decoder *d)
{
    struct aggregation *a = ctx;

    return bundle < a->n_bundles
               ? fl_spool_reader_unit(a->readers[client], a->spool_bundle[bundle], unit, d)
               : FL_ENOENT;
}

static void note_unchecked(const struct fl_job *job, size_t i, const struct fl_spool_reader *reader)
{
    if (!fl_spool_reader_checked(reader)) {
        fl_log(job->driver->srv->log, FL_LOG_NOTICE, "round",
               "the update of client '%s' was stored by an earlier version and carries no checksum",
               job->clients[i].name);
    }
}

static int open_readers(struct aggregation *a)
{
    struct fl_job *job = a->job;
    const struct fl_srv *srv = job->driver->srv;
    const struct fl_strategy *s = srv->conf->strategy;
    double momentum = fl_options_float(srv->conf->training, "momentum");
    size_t i;

    for (i = 0; i < job->n_parts; i++) {
        const struct fl_part_rec *part = &job->parts[i];
        struct fl_agg_client *c = &a->clients[i];
        int rv =
            fl_spool_reader_open(srv->state_dir, job->round, job->attempt, job->clients[i].name,
                                 srv->conf->layout, &a->readers[i], &job->err);

        if (rv != FL_OK) {
            job->bad_client = part->client; /* The core judges by the code whose fault it is. */
            return rv;
        }
        note_unchecked(job, i, a->readers[i]);
        fl_spool_reader_share(a->readers[i], job->n_parts);
        c->weight = (double)part->samples;
        c->units = fl_spool_reader_units(a->readers[i]);
        c->previous_dot = part->previous_dot;
        if (s->solver->factor != NULL) {
            c->factor = s->solver->factor(s->options[FL_SLOT_SOLVER],
                                          fl_driver_learning_rate(job->driver, job->round),
                                          momentum, part->steps);
        }
    }
    return FL_OK;
}

/* --- mixtures --- */

static int take_mixture(void *ctx, size_t client, size_t offset, const float *values, size_t n)
{
    struct aggregation *a = ctx;

    return a->place[client] != SIZE_MAX
               ? fl_mixtures_write(a->mixtures, a->place[client], offset * sizeof(float), values,
                                   n * sizeof(float), &a->job->err)
               : FL_OK;
}

/* A mixture is a whole model: of clients that sent one. */
static bool sent_all(const struct fl_agg_client *c, size_t n_units)
{
    return memchr(c->units, 0, n_units) == NULL;
}

static int open_mixtures(struct aggregation *a)
{
    struct fl_job *job = a->job;
    const struct fl_srv *srv = job->driver->srv;
    size_t n_units = fl_layout_units(srv->conf->layout);
    const char **names = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*names));
    size_t n = 0;
    size_t i;
    int rv;

    a->place = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*a->place));
    if (names == NULL || a->place == NULL) {
        free(names);
        return FL_ENOMEM;
    }
    for (i = 0; i < job->n_parts; i++) {
        bool whole = sent_all(&a->clients[i], n_units);

        a->place[i] = whole ? n : SIZE_MAX;
        if (whole) {
            names[n++] = job->clients[i].name;
        }
    }
    rv = fl_mixtures_create(srv->state_dir, job->round, names, n,
                            fl_driver_floats(job->driver) * sizeof(float), &a->mixtures, &job->err);
    free(names);
    return rv;
}

/* --- the pass --- */

int fl_model_state_new(struct fl_driver *driver, struct fl_model_state *model)
{
    size_t bytes = fl_driver_floats(driver) * sizeof(float);
    size_t i;
    int rv = fl_blob_create(bytes, &model->theta);

    for (i = 0; rv == FL_OK && i < driver->n_state; i++) {
        rv = fl_blob_create(bytes, &model->state[i]);
    }
    return rv;
}

static int run_aggregation(struct aggregation *a)
{
    struct fl_job *job = a->job;
    struct fl_driver *driver = job->driver;
    const struct fl_strategy *strategy = driver->srv->conf->strategy;
    const float *state[FL_AGG_MAX_STATE] = {NULL};
    float *state_new[FL_AGG_MAX_STATE] = {NULL};
    struct fl_agg_job run = {
        .layout = driver->srv->conf->layout,
        .ops = strategy->aggregate,
        .options = strategy->options[FL_SLOT_AGGREGATE],
        .round = job->round,
        .members = job->size.members,
        .n_clients = job->n_parts,
        .clients = a->clients,
        .open = open_unit,
        .ctx = a,
        .theta = fl_blob_floats(job->theta),
        .theta_new = fl_blob_fill_floats(job->out.theta),
        .extra = strategy->solver->server,
        .extra_options = strategy->options[FL_SLOT_SOLVER],
        .state = state,
        .state_new = state_new,
        .mixture = strategy->aggregate->mixes ? take_mixture : NULL,
        .info = &job->info,
        .want_distance = job->want_distance,
        .distance = job->distance,
    };
    size_t who = job->n_parts;
    size_t i;
    int rv;

    for (i = 0; i < driver->n_state; i++) {
        /* Read only here; the coordinator replaces it when this job is done. */
        state[i] = fl_blob_floats(driver->current.state[i]);
        state_new[i] = fl_blob_fill_floats(job->out.state[i]);
    }
    rv = fl_aggregate_run(&run, &who, &job->err);
    if (rv != FL_OK && who < job->n_parts) {
        job->bad_client = job->parts[who].client;
    }
    return rv;
}

static int aggregate(struct aggregation *a)
{
    struct fl_job *job = a->job;
    bool mixes = job->driver->srv->conf->strategy->aggregate->mixes;
    int rv = fl_model_state_new(job->driver, &job->out);

    job->distance = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->distance));
    rv = rv == FL_OK && job->distance == NULL ? FL_ENOMEM : rv;
    if (rv == FL_OK) {
        map_bundles(a);
        rv = open_readers(a);
    }
    if (rv == FL_OK && mixes) {
        rv = open_mixtures(a);
    }
    if (rv == FL_OK) {
        rv = run_aggregation(a);
    }
    if (rv == FL_OK && mixes) {
        struct fl_mixtures_writer *w = a->mixtures;

        a->mixtures = NULL;
        rv = fl_mixtures_publish(w, &job->err);
    }
    if (rv == FL_OK && mixes) { /* Here, where a want of descriptors is only tried again. */
        rv = fl_mixtures_open(job->driver->srv->state_dir, job->round,
                              fl_driver_floats(job->driver) * sizeof(float), &job->mixtures,
                              &job->err);
    }
    return rv;
}

static void aggregate_work(void *arg)
{
    struct fl_job *job = arg;
    struct aggregation a = {.job = job};
    size_t n = job->n_parts > 0 ? job->n_parts : 1;
    size_t i;

    a.clients = calloc(n, sizeof(*a.clients));
    a.readers = calloc(n, sizeof(struct fl_spool_reader *));
    job->code = a.clients != NULL && a.readers != NULL ? aggregate(&a) : FL_ENOMEM;
    for (i = 0; a.readers != NULL && i < job->n_parts; i++) {
        fl_spool_reader_close(a.readers[i]);
    }
    fl_mixtures_abandon(a.mixtures);
    free(a.readers);
    free(a.clients);
    free(a.place);
}

static void aggregate_done(void *arg)
{
    struct fl_job *job = arg;
    struct fl_driver *driver = job->driver;
    struct fl_event event = {.type = FL_EV_AGGREGATED};

    if (!fl_job_failed(job)) {
        fl_model_state_done(&driver->next);
        driver->next = job->out;
        job->out = (struct fl_model_state){0};
        fl_mixtures_close(driver->next_mixtures);
        driver->next_mixtures = job->mixtures;
        job->mixtures = NULL;
        if (job->info.effective > 0.0) {
            fl_log(driver->srv->log, FL_LOG_INFO, "round",
                   "round %llu: attention as over %.2f of %zu clients, %.3f on themselves",
                   (unsigned long long)job->round, job->info.effective, job->n_parts,
                   job->info.self_weight);
        }
        event.u.aggregated.seq = job->seq;
        event.u.aggregated.distance = job->want_distance ? job->distance : NULL;
        event.u.aggregated.effective = job->info.effective;
        event.u.aggregated.self_weight = job->info.self_weight;
        event.u.aggregated.offered_bytes =
            driver->offered != NULL ? fl_file_size(driver->offered) : 0;
        fl_driver_step(driver, &event);
    }
    fl_job_free(job);
}

void fl_driver_aggregate(struct fl_driver *driver, const struct fl_effect *e)
{
    struct fl_job *job = fl_job_new(driver, e);

    if (job != NULL && !copy_part_clients(job, driver)) {
        fl_job_free(job);
        job = NULL;
    }
    if (job != NULL) {
        job->theta = fl_blob_ref(driver->current.theta);
    }
    fl_job_submit(driver, driver->srv->work, job, e, aggregate_work, aggregate_done);
}
