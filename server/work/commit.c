#include "server/work/commit.h"

#include <stdlib.h>
#include <string.h>

#include "server/store/model_steps.h"
#include "server/work/checkpoints.h"

void fl_progress_done(struct fl_progress *progress)
{
    fl_outcome_done(&progress->committed);
    fl_outcome_done(&progress->next);
    fl_file_unref(progress->collection.file);
    progress->collection.file = NULL;
}

const struct fl_model_state *fl_progress_model(const struct fl_progress *progress)
{
    return progress->next.model.theta != NULL ? &progress->next.model : &progress->committed.model;
}

void fl_progress_aggregated(struct fl_progress *progress, struct fl_outcome *outcome)
{
    fl_outcome_done(&progress->next);
    progress->next = *outcome;
    *outcome = (struct fl_outcome){.personal_models = NULL};
}

void fl_progress_collection(struct fl_progress *progress, struct fl_collection *collection)
{
    if (collection->file != NULL) {
        fl_file_unref(progress->collection.file); /* An open round holds its own reference. */
        progress->collection = *collection;
        collection->file = NULL;
    }
}

int fl_progress_enter(const struct fl_federation *f, struct fl_progress *progress, uint64_t round,
                      uint64_t epoch)
{
    struct fl_model_state *model = &progress->committed.model;
    size_t i = fl_strategy_own_states(f->strategy);

    for (; fl_strategy_sums_kept(f->strategy) && epoch >= round && i < f->n_state; i++) {
        struct fl_blob *zero = NULL; /* Transfers may still read the old one. */
        int rv = fl_blob_create(fl_blob_len(model->state[i]), &zero);

        if (rv != FL_OK) {
            return rv;
        }
        (void)memset(fl_blob_fill(zero), 0, fl_blob_len(zero));
        fl_blob_unref(model->state[i]);
        model->state[i] = zero;
    }
    return FL_OK;
}

static int commit_save_checkpoint(const struct fl_federation *f, const struct fl_progress *progress,
                                  uint64_t round, struct fl_err *err)
{
    const struct fl_model_state *model = fl_progress_model(progress);
    struct fl_models_tag tag = fl_federation_tag(f);
    const struct fl_models_checkpoint c = {f->state_dir, round,          &tag,
                                           f->layout,    f->state_names, f->n_state};
    const float *state[FL_AGG_MAX_STATE] = {NULL};
    char seal[FL_PERSONAL_MODELS_SEAL];
    size_t i;

    if (progress->next.personal_models != NULL) {
        fl_personal_models_seal(progress->next.personal_models, seal);
        tag.personal_models = seal;
    }
    tag.kept = model->kept;
    for (i = 0; i < f->n_state; i++) {
        state[i] = fl_blob_floats(model->state[i]);
    }
    /* Without a complete draft the whole checkpoint is written. */
    if (progress->next.draft != NULL &&
        fl_models_draft_seal(progress->next.draft, round, &tag, fl_blob_floats(model->theta), state,
                             NULL) == FL_OK)
    {
        return FL_OK;
    }
    return fl_models_save(&c, fl_blob_floats(model->theta), state, /* sync= */ !f->scratch, err);
}

/* The versions that end with this model; NULL: clients receive whole ones. */
static const struct fl_versions *commit_versions(const struct fl_outcome *outcome)
{
    const struct fl_differences *d = outcome->model.differences;

    return d != NULL ? fl_differences_versions(d) : NULL;
}

/* The step to the aggregated model. Without it clients would download whole models after a restart.
 */
static int commit_save_step(const struct fl_federation *f, const struct fl_progress *progress,
                            struct fl_err *err)
{
    const struct fl_versions *v = commit_versions(&progress->next);
    size_t n = v != NULL ? fl_versions_steps(v) : 0;

    return n > 0 ? fl_model_steps_save(f->state_dir, fl_versions_step(v, n - 1),
                                       /* sync= */ !f->scratch, err)
                 : FL_OK;
}

/* The first step was merged with others: it replaces their files. */
static int commit_prune_steps(const struct fl_federation *f, const struct fl_progress *progress,
                              uint64_t round, struct fl_err *err)
{
    const struct fl_versions *v = commit_versions(&progress->next);
    size_t n = v != NULL ? fl_versions_steps(v) : 0;
    int rv;

    if (n == 0 || fl_versions_steps(commit_versions(&progress->committed)) < n) {
        return FL_OK;
    }
    rv = fl_model_steps_save(f->state_dir, fl_versions_step(v, 0), /* sync= */ !f->scratch, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_model_steps_clean(f->state_dir, fl_versions_step(v, 0)->round, round, err);
}

/* The round is durable; failing to remove old files only costs disk space. */
static void commit_prune(const struct fl_federation *f, const struct fl_progress *progress,
                         uint64_t round, uint64_t wall_ms)
{
    struct fl_err err = {0};
    int rv = fl_checkpoints_prune(f, round, wall_ms, &err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = commit_prune_steps(f, progress, round, &err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_checkpoints_prune_personal_models(f, round, &err);
    if (rv != FL_OK) {
        goto fail;
    }
    return;
fail:
    fl_log(f->log, FL_LOG_WARNING, "server", "old checkpoints could not be removed, ignoring: %s",
           fl_err_text(&err, rv));
}

int fl_commit_run(const struct fl_federation *federation, const struct fl_commit *commit,
                  struct fl_err *err)
{
    const struct fl_mixing *mixing = commit->progress->next.mixing;
    /* A simulation records participations itself. */
    const struct fl_participations taken = {.parts = commit->parts,
                                            .n = federation->scratch ? 0 : commit->n_parts,
                                            .clients = commit->clients,
                                            .evals = commit->evals,
                                            .n_evals = federation->scratch ? 0 : commit->n_evals,
                                            .attempt = commit->record->attempt,
                                            .mixing = mixing != NULL ? mixing->weights : NULL,
                                            .n_mixing = mixing != NULL ? mixing->n : 0,
                                            .attention = mixing != NULL ? mixing->attention : NULL,
                                            .n_attention = mixing != NULL ? mixing->n_parts : 0};
    uint64_t round = commit->record->round;
    int rv = commit_save_step(federation, commit->progress, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = commit_save_checkpoint(federation, commit->progress, round, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_put_epoch(federation->store, commit->epoch, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_commit(federation->store, commit->record, commit->clients, commit->n_clients,
                         &taken, err);
    if (rv != FL_OK) {
        return rv;
    }
    commit_prune(federation, commit->progress, round, commit->wall_ms);
    return FL_OK;
}

void fl_progress_committed(struct fl_progress *progress, const struct fl_round_rec *record)
{
    if (progress->next.model.theta != NULL) {
        fl_model_state_done(&progress->committed.model);
        progress->committed.model = progress->next.model;
    }
    fl_personal_models_close(progress->committed.personal_models);
    progress->committed.personal_models = progress->next.personal_models;
    fl_models_draft_free(progress->next.draft);
    free(progress->next.mixing);
    progress->next = (struct fl_outcome){.personal_models = NULL};
    fl_round_add(&progress->totals, record);
}
