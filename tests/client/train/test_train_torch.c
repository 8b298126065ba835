/*
 * Python's fl_trainer with a network of PyTorch (tests/lib/torch_trainer.py) against the built-in
 * trainer. A step sees all samples, so that the orders, which each side draws in its own way, do
 * not matter; sums in float32 are made in another order, so that results agree to 1e-6 and not bit
 * for bit.
 */
#include "libfl/base/fs.h"
#include "tests/lib/both_rig.h"
#include "tests/lib/suites.h"

#define OWN_SEED 9

static const char *python(void)
{
    const char *path = getenv("FL_PYTHON");

    return path != NULL ? path : "/usr/bin/python3";
}

static const char *top(void)
{
    const char *path = getenv("FL_SRCDIR");

    return path != NULL ? path : "..";
}

static bool have_torch(void)
{
    char line[256];
    FILE *p;

    (void)snprintf(line, sizeof(line), "%s -c 'import torch' >/dev/null 2>&1", python());
    p = popen(line, "r");
    return p != NULL && pclose(p) == 0;
}

static void write_data(const struct both *f, const char *name, const struct fl_dataset *ds)
{
    char path[FOLDER_PATH + 16];
    struct fl_buf out;

    fl_buf_init(&out, SIZE_MAX);
    ck_assert_int_eq(fl_buf_add(&out, ds->x, ds->n * ds->dim * sizeof(float)), FL_OK);
    ck_assert_int_eq(fl_buf_add(&out, ds->y, ds->n * sizeof(int32_t)), FL_OK);
    (void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    ck_assert_int_eq(fl_fs_replace(path, out.data, out.len, false, NULL), FL_OK);
    fl_buf_done(&out);
}

static void open_torch(struct both *f)
{
    char script[PATH_MAX], path[PATH_MAX + 32], absolute[PATH_MAX];
    const char *argv[] = {python(), script, NULL};
    const char *environment[] = {path, "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1", NULL};
    const struct fl_command_conf conf = {.program.argv = argv,
                                         .program.environment = environment,
                                         .program.data = f->dir,
                                         .program.client = "c",
                                         .program.start_limit_ms = BOTH_LONG,
                                         .program.cancel_grace_ms = BOTH_LONG};
    uint64_t samples = 0;
    uint64_t test_samples = 0;

    ck_assert_ptr_nonnull(realpath(top(), absolute));
    (void)snprintf(script, sizeof(script), "%.4000s/tests/lib/torch_trainer.py", absolute);
    (void)snprintf(path, sizeof(path), "PYTHONPATH=%.4000s/client/python", absolute);
    ck_assert_msg(fl_trainer_command(&conf, &f->program, &f->err) == FL_OK &&
                      fl_trainer_start(f->program, &samples, &test_samples, &f->err) == FL_OK,
                  "%s", f->err.msg);
    ck_assert_uint_eq(samples, SAMPLES);
    ck_assert_uint_eq(test_samples, 40);
}

static const struct row {
    const struct fl_solver_ops *solver;
    const char *options[3][2];
    double learning_rate, momentum, weight_decay;
    uint32_t steps;
    bool cut; /* the last iteration: the loss that is told of it is another one */
} rows[] = {
    {&fl_solver_sgd, {{NULL}}, 0.1, 0.9, 0.01, 6, false},
    {&fl_solver_pfedme, {{"inner_steps", "3"}}, 0.05, 0, 0.01, 5, false},
    {&fl_solver_per_fedavg, {{"alpha", "0.3"}}, 0.1, 0.9, 0.05, 6, false},
    {&fl_solver_per_fedavg, {{"alpha", "0.3"}}, 0.1, 0.9, 0.05, 5, true},
    {&fl_solver_per_fedavg, {{"alpha", "0.3"}, {"variant", "hf"}}, 0.1, 0.9, 0.05, 6, false},
    {&fl_solver_per_fedavg, {{"alpha", "0.3"}, {"variant", "hf"}}, 0.1, 0.9, 0.05, 7, true},
    {&fl_solver_per_fedavg, {{"alpha", "0.3"}, {"variant", "hf"}}, 0.1, 0, 0, 5, true},
    {&fl_solver_fedmix, {{"lambda", "0.3"}}, 0.1, 0.9, 0.01, 5, false},
    {&fl_solver_fedmix, {{"lambda", "0.3"}, {"q", "one"}, {"mu", "0.5"}}, 0.1, 0, 0, 5, false},
    {&fl_solver_naivemix, {{"lambda", "0.3"}}, 0.1, 0, 0.01, 5, false},
};
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

static void begin(struct both *f, const struct row *row)
{
    size_t i;

    both_begin(f, row->solver);
    ck_assert(folder_make("torch", f->dir));
    write_data(f, "train", f->train);
    write_data(f, "test", f->test);
    open_torch(f);
    for (i = 0; i < 3 && row->options[i][0] != NULL; i++) {
        ck_assert_int_eq(
            fl_options_set(f->server.options, row->options[i][0], row->options[i][1], NULL), FL_OK);
    }
    f->server.model.epochs = 0;
    f->server.model.steps = row->steps;
    f->server.model.batch_size = SAMPLES;
    f->server.model.momentum = row->momentum;
    f->server.model.weight_decay = row->weight_decay;
    both_prepare(f);
}

/* The summary of `trainer`, and of one other client behind it. */
static void collect(const struct both *f, struct fl_trainer *trainer, struct fl_buf *out)
{
    struct fl_dataset *data = make_data(50, INPUTS, CLASSES, 8);
    struct fl_trainer *other = NULL;
    struct fl_err err = {0};

    fl_buf_init(out, SIZE_MAX);
    ck_assert_int_eq(fl_trainer_builtin(data, NULL, NULL, &other, &err), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(other, &f->server.model, &err), FL_OK);
    ck_assert_msg(fl_trainer_summary(trainer, OWN_SEED, out, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_trainer_summary(other, 4, out, &err), FL_OK);
    fl_trainer_free(other);
    fl_dataset_free(data);
}

static void run(struct both *f, struct fl_trainer *trainer, const struct row *row,
                struct fl_train_result *ret)
{
    struct fl_solver_bytes input = {NULL, 0};
    struct fl_train_task task = task_of(&f->server);
    struct fl_buf means = {0};

    task.asked.learning_rate = row->learning_rate;
    task.summary_seed = OWN_SEED;
    task.evaluate_trained = true;
    if (row->solver->summary != NULL) {
        collect(f, trainer, &means);
        input = (struct fl_solver_bytes){means.data, means.len};
        task.inputs = &input;
    }
    ck_assert_msg(fl_trainer_run(trainer, &task, ret, &f->err) == FL_OK, "%s", f->err.msg);
    fl_buf_done(&means);
}

TEST_EACH(a_round_in_pytorch_is_the_built_in_trainers, N_ROWS)
{
    const struct row *row = &rows[_i];
    struct both f;

    begin(&f, row);
    run(&f, f.own, row, &f.a);
    run(&f, f.program, row, &f.b);
    ck_assert_uint_eq(f.a.steps, f.b.steps);
    both_floats(f.a.delta, f.b.delta, f.server.count, row->solver->policy.name);
    ck_assert_double_eq_tol(f.a.train_loss, f.b.train_loss, row->cut ? 0.1 : 1e-5);
    ck_assert_double_eq_tol(f.a.received.loss_sum, f.b.received.loss_sum, 1e-4);
    ck_assert_uint_eq(f.a.received.correct, f.b.received.correct);
    ck_assert_double_eq_tol(f.a.trained.loss_sum, f.b.trained.loss_sum, 1e-4);
    ck_assert_double_gt((double)f.b.divergence[0], 1e-3); /* It went somewhere. */
    both_done(&f);
}

TEST(a_summary_in_pytorch_is_the_built_in_trainers)
{
    struct fl_buf a, b;
    struct both f;

    begin(&f, &rows[7]);
    fl_buf_init(&a, SIZE_MAX);
    fl_buf_init(&b, SIZE_MAX);
    ck_assert_int_eq(fl_trainer_summary(f.own, OWN_SEED, &a, &f.err), FL_OK);
    ck_assert_msg(fl_trainer_summary(f.program, OWN_SEED, &b, &f.err) == FL_OK, "%s", f.err.msg);
    ck_assert_uint_eq(a.len, b.len);
    ck_assert_mem_eq(a.data, b.data, 16);
    both_floats((const float *)(const void *)(a.data + 16),
                (const float *)(const void *)(b.data + 16), (a.len - 16) / sizeof(float), "means");
    fl_buf_done(&a);
    fl_buf_done(&b);
    both_done(&f);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!have_torch()) {
        (void)printf("skipped: torch (package python3-torch) is not there for %s\n", python());
        return 77;
    }
    return suites_run(argv[0]);
}
