/*
 * Checks all points of an experiment before the first trial, so that an error in the last one is
 * reported at once: data, network and device model, model and memory. Main thread. It trains
 * nothing.
 */
#include "tools/fl_sim/run_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/local_files.h"

static bool run_check_is_new(const struct run_check *c, const char *hash)
{
    size_t i;

    for (i = 0; i < c->n_partitions; i++) {
        if (strcmp(c->hashes[i], hash) == 0) {
            return false;
        }
    }
    return true;
}

static int run_check_add_partition(struct run_check *c, const char *label, const char *hash)
{
    size_t i = c->n_partitions;

    if (!run_check_is_new(c, hash) || c->n_partitions == c->cap) {
        return FL_OK; /* Capacity: one for each point and seed. */
    }
    (void)snprintf(c->hashes[i], sizeof(c->hashes[i]), "%s", hash);
    c->partitions[i] = (struct fl_run_partition){.data = label, .hash = c->hashes[i]};
    c->n_partitions++;
    return FL_OK;
}

/* Each data set once, under the label of the first point that uses it. */
static void run_check_warn_classes(const struct setting *s, const char *label)
{
    const struct fl_dataset *const sets[] = {fl_sim_data_samples(s->data),
                                             fl_sim_data_server(s->data)};
    size_t classes = s->point->server->classes;
    char text[256];
    size_t n = 0;

    if (fl_dataset_missing(sets, 2, classes, text, sizeof(text), &n) == FL_OK && n > 0) {
        classes = classes > sets[0]->classes ? classes : sets[0]->classes;
        (void)fprintf(stderr,
                      "fl-sim run: warning: '%s': no sample of any client has class %s: labels are "
                      "class numbers from 0 on, %zu of %zu classes of data and model are empty\n",
                      label, text, n, classes);
    }
}

/* Likewise: what fl-data says of it. */
static void run_check_warn_data(const struct setting *s, const char *label)
{
    size_t skipped = fl_sim_data_skipped(s->data);
    char text[256];

    if (fl_dataset_shape_note(fl_sim_data_samples(s->data), text, sizeof(text))) {
        (void)fprintf(stderr, "fl-sim run: warning: '%s': %s\n", label, text);
    }
    if (skipped > 0) {
        (void)fprintf(stderr,
                      "fl-sim run: '%s': %zu rows with a missing value are left out "
                      "(data.missing)\n",
                      label, skipped);
    }
}

static int run_check_trial(struct run_check *c, size_t point, size_t trial, bool *ret_by_trial,
                           struct fl_err *err)
{
    char text[400];
    struct setting s;
    uint64_t bytes = 0;
    int rv = setting_open(c->run, point, trial, &s, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret_by_trial = fl_sim_data_conf_by_trial(s.data_conf);
    rv = setting_memory(&s, c->run->threads, &bytes, err);
    c->most = bytes > c->most ? bytes : c->most;
    bytes = fl_sim_data_bytes(s.data);
    c->data_bytes = bytes > c->data_bytes ? bytes : c->data_bytes;
    if (rv != FL_OK) {
        goto done;
    }
    if (trial == 0) {
        if (c->program == SIZE_MAX && setting_has_program(&s)) {
            c->program = point;
        }
        if (fl_server_conf_beside(s.point->server, text, sizeof(text))) {
            (void)fprintf(stderr, "fl-sim run: warning: '%s': %s\n",
                          fl_experiment_label(c->run->experiment, point), text);
        }
    }
    if (run_check_is_new(c, fl_sim_data_hash(s.data))) {
        run_check_warn_classes(&s, fl_experiment_label(c->run->experiment, point));
        run_check_warn_data(&s, fl_experiment_label(c->run->experiment, point));
    }
    rv = run_check_add_partition(c, fl_experiment_label(c->run->experiment, point),
                                 fl_sim_data_hash(s.data));
    if (rv != FL_OK) {
        goto done;
    }
    rv = setting_check(&s, err);
    if (rv != FL_OK || c->run->local == 0) {
        goto done;
    }
    rv = fl_local_check(&(struct fl_local_conf){.setting = &s, .clients = c->run->local}, err);
done:
    setting_close(&s);
    return rv;
}

int run_check_all(struct run_check *c, struct fl_err *err)
{
    const struct fl_experiment *e = c->run->experiment;
    size_t point;
    size_t trial;
    int rv;

    c->program = SIZE_MAX;
    c->cap = fl_experiment_points(e) * fl_experiment_trials(e);
    c->partitions = calloc(c->cap + 1, sizeof(*c->partitions));
    c->hashes = calloc(c->cap + 1, sizeof(*c->hashes));
    if (c->partitions == NULL || c->hashes == NULL) {
        return FL_ENOMEM;
    }
    for (point = 0; point < fl_experiment_points(e); point++) {
        bool by_trial = true;

        for (trial = 0; by_trial && trial < fl_experiment_trials(e); trial++) {
            rv = run_check_trial(c, point, trial, &by_trial, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

/* Memory available without swapping; the page cache counts as available. */
static uint64_t run_check_free_memory(void)
{
    struct fl_buf text = {0};
    uint64_t kib = UINT64_MAX / 1024;
    const char *line = NULL;
    char *end;

    if (fl_fs_read("/proc/meminfo", 65536, &text, NULL) == FL_OK &&
        fl_buf_add(&text, "", 1) == FL_OK) {
        line = strstr((const char *)text.data, "MemAvailable:");
    }
    if (line != NULL) {
        kib = strtoull(line + strlen("MemAvailable:"), &end, 10);
    }
    fl_buf_done(&text);
    return kib * 1024;
}

int run_check_memory(const struct run_check *c, uint64_t processes, unsigned at_once,
                     struct fl_err *err)
{
    uint64_t needs = processes * (c->data_bytes + c->most * at_once);
    uint64_t has = run_check_free_memory();
    char needs_text[32];
    char has_text[32];

    if (needs <= has) {
        return FL_OK;
    }
    return fl_err_set(
        err, FL_ENOMEM,
        "out of memory: this experiment needs about %s, %s are free: use fewer --jobs, fewer "
        "clients a round, or --force to try",
        fl_str_bytes(needs_text, sizeof(needs_text), needs),
        fl_str_bytes(has_text, sizeof(has_text), has));
}

void run_check_done(struct run_check *c)
{
    free(c->partitions);
    free(c->hashes);
}
