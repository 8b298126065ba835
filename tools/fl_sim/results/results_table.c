/*
 * Makes the table of points (results_table.h): parses the columns, computes the cells, and writes
 * Markdown or CSV. Pure functions.
 */
#include "tools/fl_sim/results/results_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/json/json.h"
#include "tools/fl_sim/results/scale.h"
#include "tools/fl_sim/results/stats.h"

/* --- columns --- */

static bool table_find_axis(const char *name, size_t len, enum fl_axis *ret)
{
    size_t i;

    for (i = 0; i < FL_N_AXES; i++) {
        if (strlen(fl_axis_names[i]) == len && memcmp(fl_axis_names[i], name, len) == 0) {
            *ret = (enum fl_axis)i;
            return true;
        }
    }
    return false;
}

/* The nearest column name, or NULL. */
static const char *table_nearest_column(const char *name)
{
    const char *words[2 + FL_N_AXES] = {"trials", "best"};
    const char *near;
    size_t i;

    for (i = 0; i < FL_N_AXES; i++) {
        words[2 + i] = fl_axis_names[i];
    }
    near = fl_str_nearest(name, words, 2 + FL_N_AXES);
    return near != NULL ? near : fl_row_nearest(name);
}

static int table_parse_column(struct fl_column *c, struct fl_err *err)
{
    const char *at = strchr(c->name, '@');
    const char *near;

    if (at != NULL) {
        c->kind = FL_COLUMN_REACHED;
        return table_find_axis(c->name, (size_t)(at - c->name), &c->axis) &&
                       fl_str_to_double(at + 1, &c->target) == FL_OK && c->target > 0.0 &&
                       c->target <= 1.0
                   ? FL_OK
                   : fl_err_set(err, FL_EINVAL,
                                "column '%s': expected rounds, uplink, bytes, time or models, '@' "
                                "and an accuracy above 0 and up to 1",
                                c->name);
    }
    if (strcmp(c->name, "trials") == 0 || strcmp(c->name, "best") == 0) {
        c->kind = c->name[0] == 't' ? FL_COLUMN_TRIALS : FL_COLUMN_BEST;
        return FL_OK;
    }
    if (table_find_axis(c->name, strlen(c->name), &c->axis)) {
        c->kind = FL_COLUMN_SPENT;
        return FL_OK;
    }
    if (fl_row_find(c->name, &c->figure)) {
        c->kind = FL_COLUMN_LAST;
        return FL_OK;
    }
    near = table_nearest_column(c->name);
    return fl_err_set(err, FL_EINVAL,
                      "unknown column '%s'%s%s%s: expected trials, best, rounds, uplink, bytes, "
                      "time, models (with @0.9: to that accuracy), or a key of rounds.jsonl",
                      c->name, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                      near != NULL ? "'" : "");
}

int fl_table_columns(struct fl_table *table, const char *names, struct fl_err *err)
{
    table->n = 0;
    while (names != NULL) {
        size_t len = strcspn(names, ",");
        struct fl_column *c = &table->columns[table->n];

        if (table->n == FL_TABLE_COLUMNS) {
            return fl_err_set(err, FL_EINVAL, "more than %d columns", FL_TABLE_COLUMNS);
        }
        (void)memset(c, 0, sizeof(*c));
        if (len >= sizeof(c->name)) {
            return fl_err_set(err, FL_EINVAL, "unknown column '%.80s'", names);
        }
        (void)memcpy(c->name, names, len);
        if (table_parse_column(c, err) != FL_OK) {
            return FL_EINVAL;
        }
        table->n++;
        names = names[len] == ',' ? names + len + 1 : NULL;
    }
    return FL_OK;
}

/* --- cells --- */

/* NAN: the trial has no value. */
static double table_value_of(const struct fl_table *table, const struct fl_column *c,
                             const struct fl_read_trial *trial)
{
    bool last = c->kind == FL_COLUMN_LAST;
    struct fl_trajectory trajectory;
    struct fl_spent spent;

    fl_trajectory_init(&trajectory, last ? c->name : table->quality, &c->target, 1);
    if (!last && table->mean_of > 1) {
        fl_trajectory_mean_of(&trajectory, table->mean_of);
    }
    fl_read_trajectory(trial, &trajectory, &spent);
    switch (c->kind) {
    case FL_COLUMN_BEST:
        return trajectory.known ? trajectory.best : (double)NAN;
    case FL_COLUMN_LAST:
        return trajectory.known ? trajectory.last : (double)NAN;
    case FL_COLUMN_SPENT:
        return fl_axis_value(c->axis, &spent);
    case FL_COLUMN_REACHED:
        return trajectory.reached[0].round > 0 ? fl_axis_value(c->axis, &trajectory.reached[0])
                                               : (double)NAN;
    case FL_COLUMN_TRIALS:
        break;
    }
    return (double)NAN;
}

static struct fl_scale table_scale(const struct fl_column *c, double largest)
{
    switch (c->kind) {
    case FL_COLUMN_BEST:
        return fl_scale_unit(FL_UNIT_SHARE, largest);
    case FL_COLUMN_LAST:
        return fl_scale_unit(c->figure.figure->unit, largest);
    case FL_COLUMN_SPENT:
    case FL_COLUMN_REACHED:
        return fl_scale_axis(c->axis, largest);
    case FL_COLUMN_TRIALS:
        break;
    }
    return (struct fl_scale){1.0, ""};
}

/* "95.49 ± 0.12 %", "1.12 MB (2 of 3)", "-" */
static void table_add_mean(struct fl_writer *w, const struct fl_column *c, const double *values,
                           size_t n, size_t n_trials)
{
    double mean = fl_mean(values, n);
    struct fl_scale scale = table_scale(c, mean);
    double deviation = fl_deviation(values, n) / scale.per;
    bool share = strcmp(scale.unit, "%") == 0;
    double size = fabs(mean) / scale.per;
    int decimals = share ? 2 : size >= 100.0 ? 0 : size >= 10.0 ? 1 : 2;
    bool whole = !(size > 0.0) || (scale.unit[0] == '\0' && floor(mean) == mean);

    if (n == 0) {
        fl_writer_printf(w, "-");
        return;
    }
    if (n == 1 || (c->kind == FL_COLUMN_SPENT && !(deviation > 0.0))) {
        fl_writer_printf(w, "%.*f", whole ? 0 : decimals, mean / scale.per);
    } else {
        fl_writer_printf(w, "%.*f ± %.*f", decimals, mean / scale.per, decimals, deviation);
    }
    fl_writer_printf(w, "%s%s", scale.unit[0] != '\0' ? " " : "", scale.unit);
    if (n < n_trials) {
        fl_writer_printf(w, " (%zu of %zu)", n, n_trials);
    }
}

static void table_add_exact(struct fl_writer *w, double value, bool known)
{
    char number[FL_JSON_EXACT];

    fl_writer_printf(w, ",%s", known ? fl_json_exact(value, number) : "");
}

/* "3", "3, 1 diverged, 2 not finished" */
static void table_add_trials(struct fl_writer *w, const struct fl_read_point *p, size_t n_trials,
                             bool csv)
{
    size_t diverged = 0;
    size_t i;

    fl_writer_printf(w, csv ? ",%zu" : " %zu", n_trials);
    if (csv) {
        return;
    }
    for (i = 0; i < p->n_trials; i++) {
        diverged += p->trials[i].finished && p->trials[i].end.how == FL_TRIAL_DIVERGED;
    }
    if (diverged > 0) {
        fl_writer_printf(w, ", %zu diverged", diverged);
    }
    if (n_trials < p->n_trials) {
        fl_writer_printf(w, ", %zu not finished", p->n_trials - n_trials);
    }
    fl_writer_printf(w, " |");
}

/* `values` has room for all trials. */
static void table_add_cell(struct fl_writer *w, const struct fl_table *table,
                           const struct fl_column *c, const struct fl_read_point *p, double *values)
{
    size_t n_trials = 0;
    size_t n = 0;
    size_t i;

    for (i = 0; i < p->n_trials; i++) {
        if (p->trials[i].finished) {
            values[n] = table_value_of(table, c, &p->trials[i]);
            n += !isnan(values[n]);
            n_trials++;
        }
    }
    if (c->kind == FL_COLUMN_TRIALS) {
        table_add_trials(w, p, n_trials, table->csv);
        return;
    }
    if (table->csv) {
        table_add_exact(w, fl_mean(values, n), n > 0);
        table_add_exact(w, fl_deviation(values, n), n > 0);
        fl_writer_printf(w, ",%zu", n);
        return;
    }
    fl_writer_printf(w, " ");
    table_add_mean(w, c, values, n, n_trials);
    fl_writer_printf(w, " |");
}

/* --- lines --- */

int fl_table_text(struct fl_buf *out, const struct fl_table *table, const struct fl_read_set *set)
{
    double *values;
    struct fl_writer w = {.out = out};
    char label[512];
    size_t i;
    size_t r;
    size_t p;
    int rv;

    fl_writer_printf(&w, table->csv ? "point" : "| point |");
    for (i = 0; i < table->n; i++) {
        const char *name = table->columns[i].name;

        if (!table->csv) {
            fl_writer_printf(&w, " %s |", name);
        } else if (table->columns[i].kind == FL_COLUMN_TRIALS) {
            fl_writer_printf(&w, ",%s", name);
        } else {
            fl_writer_printf(&w, ",%s,%s.std,%s.trials", name, name, name);
        }
    }
    fl_writer_printf(&w, "\n");
    if (!table->csv) {
        fl_writer_printf(&w, "| --- |");
        for (i = 0; i < table->n; i++) {
            fl_writer_printf(&w, " ---: |");
        }
        fl_writer_printf(&w, "\n");
    }
    for (r = 0; r < set->n; r++) {
        for (p = 0; p < set->runs[r]->n_points; p++) {
            const struct fl_read_point *point = &set->runs[r]->points[p];

            (void)fl_read_label(set, set->runs[r], point, label, sizeof(label));
            values = calloc(point->n_trials > 0 ? point->n_trials : 1, sizeof(*values));
            if (values == NULL) {
                return FL_ENOMEM;
            }
            if (table->csv) {
                fl_csv_add(&w, label);
            } else {
                fl_writer_printf(&w, "| ");
                fl_writer_escape(&w, label, '|', '\\'); /* A '|' would end the cell. */
                fl_writer_printf(&w, " |");
            }
            for (i = 0; i < table->n; i++) {
                table_add_cell(&w, table, &table->columns[i], point, values);
            }
            fl_writer_printf(&w, "\n");
            free(values);
            rv = w.code;
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return w.code;
}
