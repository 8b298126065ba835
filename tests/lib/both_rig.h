#ifndef FL_LIB_BOTH_RIG_H
#define FL_LIB_BOTH_RIG_H

/* The built-in trainer, and a persistent trainer with the same network and samples (nn_trainer). */

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "tests/client/train/train_fixture.h"
#include "tests/lib/folder.h"

/* Longer than any test takes: only a hang reaches it. */
#define BOTH_LONG UINT64_C(600000)

struct both {
    struct server server;
    struct fl_dataset *train, *test;
    struct fl_trainer *own, *program;
    struct fl_train_result a, b;
    char path[PATH_MAX];
    char dir[FOLDER_PATH], notes[128]; /* messages that the program received; both_init_all() */
    struct fl_err err;
};

static inline struct fl_trainer *both_open(struct both *f, const char *name, const char *mode)
{
    const char *argv[] = {f->path, mode, NULL};
    const char *build = getenv("FL_BUILDDIR");
    const struct fl_command_conf conf = {.program.argv = argv,
                                         .program.client = "c",
                                         .program.start_limit_ms = BOTH_LONG,
                                         .program.cancel_grace_ms = BOTH_LONG};
    struct fl_trainer *trainer = NULL;
    uint64_t samples = 0;
    uint64_t test_samples = 0;

    (void)snprintf(f->path, sizeof(f->path), "%s/tests/lib/%s", build != NULL ? build : ".", name);
    ck_assert_msg(fl_trainer_command(&conf, &trainer, &f->err) == FL_OK &&
                      fl_trainer_start(trainer, &samples, &test_samples, &f->err) == FL_OK,
                  "%s", f->err.msg);
    ck_assert_uint_eq(samples, strcmp(name, "nn_trainer") == 0 ? SAMPLES : 270);
    return trainer;
}

/* Everything but the program. */
static inline void both_begin(struct both *f, const struct fl_solver_ops *solver)
{
    *f = (struct both){.train = NULL};
    server_init(&f->server);
    f->train = make_data(SAMPLES, INPUTS, CLASSES, 3);
    f->test = make_data(40, INPUTS, CLASSES, 4);
    fl_options_free(f->server.options);
    ck_assert_int_eq(fl_options_create(solver->policy.options, &f->server.options), FL_OK);
    f->server.model.solver = solver;
    f->server.model.solver_options = f->server.options;
    ck_assert_int_eq(fl_trainer_builtin(f->train, f->test, NULL, &f->own, &f->err), FL_OK);
}

static inline void both_init(struct both *f, const struct fl_solver_ops *solver)
{
    both_begin(f, solver);
    f->program = both_open(f, "nn_trainer", NULL);
}

/* With a program that declares all tasks and capabilities, and logs the messages it receives. */
static inline void both_init_all(struct both *f, const struct fl_solver_ops *solver)
{
    both_begin(f, solver);
    ck_assert(folder_make("both", f->dir));
    (void)snprintf(f->notes, sizeof(f->notes), "%s/notes", f->dir);
    f->program = both_open(f, "nn_trainer", f->notes);
}

static inline void both_done(struct both *f)
{
    fl_train_result_done(&f->a);
    fl_train_result_done(&f->b);
    fl_trainer_free(f->own);
    fl_trainer_free(f->program);
    fl_dataset_free(f->train);
    fl_dataset_free(f->test);
    server_done(&f->server);
    if (f->dir[0] != '\0') {
        folder_remove(f->dir);
    }
}

static inline void both_prepare(struct both *f)
{
    ck_assert_msg(fl_trainer_prepare(f->own, &f->server.model, &f->err) == FL_OK, "%s", f->err.msg);
    ck_assert_msg(fl_trainer_prepare(f->program, &f->server.model, &f->err) == FL_OK, "%s",
                  f->err.msg);
}

static inline void both_train(struct both *f, const struct fl_train_task *task)
{
    both_prepare(f);
    ck_assert_msg(fl_trainer_run(f->own, task, &f->a, &f->err) == FL_OK, "%s", f->err.msg);
    ck_assert_msg(fl_trainer_run(f->program, task, &f->b, &f->err) == FL_OK, "%s", f->err.msg);
}

static inline void both_floats(const float *a, const float *b, size_t n, const char *what)
{
    size_t i;

    for (i = 0; i < n; i++) {
        double far = fabs((double)a[i] - (double)b[i]);

        ck_assert_msg(far <= 1e-6 * (1.0 + fabs((double)a[i])), "%s: entry %zu is %g and %g", what,
                      i, (double)a[i], (double)b[i]);
    }
}

static inline void both_bufs(const struct fl_buf *a, size_t n_a, const struct fl_buf *b, size_t n_b,
                             const char *what)
{
    size_t i;

    ck_assert_uint_eq(n_a, n_b);
    for (i = 0; i < n_a; i++) {
        ck_assert_uint_eq(a[i].len, b[i].len);
        both_floats((const float *)(const void *)a[i].data, (const float *)(const void *)b[i].data,
                    a[i].len / sizeof(float), what);
    }
}

static inline void both_same(const struct both *f)
{
    ck_assert_uint_eq(f->a.samples, f->b.samples);
    ck_assert_uint_eq(f->a.steps, f->b.steps);
    ck_assert_double_eq_tol(f->a.train_loss, f->b.train_loss, 1e-6);
    ck_assert(f->a.has_received && f->b.has_received);
    ck_assert_uint_eq(f->a.received.correct, f->b.received.correct);
    ck_assert_double_eq(f->a.received.loss_sum, f->b.received.loss_sum);
    both_floats(f->a.delta, f->b.delta, f->server.count, "delta");
    both_floats(f->a.divergence, f->b.divergence, 2, "divergence");
    both_bufs(f->a.kept, f->a.n_kept, f->b.kept, f->b.n_kept, "kept");
    both_bufs(f->a.sent, f->a.n_sent, f->b.sent, f->b.n_sent, "sent");
}

#endif
