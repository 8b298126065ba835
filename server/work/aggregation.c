/*
 * The aggregation of a round: opens the uploads, runs the aggregator over them in one pass, writes
 * the personal models and drafts the checkpoint while values are in the cache.
 *
 * Runs on the caller's worker thread; it takes no part in the decision which updates count, and
 * commits nothing.
 */
#include "server/work/aggregation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/figures/robust_clients.h"
#include "server/work/aggregation_program.h"
#include "server/work/aggregation_space.h"
#include "server/work/clip.h"
#include "server/work/norms.h"
#include "server/work/payload_sizes.h"

/* Largest number of vectors that a pass reads beside the update. */
#define TAKES_MAX (FL_SPOOL_MAX_PAYLOADS * 2)

struct pass {
    const struct fl_federation *f;
    struct fl_aggregation *job;
    struct fl_err *err;
    struct fl_spool_reader **readers;
    struct fl_agg_client *clients;
    double *clip;                    /* [n_parts][n_units] factor of each layer */
    size_t spool_payload[TAKES_MAX]; /* by vector of the pass: its index in the upload */
    size_t n_payloads;
    struct fl_personal_models_writer *personal_models; /* NULL: no personal models */
    /* [n_parts] index among the personal models; SIZE_MAX: none */
    size_t *place;
    struct fl__agg_space space; /* with a hashed space */
    struct fl_step step;        /* to the new model, where the space makes it */
    float *reference;           /* with a robust rule that `trusts` */
    struct fl_agg_whole whole;  /* with an aggregate that has a program */
};

static void map_takes(struct pass *a, const char *const *takes)
{
    for (; takes != NULL && *takes != NULL; takes++) {
        FL_REQUIRE(a->n_payloads < TAKES_MAX);
        a->spool_payload[a->n_payloads++] =
            fl_sent_place(a->f->strategy, *takes); /* Not sent: reading fails. */
    }
}

static int aggregation_open_unit(void *ctx, size_t client, size_t payload, size_t unit,
                                 struct fl_codec_decoder *d)
{
    struct pass *a = ctx;

    return payload < a->n_payloads
               ? fl_spool_reader_unit(a->readers[client], a->spool_payload[payload], unit, d)
               : FL_ENOENT;
}

/* Opens the upload in memory, else its spool file. */
static int aggregation_open_reader(const struct pass *a, const char *client,
                                   struct fl_spool_reader **ret)
{
    const struct fl_federation *f = a->f;
    const struct fl_aggregation *job = a->job;

    if (f->uploads != NULL) {
        int rv = fl_uploads_open(f->uploads, job->round, job->attempt, client,
                                 fl_federation_updates(f), ret, a->err);

        if (rv != FL_ENOENT) {
            return rv;
        }
    }
    return fl_spool_reader_open(f->state_dir, job->round, job->attempt, client,
                                fl_federation_updates(f), ret, a->err);
}

static int open_readers(struct pass *a)
{
    struct fl_aggregation *job = a->job;
    const struct fl_federation *f = a->f;
    const struct fl_strategy *s = f->strategy;
    size_t i;

    for (i = 0; i < job->n_parts; i++) {
        const struct fl_participant_rec *part = &job->parts[i];
        struct fl_agg_client *c = &a->clients[i];
        int rv = aggregation_open_reader(a, job->clients[i].name, &a->readers[i]);

        if (rv != FL_OK) {
            /* The coordinator derives from the code which side is at fault. */
            job->bad_client = part->client;
            return rv;
        }
        fl_spool_reader_share(a->readers[i], job->n_parts);
        c->weight = (double)part->samples;
        c->units = fl_spool_reader_units(a->readers[i]);
        c->previous_dot = part->previous_dot;
        c->steps = fl_solver_momentum_steps(f->momentum, part->steps);
        if (s->solver->factor != NULL) {
            c->factor = s->solver->factor(s->options[FL_COMPONENT_SOLVER], job->learning_rate,
                                          f->momentum, part->steps);
        }
    }
    return FL_OK;
}

/* --- personal models --- */

static int take_personal_model(void *ctx, size_t client, size_t offset, const float *values,
                               size_t n)
{
    struct pass *a = ctx;

    return a->place[client] != SIZE_MAX
               ? fl_personal_models_write(a->personal_models, a->place[client],
                                          offset * sizeof(float), values, n * sizeof(float), a->err)
               : FL_OK;
}

static int aggregation_open_personal_models(struct pass *a)
{
    struct fl_aggregation *job = a->job;
    size_t n_units = fl_layout_units(a->f->layout);
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
        /* A personal model is complete: only for clients that sent all units. */
        bool whole = memchr(a->clients[i].units, 0, n_units) == NULL;

        a->place[i] = whole ? n : SIZE_MAX;
        if (whole) {
            names[n++] = job->clients[i].name;
        }
    }
    /* Remove older personal models: at most two rounds of them exist at a time. */
    rv = fl_personal_models_clean(a->f->state_dir, job->round - 1, job->round - 1, a->err);
    if (rv != FL_OK) {
        free(names);
        return rv;
    }
    rv = fl_personal_models_create(a->f->state_dir, job->round, names, n,
                                   fl_federation_floats(a->f) * sizeof(float), &a->personal_models,
                                   a->err);
    free(names);
    if (rv != FL_OK) {
        return rv;
    }
    if (a->f->scratch) {
        fl_personal_models_scratch(a->personal_models);
    }
    return FL_OK;
}

/* --- the checkpoint --- */

/* Writes each finished unit to a draft of the checkpoint while it is in the cache, so that the
   disk works in parallel. If that fails the commit writes the whole checkpoint. */
static void begin_draft(struct pass *a)
{
    const struct fl_federation *f = a->f;
    struct fl_models_tag tag = fl_federation_tag(f);
    const struct fl_models_checkpoint c = {f->state_dir, a->job->round,  &tag,
                                           f->layout,    f->state_names, f->n_state};

    if (fl_models_draft_begin(&c, /* sync= */ !f->scratch, &a->job->next.draft, NULL) != FL_OK) {
        a->job->next.draft = NULL;
    }
}

static void draft_unit(void *ctx, size_t offset, size_t n)
{
    const struct pass *a = ctx;
    const struct fl_outcome *next = &a->job->next;
    const float *state[FL_AGG_MAX_STATE] = {NULL};
    size_t i;

    for (i = 0; i < a->f->n_state; i++) {
        state[i] = fl_blob_floats(next->model.state[i]);
    }
    fl_models_draft_write(next->draft, fl_blob_floats(next->model.theta), state, offset, n);
}

/* --- the pass --- */

static uint32_t aggregation_grid(const struct pass *a)
{
    const struct fl_strategy *s = a->f->strategy;
    const struct fl_broadcast_round round = {a->f->layout, a->f->space, a->job->round,
                                             a->job->plateau};

    return fl_broadcast_grid(s->broadcast, s->options[FL_COMPONENT_BROADCAST], &round);
}

/* The program of the aggregate gets ready for the updates of the round. */
static int aggregation_prepare(struct pass *a, const float *theta)
{
    struct fl_aggregation *job = a->job;
    /* After a redraw the numbers of the space are others: as vectors, its state starts again. */
    bool fresh = a->f->space != NULL && job->draw.first == job->round;
    const struct fl_program_round round = {.round = job->round,
                                           .attempt = job->attempt,
                                           .seed = a->f->seed,
                                           .parts = job->parts,
                                           .clients = job->clients,
                                           .n_parts = job->n_parts,
                                           .theta = theta,
                                           .kept = fresh ? NULL : job->model->kept,
                                           .cancel = a->f->cancel};

    if (a->f->strategy->aggregate->program == NULL || job->n_parts == 0) {
        return FL_OK;
    }
    FL_REQUIRE(a->f->program != NULL);
    return fl_aggregation_program_begin(a->f->program, &round, &a->whole, a->err);
}

/* What it keeps goes with the new model; its scores take the place of the distances. */
static int aggregation_take_kept(struct pass *a)
{
    struct fl_aggregation *job = a->job;
    const double *scores;

    if (a->f->strategy->aggregate->program == NULL) {
        return FL_OK;
    }
    if (job->n_parts == 0) {
        job->next.model.kept = job->model->kept != NULL ? fl_blob_ref(job->model->kept) : NULL;
        return FL_OK;
    }
    scores = fl_aggregation_program_scores(a->f->program);
    if (scores != NULL && job->want_distance) {
        (void)memcpy(job->distance, scores, job->n_parts * sizeof(*scores));
    }
    return fl_aggregation_program_kept(a->f->program, &job->next.model.kept, a->err);
}

static int run_aggregation(struct pass *a)
{
    struct fl_aggregation *job = a->job;
    const struct fl_federation *f = a->f;
    const struct fl_strategy *strategy = f->strategy;
    const float *state[FL_AGG_MAX_STATE] = {NULL};
    float *state_new[FL_AGG_MAX_STATE] = {NULL};
    struct fl_agg_job run = {
        .layout = fl_federation_updates(f),
        .ops = strategy->aggregate,
        .options = strategy->options[FL_COMPONENT_AGGREGATE],
        .round = job->round,
        .members = (size_t)job->members,
        .n_clients = job->n_parts,
        .clients = a->clients,
        .open = aggregation_open_unit,
        .ctx = a,
        .theta = fl_blob_floats(job->model->theta),
        .theta_new = fl_blob_fill_floats(job->next.model.theta),
        .extra = strategy->solver->server,
        .extra_options = strategy->options[FL_COMPONENT_SOLVER],
        .broadcast = strategy->broadcast,
        .broadcast_options = strategy->options[FL_COMPONENT_BROADCAST],
        .grid = aggregation_grid(a),
        .robust = strategy->robust,
        .robust_options = strategy->options[FL_COMPONENT_ROBUST],
        .reference = a->reference,
        .seed = f->seed,
        .used = job->used,
        .share_cap = f->share_cap,
        .influence = job->influence,
        .mixing = job->next.mixing->weights,
        .n_mixing = job->next.mixing->n,
        .attention = job->next.mixing->attention,
        .score = job->score,
        .state = state,
        .state_new = state_new,
        .personal_model = strategy->aggregate->mixes ? take_personal_model : NULL,
        .made = job->next.draft != NULL ? draft_unit : NULL,
        .whole = strategy->aggregate->program != NULL ? &a->whole : NULL,
        .info = &job->info,
        .want_distance = job->want_distance,
        .distance = job->distance,
    };
    size_t bad = job->n_parts;
    size_t i;
    int rv;

    for (i = 0; i < f->n_state; i++) {
        state[i] = f->space != NULL ? a->space.state[i] : fl_blob_floats(job->model->state[i]);
        state_new[i] = f->space != NULL ? a->space.state_new[i]
                                        : fl_blob_fill_floats(job->next.model.state[i]);
    }
    if (f->space != NULL) {
        run.theta = a->space.z;
        run.theta_new = a->space.z_new;
    }
    rv = aggregation_prepare(a, run.theta);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_aggregate_run(&run, &bad, a->err);
    if (rv != FL_OK && bad < job->n_parts) {
        job->bad_client = job->parts[bad].client;
        fl_spool_reader_explain(a->readers[bad], rv, a->err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    return aggregation_take_kept(a);
}

/* Whose updates the robust rule left out, the largest score first, of equal ones in client order.
 */
static void list_robust_clients(struct fl_aggregation *job)
{
    double below = (double)INFINITY; /* Scores from here on are in the list. */
    size_t listed = 0;

    while (listed < job->info.robust_out && listed < FL_ROBUST_CLIENTS) {
        double most = -1;
        size_t i;

        for (i = 0; i < job->n_parts; i++) {
            if (job->used[i] < FL_AGG_LEFT_OUT && job->score[i] < below) {
                most = fmax(most, job->score[i]);
            }
        }
        for (i = 0; i < job->n_parts; i++) {
            if (job->used[i] >= FL_AGG_LEFT_OUT || job->score[i] < most || job->score[i] > most) {
                continue;
            }
            if (listed == FL_ROBUST_CLIENTS ||
                !fl_robust_clients_add(job->robust_clients, job->clients[i].name, job->used[i],
                                       job->score[i]))
            {
                return;
            }
            listed++;
        }
        below = most;
    }
}

/*
 * What is uploaded for personalized models are models, not displacements; a robust rule bounds by
 * itself; and clients' controls that are rebuilt from updates need these as they are.
 */
static double norm_clip_of(const struct pass *a)
{
    const struct fl_strategy *s = a->f->strategy;

    return s->aggregate->mixes || fl_robust_on(s->robust) || fl_strategy_scales_updates(s)
               ? 0
               : a->f->norm_clip;
}

/* Factors by the norms of whole updates; with partial uploads, where only the same layers compare,
   by those of each layer. */
static int aggregation_clip(struct pass *a)
{
    const struct fl_upload_ops *upload = a->f->strategy->upload;
    const struct fl_layout *layout = fl_federation_updates(a->f);
    struct fl_aggregation *job = a->job;
    size_t n_units = fl_layout_units(layout);
    double clip = norm_clip_of(a);
    size_t i;
    size_t l;

    job->n_clipped = fl_clip_factors(job->parts, job->n_parts, clip, job->clip);
    a->clip = calloc(job->n_parts + 1, n_units * sizeof(*a->clip));
    if (a->clip == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < job->n_parts; i++) {
        a->clients[i].clip = a->clip + i * n_units;
        for (l = 0; l < n_units; l++) {
            a->clip[i * n_units + l] = job->clip[i];
        }
    }
    if (!(clip > 0) || !upload->partial || upload->whole) {
        return FL_OK;
    }
    return fl_clip_units(layout, a->readers, job->n_parts, clip, a->clip, job->clip,
                         &job->n_clipped);
}

/* The update that the server trains for a robust rule. */
static int aggregation_train(struct pass *a)
{
    const struct fl_federation *f = a->f;
    const struct fl_root_task task = {.round = a->job->round,
                                      .draw = a->job->draw.number,
                                      .learning_rate = a->job->learning_rate,
                                      .model = fl_blob_floats(a->job->model->theta),
                                      .cancel = f->cancel};

    if (!fl_robust_trusts(f->strategy->robust)) {
        return FL_OK;
    }
    FL_REQUIRE(f->root != NULL);
    a->reference = malloc((fl_layout_count(fl_federation_updates(f)) + 1) * sizeof(*a->reference));
    return a->reference != NULL ? fl_root_train(f->root, &task, a->reference, a->err) : FL_ENOMEM;
}

/* The round from opened uploads to the new model, in the space of updates. */
static int aggregation_compute(struct pass *a)
{
    struct fl_aggregation *job = a->job;
    const struct fl_hashed_round round = {a->f->space, job->round, job->draw.number,
                                          aggregation_grid(a)};
    int rv;

    if (a->f->space == NULL) {
        return run_aggregation(a);
    }
    rv = fl__agg_space_begin(a->f, job->model, job->draw.number, job->draw.first == job->round,
                             &a->space);
    if (rv != FL_OK) {
        return rv;
    }
    rv = run_aggregation(a);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__agg_space_finish(&a->space, &round, job->model, &job->next.model, &a->step, a->err);
}

static int aggregation_new_mixing(struct fl_aggregation *job, const struct fl_strategy *s)
{
    bool wanted = fl_aggregate_has_mixing(s->aggregate, s->options[FL_COMPONENT_AGGREGATE]);
    size_t n = !wanted ? 0 : job->n_parts < FL_PART_MIXED ? job->n_parts : FL_PART_MIXED;
    struct fl_mixing *m = calloc(1, sizeof(*m) + (n * n + job->n_parts) * sizeof(double));

    if (m == NULL) {
        return FL_ENOMEM;
    }
    m->n = n;
    m->weights = m->memory;
    m->n_parts = job->n_parts;
    m->attention = m->memory + n * n;
    job->next.mixing = m;
    return FL_OK;
}

static int aggregation_make(struct pass *a)
{
    struct fl_aggregation *job = a->job;
    const struct fl_strategy *s = a->f->strategy;
    bool mixes = s->aggregate->mixes;
    struct fl_personal_models_writer *w;
    int rv = fl_model_state_new(a->f, &job->next.model);

    if (rv != FL_OK) {
        return rv;
    }
    job->distance = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->distance));
    job->used = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->used));
    job->score = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->score));
    job->robust_clients = calloc(FL_ROBUST_CLIENTS_TEXT, 1);
    job->clip = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->clip));
    job->influence = calloc(job->n_parts > 0 ? job->n_parts : 1, sizeof(*job->influence));
    if (job->distance == NULL || job->used == NULL || job->score == NULL ||
        job->robust_clients == NULL || job->clip == NULL || job->influence == NULL)
    {
        return FL_ENOMEM;
    }
    a->spool_payload[0] = 0;
    a->n_payloads = 1;
    map_takes(a, s->aggregate->takes);
    map_takes(a, s->solver->server != NULL ? s->solver->server->takes : NULL);
    rv = open_readers(a);
    if (rv != FL_OK) {
        return rv;
    }
    rv = aggregation_clip(a);
    if (rv != FL_OK) {
        return rv;
    }
    rv = aggregation_train(a);
    if (rv != FL_OK) {
        return rv;
    }
    rv = aggregation_new_mixing(job, s);
    if (rv != FL_OK) {
        return rv;
    }
    if (mixes) {
        rv = aggregation_open_personal_models(a);
        if (rv != FL_OK) {
            return rv;
        }
    } else if (a->f->store != NULL && a->f->space == NULL) {
        /*
         * With personal models the checkpoint needs their seal, which is not known yet; in a hashed
         * space entries are final at the end.
         */
        begin_draft(a);
    }
    rv = aggregation_compute(a);
    if (rv != FL_OK) {
        return rv;
    }
    list_robust_clients(job);
    rv = fl_model_state_code(a->f, &job->next.model);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_model_state_step(a->f, job->model, job->round, &a->step, &job->next.model, a->err);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl_norms_round(job->round)) {
        rv = fl_norms_apart(fl_federation_updates(a->f), a->readers, job->n_parts,
                            a->f->space != NULL ? a->space.z_new
                                                : fl_blob_floats(job->next.model.theta),
                            &job->norms_apart);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (!mixes) {
        return FL_OK;
    }
    w = a->personal_models;
    a->personal_models = NULL;
    rv = fl_personal_models_publish(w, a->err);
    if (rv != FL_OK) {
        return rv;
    }
    /* Opened here, where a lack of descriptors is merely retried. */
    return fl_personal_models_open(a->f->state_dir, job->round,
                                   fl_federation_floats(a->f) * sizeof(float),
                                   &job->next.personal_models, a->err);
}

int fl_aggregation_run(const struct fl_federation *federation, struct fl_aggregation *aggregation,
                       struct fl_err *err)
{
    struct pass a = {.f = federation, .job = aggregation, .err = err};
    size_t n = aggregation->n_parts > 0 ? aggregation->n_parts : 1;
    size_t i;
    int rv;

    aggregation->bad_client = FL_NO_CLIENT;
    a.clients = calloc(n, sizeof(*a.clients));
    a.readers = calloc(n, sizeof(struct fl_spool_reader *));
    rv = a.clients != NULL && a.readers != NULL ? aggregation_make(&a) : FL_ENOMEM;
    for (i = 0; a.readers != NULL && i < aggregation->n_parts; i++) {
        fl_spool_reader_close(a.readers[i]);
    }
    fl_personal_models_abandon(a.personal_models);
    fl__agg_space_done(&a.space);
    fl_step_done(&a.step);
    free(a.readers);
    free(a.clients);
    free(a.clip);
    free(a.reference);
    free(a.place);
    return rv;
}

struct fl_aggregation fl_aggregation_of(const struct fl_effect *effect,
                                        const struct fl_client_rec *clients, double learning_rate,
                                        const struct fl_progress *progress)
{
    return (struct fl_aggregation){.round = effect->round,
                                   .attempt = effect->attempt,
                                   .members = effect->size.members,
                                   .learning_rate = learning_rate,
                                   .plateau = effect->plateau,
                                   .draw = effect->draw,
                                   .parts = effect->parts,
                                   .clients = clients,
                                   .n_parts = effect->n_parts,
                                   .model = &progress->committed.model,
                                   .want_distance = effect->want_distance,
                                   .bad_client = FL_NO_CLIENT};
}

struct fl_event fl_aggregation_take(struct fl_aggregation *aggregation,
                                    struct fl_progress *progress)
{
    struct fl_event event = {.type = FL_EV_AGGREGATED};

    fl_progress_aggregated(progress, &aggregation->next);
    event.u.aggregated.distance = aggregation->want_distance ? aggregation->distance : NULL;
    event.u.aggregated.effective = aggregation->info.effective;
    event.u.aggregated.self_weight = aggregation->info.self_weight;
    event.u.aggregated.clipped = (uint32_t)aggregation->n_clipped;
    event.u.aggregated.influence = aggregation->info.influence;
    event.u.aggregated.left = aggregation->info.n_capped > 0 ? aggregation->influence : NULL;
    event.u.aggregated.robust_used = aggregation->info.robust_used;
    event.u.aggregated.robust_out = (uint32_t)aggregation->info.robust_out;
    event.u.aggregated.robust_clients = aggregation->robust_clients;
    event.u.aggregated.collection_bytes =
        progress->collection.file != NULL ? fl_file_size(progress->collection.file) : 0;
    return event;
}

void fl_aggregation_done(struct fl_aggregation *aggregation)
{
    fl_outcome_done(&aggregation->next);
    free(aggregation->distance);
    free(aggregation->used);
    free(aggregation->score);
    free(aggregation->robust_clients);
    free(aggregation->clip);
    free(aggregation->influence);
    aggregation->distance = NULL;
    aggregation->used = NULL;
    aggregation->score = NULL;
    aggregation->robust_clients = NULL;
    aggregation->clip = NULL;
    aggregation->influence = NULL;
}
