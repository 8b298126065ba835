/* Results that are read, and what is made of them: means, intervals, curves, pictures, tables. */

#include <check.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "tests/lib/folder.h"
#include "tests/lib/results_rig.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/results/compare.h"
#include "tools/fl_sim/results/plot.h"
#include "tools/fl_sim/results/results_table.h"

static char dir[FOLDER_PATH];

static void setup(void)
{
    ck_assert(folder_make("fl-results", dir));
}

static void teardown(void)
{
    folder_remove(dir);
}

static const char *path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void write_run(void)
{
    struct fl_err err = {0};

    ck_assert_msg(rig_write_run(dir, 1, &err) == FL_OK, "%s", err.msg);
}

static struct fl_read_run *read_run(const char *path)
{
    struct fl_read_run *run = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_read_run(path, &run, &err) == FL_OK, "%s", err.msg);
    return run;
}

static void unreadable(const char *path, int code, const char *text)
{
    struct fl_read_run *run = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_read_run(path, &run, &err), code);
    ck_assert_ptr_null(run);
    ck_assert_msg(strstr(err.msg, text) != NULL, "%s", err.msg);
}

/* --- reading --- */

TEST_CASE("all", setup, teardown);

TEST(a_run_is_read_back_as_it_was_written)
{
    static const struct rig_trial lean = {0.045, 2, 160000, 9000000};
    struct fl_read_run *run;
    struct fl_round_rec record;
    struct fl_sim_round sim;
    size_t k;
    size_t i;

    write_run();
    run = read_run(dir);
    ck_assert_str_eq(run->name, "tiny");
    ck_assert_uint_eq(run->n_points, 2);
    ck_assert_str_eq(run->points[1].slug, "lean");
    ck_assert_str_eq(run->points[1].label, "lean, 2 \"Mbit/s\"");
    ck_assert_uint_eq(run->points[1].n_trials, 3);
    for (k = 0; k < 3; k++) {
        const struct fl_read_trial *t = &run->points[1].trials[k];

        ck_assert_uint_eq(t->seed, rig_seeds[k]);
        ck_assert(t->finished && t->end.how == FL_TRIAL_DONE && t->end.reason == NULL);
        ck_assert_uint_eq(t->n_rows, 60);
        for (i = 0; i < t->n_rows; i++) {
            rig_round(&lean, t->seed, i + 1, &record, &sim);
            ck_assert_int_eq(memcmp(&t->rows[i].record, &record, sizeof(record)), 0);
            ck_assert_int_eq(memcmp(&t->rows[i].sim, &sim, sizeof(sim)), 0);
        }
    }
    fl_read_run_free(run);
}

TEST(a_point_is_read_by_its_folder)
{
    struct fl_read_run *run;

    write_run();
    run = read_run(path_of("lean/"));
    ck_assert_uint_eq(run->n_points, 1);
    ck_assert_str_eq(run->points[0].slug, "lean");
    ck_assert_uint_eq(run->points[0].n_trials, 3);
    fl_read_run_free(run);
    unreadable(path_of("seed-11"), FL_ENOENT, "is not a point of the run");
    unreadable(path_of("lean/seed-11"), FL_ENOENT, "has no results of fl-sim");
    unreadable("/nonexistent/x", FL_ENOENT, "has no results of fl-sim");
}

static void put(const char *name, const char *text, size_t len)
{
    ck_assert_int_eq(fl_fs_replace(path_of(name), text, len, false, NULL), FL_OK);
}

/* As long as the first `rounds` lines and `more` bytes of the next. */
static void cut(const char *name, size_t rounds, size_t more)
{
    struct fl_buf buf;
    const char *at;
    size_t i;

    ck_assert_int_eq(fl_fs_read(path_of(name), 1 << 20, &buf, NULL), FL_OK);
    at = (const char *)buf.data;
    for (i = 0; i < rounds; i++) {
        at = strchr(at, '\n') + 1;
    }
    put(name, (const char *)buf.data, (size_t)(at - (const char *)buf.data) + more);
    fl_buf_done(&buf);
}

TEST_EACH(the_last_line_of_an_unfinished_trial_may_be_cut_off, 4)
{
    static const size_t more[] = {0, 1, 17, 900};
    struct fl_read_run *run;

    write_run();
    ck_assert_int_eq(fl_fs_remove(path_of("lean/seed-12/summary.json")), FL_OK);
    cut("lean/seed-12/rounds.jsonl", 7, more[_i]);
    run = read_run(dir);
    ck_assert_uint_eq(run->points[1].n_trials, 3);
    ck_assert_uint_eq(run->points[1].trials[1].n_rows, 7);
    ck_assert(!run->points[1].trials[1].finished);
    fl_read_run_free(run);
    /* One without a whole line has no rounds, and is left out. */
    cut("lean/seed-12/rounds.jsonl", 0, more[_i]);
    run = read_run(dir);
    ck_assert_uint_eq(run->points[1].n_trials, 2);
    fl_read_run_free(run);
}

TEST(a_line_that_is_cut_off_elsewhere_is_named)
{
    write_run();
    cut("lean/seed-12/rounds.jsonl", 7, 20);
    unreadable(dir, FL_EFORMAT, "lean/seed-12/rounds.jsonl:8: the line is truncated");
    put("lean/seed-12/rounds.jsonl", "{\"round\": 1}\n{\n{\"round\": 3}\n", 28);
    unreadable(dir, FL_EFORMAT, "lean/seed-12/rounds.jsonl:2: ");
    put("lean/seed-12/rounds.jsonl", "{\"round\": 1}\n{\"round\": 3}\n", 26);
    unreadable(dir, FL_EFORMAT, "rounds.jsonl:2: expected round 2, found 3");
    put("lean/seed-12/rounds.jsonl", "[1]\n", 4);
    unreadable(dir, FL_EFORMAT, "rounds.jsonl:1: expected the object of a round");
    put("lean/seed-12/summary.json", "{}", 2);
    unreadable(dir, FL_EFORMAT, "summary.json' has no valid state of the trial");
    put("run.json", "{}", 2);
    unreadable(dir, FL_EFORMAT, "not results of this version");
}

/* --- statistics --- */

/* Abramowitz and Stegun, Handbook of Mathematical Functions (1964), table 26.10, A = 0.95. */
TEST(quantiles_of_t_are_those_of_the_table)
{
    static const struct {
        unsigned degrees;
        double t;
    } table[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},  {6, 2.447},
                 {9, 2.262},  {10, 2.228}, {29, 2.045}, {30, 2.042}, {60, 2.000}, {120, 1.980}};
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        ck_assert_double_eq_tol(fl_t_quantile(table[i].degrees, 0.95), table[i].t, 0.0005);
    }
    ck_assert_double_eq_tol(fl_t_quantile(7, 0.99), 3.499, 0.0005);
}

/* Worked by hand: differences 1, 2, 0; and 1, 1.2, 0.8, 1. */
TEST(a_difference_is_noise_when_the_interval_holds_0)
{
    static const double a[] = {1.0, 2.0, 3.0};
    static const double b[] = {2.0, 4.0, 3.0};
    static const double c[] = {5.0, 6.0, 7.0, 8.0};
    static const double d[] = {6.0, 7.2, 7.8, 9.0};
    struct fl_paired p = fl_pair(a, b, 3);

    ck_assert_double_eq_tol(p.difference, 1.0, 1e-12);
    ck_assert_double_eq_tol(p.error, 0.57735, 1e-5);
    ck_assert_double_eq_tol(p.low, -1.48414, 1e-4);
    ck_assert_double_eq_tol(p.high, 3.48414, 1e-4);
    ck_assert(!fl_paired_differs(&p));
    p = fl_pair(c, d, 4);
    ck_assert_double_eq_tol(p.mean_a, 6.5, 1e-12);
    ck_assert_double_eq_tol(p.error, 0.0816497, 1e-6);
    ck_assert_double_eq_tol(p.high - p.low, 2 * 0.259845, 1e-5);
    ck_assert(fl_paired_differs(&p));
    p = fl_pair(d, c, 4);
    ck_assert(fl_paired_differs(&p));
    p = fl_pair(c, c, 4);
    ck_assert(!fl_paired_differs(&p));
    p = fl_pair(c, d, 1);
    ck_assert(isnan(p.error) && isnan(p.low) && !fl_paired_differs(&p));
}

/* --- curves --- */

/* Trials of rows by hand. */
struct rigged {
    struct fl_row rows[2][8];
    struct fl_read_trial trials[2];
    struct fl_read_point point;
    char name[2]; /* of the point */
};

static void rig_trials(struct rigged *r, const double *one, size_t n_one, const double *two,
                       size_t n_two)
{
    const double *values[] = {one, two};
    const size_t n[] = {n_one, n_two};
    size_t t;
    size_t i;

    (void)memset(r, 0, sizeof(*r));
    r->name[0] = 'p';
    for (t = 0; t < 2; t++) {
        for (i = 0; i < n[t]; i++) {
            struct fl_row *row = &r->rows[t][i];

            fl_figures_init(&fl_round_rows, &row->record);
            fl_sim_round_init(&row->sim);
            row->record.round = i + 1;
            row->record.accuracy = values[t][i];
            row->record.uplink_bytes = 1000000;
            row->sim.time_us = (i + 1) * 10 + 5 * t;
        }
        r->trials[t] = (struct fl_read_trial){
            .seed = t + 1, .finished = true, .rows = r->rows[t], .n_rows = n[t]};
    }
    r->point = (struct fl_read_point){
        .slug = r->name, .label = r->name, .trials = r->trials, .n_trials = n_two > 0 ? 2 : 1};
}

static struct fl_curve curve_of(const struct rigged *r, enum fl_axis axis, unsigned smooth,
                                enum fl_band band)
{
    struct fl_row_figure y;
    struct fl_curve c;

    ck_assert(fl_row_find("accuracy", &y));
    ck_assert_int_eq(fl_curve_make(&r->point, axis, &y, smooth, band, &c, NULL), FL_OK);
    return c;
}

/* Releases the curve. */
static void is_curve(struct fl_curve c, const double *x, const double *mean, const double *high,
                     size_t n)
{
    size_t i;

    ck_assert_uint_eq(c.n, n);
    for (i = 0; i < n; i++) {
        ck_assert_double_eq_tol(c.x[i], x[i], 1e-12);
        ck_assert_double_eq_tol(c.mean[i], mean[i], 1e-12);
        ck_assert_double_eq_tol(c.high[i], high[i], 1e-6);
    }
    fl_curve_done(&c);
}

static const double one_[] = {0.1, 0.2, 0.3, 0.4};
static const double two_[] = {0.3, 0.4, 0.5};

TEST(a_finished_trial_stays_where_it_ended_as_the_others_go_on)
{
    static const double x[] = {1, 2, 3, 4};
    static const double mean[] = {0.2, 0.3, 0.4, 0.45};
    static const double high[] = {0.3, 0.4, 0.5, 0.5};
    static const double off[] = {0.341421, 0.441421, 0.541421, 0.520711};
    struct rigged r;

    rig_trials(&r, one_, 4, two_, 3);
    is_curve(curve_of(&r, FL_AXIS_ROUNDS, 1, FL_BAND_RANGE), x, mean, high, 4);
    is_curve(curve_of(&r, FL_AXIS_ROUNDS, 1, FL_BAND_DEVIATION), x, mean, off, 4);
    is_curve(curve_of(&r, FL_AXIS_ROUNDS, 1, FL_BAND_NONE), x, mean, mean, 4);
    r.trials[1].finished = false;
    is_curve(curve_of(&r, FL_AXIS_ROUNDS, 1, FL_BAND_RANGE), x, one_, one_, 4);
    r.trials[0].finished = false;
    is_curve(curve_of(&r, FL_AXIS_ROUNDS, 1, FL_BAND_RANGE), x, mean, high, 3);
}

TEST(between_two_rounds_a_curve_is_straight)
{
    static const double x[] = {15, 20, 25, 30, 35, 40};
    static const double mean[] = {0.225, 0.275, 0.325, 0.375, 0.425, 0.45};
    static const double high[] = {0.3, 0.35, 0.4, 0.45, 0.5, 0.5};
    static const double gaps[] = {0.1, -1.0, 0.3, 0.4};
    static const double known[] = {1, 3, 4};
    static const double at_known[] = {0.1, 0.3, 0.4};
    struct rigged r;

    rig_trials(&r, one_, 4, two_, 3);
    is_curve(curve_of(&r, FL_AXIS_TIME, 1, FL_BAND_RANGE), x, mean, high, 6);
    rig_trials(&r, gaps, 4, NULL, 0);
    is_curve(curve_of(&r, FL_AXIS_ROUNDS, 1, FL_BAND_RANGE), known, at_known, at_known, 3);
}

TEST(a_round_that_cost_nothing_takes_the_place_of_the_one_before)
{
    static const double x[] = {1e6, 2e6, 3e6};
    static const double mean[] = {0.2, 0.3, 0.4};
    struct rigged r;

    rig_trials(&r, one_, 4, NULL, 0);
    r.rows[0][1].record.uplink_bytes = 0;
    is_curve(curve_of(&r, FL_AXIS_UPLINK, 1, FL_BAND_RANGE), x, mean, mean, 3);
}

TEST(a_smooth_curve_is_the_mean_of_the_rounds_around)
{
    static const double jumps[] = {0.1, 0.4, 0.1, 0.4};
    static const double x[] = {1, 2, 3, 4};
    static const double mean[] = {0.1, 0.2, 0.3, 0.4};
    struct rigged r;

    rig_trials(&r, jumps, 4, NULL, 0);
    is_curve(curve_of(&r, FL_AXIS_ROUNDS, 3, FL_BAND_NONE), x, mean, mean, 4);
}

TEST(a_figure_that_is_never_known_has_no_curve)
{
    static const double none[] = {-1.0, -1.0};
    struct rigged r;
    struct fl_curve c;

    rig_trials(&r, none, 2, NULL, 0);
    c = curve_of(&r, FL_AXIS_ROUNDS, 1, FL_BAND_RANGE);
    ck_assert_uint_eq(c.n, 0);
    fl_curve_done(&c);
}

/* --- pictures --- */

TEST(the_script_of_a_picture_has_all_that_is_in_it)
{
    static const char *const want =
        "set encoding utf8\n"
        "set terminal svg size 800,512 dynamic noenhanced font 'DejaVu Sans,15' linewidth 1 "
        "background '#FFFFFF'\n"
        "set output 'it''s.svg'\n"
        "set border 3 linecolor rgb '#606060'\n"
        "set tics nomirror out scale 0.6 textcolor rgb '#303030'\n"
        "set grid xtics ytics linetype 1 linewidth 0.6 linecolor rgb '#E0E0E0'\n"
        "set key outside bottom left horizontal Left reverse samplen 3 spacing 1.2 height 1\n"
        "set title 'a  '';system''b'\n"
        "set xlabel 'uplink bytes that the server accepted (MB)'\n"
        "set ylabel 'accuracy (%)'\n"
        "set xrange [0:4]\n"
        "$s0 << END\n"
        "1 20 10 30\n"
        "2 30 20 40\n"
        "3 40 30 50\n"
        "4 45 40 50\n"
        "END\n"
        "plot $s0 using 1:3:4 with filledcurves fillcolor rgb '#0072B2' "
        "fillstyle transparent solid 0.15 noborder notitle, \\\n"
        "  $s0 using 1:2 with lines linewidth 2 dashtype 1 linecolor rgb '#0072B2' "
        "title 'the \"label\"'\n";
    struct fl_series series = {.label = "the \"label\""};
    struct fl_plot plot = {.title = "a\n ';system'b",
                           .axis = FL_AXIS_UPLINK,
                           .series = &series,
                           .n_series = 1,
                           .band = true};
    struct fl_row_figure y;
    struct fl_buf script;
    struct rigged r;

    rig_trials(&r, one_, 4, two_, 3);
    series.curve = curve_of(&r, FL_AXIS_UPLINK, 1, FL_BAND_RANGE);
    ck_assert(fl_row_find("accuracy", &y));
    plot.y = &y;
    fl_buf_init(&script, 1 << 20);
    ck_assert_int_eq(fl_plot_script(&script, &plot, FL_PICTURE_SVG, "it's.svg"), FL_OK);
    ck_assert_int_eq(fl_buf_add(&script, "", 1), FL_OK);
    ck_assert_str_eq((const char *)script.data, want);
    fl_buf_clear(&script);
    plot.log_x = true;
    ck_assert_int_eq(fl_plot_script(&script, &plot, FL_PICTURE_PNG, "x.png"), FL_OK);
    ck_assert_int_eq(fl_buf_add(&script, "", 1), FL_OK);
    ck_assert_ptr_nonnull(strstr((const char *)script.data, "set terminal pngcairo "));
    ck_assert_ptr_nonnull(
        strstr((const char *)script.data, "set logscale x 10\nset xrange [0.95:4.2]\n"));
    fl_curve_done(&series.curve);
    /* Nothing was spent, and a figure with its unit in its key. */
    series.curve = curve_of(&r, FL_AXIS_MODELS, 1, FL_BAND_RANGE);
    plot.axis = FL_AXIS_MODELS;
    ck_assert(fl_row_find("wall_us", &y));
    plot.y = &y;
    fl_buf_clear(&script);
    ck_assert_int_eq(fl_plot_script(&script, &plot, FL_PICTURE_PNG, "x.png"), FL_OK);
    ck_assert_int_eq(fl_buf_add(&script, "", 1), FL_OK);
    ck_assert_ptr_nonnull(strstr((const char *)script.data, "set xrange [0:1]\n"));
    ck_assert_ptr_nonnull(strstr((const char *)script.data, "set ylabel 'wall (us)'\n"));
    fl_buf_done(&script);
    fl_curve_done(&series.curve);
}

TEST(without_gnuplot_its_name_is_said)
{
    struct fl_series series = {.label = "x"};
    struct fl_plot plot = {.series = &series, .n_series = 1};
    struct fl_row_figure y;
    static const char fake[] = "#!/bin/sh\necho 'no terminal svg' >&2\nexit 3\n";
    struct fl_err err = {0};
    struct rigged r;

    rig_trials(&r, one_, 4, NULL, 0);
    series.curve = curve_of(&r, FL_AXIS_ROUNDS, 1, FL_BAND_RANGE);
    ck_assert(fl_row_find("accuracy", &y));
    plot.y = &y;
    ck_assert_int_eq(setenv("PATH", dir, 1), 0);
    ck_assert_int_eq(fl_plot_draw(&plot, path_of("picture"), &err), FL_ENOENT);
    ck_assert_msg(strstr(err.msg, "gnuplot-nox") != NULL, "%s", err.msg);
    put("gnuplot", fake, sizeof(fake) - 1);
    ck_assert_int_eq(chmod(path_of("gnuplot"), 0700), 0);
    ck_assert_int_eq(fl_plot_draw(&plot, path_of("picture"), &err), FL_ESTATE);
    ck_assert_msg(strstr(err.msg, "no terminal svg") != NULL, "%s", err.msg);
    ck_assert(!fl_fs_exists(path_of("picture.svg")));
    fl_curve_done(&series.curve);
}

/* --- comparison and table --- */

static char *compared(const struct fl_read_run *run, int code)
{
    struct fl_comparison c;
    struct fl_buf text;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_compare(&run->points[0], &run->points[1], "accuracy", &c, &err), code);
    if (code != FL_OK) {
        return fl_str_dup(err.msg);
    }
    fl_buf_init(&text, 1 << 20);
    ck_assert_int_eq(fl_comparison_text(&text, &c, "a", "b"), FL_OK);
    ck_assert_int_eq(fl_buf_add(&text, "", 1), FL_OK);
    return (char *)text.data;
}

/* Takes `text`. */
static void has(char *text, const char *part)
{
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in: %s", part, text);
    free(text);
}

TEST(trials_are_compared_on_the_seeds_that_both_have)
{
    struct fl_read_run *run;

    write_run();
    run = read_run(dir);
    has(compared(run, FL_OK), "3 pairs of the same seed");
    has(compared(run, FL_OK), "No difference is within noise");
    has(compared(run, FL_OK), "\nuplink to 0.8              MB ");
    run->points[1].trials[0].seed = 99;
    has(compared(run, FL_OK), "2 pairs of the same seed");
    has(compared(run, FL_OK), "Left out: 2 trials whose seed is not finished in both.");
    run->points[1].trials[1].finished = false;
    run->points[0].trials[2].end.how = FL_TRIAL_DIVERGED;
    has(compared(run, FL_OK), "1 pair of the same seed");
    has(compared(run, FL_OK), "One pair gives no estimate of noise");
    has(compared(run, FL_OK), "too few pairs");
    has(compared(run, FL_OK), "Diverged: 1 trials of A, 0 of B.");
    run->points[1].trials[2].finished = false;
    has(compared(run, FL_ENOENT), "nothing to compare");
    fl_read_run_free(run);
}

static char *means_of(const struct fl_read_set *set, const char *columns, bool csv, unsigned n)
{
    struct fl_table table = {.quality = "accuracy", .mean_of = n, .csv = csv};
    struct fl_buf text;
    struct fl_err err = {0};

    ck_assert_msg(fl_table_columns(&table, columns, &err) == FL_OK, "%s", err.msg);
    fl_buf_init(&text, 1 << 20);
    ck_assert_int_eq(fl_table_text(&text, &table, set), FL_OK);
    ck_assert_int_eq(fl_buf_add(&text, "", 1), FL_OK);
    return (char *)text.data;
}

static char *table_of(const struct fl_read_set *set, const char *columns, bool csv)
{
    return means_of(set, columns, csv, 0);
}

TEST(a_table_looks_at_means_of_the_newest_rounds)
{
    static const double with_gaps[] = {0.9, -1.0, 0.1, -1.0, 0.3, 0.4};
    struct rigged r;
    struct fl_read_run run = {.path = (char[]){"x"}, .points = &r.point, .n_points = 1};
    struct fl_read_run *runs[] = {&run};
    struct fl_read_set set = {runs, 1};

    rig_trials(&r, with_gaps, 6, NULL, 0);
    has(means_of(&set, "best,rounds@0.3,rounds@0.9,accuracy", false, 1),
        "| 90.00 % | 1 | 1 | 40.00 % |");
    has(means_of(&set, "best,rounds@0.3,rounds@0.9,accuracy", false, 2),
        "| 50.00 % | 3 | - | 40.00 % |");
    has(means_of(&set, "best,rounds@0.3,rounds@0.42", false, 3), "| 43.33 % | 5 | 5 |");
    has(means_of(&set, "best,rounds@0.1", false, 4), "| 42.50 % | 6 |");
    has(means_of(&set, "best,rounds@0.1", false, 5), "| - | - |");
}

TEST(a_table_has_means_and_says_of_how_many)
{
    struct rigged r;
    struct fl_read_run run = {.path = (char[]){"x"}, .points = &r.point, .n_points = 1};
    struct fl_read_run *runs[] = {&run};
    struct fl_read_set set = {runs, 1};

    rig_trials(&r, one_, 4, two_, 3);
    r.point.label = (char[]){"a|b"};
    has(table_of(&set, "trials,accuracy,uplink@0.2,rounds@0.5,rounds@0.9,uplink", false),
        "| point | trials | accuracy | uplink@0.2 | rounds@0.5 | rounds@0.9 | uplink |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| a\\|b | 2 | 45.00 ± 7.07 % | 1.50 ± 0.71 MB | 3 (1 of 2) | - | 3.50 ± 0.71 MB |\n");
    has(table_of(&set, "trials,accuracy,rounds@0.9", true),
        "point,trials,accuracy,accuracy.std,accuracy.trials,rounds@0.9,rounds@0.9.std,"
        "rounds@0.9.trials\na|b,2,0.45,0.07071067811865474,2,,,0\n");
    r.trials[1].finished = false;
    r.trials[0].end.how = FL_TRIAL_DIVERGED;
    has(table_of(&set, "trials,best", false), "| 1, 1 diverged, 1 not finished | 40.00 % |\n");
}

TEST_EACH(a_column_that_is_none_is_named, 6)
{
    static const char *const bad[] = {"uplnk", "trials,", "time@", "time@2", "best@0.9", "foo"};
    struct fl_table table;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_table_columns(&table, bad[_i], &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "column '"));
    ck_assert(_i != 0 || strstr(err.msg, "did you mean 'uplink'") != NULL);
}
