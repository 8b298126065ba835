/* deploy/examples/trainer_numpy.py as a trainer. */
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/data/npy.h"
#include "tests/lib/suites.h"
#include "tests/lib/trainer_rig.h"

static bool have_numpy(const char *python)
{
    char line[256];
    FILE *p;

    (void)snprintf(line, sizeof(line), "%s -c 'import numpy' 2>&1", python);
    p = popen(line, "r");
    return p != NULL && pclose(p) == 0;
}

static void write_npy(const struct fixture *f, const char *name, enum fl_npy_type type,
                      const void *values, size_t width)
{
    uint64_t shape[2] = {SAMPLES, width};
    struct fl_npy_writer *w = NULL;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    ck_assert_int_eq(fl_npy_create(path, type, shape, width > 0 ? 2 : 1, &w, NULL), FL_OK);
    ck_assert_int_eq(fl_npy_add(w, values, SAMPLES * (width > 0 ? width : 1), NULL), FL_OK);
    ck_assert_int_eq(fl_npy_finish(w, NULL), FL_OK);
}

TEST(the_numpy_example_learns_as_the_engine_does)
{
    const char *python = getenv("FL_PYTHON") != NULL ? getenv("FL_PYTHON") : "python3";
    const char *top = getenv("FL_SRCDIR") != NULL ? getenv("FL_SRCDIR") : "..";
    char program[PATH_MAX];
    const char *argv[] = {python, program, "{task}", NULL};
    struct fl_train_result theirs = {0};
    struct fl_train_result ours = {0};
    struct fl_trainer *builtin = NULL;
    struct fl_train_task task;
    struct fl_dataset *ds;
    struct fixture f;
    double dot = 0;
    size_t i;
    struct fl_command_conf conf = {.program.argv = argv,
                                   .program.work_dir = f.dir,
                                   .program.data = f.dir,
                                   .time_limit_ms = 60000};

    if (!have_numpy(python)) {
        (void)printf("skipped: %s has no numpy\n", python);
        return;
    }
    fixture_init(&f);
    ds = make_data(SAMPLES, INPUTS, CLASSES, 3);
    write_npy(&f, "train-x.npy", FL_NPY_F32, ds->x, INPUTS);
    write_npy(&f, "train-y.npy", FL_NPY_I32, ds->y, 0);
    (void)snprintf(program, sizeof(program), "%s/deploy/examples/trainer_numpy.py", top);
    ck_assert_msg(fl_trainer_command(&conf, &f.trainer, &f.err) == FL_OK, "%s", f.err.msg);
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_OK);
    task = task_of(&f.server);
    ck_assert_msg(fl_trainer_run(f.trainer, &task, &theirs, &f.err) == FL_OK, "%s", f.err.msg);
    ck_assert_int_eq(fl_trainer_builtin(ds, NULL, NULL, &builtin, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(builtin, &f.server.model, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_run(builtin, &task, &ours, &f.err), FL_OK);
    ck_assert_uint_eq(theirs.samples, SAMPLES);
    ck_assert_uint_eq(theirs.steps, ours.steps);
    /* Another order of samples, the same problem: nearly the same loss and direction. */
    ck_assert_double_eq_tol(theirs.train_loss, ours.train_loss, 0.2 * ours.train_loss);
    for (i = 0; i < f.server.count; i++) {
        dot += (double)theirs.delta[i] * (double)ours.delta[i];
    }
    ck_assert_double_gt(dot, 0.8 * (double)theirs.divergence[0] * (double)ours.divergence[0]);
    fl_train_result_done(&theirs);
    fl_train_result_done(&ours);
    fl_trainer_free(builtin);
    fl_dataset_free(ds);
    fixture_done(&f);
}

/* What the numpy example makes of some steps under these seeds; owned by the caller. */
static float *example_steps(struct fixture *f, uint64_t seed, uint64_t order_seed)
{
    struct fl_train_result r = {0};
    struct fl_train_task task = task_of(&f->server);

    task.asked.seed = seed;
    task.asked.order_seed = order_seed;
    ck_assert_msg(fl_trainer_run(f->trainer, &task, &r, &f->err) == FL_OK, "%s", f->err.msg);
    ck_assert_uint_eq(r.steps, 3);
    free(r.divergence);
    return r.delta;
}

TEST(the_numpy_example_walks_through_the_order_of_the_order_seed)
{
    const char *python = getenv("FL_PYTHON") != NULL ? getenv("FL_PYTHON") : "python3";
    const char *top = getenv("FL_SRCDIR") != NULL ? getenv("FL_SRCDIR") : "..";
    char program[PATH_MAX];
    const char *argv[] = {python, program, "{task}", NULL};
    struct fl_dataset *ds;
    struct fixture f;
    float *steps[3];
    size_t bytes;
    size_t i;
    struct fl_command_conf conf = {.program.argv = argv,
                                   .program.work_dir = f.dir,
                                   .program.data = f.dir,
                                   .time_limit_ms = 60000};

    if (!have_numpy(python)) {
        (void)printf("skipped: %s has no numpy\n", python);
        return;
    }
    fixture_init(&f);
    ds = make_data(SAMPLES, INPUTS, CLASSES, 3);
    write_npy(&f, "train-x.npy", FL_NPY_F32, ds->x, INPUTS);
    write_npy(&f, "train-y.npy", FL_NPY_I32, ds->y, 0);
    (void)snprintf(program, sizeof(program), "%s/deploy/examples/trainer_numpy.py", top);
    f.server.model.epochs = 0;
    f.server.model.steps = 3;
    ck_assert_msg(fl_trainer_command(&conf, &f.trainer, &f.err) == FL_OK, "%s", f.err.msg);
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &f.server.model, &f.err), FL_OK);
    steps[0] = example_steps(&f, 1, 5);
    steps[1] = example_steps(&f, 2, 5);
    steps[2] = example_steps(&f, 1, 6);
    bytes = f.server.count * sizeof(float);
    ck_assert_mem_eq(steps[0], steps[1], bytes);
    ck_assert_int_ne(memcmp(steps[0], steps[2], bytes), 0);
    for (i = 0; i < 3; i++) {
        free(steps[i]);
    }
    fl_dataset_free(ds);
    fixture_done(&f);
}
