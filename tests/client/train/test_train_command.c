#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "libfl/strategy/personalization/personal.h"
#include "tests/lib/suites.h"
#include "tests/lib/trainer_rig.h"

/* A trainer that runs a shell script; "$1" is task.json and "$d" its folder. */
static void script(struct fixture *f, const char *text, uint64_t time_limit_ms,
                   uint64_t memory_bytes)
{
    static char body[4096];
    const char *argv[] = {"sh", "-c", body, "sh", "{task}", NULL};
    struct fl_command_conf conf = {.program.argv = argv,
                                   .program.work_dir = f->dir,
                                   .time_limit_ms = time_limit_ms,
                                   .program.memory_bytes = memory_bytes,
                                   .program.samples = 5,
                                   .program.data = "/some/data"};

    (void)snprintf(body, sizeof(body), "d=$(dirname \"$1\")\n%s", text);
    ck_assert_msg(fl_trainer_command(&conf, &f->trainer, &f->err) == FL_OK, "%s", f->err.msg);
    ck_assert_msg(fl_trainer_prepare(f->trainer, &f->server.model, &f->err) == FL_OK, "%s",
                  f->err.msg);
}

static int run(struct fixture *f, struct fl_train_result *r)
{
    struct fl_train_task task = task_of(&f->server);

    return fl_trainer_run(f->trainer, &task, r, &f->err);
}

#define RESULT \
    "printf '{\"samples\": 5, \"steps\": 3, \"train_loss\": 0.25}' > \"$d/result.json\"\n"
#define COPY "cp \"$d/model.safetensors\" \"$d/result.safetensors\"\n"

static bool says(const struct fixture *f, const char *text)
{
    return strstr(f->err.msg, text) != NULL;
}

TEST(a_program_that_changes_nothing_is_an_update_of_zero)
{
    struct fl_train_result r = {0};
    char folder[PATH_MAX];
    struct fixture f;
    size_t i;

    fixture_init(&f);
    script(&f, COPY RESULT, 0, 0);
    ck_assert_msg(run(&f, &r) == FL_OK, "%s", f.err.msg);
    ck_assert_uint_eq(r.samples, 5);
    ck_assert_uint_eq(r.steps, 3);
    ck_assert_double_eq(r.train_loss, 0.25);
    ck_assert(!r.has_received);
    for (i = 0; i < f.server.count; i++) {
        ck_assert_double_eq((double)r.delta[i], 0);
    }
    ck_assert_double_eq((double)r.divergence[1], 0);
    fl_train_result_done(&r);
    /* The folder of a task that worked is gone. */
    (void)snprintf(folder, sizeof(folder), "%s/round-000001-0", f.dir);
    ck_assert(!fl_fs_exists(folder));
    fixture_done(&f);
}

/* The program answers with a model that the test wrote: the difference comes back. */
TEST(the_update_is_trained_minus_received)
{
    struct fl_train_result r = {0};
    char path[128];
    float *trained;
    struct fixture f;
    size_t i;

    fixture_init(&f);
    trained = calloc(f.server.count, sizeof(float));
    for (i = 0; i < f.server.count; i++) {
        trained[i] = f.server.theta[i] + 0.5f;
    }
    (void)snprintf(path, sizeof(path), "%s/trained", f.dir);
    ck_assert_int_eq(fl_st_save(path, f.server.model.layout, trained, NULL, 0, false, NULL), FL_OK);
    script(&f,
           "cp \"$d/../trained\" \"$d/result.safetensors\"\n"
           "printf '{\"samples\": 5, \"steps\": 3, \"train_loss\": 1, \"received\": "
           "{\"samples\": 10, \"correct\": 4, \"loss_sum\": 12.5}}' > \"$d/result.json\"\n",
           0, 0);
    ck_assert_msg(run(&f, &r) == FL_OK, "%s", f.err.msg);
    for (i = 0; i < f.server.count; i++) {
        ck_assert_double_eq_tol((double)r.delta[i], 0.5, 1e-6);
    }
    ck_assert_double_eq_tol((double)r.divergence[0], 0.5 * sqrt(12 * 16 + 16), 1e-5);
    ck_assert(r.has_received);
    ck_assert_uint_eq(r.received.samples, 10);
    ck_assert_uint_eq(r.received.correct, 4);
    ck_assert_double_eq(r.received.loss_sum, 12.5);
    fl_train_result_done(&r);
    free(trained);
    fixture_done(&f);
}

TEST(the_task_file_says_everything)
{
    struct fl_train_result r = {0};
    struct fl_train_task task;
    const json_t *unit;
    json_t *json;
    char path[128];
    char folder[PATH_MAX];
    struct fixture f;

    fixture_init(&f);
    /* A client that is itself a task of another one. */
    ck_assert_int_eq(setenv("FL_TASK", "/dev/null", 1), 0);
    script(&f, COPY RESULT "cp \"$FL_TASK\" \"$d/../seen.json\"\n", 5000, 0);
    task = task_of(&f.server);
    task.asked.key.round = 7;
    task.asked.key.attempt = 2;
    task.asked.deadline_ms = 90000;
    task.asked.seed = UINT64_MAX;
    task.asked.order_seed = (UINT64_C(5) << 53) + 17;
    ck_assert_msg(fl_trainer_run(f.trainer, &task, &r, &f.err) == FL_OK, "%s", f.err.msg);
    fl_train_result_done(&r);
    (void)snprintf(path, sizeof(path), "%s/seen.json", f.dir);
    json = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "version")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "round")), 7);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "attempt")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "seed")), (1LL << 53) - 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "order_seed")), 17);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "time_limit_ms")), 5000);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "epochs")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "batch_size")), 10);
    ck_assert_double_eq(json_number_value(json_object_get(json, "learning_rate")), 0.1);
    ck_assert_double_eq(json_number_value(json_object_get(json, "momentum")), 0);
    ck_assert_str_eq(json_string_value(json_object_get(json, "data")), "/some/data");
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(json, "solver"), "name")),
                     "sgd");
    ck_assert_uint_eq(json_array_size(json_object_get(json_object_get(json, "network"), "layers")),
                      3);
    unit = json_array_get(json_object_get(json, "units"), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "units")),
                      fl_layout_units(f.server.model.layout));
    ck_assert_uint_eq(json_array_size(json_object_get(unit, "tensors")), 2);
    /* Absolute paths: the program may change its folder. */
    ck_assert_ptr_nonnull(realpath(f.dir, folder));
    ck_assert_int_eq(
        strncmp(json_string_value(json_object_get(json, "model")), folder, strlen(folder)), 0);
    json_decref(json);
    fixture_done(&f);
}

TEST(a_run_that_takes_many_times_longer_than_the_longest_is_ended)
{
    const char *argv[] = {"sh",
                          "-c",
                          "d=$(dirname \"$1\")\n"
                          "[ ! -e \"$d/../hang\" ] || exec sleep 1000\n" RESULT COPY,
                          "sh",
                          "{task}",
                          NULL};
    struct fl_command_conf conf = {
        .program.argv = argv, .straggler_factor = 1, .straggler_min_ms = 200};
    struct fl_train_result r = {0};
    struct fixture f;
    char path[PATH_MAX];

    fixture_init(&f);
    conf.program.work_dir = f.dir;
    ck_assert_int_eq(fl_trainer_command(&conf, &f.trainer, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_OK);
    /* However long the first one takes: it has nothing to be compared with. */
    ck_assert_msg(run(&f, &r) == FL_OK, "%s", f.err.msg);
    fl_train_result_done(&r);
    (void)snprintf(path, sizeof(path), "%s/hang", f.dir);
    ck_assert_int_eq(fl_fs_replace(path, "", 0, false, &f.err), FL_OK);
    ck_assert_int_eq(run(&f, &r), FL_ETIMEOUT);
    ck_assert_msg(says(&f, "'sh' timed out at 'train' after its time limit of "), "%s", f.err.msg);
    fixture_done(&f);
}

/* What the program that `script` made was told of its time in the run before, in ms. */
static json_int_t limit_told(const struct fixture *f)
{
    char path[PATH_MAX];
    json_int_t ms;
    json_t *json;

    (void)snprintf(path, sizeof(path), "%s/seen.json", f->dir);
    json = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(json);
    ms = json_integer_value(json_object_get(json, "time_limit_ms"));
    json_decref(json);
    return ms;
}

TEST(a_run_before_the_first_good_one_has_a_limit_of_its_own)
{
    const char *argv[] = {"sh",
                          "-c",
                          "d=$(dirname \"$1\")\ncp \"$1\" \"$d/../seen.json\"\n"
                          "[ ! -e \"$d/../fail\" ] || exit 1\n"
                          "[ ! -e \"$d/../hang\" ] || exec sleep 1000\n" RESULT COPY,
                          "sh",
                          "{task}",
                          NULL};
    struct fl_command_conf conf = {.program.argv = argv,
                                   .time_limit_ms = 3600000,
                                   .first_limit_ms = 600000,
                                   .straggler_factor = 1e-9,
                                   .straggler_min_ms = 900000};
    struct fl_train_result r = {0};
    struct fixture f;
    char path[PATH_MAX];

    fixture_init(&f);
    conf.program.work_dir = f.dir;
    ck_assert_int_eq(fl_trainer_command(&conf, &f.trainer, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_OK);
    (void)snprintf(path, sizeof(path), "%s/fail", f.dir);
    ck_assert_int_eq(fl_fs_replace(path, "", 0, false, &f.err), FL_OK);
    ck_assert_int_eq(run(&f, &r), FL_EIO);
    ck_assert_int_eq(limit_told(&f), 600000);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_msg(run(&f, &r) == FL_OK, "%s", f.err.msg); /* A failed one says nothing. */
    ck_assert_int_eq(limit_told(&f), 600000);
    fl_train_result_done(&r);
    ck_assert_msg(run(&f, &r) == FL_OK, "%s", f.err.msg);
    ck_assert_int_eq(limit_told(&f), 900000); /* From now on its patience. */
    fl_train_result_done(&r);
    /* Another model: nothing is known of it. */
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_OK);
    ck_assert_msg(run(&f, &r) == FL_OK, "%s", f.err.msg);
    ck_assert_int_eq(limit_told(&f), 600000);
    fl_train_result_done(&r);
    fixture_done(&f);
}

TEST(a_first_run_that_hangs_is_ended_by_its_limit_which_is_named)
{
    const char *argv[] = {"sh", "-c", "exec sleep 1000", NULL};
    struct fl_command_conf conf = {
        .program.argv = argv, .time_limit_ms = 3600000, .first_limit_ms = 100};
    struct fl_train_result r = {0};
    struct fixture f;

    fixture_init(&f);
    conf.program.work_dir = f.dir;
    ck_assert_int_eq(fl_trainer_command(&conf, &f.trainer, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_OK);
    ck_assert_int_eq(run(&f, &r), FL_ETIMEOUT);
    ck_assert_msg(says(&f,
                       "'sh' timed out at 'train' after its time limit of 100 ms: the first run "
                       "here may take no longer (command.first_limit)"),
                  "%s", f.err.msg);
    fixture_done(&f);
}

TEST(a_program_has_the_soft_limit_of_descriptors_that_we_were_started_with)
{
    const char *argv[] = {"sh",
                          "-c",
                          "d=$(dirname \"$1\")\n"
                          "ulimit -Sn >\"$d/../soft\"; ulimit -Hn >>\"$d/../soft\"\n" RESULT COPY,
                          "sh",
                          "{task}",
                          NULL};
    struct fl_command_conf conf = {.program.argv = argv, .program.descriptors = 100};
    struct rlimit limit = {.rlim_cur = 300, .rlim_max = 300};
    struct fl_train_result r = {0};
    struct fl_buf text = {0};
    struct fixture f;
    char path[PATH_MAX];

    fixture_init(&f);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    conf.program.work_dir = f.dir;
    ck_assert_int_eq(fl_trainer_command(&conf, &f.trainer, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_OK);
    ck_assert_msg(run(&f, &r) == FL_OK, "%s", f.err.msg);
    fl_train_result_done(&r);
    (void)snprintf(path, sizeof(path), "%s/soft", f.dir);
    ck_assert_int_eq(fl_fs_read(path, 100, &text, &f.err), FL_OK);
    ck_assert_uint_eq(text.len, 8);
    ck_assert_mem_eq(text.data, "100\n300\n", 8);
    fl_buf_done(&text);
    fixture_done(&f);
}

TEST_EACH(what_goes_wrong_in_the_program_is_told, 18)
{
    static const struct {
        const char *text;
        int code;
        const char *says[2];
    } rows[] = {
        {"echo starting; echo 'no such column: age' >&2; exit 3",
         FL_EIO,
         {"exit code 3", "; its stderr ends: no such column: age"}},
        {"kill -9 $$", FL_EIO, {"killed by signal 9", "Killed"}},
        {"i=0; while [ $i -lt 4000 ]; do echo \"line $i\" >&2; i=$((i+1)); done; exit 1",
         FL_EIO,
         {"exit code 1", "line 3998 line 3999"}},
        {"exit 4", FL_EIO, {"'sh' ended with exit code 4", "'sh'"}},
        {"true", FL_ENOENT, {"without writing result.json", "round-000001-0"}},
        {RESULT, FL_ENOENT, {"without writing result.safetensors", "round-000001-0"}},
        {COPY "echo '{\"samples\": 5' > \"$d/result.json\"",
         FL_EFORMAT,
         {"result.json:", "not JSON"}},
        {COPY "echo '[]' > \"$d/result.json\"", FL_EFORMAT, {"'samples' is missing", "count"}},
        {COPY "echo '{\"samples\": -1}' > \"$d/result.json\"", FL_EFORMAT, {"'samples'", "count"}},
        {COPY "echo '{\"samples\": 0}' > \"$d/result.json\"",
         FL_EFORMAT,
         {"'samples' is 0", "weight"}},
        {COPY "echo '{\"samples\": 1.5}' > \"$d/result.json\"", FL_EFORMAT, {"'samples'", "count"}},
        {COPY "echo '{\"samples\": 1, \"steps\": 1}' > \"$d/result.json\"",
         FL_EFORMAT,
         {"'train_loss'", "finite"}},
        {COPY "echo '{\"samples\": 1, \"steps\": 1, \"train_loss\": \"low\"}' > \"$d/result.json\"",
         FL_EFORMAT,
         {"'train_loss'", "finite"}},
        {COPY "echo '{\"samples\": 1, \"steps\": 1, \"train_loss\": 1, \"received\": {\"samples\": "
              "1, \"correct\": 2, \"loss_sum\": 0}}' > \"$d/result.json\"",
         FL_EFORMAT,
         {"'received'", "more correct predictions than samples"}},
        {COPY "head -c 2000000 /dev/zero > \"$d/result.json\"", FL_ELIMIT, {"result.json", ""}},
        {RESULT "head -c 100 \"$d/model.safetensors\" > \"$d/result.safetensors\"",
         FL_EFORMAT,
         {"result.safetensors", ""}},
        {RESULT "cp \"$d/../other\" \"$d/result.safetensors\"",
         FL_ESHAPE,
         {"result.safetensors", "17"}},
        {RESULT "cp \"$d/../nan\" \"$d/result.safetensors\"", FL_ENUMERIC, {"not finite", "unit"}},
    };
    static const char *const layers[] = {"dense 17", "relu", "dense 3"};
    struct fl_net_spec spec = {.input = {INPUTS}, .n_input = 1, .layers = layers, .n_layers = 3};
    struct fl_train_result r = {0};
    struct fl_net *other = NULL;
    char path[128];
    float *params;
    struct fixture f;
    int rv;

    fixture_init(&f);
    params = calloc(10000, sizeof(float));
    ck_assert_int_eq(fl_net_create(&spec, 1, &other, NULL), FL_OK);
    (void)snprintf(path, sizeof(path), "%s/other", f.dir);
    ck_assert_int_eq(fl_st_save(path, fl_net_layout(other), params, NULL, 0, false, NULL), FL_OK);
    params[20] = NAN;
    (void)snprintf(path, sizeof(path), "%s/nan", f.dir);
    ck_assert_int_eq(fl_st_save(path, f.server.model.layout, params, NULL, 0, false, NULL), FL_OK);
    script(&f, rows[_i].text, 0, 0);
    rv = run(&f, &r);
    ck_assert_msg(rv == rows[_i].code, "%d: %s", rv, f.err.msg);
    ck_assert_msg(says(&f, rows[_i].says[0]), "%s", f.err.msg);
    ck_assert_msg(says(&f, rows[_i].says[1]), "%s", f.err.msg);
    ck_assert_ptr_null(r.delta);
    /* The folder stays for whoever looks, until the next task. */
    (void)snprintf(path, sizeof(path), "%s/round-000001-0/task.json", f.dir);
    ck_assert(fl_fs_exists(path));
    fl_net_free(other);
    free(params);
    fixture_done(&f);
}

TEST(the_end_of_stderr_is_kept_in_a_file)
{
    struct fl_train_result r = {0};
    struct fl_buf text = {0};
    char path[128];
    struct fixture f;

    fixture_init(&f);
    script(&f, "yes 0123456789abcde | head -c 100000 >&2; echo the end >&2; exit 1", 0, 0);
    ck_assert_int_eq(run(&f, &r), FL_EIO);
    (void)snprintf(path, sizeof(path), "%s/round-000001-0/stderr.txt", f.dir);
    ck_assert_int_eq(fl_fs_read(path, 1u << 20, &text, &f.err), FL_OK);
    ck_assert_uint_eq(text.len, 16384);
    ck_assert_mem_eq(text.data + text.len - 8, "the end\n", 8);
    fl_buf_done(&text);
    fixture_done(&f);
}

TEST(a_failed_folder_goes_with_the_next_task)
{
    struct fl_train_result r = {0};
    struct fl_train_task task;
    char path[128];
    struct fixture f;

    fixture_init(&f);
    script(&f, "[ -e \"$d/../again\" ] || { touch \"$d/../again\"; exit 1; }\n" COPY RESULT, 0, 0);
    ck_assert_int_eq(run(&f, &r), FL_EIO);
    task = task_of(&f.server);
    task.asked.key.round = 2;
    ck_assert_msg(fl_trainer_run(f.trainer, &task, &r, &f.err) == FL_OK, "%s", f.err.msg);
    (void)snprintf(path, sizeof(path), "%s/round-000001-0", f.dir);
    ck_assert(!fl_fs_exists(path));
    fl_train_result_done(&r);
    fixture_done(&f);
}

/* Runs `text` for limit_ms; false: the limit passed before the program wrote its process id. */
static bool times_out(struct fixture *f, const char *text, uint64_t limit_ms, long *ret_pid)
{
    struct fl_train_result r = {0};
    struct fl_buf pid = {0};
    char path[128];

    script(f, text, limit_ms, 0);
    ck_assert_int_eq(run(f, &r), FL_ETIMEOUT);
    ck_assert_msg(says(f, "time limit of"), "%s", f->err.msg);
    (void)snprintf(path, sizeof(path), "%s/pid", f->dir);
    if (fl_fs_read(path, 100, &pid, NULL) != FL_OK || pid.len == 0) {
        fl_buf_done(&pid);
        return false;
    }
    ck_assert_int_eq(fl_buf_add(&pid, "", 1), FL_OK);
    *ret_pid = strtol((const char *)pid.data, NULL, 10);
    fl_buf_done(&pid);
    return true;
}

/*
 * Row 0 ends on SIGTERM, row 1 ignores it and is killed, row 2 leaves a child behind. One that is
 * not ended outlasts the time limit of this test.
 */
TEST_EACH(a_program_over_its_time_is_ended, 3)
{
    static const char *const rows[] = {
        "echo $$ > \"$d/../pid\"; sleep 3600",
        "trap '' TERM; echo $$ > \"$d/../pid\"; sleep 3600; sleep 3600",
        "(trap '' TERM; sleep 3600; sleep 3600) & echo $! > \"$d/../pid\"; wait",
    };
    struct fixture f;
    uint64_t limit_ms = 300;
    long pid = 0;

    fixture_init(&f);
    while (!times_out(&f, rows[_i], limit_ms, &pid)) {
        fixture_done(&f);
        limit_ms *= 4;
        ck_assert_uint_lt(limit_ms, 30000);
        fixture_init(&f);
    }
    ck_assert_int_gt(pid, 1);
    /* Gone, or at most a zombie that nobody reaped yet: not running. */
    while (kill((pid_t)pid, 0) == 0) {
        char stat_path[64];
        struct fl_buf stat = {0};
        bool zombie;

        (void)snprintf(stat_path, sizeof(stat_path), "/proc/%ld/status", pid);
        if (fl_fs_read(stat_path, 1u << 16, &stat, NULL) != FL_OK) {
            break;
        }
        ck_assert_int_eq(fl_buf_add(&stat, "", 1), FL_OK);
        zombie = strstr((const char *)stat.data, "State:\tZ") != NULL;
        fl_buf_done(&stat);
        if (zombie) {
            break;
        }
    }
    fixture_done(&f);
}

TEST(the_deadline_of_the_task_counts_too)
{
    struct fl_train_result r = {0};
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f);
    script(&f, "sleep 60", 30000, 0);
    task = task_of(&f.server);
    task.asked.deadline_ms = 200;
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ETIMEOUT);
    ck_assert_msg(says(&f, "time limit of 200 ms"), "%s", f.err.msg);
    fixture_done(&f);
}

struct watcher {
    atomic_bool *cancel;
    char path[128];
};

/* Cancels when the program has shown that it runs. */
static void *cancel_when_running(void *ctx)
{
    const struct watcher *w = ctx;
    uint64_t began = fl_clock_ms();

    while (!fl_fs_exists(w->path) && fl_clock_ms() - began < 20000) {
        (void)sched_yield();
    }
    atomic_store(w->cancel, true);
    return NULL;
}

TEST(a_program_can_be_cancelled)
{
    struct fl_train_result r = {0};
    struct watcher w;
    struct fl_train_task task;
    atomic_bool cancel;
    char path[128];
    pthread_t thread;
    struct fixture f;

    fixture_init(&f);
    script(&f, "touch \"$d/../running\"; sleep 60", 0, 0);
    atomic_init(&cancel, false);
    w.cancel = &cancel;
    (void)snprintf(w.path, sizeof(w.path), "%s/running", f.dir);
    task = task_of(&f.server);
    task.cancel = &cancel;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_when_running, &w), 0);
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ECANCELED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)snprintf(path, sizeof(path), "%s/round-000001-0", f.dir);
    ck_assert(!fl_fs_exists(path));
    fixture_done(&f);
}

TEST(memory_is_limited)
{
    struct fl_train_result r = {0};
    struct fixture f;

    fixture_init(&f);
    script(&f,
           "dd if=/dev/zero of=/dev/null bs=900M count=1 2>\"$d/dd\" || { cat \"$d/dd\" >&2; "
           "exit 5; }\n" COPY RESULT,
           0, (uint64_t)200 << 20);
    ck_assert_int_eq(run(&f, &r), FL_EIO);
    ck_assert_msg(says(&f, "exit code 5") && says(&f, "memory exhausted"), "%s", f.err.msg);
    fl_trainer_free(f.trainer);
    f.trainer = NULL;
    script(&f, COPY RESULT, 0, (uint64_t)200 << 20);
    ck_assert_msg(run(&f, &r) == FL_OK, "%s", f.err.msg);
    fl_train_result_done(&r);
    fixture_done(&f);
}

TEST_EACH(a_program_that_is_not_there_is_named, 4)
{
    static const struct {
        const char *name;
        int code;
        const char *says;
    } rows[] = {
        {"fl-no-such-program", FL_ENOENT, "cannot find the program 'fl-no-such-program' in PATH"},
        {"/nonexistent/trainer", FL_ENOENT, "cannot run '/nonexistent/trainer': No such file"},
        {"/etc/passwd", FL_EPERM, "cannot run '/etc/passwd': Permission denied"},
        {"", FL_ECONF, "needs a program"},
    };
    const char *argv[] = {rows[_i].name, NULL};
    struct fl_trainer *trainer = NULL;
    struct fixture f;
    struct fl_command_conf conf = {.program.argv = argv, .program.work_dir = f.dir};

    fixture_init(&f);
    ck_assert_int_eq(fl_trainer_command(&conf, &trainer, &f.err), rows[_i].code);
    ck_assert_msg(says(&f, rows[_i].says), "%s", f.err.msg);
    ck_assert_ptr_null(trainer);
    fixture_done(&f);
}

TEST(a_file_that_cannot_be_run_is_named)
{
    const char *argv[2] = {NULL, NULL};
    struct fl_train_result r = {0};
    char path[128];
    struct fixture f;
    struct fl_command_conf conf = {.program.argv = argv, .program.work_dir = f.dir};

    fixture_init(&f);
    (void)snprintf(path, sizeof(path), "%s/program", f.dir);
    argv[0] = path;
    ck_assert_int_eq(fl_fs_replace(path, "\x7f no program", 12, false, NULL), FL_OK);
    ck_assert_int_eq(chmod(path, 0755), 0);
    ck_assert_int_eq(fl_trainer_command(&conf, &f.trainer, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_OK);
    ck_assert_int_ne(run(&f, &r), FL_OK);
    ck_assert_msg(says(&f, "Exec format error"), "%s", f.err.msg);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(run(&f, &r), FL_ENOENT);
    fixture_done(&f);
}

static int no_summary(const struct fl_options *o, const struct fl_solver_data *data, uint64_t seed,
                      struct fl_buf *out, struct fl_err *err)
{
    (void)o;
    (void)data;
    (void)seed;
    (void)out;
    (void)err;
    ck_abort_msg("a command trainer has no data");
    return FL_OK;
}

TEST(solvers_with_payloads_are_refused)
{
    static const char *const names[] = {"control", NULL};
    struct fl_solver_ops ops = fl_solver_sgd;
    struct fl_train_result r = {0};
    struct fl_evaluation e;
    struct fixture f;

    fixture_init(&f);
    script(&f, COPY RESULT, 0, 0);
    ops.policy.name = "controlled";
    ops.inputs = names;
    f.server.model.solver = &ops;
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_EUNIMPL);
    ck_assert_msg(says(&f, "solver 'controlled'"), "%s", f.err.msg);
    ck_assert_int_eq(run(&f, &r), FL_ESTATE);
    ck_assert_int_eq(fl_trainer_evaluate(f.trainer, f.server.theta, NULL, &e, &f.err), FL_ENOENT);
    fixture_done(&f);
}

/* Personal models are files like others: only where they come from differs. */
TEST(a_program_trains_a_model_of_its_own)
{
    struct fl_train_result r = {0};
    struct fl_train_task task;
    struct fl_options *o = NULL;
    float *anchor, *seen;
    json_t *json;
    char path[128];
    struct fixture f;

    fixture_init(&f);
    ck_assert_int_eq(fl_options_create(fl_personal_own.policy.options, &o), FL_OK);
    f.server.model.personal = &fl_personal_own;
    f.server.model.personal_options = o;
    script(&f,
           COPY "cp \"$1\" \"$d/../seen.json\"\n"
                "if [ -e \"$d/anchor.safetensors\" ]; then cp \"$d/anchor.safetensors\" "
                "\"$d/../seen.anchor\"; fi\n"
                "printf '{\"samples\": 5, \"steps\": 3, \"train_loss\": 1, \"trained\": "
                "{\"samples\": 10, \"correct\": 6, \"loss_sum\": 2.5}}' > \"$d/result.json\"\n",
           0, 0);
    anchor = calloc(f.server.count, sizeof(float));
    seen = calloc(f.server.count, sizeof(float));
    anchor[5] = 2;
    task = task_of(&f.server);
    ck_assert_msg(fl_trainer_run(f.trainer, &task, &r, &f.err) == FL_OK, "%s", f.err.msg);
    ck_assert(!r.has_trained); /* nobody asked for it */
    fl_train_result_done(&r);
    task.anchor = anchor;
    task.raw = true;
    task.evaluate_trained = true;
    ck_assert_msg(fl_trainer_run(f.trainer, &task, &r, &f.err) == FL_OK, "%s", f.err.msg);
    ck_assert_mem_eq(r.delta, f.server.theta, f.server.count * sizeof(float));
    ck_assert_double_eq((double)r.divergence[0], 0);
    ck_assert(r.has_trained && !r.has_received);
    ck_assert_uint_eq(r.trained.samples, 10);
    ck_assert_uint_eq(r.trained.correct, 6);
    ck_assert_double_eq(r.trained.loss_sum, 2.5);
    (void)snprintf(path, sizeof(path), "%s/seen.anchor", f.dir);
    ck_assert_int_eq(fl_st_load(path, f.server.model.layout, seen, NULL), FL_OK);
    ck_assert_mem_eq(seen, anchor, f.server.count * sizeof(float));
    (void)snprintf(path, sizeof(path), "%s/seen.json", f.dir);
    json = json_load_file(path, 0, NULL);
    ck_assert(json_is_true(json_object_get(json, "evaluate_trained")));
    ck_assert(json_is_string(json_object_get(json, "anchor")));
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(json, "personal"), "name")),
                     "own");
    json_decref(json);
    fl_train_result_done(&r);
    fl_options_free(o);
    free(anchor);
    free(seen);
    fixture_done(&f);
}

TEST(what_a_program_cannot_do_is_said)
{
    struct fl_evaluation received, adapted;
    struct fl_solver_ops ops = fl_solver_sgd;
    struct fl_train_task task;
    struct fl_buf out = {0};
    struct fixture f;

    fixture_init(&f);
    script(&f, COPY RESULT, 0, 0);
    task = task_of(&f.server);
    ck_assert_int_eq(fl_trainer_summary(f.trainer, 1, &out, &f.err), FL_EUNIMPL);
    ck_assert_msg(says(&f, "'sh' is started for each task and cannot 'summary'"), "%s", f.err.msg);
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_ENOENT);
    ck_assert_msg(says(&f, "'sh' is started for each task and cannot 'adapt'"), "%s", f.err.msg);
    /* Known before a client is selected. */
    ops.summary = no_summary;
    f.server.model.solver = &ops;
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_EUNIMPL);
    fixture_done(&f);
}
