/* Every allocation of reading an experiment fails once: FL_ENOMEM, and nothing is left behind. */
#include <check.h>
#include <string.h>

#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"
#include "tools/fl_sim/experiment/experiment.h"

static const char text[] =
    "server: {model: {preset: mlr60}, seed: 4}\ndata: {}\nclient: {labels: {a: b}}\n"
    "stop: {rounds: 5}\ntrials: 2\n"
    "sweep:\n- {server: {algorithm: fedldf}, world: {x: [1, 2]}}\n- {label: b, stop.rounds: 3}\n";

static const char *const set[] = {"server.training.learning_rate=0.1", "server.training.epochs=2"};

/* Read, open and write, with the allocation `fail_at` failing; how many there were. */
static size_t run(size_t fail_at, int *ret_rv)
{
    struct fl_experiment *e = NULL;
    struct fl_experiment_point *p = NULL;
    struct fl_err err = {0};
    struct fl_buf out;
    int rv;

    fl_buf_init(&out, 1u << 20);
    failmalloc_start(fail_at, false);
    rv = fl_experiment_parse("x.yaml", text, strlen(text), set, 2, &e, &err);
    rv = rv == FL_OK ? fl_experiment_open(e, 1, 1, &p, &err) : rv;
    rv = rv == FL_OK ? fl_experiment_text(e, 0, &out) : rv;
    fl_experiment_close(p);
    fl_experiment_free(e);
    *ret_rv = rv;
    fl_buf_done(&out);
    return failmalloc_stop();
}

TEST(an_allocation_that_fails_is_told_and_leaves_nothing)
{
    int rv = FL_OK;
    size_t n = run(SIZE_MAX, &rv);
    size_t i;

    ck_assert_int_eq(rv, FL_OK);
    ck_assert_uint_gt(n, 100);
    for (i = 0; i < n; i++) {
        (void)run(i, &rv);
        ck_assert_msg(rv == FL_ENOMEM, "allocation %zu of %zu: %d", i, n, rv);
    }
}
