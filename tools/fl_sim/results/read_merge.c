/* Merges the trials of points with the same label of several runs. Pure functions over what was
 * read. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/results/read.h"

#define MERGE_LINE_MAX ((size_t)1 << 20)

static int merge_out_of_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "out of memory for the results");
}

/* As the lines of rounds.jsonl, which have all figures. */
static int merge_same_row(const struct fl_row *a, const struct fl_row *b, bool *ret_same)
{
    struct fl_buf line_a;
    struct fl_buf line_b;
    int rv;

    fl_buf_init(&line_a, MERGE_LINE_MAX);
    fl_buf_init(&line_b, MERGE_LINE_MAX);
    rv = fl_row_json(&line_a, a);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_row_json(&line_b, b);
    if (rv != FL_OK) {
        goto done;
    }
    *ret_same = line_a.len == line_b.len && memcmp(line_a.data, line_b.data, line_a.len) == 0;
done:
    fl_buf_done(&line_a);
    fl_buf_done(&line_b);
    return rv;
}

static int merge_same_trial(const struct fl_read_trial *a, const struct fl_read_trial *b,
                            bool *ret_same)
{
    size_t i;

    *ret_same = a->finished == b->finished && a->n_rows == b->n_rows;
    for (i = 0; *ret_same && i < a->n_rows; i++) {
        int rv = merge_same_row(&a->rows[i], &b->rows[i], ret_same);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int merge_by_seed(const void *a, const void *b)
{
    const struct fl_read_trial *x = a;
    const struct fl_read_trial *y = b;

    return (x->seed > y->seed) - (x->seed < y->seed);
}

/* Move the trials with other seeds; those with the same seed stay, if they are the same. */
static int merge_point(struct fl_read_point *into, const char *path_into,
                       struct fl_read_point *from, const char *path_from, struct fl_err *err)
{
    size_t n = into->n_trials;
    size_t room = n + from->n_trials;
    struct fl_read_trial *all;
    size_t kept = 0;
    size_t i;

    all = reallocarray(into->trials, room > 0 ? room : 1, sizeof(*all));
    if (all == NULL) {
        return merge_out_of_memory(err);
    }
    into->trials = all;
    for (i = 0; i < from->n_trials; i++) {
        const struct fl_read_trial *old =
            n > 0 ? bsearch(&from->trials[i], all, n, sizeof(*all), merge_by_seed) : NULL;
        bool same = true;

        if (old == NULL) {
            continue;
        }
        if (merge_same_trial(old, &from->trials[i], &same) != FL_OK) {
            return merge_out_of_memory(err);
        }
        if (!same) {
            return fl_err_set(err, FL_EEXIST,
                              "point '%s': seed %" PRIu64 " is in '%s' and in '%s' with different "
                              "rounds, so these are not the same experiment: run it with other "
                              "seeds, or leave out --merge",
                              into->label, old->seed, path_into, path_from);
        }
    }
    for (i = 0; i < from->n_trials; i++) {
        if (n > 0 && bsearch(&from->trials[i], all, n, sizeof(*all), merge_by_seed) != NULL) {
            from->trials[kept++] = from->trials[i];
        } else {
            all[into->n_trials++] = from->trials[i];
        }
    }
    from->n_trials = kept;
    qsort(all, into->n_trials, sizeof(*all), merge_by_seed);
    return FL_OK;
}

/* The first point of that label in the runs before `r`; *ret_run: its run. */
static struct fl_read_point *merge_find(const struct fl_read_set *set, size_t r, const char *label,
                                        const struct fl_read_run **ret_run)
{
    size_t i;
    size_t p;

    for (i = 0; i < r; i++) {
        for (p = 0; p < set->runs[i]->n_points; p++) {
            if (strcmp(set->runs[i]->points[p].label, label) == 0) {
                *ret_run = set->runs[i];
                return &set->runs[i]->points[p];
            }
        }
    }
    return NULL;
}

int fl_read_merge(struct fl_read_set *set, struct fl_err *err)
{
    size_t r;
    size_t p;

    for (r = 1; r < set->n; r++) {
        struct fl_read_run *run = set->runs[r];
        size_t kept = 0;

        for (p = 0; p < run->n_points; p++) {
            const struct fl_read_run *first = NULL;
            struct fl_read_point *into = merge_find(set, r, run->points[p].label, &first);
            int rv = into == NULL ? FL_OK
                                  : merge_point(into, first->path, &run->points[p], run->path, err);

            if (rv != FL_OK) {
                return rv;
            }
        }
        for (p = 0; p < run->n_points; p++) {
            const struct fl_read_run *first = NULL;

            if (merge_find(set, r, run->points[p].label, &first) != NULL) {
                fl_read_point_done(&run->points[p]);
            } else {
                run->points[kept++] = run->points[p];
            }
        }
        run->n_points = kept;
    }
    return FL_OK;
}
