/*
 * What the server of a simulated federation does on its lanes: the rooms below a daemon, on a
 * folder. A job is carried out when its time has come; a server that dies before has not done it.
 * It may die at any of its writes too: what a job renames or removes, and each transaction.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "server/work/opening.h"
#include "server/work/payload_sizes.h"
#include "server/work/persist.h"
#include "tests/sim/fed.h"

/* --- death at a transaction --- */

int __real_fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                           const struct fl_client_rec *clients, size_t n, struct fl_err *err);
int __wrap_fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                           const struct fl_client_rec *clients, size_t n, struct fl_err *err);
int __real_fl_store_forget(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                           struct fl_err *err);
int __wrap_fl_store_forget(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                           struct fl_err *err);
int __real_fl_store_put_selection(struct fl_store *store, const struct fl_selection *selection,
                                  struct fl_err *err);
int __wrap_fl_store_put_selection(struct fl_store *store, const struct fl_selection *selection,
                                  struct fl_err *err);
int __real_fl_store_put_plan(struct fl_store *store, uint64_t round, uint32_t attempt,
                             const struct fl_participant_rec *parts, size_t n, struct fl_err *err);
int __wrap_fl_store_put_plan(struct fl_store *store, uint64_t round, uint32_t attempt,
                             const struct fl_participant_rec *parts, size_t n, struct fl_err *err);
int __real_fl_store_put_update(struct fl_store *store, uint64_t round, uint32_t attempt,
                               const struct fl_participant_rec *part, struct fl_err *err);
int __wrap_fl_store_put_update(struct fl_store *store, uint64_t round, uint32_t attempt,
                               const struct fl_participant_rec *part, struct fl_err *err);

int __real_fl_store_put_pause(struct fl_store *store, const char *reason, struct fl_err *err);
int __wrap_fl_store_put_pause(struct fl_store *store, const char *reason, struct fl_err *err);

int __wrap_fl_store_put_pause(struct fl_store *store, const char *reason, struct fl_err *err)
{
    return fed_write() ? __real_fl_store_put_pause(store, reason, err) : FL_EIO;
}

int __wrap_fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                           const struct fl_client_rec *clients, size_t n, struct fl_err *err)
{
    return fed_write() ? __real_fl_store_commit(store, round, clients, n, err) : FL_EIO;
}

int __wrap_fl_store_forget(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                           struct fl_err *err)
{
    return fed_write() ? __real_fl_store_forget(store, clients, n, err) : FL_EIO;
}

int __wrap_fl_store_put_selection(struct fl_store *store, const struct fl_selection *selection,
                                  struct fl_err *err)
{
    return fed_write() ? __real_fl_store_put_selection(store, selection, err) : FL_EIO;
}

int __wrap_fl_store_put_plan(struct fl_store *store, uint64_t round, uint32_t attempt,
                             const struct fl_participant_rec *parts, size_t n, struct fl_err *err)
{
    return fed_write() ? __real_fl_store_put_plan(store, round, attempt, parts, n, err) : FL_EIO;
}

int __wrap_fl_store_put_update(struct fl_store *store, uint64_t round, uint32_t attempt,
                               const struct fl_participant_rec *part, struct fl_err *err)
{
    return fed_write() ? __real_fl_store_put_update(store, round, attempt, part, err) : FL_EIO;
}

/* --- jobs: copies of all that an effect names --- */

struct fed_job {
    struct fl_effect e;
    struct fl_round_rec record;
    struct fl_client_rec *clients;
    struct fl_participant_rec *parts;
    char pause[FL_PAUSE_SIZE];
    float divergence[FED_MAX][FED_UNITS];
    uint8_t units[FED_MAX][FED_UNITS];
    /* An upload of client `from`, when type is 0. */
    uint32_t from;
    struct fed_msg push;
    struct fl_aggregation aggregation;
    struct fl_norms norms;
    struct fl_event event; /* what comes of it */
    struct fl_err err;
};

static uint64_t add_job(struct fed *fed, struct fed_job *job)
{
    struct fed_server *s = &fed->server;
    struct fed_job **grown = realloc(s->jobs, (s->n_jobs + 1) * sizeof(struct fed_job *));

    ck_assert_ptr_nonnull(grown);
    s->jobs = grown;
    s->jobs[s->n_jobs] = job;
    return s->n_jobs++;
}

static struct fed_job *new_job(size_t n_parts, size_t n_clients)
{
    struct fed_job *job = calloc(1, sizeof(*job));

    ck_assert_ptr_nonnull(job);
    job->parts = calloc(n_parts + 1, sizeof(*job->parts));
    job->clients = calloc(n_clients + 1, sizeof(*job->clients));
    ck_assert(job->parts != NULL && job->clients != NULL);
    return job;
}

static void free_job(struct fed_job *job)
{
    if (job != NULL) {
        fl_aggregation_done(&job->aggregation);
        free(job->parts);
        free(job->clients);
        free(job->norms.unit);
        free(job);
    }
}

static void copy_part(struct fed_job *job, size_t i, const struct fl_participant_rec *from)
{
    struct fl_participant_rec *p = &job->parts[i];

    *p = *from;
    if (from->divergence != NULL) {
        (void)memcpy(job->divergence[i], from->divergence, sizeof(job->divergence[i]));
        p->divergence = job->divergence[i];
    }
    if (from->units != NULL) {
        (void)memcpy(job->units[i], from->units, sizeof(job->units[i]));
        p->units = job->units[i];
    }
}

uint64_t fed_disk_job(struct fed *fed, const struct fl_effect *e)
{
    bool aggregates = e->type == FL_EFF_AGGREGATE;
    struct fed_job *job = new_job(e->n_parts, aggregates ? e->n_parts : e->n_clients);
    size_t i;

    job->e = *e;
    ck_assert_uint_le(e->n_parts, FED_MAX);
    for (i = 0; i < e->n_parts; i++) {
        copy_part(job, i, &e->parts[i]);
        if (aggregates) {
            job->clients[i] = *fl_coord_part_client(fed->server.coord, e->parts[i].client);
        }
    }
    if (e->n_clients > 0) {
        (void)memcpy(job->clients, e->clients, e->n_clients * sizeof(*e->clients));
    }
    job->e.clients = job->clients;
    job->e.parts = job->parts;
    if (e->record != NULL) {
        job->record = *e->record;
    }
    if (e->text != NULL) {
        ck_assert_int_eq(fl_str_copy(job->pause, sizeof(job->pause), e->text), FL_OK);
        job->e.text = job->pause;
    }
    return add_job(fed, job);
}

uint64_t fed_disk_upload(struct fed *fed, uint32_t i, const struct fed_msg *push)
{
    struct fed_job *job = new_job(0, 0);

    job->from = i;
    job->push = *push;
    return add_job(fed, job);
}

uint64_t fed_disk_seq(const struct fed *fed, uint64_t job)
{
    return fed->server.jobs[job]->e.seq;
}

/* --- what they do --- */

static int forget(struct fed *fed, struct fed_job *job)
{
    int rv = fl_persist_run(&fed->server.federation, &job->e, NULL, &job->err);
    size_t i;

    for (i = 0; rv == FL_OK && i < job->e.n_clients; i++) {
        if (!job->clients[i].forgotten) { /* A marked one has its record yet. */
            fed_model_forget(fed, fed_named(fed, job->clients[i].name));
        }
    }
    return rv;
}

static int commit(struct fed *fed, struct fed_job *job)
{
    struct fed_server *s = &fed->server;
    const struct fl_commit c = {.progress = &s->progress,
                                .record = &job->record,
                                .clients = job->clients,
                                .n_clients = job->e.n_clients,
                                .wall_ms = fl_sim_now(fed->sim),
                                .epoch = job->e.epoch};
    int rv;

    fed_model_count(fed, &job->e);
    rv = fl_commit_run(&s->federation, &c, &job->err);
    if (rv == FL_OK && !s->writer.dead) {
        fl_progress_committed(&s->progress, &job->record);
        fed_model_committed(fed, job->record.round);
        job->event.type = FL_EV_COMMITTED;
    }
    return rv;
}

static int aggregate(struct fed *fed, struct fed_job *job)
{
    struct fed_server *s = &fed->server;
    struct fl_aggregation *a = &job->aggregation;
    int rv;

    *a = fl_aggregation_of(&job->e, job->clients, fl_coord_learning_rate(&s->conf, job->e.round),
                           &s->progress);
    a->want_distance = a->want_distance && !fed->plan.own; /* Of what is mixed there are none. */
    rv = fl_aggregation_run(&s->federation, a, &job->err);
    job->event.u.failed_work.client = a->bad_client;
    if (rv == FL_OK && !s->writer.dead) {
        fed_model_aggregated(fed, a);
        job->event = fl_aggregation_take(a, &s->progress);
    }
    return rv;
}

/* In two pieces, and it is written in place: no rename says that it is whole. */
static int write_upload(struct fed *fed, struct fed_job *job, const struct fl_spool_part *parts)
{
    const struct fl_federation *f = &fed->server.federation;
    const struct fed_msg *push = &job->push;
    struct fl_spool *spool = NULL;
    uint64_t at = 0;
    int rv;

    fed_tears(fed->plan.tears);
    rv = fl_recycled_open(fed->server.spares, push->round, push->attempt,
                          fed->clients[job->from].name, parts, push->n_parts, &spool, &at,
                          &job->err);
    while (rv == FL_OK && at < push->n_bytes) {
        size_t left = push->n_bytes - (size_t)at;
        size_t n = left > (push->n_bytes + 1) / 2 ? (push->n_bytes + 1) / 2 : left;

        rv = fl_spool_write(spool, at, push->bytes + at, n, &job->err);
        at += n;
    }
    if (rv == FL_OK) {
        rv = fl_spool_finish(spool, f->layout, 0, FL_DURABLE_PROCESS, &job->err);
    }
    if (rv == FL_OK) {
        job->norms = fl_spool_take_norms(spool);
    }
    fl_spool_close(spool);
    fed_tears(false);
    return rv;
}

static int upload(struct fed *fed, struct fed_job *job)
{
    struct fed_server *s = &fed->server;
    struct fed_msg *push = &job->push;
    const struct fl_wire_push_header header = {
        .parts = push->parts, .n_parts = push->n_parts, .bytes = push->n_bytes};
    struct fl_spool_part *parts = NULL;
    int rv = fl_sent_parts(s->layout, s->work, &header, push->units, &parts, &job->err);

    rv = rv == FL_OK ? write_upload(fed, job, parts) : rv;
    free(parts);
    if (rv != FL_OK && !s->writer.dead) {
        fed_fail(fed, "the upload of %s: %s", fed->clients[job->from].name,
                 fl_err_text(&job->err, rv));
    }
    if (rv == FL_OK && !s->writer.dead) {
        fed_model_stored(fed, job->from, push);
        job->event.type = FL_EV_UPLOAD_STORED;
        job->event.u.upload.client = s->number[job->from];
        job->event.u.upload.round = push->round;
        job->event.u.upload.attempt = push->attempt;
        job->event.u.upload.bytes = push->n_bytes;
        job->event.u.upload.norms = &job->norms;
    }
    return rv;
}

static int persist(struct fed *fed, struct fed_job *job)
{
    job->event.type = FL_EV_PERSISTED;
    return job->e.type == FL_EFF_FORGET_CLIENTS
               ? forget(fed, job)
               : fl_persist_run(&fed->server.federation, &job->e, NULL, &job->err);
}

/* The answer to the coordinator. */
static void answer(struct fed_job *job, int rv)
{
    struct fl_event *ev = &job->event;
    uint32_t client = job->e.type == FL_EFF_AGGREGATE ? ev->u.failed_work.client : FL_NO_CLIENT;

    if (rv != FL_OK) {
        *ev = (struct fl_event){.type = FL_EV_WORK_FAILED};
        ev->u.failed_work.seq = job->e.seq;
        ev->u.failed_work.code = rv;
        ev->u.failed_work.reason = fl_err_text(&job->err, rv);
        ev->u.failed_work.client = client;
    } else if (ev->type == FL_EV_AGGREGATED) {
        ev->u.aggregated.seq = job->e.seq;
    } else if (ev->type != FL_EV_UPLOAD_STORED) {
        ev->u.seq = job->e.seq;
    }
}

void fed_disk_run(struct fed *fed, uint64_t number)
{
    struct fed_server *s = &fed->server;
    struct fed_job *job = s->jobs[number];
    int rv;

    s->jobs[number] = NULL;
    fed_writes(&s->writer);
    rv = job->e.type == 0                  ? upload(fed, job)
         : job->e.type == FL_EFF_AGGREGATE ? aggregate(fed, job)
         : job->e.type == FL_EFF_COMMIT    ? commit(fed, job)
                                           : persist(fed, job);
    fed_writes(NULL);
    answer(job, rv);
    if (job->event.type == FL_EV_COMMITTED) {
        fed_model_check(fed);
    }
    if (s->writer.dead) {
        fed_dies(fed, FED_SERVER);
    } else if (job->e.type != 0 || (rv == FL_OK && s->number[job->from] != UINT32_MAX)) {
        /* An upload's stream went with its connection; the file stays for later. */
        fed_server_step(fed, &job->event);
    }
    free_job(job);
}

/* --- a process --- */

static int first_model(void *ctx, float *theta, struct fl_err *err)
{
    const struct fed *fed = ctx;

    (void)err;
    fed_floats(fed->plan.seed, theta);
    return FL_OK;
}

static int open_folder(struct fed *fed, struct fl_err *err)
{
    struct fed_server *s = &fed->server;
    struct fl_settings settings = {.n = 0};
    const struct fl_opening opening = {.name = "fed",
                                       .durability = FL_DURABLE_PROCESS,
                                       .settings = &settings,
                                       .wall_ms = fl_sim_now(fed->sim),
                                       .first_model = first_model,
                                       .ctx = fed};
    int rv;

    ck_assert_int_eq(fl_settings_add_strategy(&settings, s->work), FL_OK);
    rv = fl_opening_run(&s->federation, &opening, &s->progress, &s->resume, err);
    fl_settings_done(&settings);
    return rv;
}

bool fed_disk_open(struct fed *fed)
{
    struct fed_server *s = &fed->server;
    struct fl_err err = {0};
    int rv;

    ck_assert_int_eq(fl_fs_join(s->dir, sizeof(s->dir), fed->dir, "server"), FL_OK);
    ck_assert_int_eq(fl_fs_mkdirs(s->dir, NULL), FL_OK);
    s->federation = (struct fl_federation){.layout = s->layout,
                                           .strategy = s->work,
                                           .state_dir = s->dir,
                                           .log = &fed->work_log,
                                           .retention = {.keep = 1}};
    ck_assert_int_eq(fl_recycled_create(s->dir, &s->spares, NULL), FL_OK);
    s->writer.dead = false;
    fed_writes(&s->writer);
    rv = open_folder(fed, &err);
    fed_writes(NULL);
    if (s->writer.dead) {
        fed_dies(fed, FED_SERVER);
        return false;
    }
    if (rv != FL_OK) {
        fed_fail(fed, "the server cannot start: %s", fl_err_text(&err, rv));
        return false;
    }
    if (s->committed == 0 && s->resume.committed == 0) {
        (void)memcpy(s->model.theta, fl_blob_floats(s->progress.committed.model.theta),
                     sizeof(s->model.theta));
    }
    fed_model_committed(fed, s->resume.committed);
    return true;
}

void fed_disk_close(struct fed *fed)
{
    struct fed_server *s = &fed->server;
    size_t i;

    for (i = 0; i < s->n_jobs; i++) {
        free_job(s->jobs[i]);
    }
    free(s->jobs);
    s->jobs = NULL;
    s->n_jobs = 0;
    s->n_payloads = 0;
    fl_progress_done(&s->progress);
    s->progress = (struct fl_progress){.totals = {.round = 0}};
    fl_store_resume_done(&s->resume);
    s->resume = (struct fl_coord_resume){.committed = 0};
    fl_store_close(s->federation.store);
    s->federation.store = NULL;
    fl_recycled_free(s->spares);
    s->spares = NULL;
}

struct fl_coord_resume fed_disk_read(struct fed *fed)
{
    struct fl_coord_resume resume = {.committed = 0};

    ck_assert_int_eq(fl_store_load(fed->server.federation.store, &resume, NULL), FL_OK);
    return resume;
}

/* --- payloads --- */

static void note_payload(void *ctx, const struct fl_payload *b)
{
    struct fed *fed = ctx;
    struct fed_server *s = &fed->server;
    struct fed_payload *to = &s->payloads[s->n_payloads];

    ck_assert_uint_lt(s->n_payloads, sizeof(s->payloads) / sizeof(s->payloads[0]));
    ck_assert_uint_eq(fl_bytes_len(&b->bytes), sizeof(to->data));
    ck_assert_int_eq(fl_str_copy(to->name, sizeof(to->name), b->name), FL_OK);
    to->client = b->client != NULL ? fed_named(fed, b->client) : FED_MAX;
    if (b->bytes.blob != NULL) {
        (void)memcpy(to->data, fl_blob_data(b->bytes.blob), sizeof(to->data));
    } else {
        ck_assert_int_eq(fl_file_read(b->bytes.file, 0, to->data, sizeof(to->data)), FL_OK);
    }
    s->n_payloads++;
}

void fed_disk_payloads(struct fed *fed, const struct fl_effect *e)
{
    struct fed_server *s = &fed->server;

    s->n_payloads = 0;
    ck_assert_int_eq(
        fl_payloads_open(&s->federation, &s->progress, e->round, &e->size, note_payload, fed),
        FL_OK);
}

const float *fed_disk_payload(const struct fed *fed, const char *name, uint32_t i)
{
    const struct fed_server *s = &fed->server;
    size_t k;

    for (k = 0; k < s->n_payloads; k++) {
        if (strcmp(s->payloads[k].name, name) == 0 &&
            (s->payloads[k].client == i || s->payloads[k].client == FED_MAX))
        {
            return s->payloads[k].data;
        }
    }
    return NULL;
}
