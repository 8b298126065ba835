/* A program that stays, and does what it must not (tests/lib/fake_trainer.c has the list). */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "tests/lib/persistent_rig.h"
#include "tests/lib/suites.h"

/* With each task: what is said of it. */
static const struct {
    const char *mode;
    int code;
    const char *says[2];
    bool stays; /* it may be asked again */
} rows[] = {
    {"prints", FL_EPROTO, {"broke the trainer protocol: a message of ", "0x65706f63"}, false},
    {"zero", FL_EPROTO, {"a message of 0 bytes", "expected a length of 1 to 1048576"}, false},
    {"no_json", FL_EPROTO, {"not JSON", "'all is well'"}, false},
    {"no_type", FL_EPROTO, {"not a JSON object with a 'type'", "{\"id\": 1}"}, false},
    {"unknown", FL_EPROTO, {"not a JSON object with a 'type'", "finished"}, false},
    {"no_id", FL_EPROTO, {"it sent 'done' with no id instead of 1", ""}, false},
    {"other_id",
     FL_EPROTO,
     {"it sent 'done' with the id 2", "'done' of 'train' 1 was expected"},
     false},
    {"ready_again", FL_EPROTO, {"it sent 'ready'", "'done' of 'train' 1 was expected"}, false},
    {"no_steps", FL_EPROTO, {"'steps' is missing", ""}, false},
    {"nan_loss", FL_EPROTO, {"not JSON", "NaN"}, false},
    {"twice",
     FL_EPROTO,
     {"it sent 'done' of a task that it had answered already", "no request was"},
     false},
    {"fails",
     FL_EIO,
     {"failed at 'train': no such column: age; its stderr ends: Traceback: no such column", ""},
     true},
    {"diverges", FL_ENUMERIC, {"the loss is not finite", ""}, true},
    {"long_error", FL_EIO, {"failed at 'train': begins", ""}, true},
    {"exits",
     FL_EIO,
     {"ended with exit code 3; 'done' of 'train' 1 was expected; its stderr ends: out of luck", ""},
     false},
    {"exits_well", FL_EIO, {"ended with exit code 0; 'done'", ""}, false},
    {"half", FL_EIO, {"exit code 3 in the middle of a message", "its stderr ends: cut off"}, false},
};

TEST_EACH(what_it_does_wrong_costs_the_task_and_is_told, ARRAY_LEN(rows))
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_open(&rig, rows[_i].mode);
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_TRAIN, &a) == rows[_i].code, "%s: %s", rows[_i].mode,
                  rig.err.msg);
    ck_assert_msg(rig_says(&rig, rows[_i].says[0]), "%s: %s", rows[_i].mode, rig.err.msg);
    ck_assert_msg(rig_says(&rig, rows[_i].says[1]), "%s: %s", rows[_i].mode, rig.err.msg);
    ck_assert_msg(rig_says(&rig, "fake_trainer'"), "%s: %s", rows[_i].mode, rig.err.msg);
    ck_assert_msg(fl_persistent_runs(rig.r) == rows[_i].stays, "%s", rows[_i].mode);
    /* The next task starts it again. */
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), rows[_i].code);
    ck_assert_msg((strstr(strstr(rig_notes(&rig), "train 1"), "start") != NULL) == !rows[_i].stays,
                  "%s", rig_notes(&rig));
    rig_done(&rig);
}

/* Noticed at once or with the next task: it costs that one, and never passes for its answer. */
static const char *const late_modes[] = {"twice_later", "unasked", "two", "second"};

TEST_EACH(an_answer_to_nothing_costs_the_next_task, 4)
{
    struct fl_persistent_answer a;
    struct rig rig;
    int rv = FL_OK;
    int i;

    rig_open(&rig, late_modes[_i]);
    for (i = 0; i < 100 && rv == FL_OK; i++) {
        rv = rig_run(&rig, FL_PERSISTENT_TRAIN, &a);
    }
    ck_assert_int_eq(rv, FL_EPROTO);
    ck_assert_msg(i <= 100 && rig_says(&rig, "broke the trainer protocol: it sent '"), "%s",
                  rig.err.msg);
    rig_done(&rig);
}

/*
 * Both read, so that a message goes to either or is torn in two: what is said to be done is done.
 * One that waits for the other half is ended as one that hangs.
 */
TEST(two_programs_that_read_one_socket_cost_tasks_and_never_mix_their_results)
{
    struct fl_persistent_answer a;
    struct fl_persistent_task task;
    struct rig rig;
    size_t i;
    int rv;

    rig_init(&rig, "two_readers");
    rig.conf.cancel_grace_ms = 100;
    rig_create(&rig);
    rig_describe(&rig);
    for (i = 0; i < 20; i++) {
        task = rig_task(&rig, FL_PERSISTENT_TRAIN);
        task.limit_ms = 100;
        rig.given[1] = (float)i;
        rig.err = (struct fl_err){0};
        rv = fl_persistent_run(rig.r, &task, &a, &rig.err);
        if (rv == FL_OK) {
            ck_assert_int_eq(fl_persistent_result(rig.r, rig.out, &rig.err), FL_OK);
            ck_assert_double_eq((double)rig.out[1], (double)i + 0.5);
        } else {
            ck_assert_msg(rv == FL_EPROTO || rv == FL_EIO || rv == FL_ETIMEOUT, "%d", rv);
            ck_assert_msg(rig_says(&rig, "fake_trainer'"), "%s", rig.err.msg);
        }
    }
    rig_done(&rig);
}

/* --- starting --- */

static const struct {
    const char *mode;
    int code;
    const char *says;
} starts[] = {
    {"version", FL_EVERSION, "speaks version 7 of the trainer protocol, expected version 1"},
    {"fails_start", FL_EIO, "cannot start: no GPU is left"},
    {"exits_start", FL_EIO,
     "ended with exit code 3; 'ready' was expected; its stderr ends: cannot find my data"},
    {"silent_start", FL_ETIMEOUT, "did not answer 'start' within 100 ms and was ended"},
    {"no_samples", FL_EPROTO, "'samples' is 0"},
};

TEST_EACH(a_start_that_fails_is_told, 5)
{
    struct rig rig;

    rig_init(&rig, starts[_i].mode);
    if (starts[_i].code == FL_ETIMEOUT) {
        rig.conf.start_limit_ms = 100;
    }
    rig_create(&rig);
    ck_assert_msg(fl_persistent_start(rig.r, &rig.err) == starts[_i].code, "%s", rig.err.msg);
    ck_assert_msg(rig_says(&rig, starts[_i].says), "%s", rig.err.msg);
    ck_assert(!fl_persistent_runs(rig.r));
    rig_done(&rig);
}

TEST(a_program_that_is_not_there_is_named)
{
    struct rig rig;

    rig_init(&rig, "good");
    rig.argv[0] = "/nonexistent/trainer";
    ck_assert_int_eq(fl_persistent_create(&rig.conf, &rig.r, &rig.err), FL_ENOENT);
    ck_assert_msg(rig_says(&rig, "cannot run '/nonexistent/trainer'"), "%s", rig.err.msg);
    rig_done(&rig);
}

TEST(it_is_started_again_after_longer_and_longer_waits_until_a_task_succeeds)
{
    struct fl_persistent_answer a;
    uint64_t before = 0;
    static const uint64_t waits[] = {0, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct rig rig;
    size_t i;

    rig_open(&rig, "exits_start");
    rig.time.stands = true;
    for (i = 0; i < 9; i++) {
        ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_EIO);
        ck_assert_uint_eq(rig.time.paused_ms - before, waits[i]);
        before = rig.time.paused_ms;
    }
    rig_done(&rig);
    rig_open(&rig, "exits_once");
    rig.time.stands = true;
    for (i = 0; i < 2; i++) {
        ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_EIO);
        before = rig.time.paused_ms;
        ck_assert_msg(rig_run(&rig, FL_PERSISTENT_TRAIN, &a) == FL_OK, "%s", rig.err.msg);
        ck_assert_uint_eq(rig.time.paused_ms - before, 1000); /* The first wait again. */
        ck_assert_int_eq(unlink(rig.notes), 0);
    }
    rig_done(&rig);
}

TEST(waiting_for_a_new_start_can_be_cancelled)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_open(&rig, "exits");
    rig.time.ahead_ms = 1;
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_EIO);
    atomic_store(&rig.cancel, true);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_ECANCELED);
    ck_assert_uint_eq(rig.time.paused_ms, 0);
    rig_done(&rig);
}

TEST(one_that_ends_between_two_tasks_costs_none_of_them)
{
    struct fl_persistent_answer a;
    struct rig rig;
    int i;

    rig_open(&rig, "exits_after");
    for (i = 0; i < 5; i++) {
        ck_assert_msg(rig_run(&rig, FL_PERSISTENT_TRAIN, &a) == FL_OK, "%s", rig.err.msg);
        ck_assert_int_eq(fl_persistent_result(rig.r, rig.out, &rig.err), FL_OK);
        ck_assert_double_eq((double)rig.out[1], 1.5);
        while (fl_persistent_runs(rig.r) && !atomic_load(&rig.cancel)) {
            /* Its end is seen when it is looked at. */
            if (fl_persistent_describe(rig.r, &rig.model, 0, NULL) != FL_OK) {
                break;
            }
        }
    }
    ck_assert_uint_eq(rig.time.paused_ms, 0);
    rig_done(&rig);
}

/* --- hanging --- */

static int run_for(struct rig *rig, uint64_t limit_ms, struct fl_persistent_answer *a)
{
    struct fl_persistent_task task = rig_task(rig, FL_PERSISTENT_TRAIN);

    task.limit_ms = limit_ms;
    return fl_persistent_run(rig->r, &task, a, &rig->err);
}

/* The limit of the task passes at once; how the program ends then takes no time here. */
static int run_over_time(struct rig *rig, struct fl_persistent_answer *a)
{
    return run_for(rig, 100, a);
}

static const char *const hanging[] = {"hangs", "floods", "child_hangs", "stubborn"};

TEST_EACH(one_that_hangs_is_ended_after_its_grace, 4)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_init(&rig, hanging[_i]);
    rig.conf.cancel_grace_ms = 100;
    rig_create(&rig);
    rig_describe(&rig);
    ck_assert_int_eq(run_over_time(&rig, &a), FL_ETIMEOUT);
    ck_assert_msg(
        rig_says(&rig, "the program was killed, as it did not answer 'cancel' within 100 ms"), "%s",
        rig.err.msg);
    ck_assert_msg(rig_says(&rig, "time limit of 100 ms"), "%s", rig.err.msg);
    ck_assert(!fl_persistent_runs(rig.r));
    rig_done(&rig);
}

TEST(one_that_reads_nothing_does_not_block_us)
{
    struct fl_persistent_answer a;
    struct rig rig;
    struct fl_layout *large = NULL;
    char name[32];
    size_t dims[] = {1};
    size_t i;

    rig_init(&rig, "never_reads");
    /* A description that no socket takes at once. */
    ck_assert_int_eq(fl_layout_create(&large), FL_OK);
    for (i = 0; i < 8000; i++) {
        (void)snprintf(name, sizeof(name), "a_tensor_of_number_%zu", i);
        ck_assert_int_eq(fl_layout_add(large, "u", name, dims, 1, false, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_layout_finish(large, NULL), FL_OK);
    rig.model.layout = large;
    rig.conf.start_limit_ms = 300;
    rig_create(&rig);
    rig_describe(&rig);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_ETIMEOUT);
    ck_assert_msg(rig_says(&rig, "did not answer 'model' within 300 ms"), "%s", rig.err.msg);
    rig_done(&rig);
    fl_layout_free(large);
}

/* --- what it leaves behind --- */

static pid_t child_of(const struct rig *rig)
{
    const char *at = strstr(rig_notes(rig), "child ");

    return at != NULL ? (pid_t)strtol(at + 6, NULL, 10) : 0;
}

/* A killed process may be there for a moment, as nobody's child. */
static bool is_gone(pid_t pid)
{
    char path[64];
    struct fl_buf text = {0};
    bool gone;

    if (kill(pid, 0) != 0) {
        return errno == ESRCH;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    gone = fl_fs_read(path, 4096, &text, NULL) != FL_OK ||
           memchr(text.data, 'Z', text.len) != NULL || memchr(text.data, 'X', text.len) != NULL;
    fl_buf_done(&text);
    return gone;
}

static const char *const forking[] = {"child", "child_hangs"};

/*
 * false: the limit passed before the program had a child (a busy machine), or before it was done,
 * where it does not hang.
 */
static bool child_ends_with_it(const char *kind, bool hangs, uint64_t limit_ms)
{
    struct fl_persistent_answer a;
    struct rig rig;
    bool in_time;
    pid_t child;
    int rv;

    rig_init(&rig, kind);
    rig.conf.cancel_grace_ms = 100;
    rig_create(&rig);
    rig_describe(&rig);
    rv = run_for(&rig, limit_ms, &a);
    ck_assert_int_eq(rv, hangs || rv != FL_OK ? FL_ETIMEOUT : FL_OK);
    child = child_of(&rig);
    in_time = child != 0 && (hangs || rv == FL_OK);
    fl_persistent_stop(rig.r);
    while (child != 0 && !is_gone(child)) {
    }
    rig_done(&rig);
    return in_time;
}

TEST_EACH(nothing_of_its_group_is_left, 2)
{
    uint64_t limit_ms = 100;

    while (!child_ends_with_it(forking[_i], _i == 1, limit_ms)) {
        limit_ms *= 4;
        ck_assert_uint_lt(limit_ms, 400000);
    }
}

TEST(the_weights_cannot_be_written_to)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_open(&rig, "writes");
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_TRAIN, &a) == FL_OK, "%s", rig.err.msg);
    ck_assert_str_eq(rig_notes(&rig), "start edge-1 /srv/data train;model;train 1;");
    ck_assert_int_eq(fl_persistent_result(rig.r, rig.out, &rig.err), FL_OK);
    ck_assert_double_eq((double)rig.out[3], 3.5);
    rig_done(&rig);
}

TEST(memory_that_it_sealed_itself_is_told)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_open(&rig, "seals");
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_EPROTO);
    ck_assert_msg(rig_says(&rig, "has sealed the shared memory (result) itself"), "%s",
                  rig.err.msg);
    rig_done(&rig);
}

TEST(a_summary_beyond_its_slot_is_no_summary)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_init(&rig, "summaries_much");
    rig.model.summary_bytes = 100;
    rig_create(&rig);
    rig_describe(&rig);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_SUMMARY, &a), FL_EPROTO);
    ck_assert_msg(rig_says(&rig, "a data summary of 101 bytes in a slot of 100"), "%s",
                  rig.err.msg);
    rig_done(&rig);
}

static const char *const greedy[] = {"memory", "child_memory"};

TEST_EACH(one_that_takes_more_memory_than_it_may_is_ended, 2)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_init(&rig, greedy[_i]);
    rig.conf.memory_bytes = UINT64_C(48) << 20;
    rig.conf.memory_of = FL_PROGRAM_RESIDENT_MEMORY;
    rig_create(&rig);
    rig_describe(&rig);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_ELIMIT);
    ck_assert_msg(rig_says(&rig, ", over its limit of 50.3 MB") ||
                      rig_says(&rig, ", over its limit of 48"),
                  "%s", rig.err.msg);
    rig_done(&rig);
}
