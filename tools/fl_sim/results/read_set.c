/* Reads the results of several runs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/results/read.h"

static bool has_trials(const struct fl_read_run *run)
{
    size_t i;

    for (i = 0; i < run->n_points; i++) {
        if (run->points[i].n_trials > 0) {
            return true;
        }
    }
    return false;
}

int fl_read_all(char *const *paths, size_t n, struct fl_read_set *ret, struct fl_err *err)
{
    struct fl_read_set set = {.runs = calloc(n, sizeof(struct fl_read_run *))};
    bool some = false;
    size_t i;
    int rv;

    if (set.runs == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for the results");
    }
    for (i = 0; i < n; i++) {
        rv = fl_read_run(paths[i], &set.runs[i], err);
        if (rv != FL_OK) {
            goto fail;
        }
        set.n++;
        some = some || has_trials(set.runs[i]);
    }
    if (!some) {
        rv = fl_err_set(err, FL_ENOENT, "'%s' has no trial with a round yet", paths[0]);
        goto fail;
    }
    *ret = set;
    return FL_OK;
fail:
    fl_read_set_done(&set);
    return rv;
}

void fl_read_set_done(struct fl_read_set *set)
{
    size_t i;

    for (i = 0; i < set->n; i++) {
        fl_read_run_free(set->runs[i]);
    }
    free(set->runs);
    set->runs = NULL;
    set->n = 0;
}

static size_t same_label(const struct fl_read_set *set, const char *label)
{
    size_t n = 0;
    size_t r;
    size_t p;

    for (r = 0; r < set->n; r++) {
        for (p = 0; p < set->runs[r]->n_points; p++) {
            n += strcmp(set->runs[r]->points[p].label, label) == 0;
        }
    }
    return n;
}

const char *fl_read_label(const struct fl_read_set *set, const struct fl_read_run *run,
                          const struct fl_read_point *point, char *out, size_t size)
{
    bool alone = same_label(set, point->label) <= 1;

    (void)snprintf(out, size, "%s%s%s", alone ? "" : run->path, alone ? "" : ": ", point->label);
    return out;
}

static bool knows_accuracy(const struct fl_read_trial *t)
{
    size_t i;

    for (i = 0; i < t->n_rows; i++) {
        if (t->rows[i].record.accuracy >= 0.0) {
            return true;
        }
    }
    return false;
}

const char *fl_read_quality(const struct fl_read_set *set)
{
    size_t r;
    size_t p;
    size_t t;

    for (r = 0; r < set->n; r++) {
        for (p = 0; p < set->runs[r]->n_points; p++) {
            for (t = 0; t < set->runs[r]->points[p].n_trials; t++) {
                if (knows_accuracy(&set->runs[r]->points[p].trials[t])) {
                    return "accuracy";
                }
            }
        }
    }
    return "personal_accuracy";
}
