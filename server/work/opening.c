/*
 * Opening of a state folder: carries out a pending restore or rollback, enters the settings, and
 * finds the newest checkpoint that goes with a committed round. Runs once at the start, on the
 * caller's thread, before any client is served; the caller holds the lock of the folder.
 */
#include "server/work/opening.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "server/store/model_steps.h"
#include "server/work/checkpoint_choice.h"
#include "server/work/checkpoints.h"
#include "server/work/rollback.h"
#include "server/work/summary_work.h"

/* The folder to open, and the results so far. */
struct opening {
    struct fl_federation *f;
    const struct fl_opening *how;
    struct fl_progress *progress;
    struct fl_coord_resume *resume;
};

/* Drop the rounds after `round` and reload the records. */
static int go_back(const struct opening *o, uint64_t round, struct fl_err *err)
{
    const struct fl_strategy *s = o->f->strategy;
    const struct fl_rewind why = {.reason = "newer checkpoints cannot be used",
                                  .restart_state = fl_federation_restarts_state(o->f),
                                  .wall_ms = o->how->wall_ms};
    int rv = fl_store_rewind(o->f->store, round, &why, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (why.restart_state) {
        fl_log(o->f->log, FL_LOG_WARNING, "server",
               "solver '%s': the state of server and clients is reset, since client state is up to "
               "%llu rounds newer",
               s->solver->policy.name, (unsigned long long)(o->resume->committed - round));
    }
    rv = fl_store_generation(o->f->store, &o->f->generation, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_store_resume_done(o->resume);
    rv = fl_store_load(o->f->store, o->resume, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_store_totals(o->f->store, &o->progress->totals, err);
}

/* The search for a checkpoint. */
struct search {
    const struct opening *o;
    struct fl_models_tag tag;
    uint64_t *rounds; /* newest first */
    size_t n;
};

/* What the program of the aggregation keeps: with other settings it is another program's. */
static int opening_load_kept(const struct fl_federation *f, const struct fl_models_checkpoint *c,
                             const struct fl_models_found *found, struct fl_blob **ret,
                             struct fl_err *err)
{
    struct fl_blob *kept = NULL;
    int rv;

    fl_blob_unref(*ret);
    *ret = NULL;
    if (f->strategy->aggregate->program == NULL) {
        return FL_OK;
    }
    rv = fl_models_load_kept(c, SIZE_MAX, &kept, err);
    if (rv != FL_OK || kept == NULL) {
        return rv;
    }
    if (!fl_judge_same_settings(f, found)) {
        fl_log(f->log, FL_LOG_NOTICE, "server",
               "checkpoint of round %llu: the state of the aggregation's program is not used, it "
               "was made under other settings",
               (unsigned long long)c->round);
        fl_blob_unref(kept);
        return FL_OK;
    }
    *ret = kept;
    return FL_OK;
}

static int load_round(const struct search *s, uint64_t round, struct fl_err *err)
{
    const struct opening *o = s->o;
    float *state[FL_AGG_MAX_STATE] = {NULL};
    struct fl_models_checkpoint c;
    struct fl_models_found found;
    bool restart = round < o->resume->committed && fl_federation_restarts_state(o->f);
    size_t i;
    int rv;

    for (i = 0; i < o->f->n_state; i++) {
        state[i] = fl_blob_fill_floats(o->progress->committed.model.state[i]);
    }
    c = (struct fl_models_checkpoint){o->f->state_dir,   round,        &s->tag, o->f->layout,
                                      o->f->state_names, o->f->n_state};
    rv = fl_models_load(&c, fl_blob_fill_floats(o->progress->committed.model.theta), state, &found,
                        err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_judge_checkpoint(o->f, round, &found, restart, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = opening_load_kept(o->f, &c, &found, &o->progress->committed.model.kept, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_judge_personal_models(o->f, round, &found, &o->progress->committed.personal_models,
                                    err);
}

/* `*ret_known`: it has a record; otherwise nothing is loaded. */
static int try_round(const struct search *s, uint64_t round, bool *ret_known, struct fl_err *err)
{
    int rv = fl_store_has_round(s->o->f->store, round, ret_known, err);

    if (rv != FL_OK || !*ret_known) {
        return rv;
    }
    return load_round(s, round, err);
}

/* FL_OK: the error `rv` of try_round() allows an older checkpoint. */
static int skip_round(const struct search *s, uint64_t round, int rv, struct fl_err *err)
{
    if (rv == FL_EVERSION) {
        return rv;
    }
    if (rv != FL_ENOENT && !fl_models_is_bad(rv)) {
        return fl_err_wrap(
            err, rv, "checkpoint of round %llu: could not be read, leaving it unchanged%s",
            (unsigned long long)round,
            rv == FL_EIO ? " ('fl-serverd --recover CONFIG' resumes without it)" : "");
    }
    fl_log(s->o->f->log, FL_LOG_WARNING, "server",
           "checkpoint of round %llu: skipped as unusable: %s", (unsigned long long)round,
           fl_err_text(err, rv));
    return FL_OK;
}

/*
 * Finds the newest round that has both a record and a checkpoint, with the personal models that it
 * names. Skips only checkpoints that are missing or provably bad; a read error says nothing about
 * the file and ends the start, and so does a checkpoint of another version that lacks what is
 * needed now.
 */
static int find_pair(const struct search *s, uint64_t *ret, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < s->n; i++) {
        bool known = false;
        int rv;

        if (s->rounds[i] > s->o->resume->committed) {
            continue;
        }
        rv = try_round(s, s->rounds[i], &known, err);
        if (rv != FL_OK) {
            rv = skip_round(s, s->rounds[i], rv, err);
            if (rv != FL_OK) {
                return rv;
            }
            continue;
        }
        if (known) {
            *ret = s->rounds[i];
            return FL_OK;
        }
    }
    return FL_ENOENT;
}

/* Quarantines bad checkpoints, which would be overwritten when their rounds are run again. */
static int opening_quarantine(const struct search *s, uint64_t after, struct fl_err *err)
{
    const char *dir = s->o->f->state_dir;
    size_t i;

    for (i = 0; i < s->n; i++) {
        int rv;

        if (s->rounds[i] <= after || s->rounds[i] > s->o->resume->committed) {
            continue;
        }
        rv = fl_models_quarantine(dir, s->rounds[i], err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_personal_models_quarantine(dir, s->rounds[i], err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* FL_ENOENT: there is none yet, and none is needed. */
static int use_pair(const struct search *s, struct fl_err *err)
{
    const struct opening *o = s->o;
    const char *dir = o->f->state_dir;
    uint64_t last = o->resume->committed;
    uint64_t round = 0;
    int rv = find_pair(s, &round, err);

    if (rv == FL_ENOENT && s->n == 0) {
        return last > 0 ? fl_err_set(err, FL_ESTATE, "no checkpoint found in '%s/models'", dir)
                        : FL_ENOENT;
    }
    if (rv == FL_ENOENT && (last > 0 || s->rounds[0] > 1)) {
        return fl_err_set(
            err, FL_ESTATE,
            "no usable checkpoint in '%s/models' matches a round of the state database, which ends "
            "at round %llu; the newest file is of round %llu. 'fl-serverd --recover CONFIG' "
            "resumes from the newest good one, regardless of the database",
            dir, (unsigned long long)last, (unsigned long long)s->rounds[0]);
    }
    if (rv == FL_ENOENT) {
        /* The first model can be created again; what was started with it cannot. */
        rv = fl_models_quarantine(dir, 0, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = go_back(o, 0, err);
        if (rv != FL_OK) {
            return rv;
        }
        return FL_ENOENT;
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (s->rounds[0] > last + 1) {
        fl_log(o->f->log, FL_LOG_WARNING, "server",
               "checkpoints exist up to round %llu, but the state database ends at round %llu: was "
               "it replaced by an older copy? Running these rounds again; 'fl-serverd --recover "
               "CONFIG' resumes from the newest checkpoint instead",
               (unsigned long long)s->rounds[0], (unsigned long long)last);
    }
    if (round == last) {
        return FL_OK;
    }
    fl_log(o->f->log, FL_LOG_WARNING, "server",
           "resuming from round %llu, the newest with a record and a good checkpoint: running "
           "rounds up to %llu again",
           (unsigned long long)round, (unsigned long long)last);
    rv = opening_quarantine(s, round, err);
    if (rv != FL_OK) {
        return rv;
    }
    return go_back(o, round, err);
}

static void opening_log_changes(const struct fl_log *log, const struct fl_store_entered *e)
{
    unsigned long long next = e->committed + 1;
    size_t i;

    for (i = 0; i < e->verdict.n; i++) {
        const struct fl_settings_difference *d = &e->verdict.list[i];

        fl_log(log, FL_LOG_NOTICE, "server",
               "configuration changed: %s '%s' -> '%s', effective from round %llu", d->name,
               d->before, d->after, next);
        if (strcmp(d->name, "model.file") == 0 && d->after[0] != '\0') {
            fl_log(log, FL_LOG_WARNING, "server",
                   "model.file '%s' is ignored: the state folder already has a model, of round "
                   "%llu; use another state_dir to start from the file",
                   d->after, (unsigned long long)e->committed);
        }
    }
    if (e->unknown) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the state database was rebuilt: the settings that the model was made under are "
               "unknown");
    }
    if (e->dropped_round != 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "round %llu: attempt %u discarded with %llu accepted updates, which were made under "
               "other settings; attempt %u is next",
               (unsigned long long)e->dropped_round, e->dropped_attempt,
               (unsigned long long)e->dropped_updates, e->dropped_attempt + 1);
    }
    if (e->pinned != 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the checkpoint of round %llu, from before the change, is pinned until 'flctl "
               "unpin --round %llu'",
               (unsigned long long)e->pinned, (unsigned long long)e->pinned);
    }
    if (e->state_restarted) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "state of the solver on the server and on clients is reset");
    }
    if (e->verdict.summary) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "data summaries of the clients are removed, they are requested again");
    }
}

/* The first start of a folder that was restored from a backup. */
static int opening_carry_restored(const struct fl_federation *federation, uint64_t wall_ms,
                                  struct fl_err *err)
{
    const struct fl_log *log = federation->log;
    bool restart = fl_federation_restarts_state(federation);
    struct fl_restored r;
    int rv = fl_store_carry_restored(federation->store, restart, wall_ms, &r, err);

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    fl_log(log, FL_LOG_NOTICE, "server",
           "%s: the federation resumes after round %llu; clients discard undelivered results and "
           "train again",
           r.note, (unsigned long long)r.committed);
    if (restart) {
        fl_log(log, FL_LOG_WARNING, "server",
               "solver '%s': the state of server and clients is reset, since clients may have "
               "advanced after the backup",
               federation->strategy->solver->policy.name);
    }
    if (r.dropped_round != 0) {
        fl_log(log, FL_LOG_WARNING, "server",
               "round %llu: attempt %u discarded with %llu accepted updates, which belong to the "
               "state that was reset",
               (unsigned long long)r.dropped_round, r.dropped_attempt,
               (unsigned long long)r.dropped_updates);
    }
    return FL_OK;
}

static int open_records(const struct opening *o, struct fl_err *err)
{
    struct fl_federation *f = o->f;
    struct fl_store_entered entered;
    int rv =
        fl_store_open(f->state_dir, o->how->name, f->layout, o->how->durability, &f->store, err);

    f->scratch = o->how->durability == FL_DURABLE_SCRATCH;
    if (rv != FL_OK) {
        return rv;
    }
    rv = opening_carry_restored(f, o->how->wall_ms, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_rollback_carry_out(f, o->how->wall_ms, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* Compares the settings of the folder with those of this start, and stores the new ones. */
    rv = fl_store_enter(f->store, o->how->settings, o->how->wall_ms, &entered, err);
    if (rv != FL_OK) {
        return rv;
    }
    f->generation = entered.generation;
    opening_log_changes(f->log, &entered);
    fl_store_entered_done(&entered);
    rv = fl_store_load(f->store, o->resume, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_clean_spool(f->state_dir, o->resume, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_store_totals(f->store, &o->progress->totals, err);
}

/*
 * The model as clients can receive it. A checkpoint of another broadcast may be off it: what it has
 * beyond that is lost, once. FL_ENUMERIC: it is beyond the range of the broadcast.
 */
static int opening_place_model(const struct opening *o, struct fl_err *err)
{
    const struct fl_strategy *s = o->f->strategy;
    int rv = fl_broadcast_place(s->broadcast, s->options[FL_COMPONENT_BROADCAST], o->f->layout,
                                fl_blob_fill_floats(o->progress->committed.model.theta), err);

    return rv == FL_OK
               ? FL_OK
               : fl_err_wrap(err, rv, "the model of round %llu cannot be broadcast, select '%s'",
                             (unsigned long long)o->resume->committed,
                             fl_broadcast_float32.policy.name);
}

/* Files that are left cost disk space only. */
static void opening_clean_steps(const struct fl_federation *f, uint64_t oldest, uint64_t newest)
{
    struct fl_err err = {0};
    int rv = fl_model_steps_clean(f->state_dir, oldest, newest, &err);

    if (rv != FL_OK) {
        fl_log(f->log, FL_LOG_WARNING, "server", "removing steps between old models failed: %s",
               fl_err_text(&err, rv));
    }
}

/* The models that clients may hold: those that lead to the committed one. Other steps are removed.
 */
static int opening_open_versions(const struct opening *o)
{
    const struct fl_federation *f = o->f;
    struct fl_model_state *model = &o->progress->committed.model;
    uint64_t last = o->resume->committed;
    uint8_t digest[FL_DIGEST_SIZE];
    struct fl_versions *versions = NULL;
    uint64_t oldest;
    int rv;

    if (!fl_broadcast_sends_moves(f->strategy->broadcast)) {
        opening_clean_steps(f, 1, 0);
        return FL_OK;
    }
    rv = fl_versions_digest(f->layout, fl_blob_floats(model->theta), digest);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_model_steps_load(f->state_dir, f->layout, last, digest, f->log, &versions);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_differences_create(f->layout, versions, model->theta, &model->differences);
    if (rv != FL_OK) {
        return rv;
    }
    oldest = fl_differences_oldest(model->differences);
    opening_clean_steps(f, oldest > 0 ? oldest : last + 1, last);
    return FL_OK;
}

static int opening_open_model(const struct opening *o, struct fl_err *err)
{
    const struct fl_federation *f = o->f;
    struct fl_outcome *committed = &o->progress->committed;
    struct fl_models_tag tag;
    const struct fl_models_checkpoint first = {
        .dir = f->state_dir, .tag = &tag, .layout = f->layout};
    struct search s = {.o = o, .tag = fl_federation_tag(f)};
    uint64_t last;
    size_t i;
    int rv = fl_model_state_new(f, &committed->model);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < f->n_state; i++) {
        (void)memset(fl_blob_fill(committed->model.state[i]), 0,
                     fl_blob_len(committed->model.state[i]));
    }
    rv = fl_models_list(f->state_dir, &s.rounds, &s.n, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = use_pair(&s, err);
    free(s.rounds);
    tag = fl_federation_tag(f);
    if (rv == FL_ENOENT) {
        float *theta = fl_blob_fill_floats(committed->model.theta);

        rv = o->how->first_model(o->how->ctx, theta, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = opening_place_model(o, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_models_save(&first, theta, NULL, true, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    last = o->resume->committed;
    fl_judge_begin_anew(f, last, committed);
    rv = opening_place_model(o, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_model_state_code(f, &committed->model);
    if (rv != FL_OK) {
        return rv;
    }
    rv = opening_open_versions(o);
    if (rv != FL_OK) {
        return rv;
    }
    /* Removes temporary files. */
    rv = fl_models_prune(f->state_dir, &tag, last, UINT32_MAX, 0, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* Removes personal models of a round that was aggregated but not committed. */
    return fl_checkpoints_prune_personal_models(f, last, err);
}

int fl_opening_run(struct fl_federation *federation, const struct fl_opening *opening,
                   struct fl_progress *ret, struct fl_coord_resume *ret_resume, struct fl_err *err)
{
    const struct opening o = {federation, opening, ret, ret_resume};
    int rv;

    fl_federation_name_states(federation);
    rv = open_records(&o, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = opening_open_model(&o, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_collection_open(federation, &ret->collection, err);
}

uint64_t fl_opening_seed(const struct fl_strategy *strategy, uint64_t master)
{
    const uint64_t named[2] = {master, FL_RNG_INIT};
    uint8_t digest[FL_DIGEST_SIZE];
    uint64_t seed;

    if (!fl_broadcast_sends_moves(strategy->broadcast) ||
        fl_sha256(named, sizeof(named), digest) != FL_OK)
    {
        return master;
    }
    (void)memcpy(&seed, digest, sizeof(seed));
    return seed;
}

int fl_opening_rebuild(struct fl_federation *federation, const char *name,
                       struct fl_store_rebuild *ret, struct fl_err *err)
{
    const struct fl_strategy *s = federation->strategy;

    fl_federation_name_states(federation);
    *ret = (struct fl_store_rebuild){.dir = federation->state_dir,
                                     .federation = name,
                                     .layout = federation->layout,
                                     .state_names = federation->state_names,
                                     .n_state = federation->n_state,
                                     .n_own = fl_strategy_own_states(s),
                                     .mixes = s->aggregate->mixes,
                                     .log = federation->log};
    return fl_store_rebuild(ret, err);
}
