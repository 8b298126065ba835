#include "tests/lib/work_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/strategy/broadcast/versions.h"

static void note(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    struct work_rig *rig = ctx;
    size_t used = strlen(rig->logged);

    (void)component;
    (void)snprintf(rig->logged + used, sizeof(rig->logged) - used, "%d %s\n", (int)level, text);
}

void work_rig_init(struct work_rig *rig)
{
    *rig = (struct work_rig){.layout = rig_layout(), .retention = {.keep = 2}};
    rig->log = (struct fl_log){.level = FL_LOG_DEBUG, .sink = note, .ctx = rig};
    (void)rig_dir();
}

static int first_model(void *ctx, float *theta, struct fl_err *err)
{
    struct work_rig *rig = ctx;
    size_t i;

    (void)err;
    rig->n_first++;
    for (i = 0; i < fl_layout_count(rig->layout); i++) {
        theta[i] = WORK_RIG_FIRST;
    }
    return FL_OK;
}

static void work_rig_broadcast(struct work_rig *rig)
{
    struct fl_options *o;

    if (rig->broadcast == NULL) {
        return;
    }
    ck_assert_int_eq(fl_strategy_set(rig->strategy, FL_COMPONENT_BROADCAST, rig->broadcast, NULL),
                     FL_OK);
    o = rig->strategy->options[FL_COMPONENT_BROADCAST];
    if (fl_broadcast_sends_moves(rig->strategy->broadcast)) {
        ck_assert_int_eq(fl_options_set(o, "step", rig->step != NULL ? rig->step : "0.5", NULL),
                         FL_OK);
        ck_assert_int_eq(
            fl_options_set(o, "history", rig->history != NULL ? rig->history : "1000", NULL),
            FL_OK);
    }
}

int work_rig_try(struct work_rig *rig, const char *algorithm, struct fl_err *err)
{
    static char dir[RIG_PATH_MAX];
    struct fl_settings settings = {.n = 0};
    const struct fl_opening opening = {.name = "fed",
                                       .durability = rig->durability,
                                       .settings = &settings,
                                       .wall_ms = rig->wall_ms,
                                       .first_model = first_model,
                                       .ctx = rig};
    int rv;

    rig->logged[0] = '\0';
    ck_assert_int_eq(fl_strategy_create(algorithm, &rig->strategy, NULL), FL_OK);
    work_rig_broadcast(rig);
    ck_assert_int_eq(fl_settings_add_strategy(&settings, rig->strategy), FL_OK);
    rig->fed = (struct fl_federation){.layout = rig->layout,
                                      .strategy = rig->strategy,
                                      .state_dir = rig_path(dir, "."),
                                      .log = &rig->log,
                                      .summary_max = 1 << 20,
                                      .retention = rig->retention};
    rv = fl_opening_run(&rig->fed, &opening, &rig->progress, &rig->resume, err);
    fl_settings_done(&settings);
    return rv;
}

void work_rig_open(struct work_rig *rig, const char *algorithm)
{
    struct fl_err err = {0};

    ck_assert_msg(work_rig_try(rig, algorithm, &err) == FL_OK, "%s", err.msg);
}

void work_rig_close(struct work_rig *rig)
{
    fl_progress_done(&rig->progress);
    rig->progress = (struct fl_progress){.totals = {.round = 0}};
    fl_store_resume_done(&rig->resume);
    rig->resume = (struct fl_coord_resume){.committed = 0};
    fl_store_close(rig->fed.store);
    rig->fed.store = NULL;
    fl_strategy_free(rig->strategy);
    rig->strategy = NULL;
}

void work_rig_done(struct work_rig *rig)
{
    work_rig_close(rig);
    fl_layout_free(rig->layout);
    rig_remove();
}

void work_rig_aggregate(struct work_rig *rig, float value)
{
    struct fl_outcome next = {.personal_models = NULL};
    struct fl_step made = {.round = 0};
    size_t n = fl_federation_floats(&rig->fed);
    size_t s;
    size_t i;

    ck_assert_int_eq(fl_model_state_new(&rig->fed, &next.model), FL_OK);
    for (i = 0; i < n; i++) {
        fl_blob_fill_floats(next.model.theta)[i] = value;
        for (s = 0; s < rig->fed.n_state; s++) {
            fl_blob_fill_floats(next.model.state[s])[i] = 2 * value;
        }
    }
    ck_assert_int_eq(fl_model_state_step(&rig->fed, &rig->progress.committed.model,
                                         rig->progress.totals.round + 1, &made, &next.model, NULL),
                     FL_OK);
    fl_progress_aggregated(&rig->progress, &next);
}

void work_rig_mix(struct work_rig *rig, uint64_t round, const char *const *names, size_t n,
                  float value)
{
    size_t n_floats = fl_federation_floats(&rig->fed);
    uint64_t bytes = n_floats * sizeof(float);
    float *values = calloc(n_floats, sizeof(*values));
    struct fl_personal_models_writer *w = NULL;
    size_t i;

    ck_assert_ptr_nonnull(values);
    for (i = 0; i < n_floats; i++) {
        values[i] = value;
    }
    ck_assert_int_eq(
        fl_personal_models_create(rig->fed.state_dir, round, names, n, bytes, &w, NULL), FL_OK);
    for (i = 0; i < n; i++) {
        ck_assert_int_eq(fl_personal_models_write(w, i, 0, values, (size_t)bytes, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_personal_models_publish(w, NULL), FL_OK);
    fl_personal_models_close(rig->progress.next.personal_models);
    rig->progress.next.personal_models = NULL;
    ck_assert_int_eq(fl_personal_models_open(rig->fed.state_dir, round, bytes,
                                             &rig->progress.next.personal_models, NULL),
                     FL_OK);
    free(values);
}

int work_rig_commit(struct work_rig *rig, uint64_t round, struct fl_err *err)
{
    const struct fl_round_rec record = {.round = round,
                                        .attempt = 1,
                                        .accuracy = (double)round / 100,
                                        .personal_accuracy = -1,
                                        .received_accuracy = -1,
                                        .uplink_bytes = 10 * round,
                                        .ended_ms = 1000 * round};
    const struct fl_commit commit = {
        .progress = &rig->progress, .record = &record, .wall_ms = 1000 * round};
    int rv = fl_commit_run(&rig->fed, &commit, err);

    if (rv == FL_OK) {
        fl_progress_committed(&rig->progress, &record);
    }
    return rv;
}

void work_rig_rounds(struct work_rig *rig, uint64_t from, uint64_t to)
{
    struct fl_err err = {0};
    uint64_t round;

    for (round = from; round <= to; round++) {
        work_rig_aggregate(rig, (float)round);
        ck_assert_msg(work_rig_commit(rig, round, &err) == FL_OK, "%s", err.msg);
    }
}

double work_rig_theta(const struct work_rig *rig)
{
    return (double)fl_blob_floats(rig->progress.committed.model.theta)[0];
}

double work_rig_state(const struct work_rig *rig)
{
    return (double)fl_blob_floats(rig->progress.committed.model.state[0])[0];
}

bool work_rig_reaches(const struct work_rig *rig, double value)
{
    struct fl_differences *d = rig->progress.committed.model.differences;
    const float *newest = fl_blob_floats(rig->progress.committed.model.theta);
    size_t n = fl_federation_floats(&rig->fed);
    float *model = malloc(n * sizeof(*model));
    struct fl_blob *bytes = NULL;
    uint8_t digest[FL_DIGEST_SIZE];
    size_t i;
    int rv;

    ck_assert_ptr_nonnull(model);
    for (i = 0; i < n; i++) {
        model[i] = (float)value;
    }
    ck_assert_int_eq(fl_versions_digest(rig->layout, model, digest), FL_OK);
    rv = fl_differences_get(d, digest, &bytes);
    if (rv == FL_OK) {
        ck_assert_int_eq(
            fl_difference_apply(rig->layout, fl_blob_data(bytes), fl_blob_len(bytes), model, NULL),
            FL_OK);
        ck_assert_mem_eq(model, newest, n * sizeof(*model));
    } else {
        ck_assert_int_eq(rv, FL_ENOENT);
    }
    fl_blob_unref(bytes);
    free(model);
    return rv == FL_OK;
}

bool work_rig_there(const char *name)
{
    char path[RIG_PATH_MAX];

    return fl_fs_exists(rig_path(path, name));
}
