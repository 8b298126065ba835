/*
 * Makes report.html of a results folder (report.h): reads one point after the other, keeps what the
 * page shows of it, and hands all of it to libfl/page.
 */
#include "tools/fl_sim/results/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/results/read.h"
#include "tools/fl_sim/results/report_impl.h"
#include "tools/fl_sim/results/results_impl.h"

/* Points of its table; results.csv has all. */
#define REPORT_POINTS 200
#define REPORT_SIZE   ((size_t)256 << 20)
#define REPORT_TEXT   512

/* The phases of a round, in the order in which they happen. */
static const enum fl_sim_round_figure report_phases[] = {
    FL_SIM_ROUND_wait_clients_us, FL_SIM_ROUND_download_us,  FL_SIM_ROUND_training_us,
    FL_SIM_ROUND_upload_us,       FL_SIM_ROUND_message_us,   FL_SIM_ROUND_late_us,
    FL_SIM_ROUND_retry_us,        FL_SIM_ROUND_evaluation_us};
static const char *const report_phase_names[] = {
    "waiting for clients", "download", "training",  "upload", "messages",
    "stragglers",          "retries",  "evaluation"};
#define REPORT_PHASES (sizeof(report_phases) / sizeof(report_phases[0]))

/* The first trial of a point, as the page takes it. */
struct report_view {
    char sentence[REPORT_TEXT];
    struct fl_wire_status status;
    struct fl_wire_round *rounds;
    double *us; /* [REPORT_PHASES][rounds] */
    struct fl__report_clients clients;
    struct fl_page_phases phases;
    struct fl_page_overview overview;
};

/* A point; the strings of `page` are in it. */
struct report_point {
    char *label;
    char end[96];
    double *accuracies, *losses; /* [n] */
    size_t n;
    struct report_view *view; /* NULL: none */
};

struct report {
    const char *dir;
    const struct fl_report_layers *layers;
    size_t n_layers;
    char *name;
    size_t total;  /* points of the run */
    bool personal; /* the quality is the accuracy of personalized models */
    struct fl_row_figure quality;
    size_t n_trials, n_finished;
    struct report_point points[REPORT_POINTS];
    struct fl_page_point page[REPORT_POINTS];
    size_t n;
    size_t most; /* rounds of the longest curve */
};

static int report_no_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "out of memory for report.html");
}

/* --- a point --- */

static bool report_knows_accuracy(const struct fl_read_point *point)
{
    size_t t;
    size_t i;

    for (t = 0; t < point->n_trials; t++) {
        for (i = 0; i < point->trials[t].n_rows; i++) {
            if (point->trials[t].rows[i].record.accuracy >= 0) {
                return true;
            }
        }
    }
    return false;
}

/* Means over the trials that have the round, of what is known. */
static int report_curves(const struct report *r, const struct fl_read_point *point,
                         struct report_point *p)
{
    size_t i;
    size_t t;

    for (t = 0; t < point->n_trials; t++) {
        p->n = point->trials[t].n_rows > p->n ? point->trials[t].n_rows : p->n;
    }
    p->accuracies = calloc(p->n + 1, sizeof(*p->accuracies));
    p->losses = calloc(p->n + 1, sizeof(*p->losses));
    if (p->accuracies == NULL || p->losses == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < p->n; i++) {
        double sums[2] = {0};
        size_t known[2] = {0};

        for (t = 0; t < point->n_trials; t++) {
            if (i < point->trials[t].n_rows) {
                const struct fl_row *row = &point->trials[t].rows[i];
                double values[2] = {fl_row_value(&r->quality, row), row->record.train_loss};
                size_t k;

                for (k = 0; k < 2; k++) {
                    sums[k] += isfinite(values[k]) ? values[k] : 0;
                    known[k] += isfinite(values[k]) != 0;
                }
            }
        }
        p->accuracies[i] = known[0] > 0 ? sums[0] / (double)known[0] : (double)NAN;
        p->losses[i] = known[1] > 0 ? sums[1] / (double)known[1] : (double)NAN;
    }
    return FL_OK;
}

/* "done", or "2 done, 1 diverged", and the figures of the table. */
static void report_totals(const struct report *r, const struct fl_read_point *point,
                          struct report_point *p, struct fl_page_point *page)
{
    size_t ends[FL_TRIAL_DIVERGED + 1] = {0};
    double last = 0;
    double best = 0;
    size_t known = 0;
    size_t used = 0;
    size_t t;
    size_t i;
    int how;

    for (t = 0; t < point->n_trials; t++) {
        const struct fl_read_trial *trial = &point->trials[t];
        double newest = (double)NAN;
        double largest = (double)NAN;

        page->n_finished += trial->finished;
        ends[trial->finished ? trial->end.how : FL_TRIAL_DONE] += trial->finished;
        for (i = 0; i < trial->n_rows; i++) {
            double q = fl_row_value(&r->quality, &trial->rows[i]);

            page->uplink_bytes += (double)trial->rows[i].record.uplink_bytes;
            newest = isnan(q) ? newest : q;
            largest = fmax(largest, q);
        }
        page->wall_us += (double)trial->rows[trial->n_rows - 1].sim.time_us;
        page->rounds = trial->n_rows > page->rounds ? trial->n_rows : page->rounds;
        if (!isnan(newest)) {
            last += newest;
            best += largest;
            known++;
        }
    }
    page->n_trials = point->n_trials;
    page->uplink_bytes /= (double)(point->n_trials > 0 ? point->n_trials : 1);
    page->wall_us /= (double)(point->n_trials > 0 ? point->n_trials : 1);
    page->accuracy = known > 0 ? last / (double)known : (double)NAN;
    page->best = known > 0 ? best / (double)known : (double)NAN;
    (void)snprintf(p->end, sizeof(p->end), "%s", page->n_finished == 0 ? "not finished" : "");
    for (how = FL_TRIAL_DONE; how <= FL_TRIAL_DIVERGED; how++) {
        if (ends[how] == page->n_finished && ends[how] > 0) {
            (void)snprintf(p->end, sizeof(p->end), "%s", fl_trial_how_text((enum fl_trial_how)how));
        } else if (ends[how] > 0) {
            used += (size_t)snprintf(p->end + used, sizeof(p->end) - used, "%s%zu %s",
                                     used > 0 ? ", " : "", ends[how],
                                     fl_trial_how_text((enum fl_trial_how)how));
        }
    }
}

/* --- its first trial --- */

/* "Ended after round 20 (accuracy): accuracy 91.2 %." */
static void report_sentence(const struct fl_read_trial *trial, const struct fl_round_rec *totals,
                            char out[REPORT_TEXT])
{
    const char *reason = trial->reason != NULL ? trial->reason : "";
    int n;

    if (!trial->finished) {
        n = snprintf(out, REPORT_TEXT, "The trial is not finished: round %zu is its last so far",
                     trial->n_rows);
    } else if (trial->end.how == FL_TRIAL_DIVERGED) {
        n = snprintf(out, REPORT_TEXT,
                     "The training diverged in round %" PRIu64
                     ": lower the learning rate, or limit the updates (round.norm_clip); %.200s",
                     trial->end.round, reason);
    } else {
        n = snprintf(out, REPORT_TEXT, "%s after round %zu%s%.200s",
                     trial->end.how == FL_TRIAL_STOPPED ? "Stopped" : "All rounds are done",
                     trial->n_rows, reason[0] != '\0' ? " by the rule " : "", reason);
    }
    if (totals->accuracy >= 0 && n >= 0 && n < REPORT_TEXT) {
        (void)snprintf(out + n, REPORT_TEXT - (size_t)n, "; the global model has %.4g %% accuracy.",
                       totals->accuracy * 100);
    } else if (n >= 0 && n < REPORT_TEXT) {
        (void)snprintf(out + n, REPORT_TEXT - (size_t)n, ".");
    }
}

/* Simulated time in place of the clock of the server's record. */
static void report_take_row(struct report_view *v, const struct fl_row *row, size_t i, size_t n)
{
    static char none[] = "";
    struct fl_wire_round *round = &v->rounds[i];
    size_t k;

    round->figures = row->record;
    round->figures.started_ms = (row->sim.time_us - row->sim.wall_us) / 1000;
    round->figures.ended_ms = row->sim.time_us / 1000;
    round->abandoned_by = round->robust_clients = none;
    round->metrics = round->figures.metrics;
    for (k = 0; k < REPORT_PHASES; k++) {
        v->us[k * n + i] =
            (double)fl_figure_whole(&fl_sim_round_rows.rows[report_phases[k]], &row->sim);
    }
    fl_round_add(&v->status.totals, &row->record);
}

static int report_take_clients(const struct report *r, const struct fl_read_point *point,
                               const struct fl_read_trial *trial, struct report_view *v,
                               struct fl_err *err)
{
    const struct fl_report_layers none = {0};
    char path[FL_RESULTS_PATH];
    int n = snprintf(path, sizeof(path), "%s/%s/seed-%" PRIu64 "/clients.jsonl", r->dir,
                     point->slug, trial->seed);
    int rv;

    if (n < 0 || (size_t)n >= sizeof(path)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", r->dir);
    }
    rv = fl__report_clients_read(path, trial->n_rows, r->n < r->n_layers ? &r->layers[r->n] : &none,
                                 &v->clients, err);
    if (rv != FL_OK) {
        return rv;
    }
    v->overview.clients = v->clients.list;
    v->overview.n_clients = v->clients.n;
    v->overview.parts = v->clients.parts;
    v->overview.n_parts = v->clients.n_parts;
    v->overview.layers = (const char *const *)v->clients.layers;
    v->overview.n_layers = v->clients.n_layers;
    return FL_OK;
}

static int report_make_view(const struct report *r, const struct fl_read_point *point,
                            struct report_view *v, struct fl_err *err)
{
    const struct fl_read_trial *trial = &point->trials[0];
    size_t n = trial->n_rows;
    size_t i;

    v->rounds = calloc(n + 1, sizeof(*v->rounds));
    v->us = calloc(n * REPORT_PHASES + 1, sizeof(*v->us));
    if (v->rounds == NULL || v->us == NULL) {
        return report_no_memory(err);
    }
    fl_figures_init(&fl_round_rows, &v->status.totals);
    for (i = 0; i < n; i++) {
        report_take_row(v, &trial->rows[i], i, n);
    }
    report_sentence(trial, &v->status.totals, v->sentence);
    v->status.why = v->sentence;
    v->phases =
        (struct fl_page_phases){.names = report_phase_names, .n = REPORT_PHASES, .us = v->us};
    v->overview = (struct fl_page_overview){.status = &v->status,
                                            .rounds = v->rounds,
                                            .n_rounds = n,
                                            .phases = &v->phases,
                                            .now_ms = trial->rows[n - 1].sim.time_us / 1000,
                                            .simulated = true};
    return report_take_clients(r, point, trial, v, err);
}

static int report_take_point(void *ctx, const struct fl_read_run *run,
                             const struct fl_read_point *point, struct fl_err *err)
{
    struct report *r = ctx;
    struct report_point *p = &r->points[r->n];
    struct fl_page_point *page = &r->page[r->n];
    int rv;

    if (r->n == 0) {
        r->name = fl_str_dup(run->name);
        r->total = run->n_points;
        r->personal = !report_knows_accuracy(point);
        FL_REQUIRE(fl_row_find(r->personal ? "personal_accuracy" : "accuracy", &r->quality));
    }
    p->label = fl_str_dup(point->label);
    if (r->name == NULL || p->label == NULL || report_curves(r, point, p) != FL_OK) {
        rv = report_no_memory(err);
        goto fail;
    }
    report_totals(r, point, p, page);
    if (r->n < FL_PAGE_REPORT_POINTS && point->n_trials > 0) {
        p->view = calloc(1, sizeof(*p->view));
        rv = p->view != NULL ? report_make_view(r, point, p->view, err) : report_no_memory(err);
        if (rv != FL_OK) {
            goto fail;
        }
        page->seed = point->trials[0].seed;
        page->view = &p->view->overview;
    }
    page->label = p->label;
    page->end = p->end;
    r->n_trials += page->n_trials;
    r->n_finished += page->n_finished;
    r->most = p->n > r->most ? p->n : r->most;
    r->n++;
    return FL_OK;
fail:
    r->n++; /* Freed with the others. */
    return rv;
}

/* --- all of them --- */

static void report_done(struct report *r)
{
    size_t i;

    for (i = 0; i < r->n; i++) {
        struct report_point *p = &r->points[i];

        if (p->view != NULL) {
            fl__report_clients_done(&p->view->clients);
            free(p->view->rounds);
            free(p->view->us);
            free(p->view);
        }
        free(p->accuracies);
        free(p->losses);
        free(p->label);
    }
    free(r->name);
    free(r);
}

/* All curves get the length of the longest. */
static int report_stretch(struct report *r)
{
    size_t i;
    size_t k;

    for (i = 0; i < r->n; i++) {
        struct report_point *p = &r->points[i];

        if (fl_resize(&p->accuracies, r->most + 1, sizeof(double)) != FL_OK ||
            fl_resize(&p->losses, r->most + 1, sizeof(double)) != FL_OK)
        {
            return FL_ENOMEM;
        }
        for (k = p->n; k < r->most; k++) {
            p->accuracies[k] = p->losses[k] = (double)NAN;
        }
        r->page[i].accuracies = p->accuracies;
        r->page[i].losses = p->losses;
    }
    return FL_OK;
}

static int report_render(struct report *r, struct fl_buf *out)
{
    uint64_t *rounds = calloc(r->most + 1, sizeof(*rounds));
    char sentence[REPORT_TEXT];
    struct fl_page_report page = {.name = r->name != NULL ? r->name : "",
                                  .sentence = sentence,
                                  .quality = r->personal ? "Accuracy of the personalized models"
                                                         : "Accuracy of the global model",
                                  .version = PACKAGE_VERSION,
                                  .points = r->page,
                                  .n_points = r->n,
                                  .rounds = rounds,
                                  .n = r->most};
    size_t best = 0;
    size_t i;
    int used;
    int rv = rounds != NULL ? report_stretch(r) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto done;
    }
    for (i = 0; i < r->most; i++) {
        rounds[i] = i + 1;
    }
    for (i = 1; i < r->n; i++) {
        best = isnan(r->page[best].accuracy) || r->page[i].accuracy > r->page[best].accuracy ? i
                                                                                             : best;
    }
    used = snprintf(sentence, sizeof(sentence), "%zu of %zu trials at %zu point%s finished",
                    r->n_finished, r->n_trials, r->total, r->total == 1 ? "" : "s");
    if (r->n > 0 && !isnan(r->page[best].accuracy)) {
        used += snprintf(sentence + used, sizeof(sentence) - (size_t)used,
                         "; %s%.200s%s ends with an accuracy of %.4g %%",
                         r->n > 1 ? "the best point, " : "", r->page[best].label,
                         r->n > 1 ? "," : "", r->page[best].accuracy * 100);
    }
    (void)snprintf(
        sentence + used, sizeof(sentence) - (size_t)used,
        r->total > r->n ? ". The first %zu points are in this report, all in results.csv." : ".",
        r->n);
    rv = fl_page_report(&page, out);
done:
    free(rounds);
    return rv;
}

int fl_report_write(const char *dir, const struct fl_report_layers *layers, size_t n_layers,
                    struct fl_err *err)
{
    struct report *r = calloc(1, sizeof(*r));
    char path[FL_RESULTS_PATH];
    struct fl_buf out;
    int rv;

    if (r == NULL) {
        return report_no_memory(err);
    }
    fl_buf_init(&out, REPORT_SIZE);
    r->dir = dir;
    r->layers = layers;
    r->n_layers = n_layers;
    rv = fl_fs_join(path, sizeof(path), dir, "report.html");
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "path '%s' is too long", dir);
        goto done;
    }
    rv = fl_read_each(dir, REPORT_POINTS, report_take_point, r, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = report_render(r, &out);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot make '%s': %s", path, fl_strerror(rv));
        goto done;
    }
    rv = fl_fs_replace(path, out.data, out.len, /* sync= */ false, err);
done:
    fl_buf_done(&out);
    report_done(r);
    return rv;
}
