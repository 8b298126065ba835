/* What the step loop of the built-in engine asks of the allocator: nothing. */
#include "tests/client/train/train_fixture.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"

struct counter {
    size_t n;
    uint64_t last;
};

/* Counts from the end of the first step to the end of the last. */
static void count(void *ctx, uint64_t done, uint64_t total)
{
    struct counter *c = ctx;

    if (done == 1) {
        failmalloc_start(SIZE_MAX, false);
    }
    if (done == total) {
        c->n = failmalloc_stop();
        c->last = done;
    }
}

TEST_EACH(the_step_loop_allocates_nothing, 6)
{
    static const struct {
        const struct fl_solver_ops *solver;
        double momentum, weight_decay;
        uint32_t epochs, steps;
        const char *option, *value;
    } rows[] = {
        {&fl_solver_sgd, 0, 0, 3, 0, NULL, NULL},
        {&fl_solver_sgd, 0.9, 0.01, 0, 20, NULL, NULL},
        {&fl_solver_prox, 0.9, 0.01, 3, 0, NULL, NULL},
        {&fl_solver_fedmix, 0.9, 0, 3, 0, NULL, NULL},
        {&fl_solver_naivemix, 0, 0, 3, 0, NULL, NULL},
        {&fl_solver_per_fedavg, 0.9, 0.01, 0, 20, "variant", "hf"},
    };
    static const char *const layers[] = {"dense 16", "relu", "dropout 0.1", "dense 3"};
    struct fl_dataset *train = make_data(SAMPLES, INPUTS, CLASSES, 3);
    struct fl_dataset *test = make_data(70, INPUTS, CLASSES, 4);
    struct fl_trainer *trainer = NULL;
    struct fl_train_result r = {0};
    struct fl_options *o = NULL;
    struct counter c = {.n = SIZE_MAX};
    struct fl_buf means;
    struct fl_solver_bytes input = {0};
    struct fl_train_task task;
    struct fl_err err = {0};
    struct server s;

    server_init(&s);
    ck_assert_int_eq(fl_options_create(rows[_i].solver->policy.options, &o), FL_OK);
    if (rows[_i].option != NULL) {
        ck_assert_int_eq(fl_options_set(o, rows[_i].option, rows[_i].value, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_trainer_builtin(train, test, NULL, &trainer, &err), FL_OK);
    s.model.net.layers = layers;
    s.model.net.n_layers = 4;
    s.model.solver = rows[_i].solver;
    s.model.solver_options = o;
    s.model.momentum = rows[_i].momentum;
    s.model.weight_decay = rows[_i].weight_decay;
    s.model.epochs = rows[_i].epochs;
    s.model.steps = rows[_i].steps;
    ck_assert_msg(fl_trainer_prepare(trainer, &s.model, &err) == FL_OK, "%s", err.msg);
    task = task_of(&s);
    fl_buf_init(&means, SIZE_MAX);
    if (rows[_i].solver->summary != NULL) {
        ck_assert_msg(fl_trainer_summary(trainer, 5, &means, &err) == FL_OK, "%s", err.msg);
        means.data[20] ^= 1; /* of another client: the own one is left out */
        input = (struct fl_solver_bytes){means.data, means.len};
        task.inputs = &input;
    }
    task.evaluate_trained = true;
    task.progress = count;
    task.ctx = &c;
    ck_assert_msg(fl_trainer_run(trainer, &task, &r, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(c.last, r.steps);
    ck_assert_uint_gt(c.last, 1);
    ck_assert_uint_eq(c.n, 0);
    fl_train_result_done(&r);
    fl_buf_done(&means);
    fl_trainer_free(trainer);
    fl_options_free(o);
    fl_dataset_free(train);
    fl_dataset_free(test);
    server_done(&s);
}

/* Every allocation of a task may fail: an error, nothing left behind, and the next task works. */
TEST(a_task_without_memory_is_an_error)
{
    struct fl_dataset *train = make_data(SAMPLES, INPUTS, CLASSES, 3);
    struct fl_trainer *trainer = NULL;
    struct fl_train_result r = {0};
    struct fl_train_task task;
    struct server s;
    size_t n, i;

    server_init(&s);
    ck_assert_int_eq(fl_trainer_builtin(train, NULL, NULL, &trainer, NULL), FL_OK);
    s.model.momentum = 0.5;
    ck_assert_int_eq(fl_trainer_prepare(trainer, &s.model, NULL), FL_OK);
    task = task_of(&s);
    failmalloc_start(SIZE_MAX, false);
    i = fl_trainer_run(trainer, &task, &r, NULL) == FL_OK; /* Check's own macros allocate */
    n = failmalloc_stop();
    ck_assert_uint_eq(i, 1);
    fl_train_result_done(&r);
    ck_assert_uint_gt(n, 2);
    for (i = 0; i < n; i++) {
        struct fl_err err = {0};
        int rv;

        failmalloc_start(i, false);
        rv = fl_trainer_run(trainer, &task, &r, &err);
        (void)failmalloc_stop();
        ck_assert_msg(rv == FL_ENOMEM, "allocation %zu of %zu: %d", i, n, rv);
        ck_assert_ptr_null(r.delta);
    }
    ck_assert_int_eq(fl_trainer_run(trainer, &task, &r, NULL), FL_OK);
    fl_train_result_done(&r);
    fl_trainer_free(trainer);
    fl_dataset_free(train);
    server_done(&s);
}
