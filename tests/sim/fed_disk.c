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
#include "tests/sim/fed.h"

/* --- death at a transaction --- */

int __real_fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                           const struct fl_client_rec *clients, size_t n,
                           const struct fl_participations *taken, struct fl_err *err);
int __wrap_fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                           const struct fl_client_rec *clients, size_t n,
                           const struct fl_participations *taken, struct fl_err *err);
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

int __real_fl_store_put_quarantine(struct fl_store *store, const struct fl_client_rec *clients,
                                   size_t n, struct fl_err *err);
int __wrap_fl_store_put_quarantine(struct fl_store *store, const struct fl_client_rec *clients,
                                   size_t n, struct fl_err *err);

int __wrap_fl_store_put_quarantine(struct fl_store *store, const struct fl_client_rec *clients,
                                   size_t n, struct fl_err *err)
{
    return fed_write() ? __real_fl_store_put_quarantine(store, clients, n, err) : FL_EIO;
}

int __wrap_fl_store_put_pause(struct fl_store *store, const char *reason, struct fl_err *err)
{
    return fed_write() ? __real_fl_store_put_pause(store, reason, err) : FL_EIO;
}

int __wrap_fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                           const struct fl_client_rec *clients, size_t n,
                           const struct fl_participations *taken, struct fl_err *err)
{
    return fed_write() ? __real_fl_store_commit(store, round, clients, n, taken, err) : FL_EIO;
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

/* --- jobs: of the coordinator, and uploads --- */

struct fed_job {
    struct fl_coord_job *of; /* the coordinator's; owned. NULL: an upload of client `from` */
    uint32_t from;
    struct fed_push push;
    struct fl_norms norms;
    struct fl_event event; /* of an upload that is stored */
    struct fl_err err;
};

static uint64_t add_job(struct fed *fed, const struct fed_job *job)
{
    struct fed_server *s = &fed->server;
    struct fed_job **grown = realloc(s->jobs, (s->n_jobs + 1) * sizeof(struct fed_job *));

    ck_assert_ptr_nonnull(grown);
    s->jobs = grown;
    s->jobs[s->n_jobs] = malloc(sizeof(*job));
    ck_assert_ptr_nonnull(s->jobs[s->n_jobs]);
    *s->jobs[s->n_jobs] = *job;
    return s->n_jobs++;
}

static void free_job(struct fed_job *job)
{
    if (job != NULL) {
        fl_coord_job_free(job->of);
        free(job->norms.unit);
        free(job);
    }
}

uint64_t fed_disk_job(struct fed *fed, struct fl_coord_job *job)
{
    return add_job(fed, &(struct fed_job){.of = job});
}

uint64_t fed_disk_upload(struct fed *fed, uint32_t i, const struct fed_push *push)
{
    return add_job(fed, &(struct fed_job){.from = i, .push = *push});
}

struct fl_coord_job *fed_disk_take(struct fed *fed, uint64_t number)
{
    struct fed_job *job = fed->server.jobs[number];
    struct fl_coord_job *of = job->of;

    fed->server.jobs[number] = NULL;
    free(job);
    return of;
}

/* --- what they do --- */

/* In two pieces, and it is written in place: no rename says that it is whole. */
static int write_upload(struct fed *fed, struct fed_job *job, const struct fl_spool_part *parts)
{
    const struct fl_federation *f = &fed->server.federation;
    const struct fed_push *push = &job->push;
    struct fl_spool *spool = NULL;
    uint64_t at = 0;
    int rv;

    fed_tears(fed->plan.tears);
    rv = fl_spool_open(&(struct fl_spool_opening){fed->server.dir, push->key.round,
                                                  push->key.attempt, fed->clients[job->from].name,
                                                  parts, push->n_parts, fed->server.recycled},
                       &spool, &at, &job->err);
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
    struct fed_push *push = &job->push;
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
        job->event.u.upload.round = push->key.round;
        job->event.u.upload.attempt = push->key.attempt;
        job->event.u.upload.bytes = push->n_bytes;
        job->event.u.upload.norms = &job->norms;
    }
    return rv;
}

static void run_upload(struct fed *fed, struct fed_job *job)
{
    struct fed_server *s = &fed->server;
    int rv;

    fed_writes(&s->writer);
    rv = upload(fed, job);
    fed_writes(NULL);
    if (s->writer.dead) {
        fed_dies(fed, FED_SERVER);
    } else if (rv == FL_OK && s->number[job->from] != UINT32_MAX) {
        /* Its stream went with its connection; the file stays for later. */
        fed_server_step(fed, &job->event);
    }
    free_job(job);
}

/* What the world knows of a job that was carried out, to the end if the server lives. */
static void note_job(struct fed *fed, const struct fl_coord_job *job)
{
    size_t i;

    for (i = 0; job->e.type == FL_EFF_FORGET_CLIENTS && i < job->e.n_clients; i++) {
        if (!job->clients[i].forgotten) { /* A marked one has its record yet. */
            fed_model_forget(fed, fed_named(fed, job->clients[i].name));
        }
    }
    for (i = 0; job->e.type == FL_EFF_PERSIST_QUARANTINE && i < job->e.n_clients; i++) {
        fed->n_quarantined += job->clients[i].quarantine[0] != '\0';
    }
    if (job->e.type == FL_EFF_AGGREGATE && !fed->server.writer.dead) {
        fed_model_aggregated(fed, &job->aggregation);
    }
}

static void run_job(struct fed *fed, struct fl_coord_job *job)
{
    struct fed_server *s = &fed->server;

    fed_writes(&s->writer);
    if (job->e.type == FL_EFF_COMMIT) {
        fed_model_count(fed, &job->e);
    }
    if (job->e.type == FL_EFF_EVALUATE) {
        job->evaluated.accuracy = 0.5;
        job->evaluated.loss = 1.0;
    } else {
        fl_coord_job_run(job);
    }
    if (job->code == FL_OK) {
        note_job(fed, job);
    }
    if (!s->writer.dead) {
        fl_coord_shell_take(&s->shell, job);
    }
    fed_writes(NULL);
    if (s->writer.dead) {
        fl_coord_job_free(job);
        fed_dies(fed, FED_SERVER);
    } else {
        fl_coord_shell_done(&s->shell, job);
    }
}

void fed_disk_run(struct fed *fed, uint64_t number)
{
    struct fed_job *job = fed->server.jobs[number];

    if (job->of != NULL) {
        run_job(fed, fed_disk_take(fed, number));
    } else {
        fed->server.jobs[number] = NULL;
        run_upload(fed, job);
    }
}

/* --- a process --- */

static int first_model(void *ctx, float *theta, struct fl_err *err)
{
    const struct fed *fed = ctx;

    (void)err;
    if (fed->plan.draws) {
        fed_draw(fed, theta);
    } else {
        fed_floats(fed->plan.seed, theta);
    }
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
                                           .share_cap = fed->plan.share_cap,
                                           .strategy = s->work,
                                           .state_dir = s->dir,
                                           .log = &fed->work_log,
                                           .retention = {.keep = 1}};
    ck_assert_int_eq(fl_recycled_create(s->dir, &s->recycled, NULL), FL_OK);
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
    fl_recycled_free(s->recycled);
    s->recycled = NULL;
}

struct fl_coord_resume fed_disk_read(struct fed *fed)
{
    struct fl_coord_resume resume = {.committed = 0};

    ck_assert_int_eq(fl_store_load(fed->server.federation.store, &resume, NULL), FL_OK);
    return resume;
}

size_t fed_state(const struct fed *fed, const char *name)
{
    const struct fl_federation *f = &fed->server.federation;
    size_t i = 0;

    while (i < f->n_state && strcmp(f->state_names[i], name) != 0) {
        i++;
    }
    ck_assert_uint_lt(i, f->n_state);
    return i;
}

/* --- payloads --- */

static void note_payload(void *ctx, const struct fl_payload *b)
{
    struct fed *fed = ctx;
    struct fed_server *s = &fed->server;
    struct fed_payload *to = &s->payloads[s->n_payloads];

    ck_assert_uint_lt(s->n_payloads, sizeof(s->payloads) / sizeof(s->payloads[0]));
    ck_assert_uint_eq(fl_bytes_len(&b->bytes),
                      strcmp(b->name, FL_PAYLOAD_MODEL) == 0
                          ? fl_broadcast_bytes(s->work->broadcast, s->layout)
                          : sizeof(to->data));
    ck_assert_int_eq(fl_str_copy(to->name, sizeof(to->name), b->name), FL_OK);
    to->client = b->client != NULL ? fed_named(fed, b->client) : FED_MAX;
    if (b->bytes.blob != NULL && fl_bytes_len(&b->bytes) < sizeof(to->data)) {
        ck_assert_int_eq(fl_broadcast_decode(s->work->broadcast, s->layout,
                                             fl_blob_data(b->bytes.blob), to->data, NULL),
                         FL_OK);
    } else if (b->bytes.blob != NULL) {
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
