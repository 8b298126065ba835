/* What a trial of a program looks at, and what it says of what it finds. */
#include <check.h>
#include <fcntl.h>
#include <unistd.h>

#include "client/daemon/clientd_exit.h"
#include "client/daemon/try_impl.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

#define LONG UINT64_C(600000)

static char program_path[512];

static const char *program(const char *name)
{
    const char *build = getenv("FL_BUILDDIR");

    (void)snprintf(program_path, sizeof(program_path), "%s/tests/lib/%s",
                   build != NULL ? build : ".", name);
    return program_path;
}

/* --- the report --- */

TEST(a_report_is_a_line_for_each_check_and_says_at_its_end_whether_it_is_good)
{
    struct fl_try_report report;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    fl_try_report_begin(&report, out, false);
    fl_try_say(&report, FL_TRY_OK, "start", "of %d", 7);
    fl_try_add_line(&report, "below %s", "it");
    fl_try_set(&report, "not_for_people", json_integer(1));
    fl_try_say(&report, FL_TRY_WARNING, "bye", "two\nlines\x1b[2J");
    ck_assert(fl_try_report_end(&report));
    fl_try_report_begin(&report, out, false);
    fl_try_say(&report, FL_TRY_NOT_TRIED, "summary", "why");
    fl_try_say(&report, FL_TRY_FAILED, "train", "what");
    ck_assert(!fl_try_report_end(&report));
    (void)fclose(out);
    ck_assert_str_eq(text, "ok        start: of 7\n"
                           "            below it\n"
                           "warning   bye: two?lines?[2J\n"
                           "good: 1 ok, 0 failed, 1 warnings, 0 not tried\n"
                           "not tried summary: why\n"
                           "FAILED    train: what\n"
                           "NOT GOOD: 0 ok, 1 failed, 0 warnings, 1 not tried\n");
    free(text);
}

TEST(a_report_for_programs_is_one_object)
{
    struct fl_try_report report;
    json_t *expected = json_loads("{\"samples\": 5, \"good\": false, \"checks\": [{\"check\": "
                                  "\"train\", \"result\": \"failed\", \"text\": \"what\"}]}",
                                  0, NULL);
    json_t *found;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    fl_try_report_begin(&report, out, true);
    fl_try_set(&report, "samples", json_integer(5));
    fl_try_set(&report, "left_out", NULL);
    fl_try_add_line(&report, "for people");
    fl_try_say(&report, FL_TRY_FAILED, "train", "what");
    ck_assert(!fl_try_report_end(&report));
    (void)fclose(out);
    found = json_loads(text, 0, NULL);
    ck_assert_msg(json_equal(found, expected), "%s", text);
    json_decref(found);
    json_decref(expected);
    free(text);
}

/* --- a trial of the test's own --- */

struct trial {
    struct fl__try t;
    struct fl_client_command command;
    struct fl_client_conf conf;
    struct fl_try_options options;
    struct server server; /* the model of tests/lib/nn_trainer */
    char dir[FOLDER_PATH], notes[FOLDER_PATH + 8];
    bool stands;  /* the time: nothing is cancelled */
    float *block; /* t.plain, t.other and t.vector */
    char *text;
    size_t len;
};

static uint64_t now_of(void *ctx)
{
    struct trial *x = ctx;
    uint64_t now = fl_clock_ms();

    if (!x->stands && x->t.cancel_at_ms != 0 && now >= x->t.cancel_at_ms) {
        atomic_store(&x->t.cancel, true);
    }
    return now;
}

static void no_pause(void *ctx, uint64_t ms)
{
    (void)ctx;
    (void)ms;
}

/* With a program that is ready, and was told no model yet. */
static void trial_open(struct trial *x, const char *name, const char *mode, uint64_t grace_ms)
{
    const char *argv[] = {program(name), mode, NULL};
    struct fl_persistent_conf conf = {
        .argv = argv, .client = "tried", .purpose = "try", .clock = &x->t.clock};
    struct fl_err err = {0};

    (void)memset(x, 0, sizeof(*x));
    ck_assert(folder_make("try", x->dir));
    (void)snprintf(x->notes, sizeof(x->notes), "%s/notes", x->dir);
    if (mode == NULL) {
        argv[1] = x->notes; /* nn_trainer, which then declares all */
    }
    server_init(&x->server);
    x->block = calloc(3 * x->server.count, sizeof(float));
    x->options = (struct fl_try_options)FL_TRY_OPTIONS;
    x->command.start_limit_ms = LONG;
    x->conf.command = &x->command;
    x->t.conf = &x->conf;
    x->t.options = &x->options;
    x->t.clock = (struct fl_persistent_clock){now_of, no_pause, x};
    x->t.layout = (struct fl_layout *)(uintptr_t)x->server.model.layout;
    x->t.count = x->server.count;
    x->t.model = x->server.theta;
    x->t.plain = x->block;
    x->t.other = x->block + x->server.count;
    x->t.vector = x->t.other + x->server.count;
    x->t.vectors = 1u << FL_PERSISTENT_ANCHOR | 1u << FL_PERSISTENT_GRADIENT |
                   1u << FL_PERSISTENT_DRIFT | 1u << FL_PERSISTENT_PLACES;
    x->t.repeatable = true;
    atomic_init(&x->t.cancel, false);
    conf.start_limit_ms = LONG;
    conf.cancel_grace_ms = grace_ms;
    fl_try_report_begin(&x->t.report, open_memstream(&x->text, &x->len), false);
    ck_assert_msg(fl_persistent_create(&conf, &x->t.r, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_persistent_start(x->t.r, &err) == FL_OK, "%s", err.msg);
}

/* The model that it makes without any part is t.plain. */
static void trial_train(struct trial *x)
{
    struct fl_persistent_answer answer;
    struct fl_err err = {0};
    struct fl_persistent_task task = fl__try_task(&x->t);

    ck_assert_msg(fl__try_describe(&x->t, x->t.layout, NULL, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl__try_train(&x->t, &task, x->t.plain, &answer, &err) == FL_OK, "%s", err.msg);
    x->t.task_ms = answer.took_ms;
}

static void trial_says(const struct trial *x, const char *line)
{
    (void)fflush(x->t.report.out);
    ck_assert_msg(strstr(x->text, line) != NULL, "no '%s' in:\n%s", line, x->text);
}

static void trial_done(struct trial *x)
{
    fl_persistent_free(x->t.r);
    (void)fclose(x->t.report.out);
    free(x->text);
    free(x->block);
    server_done(&x->server);
    folder_remove(x->dir);
}

/* --- parts --- */

TEST(parts_that_are_done_are_found_to_be)
{
    struct trial x;

    trial_open(&x, "nn_trainer", NULL, LONG);
    trial_train(&x);
    fl__try_parts(&x.t);
    trial_says(&x, "ok        part pull: zeros change nothing, and other values change");
    trial_says(&x, "ok        part gradient: zeros change nothing");
    trial_says(&x, "ok        part drift: zeros change nothing");
    trial_says(&x, "ok        part pfedme: carried out; its effect was not checked\n");
    trial_says(&x, "ok        part per_fedavg: carried out");
    trial_says(&x, "not tried part mixup: it needs data summaries of other clients");
    trial_says(&x, "ok        part space: zeros change nothing, and other values change");
    ck_assert_uint_eq(x.t.report.n[FL_TRY_FAILED], 0);
    trial_done(&x);
}

TEST(a_part_that_is_declared_and_not_done_is_found)
{
    struct trial x;

    trial_open(&x, "fake_trainer", "good", LONG);
    trial_train(&x);
    fl__try_parts(&x.t);
    trial_says(&x, "FAILED    part pull: expected that it changes the model, found the same model");
    trial_says(&x, "FAILED    part gradient: expected");
    trial_says(&x, "FAILED    part drift: expected");
    ck_assert_uint_eq(x.t.report.n[FL_TRY_FAILED], 3);
    trial_done(&x);
}

TEST(a_part_that_changes_something_by_zeros_is_found)
{
    struct trial x;

    trial_open(&x, "fake_trainer", "good", LONG);
    trial_train(&x);
    x.t.plain[3] += 0.1F; /* As if the plain training had made another model. */
    fl__try_parts(&x.t);
    trial_says(&x, "FAILED    part pull: expected that zeros change nothing, found another model");
    trial_done(&x);
}

TEST(parts_of_a_training_that_cannot_be_repeated_are_only_carried_out)
{
    struct trial x;

    trial_open(&x, "fake_trainer", "good", LONG);
    trial_train(&x);
    x.t.repeatable = false;
    fl__try_parts(&x.t);
    trial_says(&x, "ok        part pull: carried out; its effect was not checked, because a "
                   "training is not repeatable");
    ck_assert_uint_eq(x.t.report.n[FL_TRY_FAILED], 0);
    trial_done(&x);
}

TEST(a_part_that_nobody_asks_for_is_worth_a_warning)
{
    struct trial x;

    trial_open(&x, "fake_trainer", "odd_part", LONG);
    trial_train(&x);
    fl__try_parts(&x.t);
    trial_says(&x, "warning   part fly: no solver uses a part of that name");
    trial_done(&x);
}

TEST(a_part_that_ends_the_program_is_said_with_its_last_words)
{
    struct trial x;

    trial_open(&x, "fake_trainer", "exits", LONG);
    fl__try_parts(&x.t);
    trial_says(&x, "FAILED    part pfedme: ");
    trial_says(&x, "ended with exit code 3; 'done' of 'train' 1 was expected; its stderr ends: out "
                   "of luck");
    trial_done(&x);
}

/* --- cancelling --- */

static const struct {
    const char *mode;
    const char *says;
} cancels[] = {
    {"waits", "ok        cancel: answered after "},
    {"done_late", "ok        cancel: answered after "}, /* it was on its way */
    {"good", " epochs ended before a training could be cancelled"},
    {"exits", "FAILED    cancel: expected 'canceled' or 'done', found: "},
};

TEST_EACH(a_training_is_cancelled_in_its_middle, 4)
{
    struct fl_err err = {0};
    struct trial x;

    trial_open(&x, "fake_trainer", cancels[_i].mode, LONG);
    x.stands = strcmp(cancels[_i].mode, "good") == 0;
    ck_assert_int_eq(fl__try_describe(&x.t, x.t.layout, NULL, &err), FL_OK);
    fl__try_cancel(&x.t);
    trial_says(&x, cancels[_i].says);
    ck_assert_uint_eq(x.t.cancel_at_ms, 0);
    ck_assert(!atomic_load(&x.t.cancel)); /* What follows is not cancelled too. */
    trial_done(&x);
}

TEST(one_that_does_not_hear_cancel_fails_and_no_more_is_asked_of_it)
{
    struct fl_err err = {0};
    struct trial x;

    trial_open(&x, "fake_trainer", "hangs", 100);
    ck_assert_int_eq(fl__try_describe(&x.t, x.t.layout, NULL, &err), FL_OK);
    fl__try_cancel(&x.t);
    trial_says(&x, "FAILED    cancel: expected 'canceled' or 'done', found: the program was "
                   "killed, as it did not "
                   "answer 'cancel' within 100 ms");
    fl__try_cancel(&x.t);
    trial_says(&x, "not tried cancel: the program is no longer running");
    trial_done(&x);
}

/* --- another model --- */

TEST(another_model_has_to_be_refused)
{
    struct trial x;

    trial_open(&x, "nn_trainer", NULL, LONG);
    trial_train(&x);
    fl__try_shape(&x.t);
    trial_says(&x, "ok        other model: refused: the server's model is not the one of ");
    trial_says(&x, "these are not my tensors");
    trial_done(&x);
    trial_open(&x, "fake_trainer", "good", LONG);
    fl__try_shape(&x.t);
    trial_says(&x, "FAILED    other model: expected 'failed' for a model whose tensor "
                   "'fc1.weight' has another shape, found that it was accepted");
    trial_done(&x);
}

TEST(a_model_of_which_no_shape_can_be_changed_is_not_tried)
{
    const size_t dims[FL_LAYOUT_MAX_DIMS] = {2, 1, 1, 1, 1, 1, 1, 2};
    struct fl_layout *layout = NULL;
    struct trial x;

    trial_open(&x, "fake_trainer", "good", LONG);
    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "u", "a", dims, FL_LAYOUT_MAX_DIMS, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    x.t.layout = layout;
    fl__try_shape(&x.t);
    trial_says(&x, "not tried other model: no tensor has a shape that can be changed");
    trial_done(&x);
    fl_layout_free(layout);
}

/* --- all of it --- */

/* Exit code of a trial with the program of the configuration; what it prints into x->text. */
static int all_of(struct trial *x, const char *name, const char *mode, bool with_model)
{
    char conf_path[FOLDER_PATH + 16], model_path[FOLDER_PATH + 16], out_path[FOLDER_PATH + 16];
    struct fl_try_options options = FL_TRY_OPTIONS;
    struct fl_client_conf *conf = NULL;
    struct fl_err err = {0};
    struct fl_buf text = {0};
    FILE *f;
    int ours, code;

    (void)memset(x, 0, sizeof(*x));
    server_init(&x->server);
    ck_assert(folder_make("try", x->dir));
    (void)snprintf(x->notes, sizeof(x->notes), "%s/notes", x->dir);
    (void)snprintf(conf_path, sizeof(conf_path), "%s/c.yaml", x->dir);
    (void)snprintf(model_path, sizeof(model_path), "%s/m.safetensors", x->dir);
    (void)snprintf(out_path, sizeof(out_path), "%s/out", x->dir);
    f = fopen(conf_path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fprintf(
        f,
        "server: localhost:1\nname: tried\nstate_dir: s\ninsecure: yes\ntrainer: command\n"
        "command: {program: [\"%s\", \"%s\"], persistent: yes, cancel_grace: 1h}\n",
        program(name), mode != NULL ? mode : x->notes);
    (void)fclose(f);
    ck_assert_int_eq(
        fl_st_save(model_path, x->server.model.layout, x->server.theta, NULL, 0, false, &err),
        FL_OK);
    options.model = with_model ? model_path : NULL;
    ck_assert_msg(fl_client_conf_load(conf_path, NULL, &conf, &err) == FL_OK, "%s", err.msg);

    (void)fflush(stdout);
    ours = dup(STDOUT_FILENO);
    ck_assert_ptr_nonnull(freopen(out_path, "w", stdout));
    code = fl_try_trainer(conf, &options);
    (void)fflush(stdout);
    ck_assert_int_ge(dup2(ours, STDOUT_FILENO), 0);
    (void)close(ours);

    fl_client_conf_free(conf);
    ck_assert_int_eq(fl_fs_read(out_path, (size_t)1 << 20, &text, NULL), FL_OK);
    x->text = calloc(text.len + 1, 1);
    (void)memcpy(x->text, text.data, text.len);
    fl_buf_done(&text);
    x->t.report.out = stdout;
    return code;
}

static void all_done(struct trial *x)
{
    free(x->text);
    server_done(&x->server);
    folder_remove(x->dir);
}

TEST(a_good_program_is_good_with_all_that_it_declares)
{
    struct trial x;
    int code = all_of(&x, "nn_trainer", NULL, true);

    ck_assert_msg(code == FL_EXIT_OK, "%s", x.text);
    trial_says(&x,
               "declares train, evaluate, adapt, summary; parts: pull, gradient, drift, pfedme, "
               "per_fedavg, mixup, space\n");
    trial_says(&x, "ok        model: layers=2 tensors=4 parameters=259 accepted");
    trial_says(&x, "ok        train: steps=7 samples=103 loss=");
    trial_says(&x, "ok        repeatable: the same task with the same seed made the same model");
    trial_says(&x, "ok        unknown field: a task with an unknown field is carried out");
    trial_says(&x, "ok        adapt: correct=");
    trial_says(&x, "not tried summary: it needs the options of a federation");
    trial_says(&x, "ok        bye: exited with code 0");
    trial_says(&x, "\ngood: ");
    all_done(&x);
}

static const struct {
    const char *mode;
    const char *says;
} faults[] = {
    {"nan", "FAILED    train: expected finite numbers, found others in layer 'fc2' of the trained"},
    {"fails_start", "cannot start: no GPU is left"},
    {"refuses", "FAILED    model: the server's model is not the one of"},
    {"diverges", "FAILED    train: "},
    {"twice", "it sent 'done' of a task that it had answered already"},
    {"few", "declares train\n"}, /* and does not look at the model that it accepts */
};

TEST_EACH(what_is_wrong_makes_it_fail, 6)
{
    struct trial x;

    ck_assert_int_eq(all_of(&x, "fake_trainer", faults[_i].mode, true), FL_EXIT_DATA);
    trial_says(&x, faults[_i].says);
    trial_says(&x, "NOT GOOD: ");
    all_done(&x);
}

TEST(without_a_model_only_the_start_is_tried)
{
    struct trial x;

    ck_assert_int_eq(all_of(&x, "fake_trainer", "good", false), FL_EXIT_DATA);
    trial_says(&x, "FAILED    model: expected --model FILE.safetensors");
    trial_says(&x, "ok        bye");
    all_done(&x);
}
