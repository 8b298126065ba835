/* What a run leaves in its folder: written once, read back as it was, and never another's. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/figures/figures_text.h"
#include "tests/lib/folder.h"
#include "tests/lib/results_rig.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/results/row.h"

static const struct rig_trial quick = {0.2, 1, 1000, 5000000};

static char dir[FOLDER_PATH];

static void setup(void)
{
    ck_assert(folder_make("fl-results", dir));
}

static void teardown(void)
{
    folder_remove(dir);
}

static struct fl_results *open_run(const struct fl_run_info *info)
{
    struct fl_results *results = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_results_open(dir, info, &results, &err) == FL_OK, "%s", err.msg);
    return results;
}

static void refused(const struct fl_run_info *info, int code, const char *text)
{
    struct fl_results *results = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_results_open(dir, info, &results, &err), code);
    ck_assert_ptr_null(results);
    ck_assert_msg(strstr(err.msg, text) != NULL, "%s", err.msg);
}

static void write_trial(struct fl_results *results, const char *point, uint64_t seed)
{
    struct fl_err err = {0};

    ck_assert_msg(rig_write(results, point, seed, &quick, 4, &err) == FL_OK, "%s", err.msg);
}

static char *text_of(const char *name)
{
    char path[256];
    struct fl_buf buf;
    char *text;
    struct fl_err err = {0};

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_msg(fl_fs_read(path, 1 << 20, &buf, &err) == FL_OK, "%s", err.msg);
    text = calloc(1, buf.len + 1);
    ck_assert_ptr_nonnull(text);
    (void)memcpy(text, buf.data, buf.len);
    fl_buf_done(&buf);
    return text;
}

static size_t lines_of(const char *name)
{
    char *text = text_of(name);
    const char *p;
    size_t n = 0;

    for (p = text; (p = strchr(p, '\n')) != NULL; p++) {
        n++;
    }
    free(text);
    return n;
}

static json_t *json_of(const char *name)
{
    char *text = text_of(name);
    json_t *json = json_loads(text, 0, NULL);

    ck_assert_msg(json != NULL, "%s: %s", name, text);
    free(text);
    return json;
}

static bool is_there(const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return fl_fs_exists(path);
}

static void put_file(const char *name, const char *text)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_int_eq(fl_fs_replace(path, text, strlen(text), false, NULL), FL_OK);
}

/* --- figures --- */

static const struct fl_figures *const tables[] = {&fl_sim_round_rows, &fl_sim_client_rows};

TEST_CASE("all", setup, teardown);

TEST_EACH(every_figure_has_a_place_a_meaning_and_a_key_of_its_own, 2)
{
    const struct fl_figures *t = tables[_i];
    size_t end = 0;
    size_t i;
    size_t k;

    for (i = 0; i < t->n; i++) {
        const struct fl_figure *f = &t->rows[i];
        size_t size = f->type == FL_FIGURE_U32 ? 4 : 8;

        ck_assert_uint_ge(f->offset, end);
        ck_assert_uint_lt(f->offset - end, size);
        end = f->offset + size;
        ck_assert_str_ne(f->meaning, "");
        ck_assert_int_ne(f->meaning[strlen(f->meaning) - 1], '.');
        ck_assert_str_ne(fl_figure_unit_text(f), "");
        for (k = 0; k < i; k++) {
            ck_assert_str_ne(fl_figure_key(f), fl_figure_key(&t->rows[k]));
        }
        for (k = 0; _i == 0 && k < fl_round_rows.n; k++) {
            ck_assert_str_ne(fl_figure_key(f), fl_figure_key(&fl_round_rows.rows[k]));
        }
    }
    ck_assert_uint_eq(end, t->size);
}

/* Bits of any kind in every figure that is not told apart by its value. */
static void fill(const struct fl_figures *figures, void *record, uint64_t seed)
{
    size_t i;

    for (i = 0; i < figures->n; i++) {
        const struct fl_figure *f = &figures->rows[i];

        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (f->type == FL_FIGURE_F64) {
            fl_figure_put_real(f, record, (double)(seed >> 11) * 0x1p-53);
        } else {
            fl_figure_put_whole(f, record, seed >> 2);
        }
    }
}

static struct fl_row there_and_back(const struct fl_row *row)
{
    struct fl_row back;
    struct fl_buf line;
    json_t *object;

    fl_buf_init(&line, 1 << 20);
    ck_assert_int_eq(fl_row_json(&line, row), FL_OK);
    object = json_loadb((const char *)line.data, line.len, 0, NULL);
    ck_assert_ptr_nonnull(object);
    ck_assert_int_eq(fl_row_read(object, &back), FL_OK);
    json_decref(object);
    fl_buf_done(&line);
    return back;
}

TEST(a_row_is_read_back_bit_for_bit)
{
    struct fl_row row = {0};
    struct fl_row back;
    uint64_t seed;

    for (seed = 1; seed <= 200; seed++) {
        fill(&fl_round_rows, &row.record, seed);
        fill(&fl_sim_round_rows, &row.sim, seed + 1000);
        (void)snprintf(row.sim.waiting_for, sizeof(row.sim.waiting_for), "edge-%d", (int)seed);
        (void)memset(row.record.robust_clients, 0, sizeof(row.record.robust_clients));
        ck_assert(
            fl_robust_clients_add(row.record.robust_clients, "edge-1", 0, 1e3 / (double)seed));
        ck_assert(fl_robust_clients_add(row.record.robust_clients, "edge-2", 0.01, 0.5));
        back = there_and_back(&row);
        ck_assert_int_eq(memcmp(&back.record, &row.record, sizeof(row.record)), 0);
        ck_assert_int_eq(memcmp(&back.sim, &row.sim, fl_sim_round_rows.size), 0);
        ck_assert_str_eq(back.sim.waiting_for, row.sim.waiting_for);
    }
}

TEST(what_is_not_known_is_read_back_as_such)
{
    struct fl_row row;
    struct fl_row back;

    fl_figures_init(&fl_round_rows, &row.record);
    fl_sim_round_init(&row.sim);
    row.record.round = 1;
    row.record.train_loss = (double)INFINITY;
    back = there_and_back(&row);
    ck_assert_double_eq(back.record.accuracy, -1.0);
    ck_assert_double_eq(back.record.client_accuracy_std, -1.0);
    ck_assert_double_eq(back.sim.backdoor_success, -1.0);
    ck_assert(isnan(back.record.train_loss));
    ck_assert_str_eq(back.sim.waiting_for, "");
}

TEST(a_time_that_did_not_come_is_null)
{
    struct fl_sim_client_round client;
    struct fl_buf line;
    json_t *object;

    fl_sim_client_init(&client);
    client.name = "edge-1";
    client.asked = "0110";
    client.fate = FL_SIM_FATE_LATE;
    client.selected_us = 0;
    fl_buf_init(&line, 4096);
    ck_assert_int_eq(fl_row_client_json(&line, &client), FL_OK);
    object = json_loadb((const char *)line.data, line.len, 0, NULL);
    ck_assert(json_is_integer(json_object_get(object, "selected_us")));
    ck_assert(json_is_null(json_object_get(object, "fetched_us")));
    ck_assert(json_is_null(json_object_get(object, "received_accuracy")));
    ck_assert(json_is_null(json_object_get(object, "personal_loss")));
    ck_assert_uint_eq(json_object_size(json_object_get(object, "metrics")), 0);
    ck_assert_str_eq(json_string_value(json_object_get(object, "state")), "late");
    ck_assert_str_eq(json_string_value(json_object_get(object, "asked")), "0110");
    ck_assert_ptr_null(json_object_get(object, "attacker"));
    json_decref(object);
    fl_buf_done(&line);
}

TEST(only_the_row_of_an_attacker_says_that_it_is_one)
{
    struct fl_sim_client_round client;
    struct fl_buf line;
    json_t *object;

    fl_sim_client_init(&client);
    client.name = "edge-1";
    client.attacker = true;
    fl_buf_init(&line, 4096);
    ck_assert_int_eq(fl_row_client_json(&line, &client), FL_OK);
    object = json_loadb((const char *)line.data, line.len, 0, NULL);
    ck_assert(json_is_true(json_object_get(object, "attacker")));
    json_decref(object);
    fl_buf_done(&line);
}

/* --- a trial --- */

static struct fl_trial *begin(struct fl_results *results)
{
    struct fl_trial *trial = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_trial_begin(results, "lean", 11, &trial, &err) == FL_OK, "%s", err.msg);
    ck_assert_ptr_nonnull(trial);
    return trial;
}

TEST(a_round_whose_parts_do_not_sum_up_is_refused)
{
    struct fl_run_info info = rig_info();
    struct fl_results *results = open_run(&info);
    struct fl_trial *trial = begin(results);
    struct fl_round_rec record;
    struct fl_sim_round sim;
    struct fl_err err = {0};
    char *text;

    rig_round(&quick, 11, 1, &record, &sim);
    sim.upload_us++;
    ck_assert_int_eq(fl_trial_round(trial, &record, &sim, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "trial lean/seed-11, round 1: wall_us is 5000011, but its phases "
                              "sum up to 5000012");
    sim.upload_us--;
    sim.time_us += 7;
    ck_assert_int_eq(fl_trial_round(trial, &record, &sim, &err), FL_ESTATE);
    ck_assert_msg(strstr(err.msg, "it ended at 5000018 us") != NULL, "%s", err.msg);
    sim.time_us -= 7;
    record.round = 2;
    ck_assert_int_eq(fl_trial_round(trial, &record, &sim, &err), FL_ESTATE);
    ck_assert_msg(strstr(err.msg, "round 2 follows round 0") != NULL, "%s", err.msg);
    text = text_of("lean/seed-11/rounds.jsonl");
    ck_assert_str_eq(text, "");
    free(text);
    record.round = 1;
    ck_assert_int_eq(fl_trial_round(trial, &record, &sim, &err), FL_OK);
    fl_trial_free(trial);
    fl_results_free(results);
}

TEST(a_finished_trial_does_not_run_again_and_another_begins_anew)
{
    struct fl_run_info info = rig_info();
    struct fl_results *results = open_run(&info);
    struct fl_trial *trial = begin(results);
    struct fl_round_rec record;
    struct fl_sim_round sim;
    char path[256];
    json_t *json;
    uint64_t round;
    char *one;
    char *two;

    /* More of it than the one after will have. */
    for (round = 1; round <= 9; round++) {
        rig_round(&quick, 11, round, &record, &sim);
        ck_assert_int_eq(fl_trial_round(trial, &record, &sim, NULL), FL_OK);
    }
    put_file("lean/seed-11/state/store.db", "kept");
    fl_trial_free(trial); /* as a kill */
    fl_results_free(results);

    results = open_run(&info);
    ck_assert(is_there("lean/seed-11/state/store.db"));
    write_trial(results, "lean", 11);
    ck_assert(!is_there("lean/seed-11/state"));
    json = json_of("lean/seed-11/summary.json");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "rounds")), 4);
    json_decref(json);
    ck_assert_uint_eq(lines_of("lean/seed-11/rounds.jsonl"), 4);
    ck_assert_uint_eq(lines_of("lean/seed-11/rounds.csv"), 5);
    one = text_of("lean/seed-11/rounds.jsonl");
    ck_assert_int_eq(fl_trial_begin(results, "lean", 11, &trial, NULL), FL_OK);
    ck_assert_ptr_null(trial);
    fl_results_free(results);

    /* A kill between the summary and the end of the state. */
    (void)snprintf(path, sizeof(path), "%s/lean/seed-11/state", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    results = open_run(&info);
    write_trial(results, "lean", 11);
    ck_assert(!is_there("lean/seed-11/state"));
    two = text_of("lean/seed-11/rounds.jsonl");
    ck_assert_str_eq(one, two);
    free(one);
    free(two);
    fl_results_free(results);
}

TEST(the_state_stays_when_it_is_asked_for)
{
    struct fl_run_info info = rig_info();
    struct fl_results *results;

    info.keep_state = true;
    results = open_run(&info);
    write_trial(results, "lean", 11);
    ck_assert(is_there("lean/seed-11/state"));
    fl_results_free(results);
}

TEST(the_summary_says_how_it_ended_and_when_an_accuracy_was_reached)
{
    const struct fl_trial_end end = {FL_TRIAL_DIVERGED, 5, "the loss is not a number"};
    struct fl_run_info info = rig_info();
    struct fl_results *results = open_run(&info);
    struct fl_trial *trial = begin(results);
    struct fl_round_rec record;
    struct fl_sim_round sim;
    json_t *json;
    json_t *reached;
    json_int_t round;
    json_int_t time_us;
    json_int_t bytes;
    double best;
    const char *ended;
    int k;

    for (k = 1; k <= 4; k++) {
        rig_round(&quick, 11, (uint64_t)k, &record, &sim);
        record.accuracy = k == 2 ? 0.75 : k == 3 ? -1.0 : 0.5;
        ck_assert_int_eq(fl_trial_round(trial, &record, &sim, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_trial_finish(trial, &end, NULL), FL_OK);
    fl_trial_free(trial);
    json = json_of("lean/seed-11/summary.json");
    ck_assert_int_eq(json_unpack(json, "{s:s, s:{s:f, s:o, s:{s:o}}}", "ended", &ended, "accuracy",
                                 "best", &best, "reached", &reached, "reached", "0.8",
                                 &(json_t *){NULL}),
                     0);
    ck_assert_str_eq(ended, "diverged");
    ck_assert_double_eq(best, 0.75);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "diverged_round")), 5);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "rounds")), 4);
    ck_assert_int_eq(json_unpack(json_object_get(reached, "0.7"), "{s:I, s:I, s:I}", "round",
                                 &round, "time_us", &time_us, "uplink_bytes", &bytes),
                     0);
    ck_assert_int_eq(round, 2);
    ck_assert_int_eq(time_us, 10000022);
    ck_assert_int_eq(bytes, 2000);
    ck_assert(json_is_null(json_object_get(json_object_get(reached, "0.8"), "round")));
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_object_get(json, "totals"), "up_wasted_bytes")),
        400);
    json_decref(json);
    fl_results_free(results);
}

TEST_EACH(clients_are_written_when_they_are_asked_for, 2)
{
    struct fl_run_info info = rig_info();
    struct fl_sim_client_round client;
    struct fl_results *results;
    struct fl_trial *trial;
    int k;

    info.clients = _i == 1;
    results = open_run(&info);
    trial = begin(results);
    fl_sim_client_init(&client);
    client.name = "edge-1";
    for (k = 0; k < 1000; k++) {
        client.round = (uint64_t)k;
        ck_assert_int_eq(fl_trial_client(trial, &client, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_trial_finish(trial, &(struct fl_trial_end){0}, NULL), FL_OK);
    fl_trial_free(trial);
    fl_results_free(results);
    ck_assert_int_eq(is_there("lean/seed-11/clients.jsonl"), info.clients);
    if (info.clients) {
        ck_assert_uint_eq(lines_of("lean/seed-11/clients.jsonl"), 1000);
    }
}

/* --- the folder --- */

TEST(a_folder_of_another_experiment_is_refused_with_both_names)
{
    struct fl_run_info info = rig_info();
    struct fl_run_info other = rig_info();

    fl_results_free(open_run(&info));
    other.name = "other";
    other.fingerprint = "ffff";
    refused(&other, FL_EEXIST, "experiment 'tiny' (0123456789abcdef), and this is 'other' (ffff)");
    put_file("run.json", "{\"format\": 1");
    refused(&info, FL_EEXIST, "has no results of fl-sim");
    put_file("run.json", "[]");
    refused(&info, FL_EEXIST, "has no results of fl-sim");
}

TEST(a_folder_with_other_files_is_refused_and_not_changed)
{
    struct fl_run_info info = rig_info();

    put_file("thesis.tex", "");
    ck_assert_int_eq(fl_results_check(dir, &info, NULL), FL_EEXIST);
    refused(&info, FL_EEXIST, "it contains 'thesis.tex', and no run.json");
    ck_assert(!is_there(".lock"));
    ck_assert(!is_there("run.json"));
}

TEST(a_folder_that_is_used_is_refused)
{
    struct fl_run_info info = rig_info();
    struct fl_results *results = open_run(&info);

    refused(&info, FL_EINUSE, "is in use by process");
    ck_assert_int_eq(fl_results_check(dir, &info, NULL), FL_OK);
    fl_results_free(results);
    fl_results_free(open_run(&info));
}

TEST_EACH(a_point_without_a_name_for_its_folder_is_refused, 5)
{
    static const char *const bad[] = {"", ".", "../x", "a/b", "fedavg"};
    struct fl_run_point points[2] = {{"fedavg", ""}, {bad[_i], ""}};
    struct fl_run_info info = rig_info();

    info.points = points;
    refused(&info, FL_EINVAL, bad[_i]);
}

TEST(run_json_keeps_what_earlier_runs_left)
{
    struct fl_run_info info = rig_info();
    struct fl_results *results = open_run(&info);
    json_t *json;

    write_trial(results, "lean", 11);
    fl_results_free(results);
    results = open_run(&info);
    write_trial(results, "lean", 12);
    fl_results_free(results);
    json = json_of("run.json");
    ck_assert_uint_eq(json_array_size(json_object_get(json, "runs")), 2);
    ck_assert_uint_eq(json_object_size(json_object_get(json, "trials")), 2);
    ck_assert_ptr_nonnull(json_object_get(json_object_get(json, "trials"), "lean/seed-11"));
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(json, "experiment"), "text")),
        "algorithm: fedavg\n");
    json_decref(json);
}

static void *write_a_point(void *ctx)
{
    struct fl_results *results = ctx;
    size_t k;

    for (k = 0; k < 3; k++) {
        write_trial(results, "fedavg", rig_seeds[k]);
    }
    return NULL;
}

TEST(results_csv_has_the_finished_trials_in_the_order_of_the_experiment)
{
    struct fl_run_info info = rig_info();
    struct fl_results *results = open_run(&info);
    pthread_t thread;
    char *text;
    char *line;
    char *rest;
    int n = 0;

    /* Both at once, and the second point is not whole. */
    ck_assert_int_eq(pthread_create(&thread, NULL, write_a_point, results), 0);
    write_trial(results, "lean", 13);
    write_trial(results, "lean", 11);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(fl_results_finish(results, NULL), FL_OK);
    fl_results_free(results);
    text = text_of("results.csv");
    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        static const char *const begins[] = {
            "point,label,seed,ended,diverged_round,reason,rounds,accuracy.best,",
            "fedavg,FedAvg,11,done,,,4,",
            "fedavg,FedAvg,12,done,,,4,",
            "fedavg,FedAvg,13,done,,,4,",
            "lean,\"lean, 2 \"\"Mbit/s\"\"\",11,done,,,4,",
            "lean,\"lean, 2 \"\"Mbit/s\"\"\",13,done,,,4,",
        };

        ck_assert_int_lt(n, 6);
        ck_assert_msg(strncmp(line, begins[n], strlen(begins[n])) == 0, "%s", line);
        n++;
    }
    ck_assert_int_eq(n, 6);
    free(text);
}

TEST(out_of_disk_is_said_and_what_is_finished_stays)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct rlimit limit = {0};
    struct fl_run_info info = rig_info();
    struct fl_results *results = open_run(&info);
    struct fl_err err = {0};
    char *one;
    char *two;

    ck_assert_int_eq(sigaction(SIGXFSZ, &ignore, NULL), 0);
    write_trial(results, "lean", 11);
    one = text_of("lean/seed-11/summary.json");
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 20000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(rig_write(results, "lean", 12, &quick, 1000, &err), FL_ENOSPC);
    ck_assert_msg(strstr(err.msg, "disk full: cannot write '") != NULL, "%s", err.msg);
    ck_assert_msg(strstr(err.msg, "lean/seed-12/rounds.") != NULL, "%s", err.msg);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert(!is_there("lean/seed-12/summary.json"));
    two = text_of("lean/seed-11/summary.json");
    ck_assert_str_eq(one, two);
    free(one);
    free(two);
    fl_results_free(results);
    results = open_run(&info);
    write_trial(results, "lean", 12);
    ck_assert(is_there("lean/seed-12/summary.json"));
    fl_results_free(results);
}
