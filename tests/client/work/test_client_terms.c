/* What a client's operator lets a server ask for. */

#include <check.h>
#include <string.h>

#include "client/store/day.h"
#include "client/work/terms.h"
#include "libfl/base/fs.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/client_rig.h"
#include "tests/lib/suites.h"

static const struct rig_server plain = {.solver = "sgd"};

TEST_EACH(an_update_of_too_few_samples_or_steps_is_refused, 13)
{
    static const struct {
        uint32_t epochs, steps, batch;
        struct fl_worker_terms terms;
        const char *says; /* NULL: allowed */
    } rows[] = {
        {0,
         1,
         1,
         {.least_samples = 2},
         "use 1 samples (103 here, 1 steps of 1), fewer than limits"},
        {0, 1, 9, {.least_samples = 10}, "use 9 samples"},
        {0, 1, 10, {.least_samples = 10}, NULL},
        {0, 10, 1, {.least_samples = 10}, NULL},
        {1, 0, 1, {.least_samples = 103}, NULL},
        {1, 0, 1, {.least_samples = 104}, "use 103 samples"},
        {0, 500, 10, {.least_samples = 104}, "use 103 samples"}, /* again and again */
        {0,
         4,
         50,
         {.least_steps = 5},
         "take 4 steps, fewer than limits.least_steps of this client, 5"},
        {0, 5, 50, {.least_steps = 5}, NULL},
        {2, 0, 50, {.least_steps = 6}, NULL},
        {2, 0, 50, {.least_steps = 7}, "take 6 steps"},
        {0, UINT32_MAX, UINT32_MAX, {.least_samples = 103}, NULL},
        {0, 0, 10, {.least_samples = 1}, "use 0 samples"},
    };
    struct fl_wire_training *t;
    struct rig r;

    client_rig_init(&r, &plain, false);
    t = &r.setup->welcome.training;
    t->epochs = rows[_i].epochs;
    t->steps = rows[_i].steps;
    t->batch_size = rows[_i].batch;
    r.worker.terms = rows[_i].terms;
    if (rows[_i].says == NULL) {
        ck_assert_msg(fl_terms_check_training(&r.worker, &r.err) == FL_OK, "%s", r.err.msg);
    } else {
        ck_assert_int_eq(fl_terms_check_training(&r.worker, &r.err), FL_EPERM);
        ck_assert_msg(strstr(r.err.msg, rows[_i].says) != NULL, "%s", r.err.msg);
    }
    rig_done(&r);
}

/* A program that says how many samples it has, or does not (0), as the worker's trainer. */
static void use_program(struct rig *r, uint64_t samples)
{
    static const char *const argv[] = {"sh", NULL};
    struct fl_command_conf conf = {
        .program.argv = argv, .program.work_dir = r->dir, .program.samples = samples};

    fl_trainer_free(r->worker.trainer);
    r->worker.trainer = NULL;
    ck_assert_msg(fl_trainer_command(&conf, &r->worker.trainer, &r->err) == FL_OK, "%s",
                  r->err.msg);
}

TEST_EACH(a_program_that_tells_no_count_is_refused_where_a_limit_needs_it, 10)
{
    static const struct {
        uint64_t told;
        uint32_t epochs, steps;
        struct fl_worker_terms terms;
        const char *says; /* NULL: allowed */
    } rows[] = {
        {0, 1, 0, {.least_samples = 10}, "limits.least_samples of this client is 10, and its "},
        {0, 0, 50, {.least_samples = 10}, "'command.samples' of this client"},
        {0, 1, 0, {.least_samples = 1, .least_steps = 2}, "or 'limits.least_steps: 1'"},
        {0, 0, 5, {.least_samples = 1, .least_steps = 5}, NULL}, /* The server says them. */
        {0, 0, 4, {.least_samples = 1, .least_steps = 5}, "take 4 steps"},
        {0, 1, 0, {.least_samples = 1, .least_steps = 1}, NULL},
        {0, 1, 0, {.least_samples = 0}, NULL},
        {9, 1, 0, {.least_samples = 10}, "use 9 samples"},
        {10, 1, 0, {.least_samples = 10}, NULL},
        {10, 3, 0, {.least_samples = 10, .least_steps = 3}, NULL},
    };
    struct fl_wire_training *t;
    struct rig r;

    client_rig_init(&r, &plain, false);
    use_program(&r, rows[_i].told);
    t = &r.setup->welcome.training;
    t->epochs = rows[_i].epochs;
    t->steps = rows[_i].steps;
    t->batch_size = 10;
    r.worker.terms = rows[_i].terms;
    if (rows[_i].says == NULL) {
        ck_assert_msg(fl_terms_check_training(&r.worker, &r.err) == FL_OK, "%s", r.err.msg);
    } else {
        ck_assert_int_eq(fl_terms_check_training(&r.worker, &r.err), FL_EPERM);
        ck_assert_msg(strstr(r.err.msg, rows[_i].says) != NULL, "%s", r.err.msg);
    }
    rig_done(&r);
}

TEST_EACH(a_result_that_reports_less_than_a_limit_is_refused, 5)
{
    static const struct {
        uint64_t samples, steps;
        struct fl_worker_terms terms;
        const char *says; /* NULL: allowed */
    } rows[] = {
        {9,
         5,
         {.least_samples = 10},
         "an update of 9 samples, fewer than limits.least_samples of this"},
        {10, 5, {.least_samples = 10, .least_steps = 5}, NULL},
        {10, 4, {.least_samples = 10, .least_steps = 5}, "4 steps, fewer than limits.least_steps"},
        {10, 0, {.least_samples = 10, .least_steps = 1}, NULL},
        {1, 0, {.least_samples = 0}, NULL},
    };
    struct fl_err err = {0};
    int rv = fl_terms_check_result(&rows[_i].terms, rows[_i].samples, rows[_i].steps, &err);

    ck_assert_int_eq(rv, rows[_i].says == NULL ? FL_OK : FL_EPERM);
    ck_assert_msg(rv == FL_OK || strstr(err.msg, rows[_i].says) != NULL, "%s", err.msg);
}

TEST(a_model_above_the_largest_is_refused)
{
    struct fl_worker_terms terms = {.largest_model = 0};
    uint64_t bytes;
    struct rig r;

    client_rig_init(&r, &plain, false);
    bytes = (uint64_t)r.count * sizeof(float);
    ck_assert_int_eq(fl_terms_check_model(&terms, r.setup, &r.err), FL_OK);
    terms.largest_model = bytes;
    ck_assert_int_eq(fl_terms_check_model(&terms, r.setup, &r.err), FL_OK);
    terms.largest_model = bytes - 1;
    ck_assert_int_eq(fl_terms_check_model(&terms, r.setup, &r.err), FL_EPERM);
    ck_assert_msg(strstr(r.err.msg, "limits.largest_model of this client") != NULL, "%s",
                  r.err.msg);
    rig_done(&r);
}

TEST(the_rounds_of_a_day_are_counted_over_restarts)
{
    static const char *const damaged[] = {"", "x 3\n", "20000", "20000-3\n"};
    uint64_t n = 9;
    struct rig r;
    size_t i;

    client_rig_init(&r, &plain, false);
    ck_assert_int_eq(fl_day_rounds(r.dir, 20000, &n, &r.err), FL_OK);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(fl_day_add(r.dir, 20000, &r.err), FL_OK);
    ck_assert_int_eq(fl_day_add(r.dir, 20000, &r.err), FL_OK);
    ck_assert_int_eq(fl_day_rounds(r.dir, 20000, &n, &r.err), FL_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(fl_day_rounds(r.dir, 20001, &n, &r.err), FL_OK);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(fl_day_add(r.dir, 20001, &r.err), FL_OK);
    ck_assert_int_eq(fl_day_rounds(r.dir, 20001, &n, &r.err), FL_OK);
    ck_assert_uint_eq(n, 1);
    for (i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
        ck_assert_int_eq(fl_fs_replace(client_rig_path(&r, "rounds-today"), damaged[i],
                                       strlen(damaged[i]), false, NULL),
                         FL_OK);
        ck_assert_int_eq(fl_day_rounds(r.dir, 20000, &n, &r.err), FL_OK);
        ck_assert_uint_eq(n, 0);
    }
    rig_done(&r);
}
