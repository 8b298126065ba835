/*
 * A program that stays against the built-in trainer: with the same network, samples and formula
 * (tests/lib/nn_trainer.c) the same comes of a task.
 */
#include "tests/lib/both_rig.h"
#include "tests/lib/suites.h"

TEST(plain_descent_is_the_same_bit_for_bit)
{
    struct both f;
    struct fl_train_task task;
    struct fl_evaluation e = {0};

    both_init(&f, &fl_solver_sgd);
    task = task_of(&f.server);
    both_train(&f, &task);
    both_same(&f);
    ck_assert_mem_eq(f.a.delta, f.b.delta, f.server.count * sizeof(float));
    ck_assert(memcmp(&f.a.train_loss, &f.b.train_loss, sizeof(double)) == 0);
    ck_assert_msg(fl_trainer_evaluate(f.program, f.server.theta, NULL, &e, &f.err) == FL_OK, "%s",
                  f.err.msg);
    ck_assert_uint_eq(e.samples, 40);
    ck_assert_double_eq(e.loss_sum, f.a.received.loss_sum);
    both_done(&f);
}

/* A task that comes is not to wait for it. */
TEST(an_evaluation_that_is_cancelled_ends)
{
    struct both f;
    struct fl_train_task task;
    atomic_bool cancel = true;
    struct fl_evaluation e = {0};

    both_init(&f, &fl_solver_sgd);
    task = task_of(&f.server);
    both_train(&f, &task);
    ck_assert_int_eq(fl_trainer_evaluate(f.program, f.server.theta, &cancel, &e, NULL),
                     FL_ECANCELED);
    ck_assert_int_eq(fl_trainer_evaluate(f.own, f.server.theta, &cancel, &e, NULL), FL_ECANCELED);
    fl_train_result_done(&f.a);
    fl_train_result_done(&f.b);
    both_train(&f, &task); /* And the program goes on. */
    both_same(&f);
    both_done(&f);
}

TEST(momentum_and_decay_are_the_same)
{
    struct both f;
    struct fl_train_task task;

    both_init(&f, &fl_solver_sgd);
    f.server.model.momentum = 0.9;
    f.server.model.weight_decay = 0.01;
    task = task_of(&f.server);
    task.asked.learning_rate = 0.02;
    both_train(&f, &task);
    both_same(&f);
    both_done(&f);
}

/* Model-shaped, small, and another for each name. */
static float *vector(const struct both *f, uint64_t seed)
{
    float *v = calloc(f->server.count, sizeof(*v));
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, seed);
    for (i = 0; i < f->server.count; i++) {
        v[i] = 0.05f * (float)fl_rng_normal(&rng);
    }
    return v;
}

TEST_EACH(a_pull_to_the_model_or_to_another_is_the_same, 2)
{
    struct both f;
    struct fl_train_task task;
    float *anchor;

    both_init(&f, &fl_solver_prox);
    ck_assert_int_eq(fl_options_set(f.server.options, "mu", "0.7", NULL), FL_OK);
    anchor = vector(&f, 9);
    task = task_of(&f.server);
    task.anchor = _i == 1 ? anchor : NULL;
    both_train(&f, &task);
    both_same(&f);
    both_done(&f);
    free(anchor);
}

static const struct fl_solver_ops *const stateful[] = {&fl_solver_scaffold, &fl_solver_igfl_c,
                                                       &fl_solver_feddyn};

/* The even ones in their first round, when nothing was kept yet. */
TEST_EACH(what_a_solver_keeps_and_sends_is_the_same, 6)
{
    const struct fl_solver_ops *solver = stateful[_i / 2];
    struct fl_solver_bytes inputs[4] = {{NULL, 0}};
    struct fl_solver_bytes kept[4] = {{NULL, 0}};
    struct both f;
    struct fl_train_task task;
    size_t i;

    both_init(&f, solver);
    for (i = 0; i < fl_solver_names(solver->inputs); i++) {
        inputs[i] = (struct fl_solver_bytes){vector(&f, 20 + i), f.server.count * sizeof(float)};
    }
    for (i = 0; _i % 2 == 1 && i < fl_solver_keeps(solver->keeps); i++) {
        kept[i] = (struct fl_solver_bytes){vector(&f, 30 + i), f.server.count * sizeof(float)};
    }
    task = task_of(&f.server);
    task.asked.n_selected = 4;
    task.asked.population = 10;
    task.inputs = inputs;
    task.kept = kept;
    both_train(&f, &task);
    both_same(&f);
    ck_assert_uint_gt(f.b.n_kept, 0);
    both_done(&f);
    for (i = 0; i < 4; i++) {
        free((void *)(uintptr_t)inputs[i].data);
        free((void *)(uintptr_t)kept[i].data);
    }
}

/* SCAFFOLD's capability is used for the global model only. */
TEST_EACH(a_model_beside_the_global_one_is_the_same, 2)
{
    const struct fl_solver_ops *solver = _i == 0 ? &fl_solver_sgd : &fl_solver_scaffold;
    struct fl_solver_bytes inputs[1] = {{NULL, 0}};
    struct fl_options *ditto = NULL;
    struct fl_train_task task;
    struct both f;
    float *own;

    both_init(&f, solver);
    ck_assert_int_eq(fl_options_create(fl_personal_ditto.policy.options, &ditto), FL_OK);
    f.server.model.personal = &fl_personal_ditto;
    f.server.model.personal_options = ditto;
    own = vector(&f, 9);
    task = task_of(&f.server);
    task.inputs = inputs;
    task.kept = inputs;
    both_train(&f, &task);
    both_same(&f);
    fl_train_result_done(&f.a);
    fl_train_result_done(&f.b);
    task.model = own;
    task.anchor = f.server.theta;
    task.raw = true;
    task.beside = true;
    task.evaluate_trained = true;
    both_train(&f, &task);
    both_floats(f.a.delta, f.b.delta, f.server.count, "beside");
    ck_assert(f.a.has_trained && f.b.has_trained);
    ck_assert_uint_eq(f.a.trained.correct, f.b.trained.correct);
    ck_assert_uint_eq(f.a.n_kept + f.b.n_kept, 0);
    both_done(&f);
    fl_options_free(ditto);
    free(own);
}

/* A program trains all layers in every step: FedPer's head is, FedRep's is not. */
TEST(a_head_with_epochs_of_its_own_is_refused_with_what_to_do)
{
    struct fl_options *head = NULL;
    struct both f;

    both_init(&f, &fl_solver_sgd);
    ck_assert_int_eq(fl_options_create(fl_personal_head.policy.options, &head), FL_OK);
    f.server.model.personal = &fl_personal_head;
    f.server.model.personal_options = head;
    ck_assert_int_eq(fl_trainer_prepare(f.program, &f.server.model, &f.err), FL_OK);
    ck_assert_int_eq(fl_options_set(head, "epochs", "10", NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(f.program, &f.server.model, &f.err), FL_EUNIMPL);
    ck_assert_ptr_nonnull(strstr(f.err.msg, "epochs: 0 on the server (FedPer)"));
    both_done(&f);
    fl_options_free(head);
}

TEST(what_the_program_did_not_declare_is_refused_by_name)
{
    struct both f;

    both_init(&f, &fl_solver_pfedme);
    ck_assert_int_eq(fl_trainer_prepare(f.program, &f.server.model, &f.err), FL_EUNIMPL);
    ck_assert_msg(strstr(f.err.msg, "solver 'pfedme' needs the part 'pfedme' in every step") !=
                      NULL,
                  "%s", f.err.msg);
    f.server.model.solver = &fl_solver_fedmix;
    ck_assert_int_eq(fl_trainer_prepare(f.program, &f.server.model, &f.err), FL_EUNIMPL);
    both_done(&f);
}

TEST(a_result_that_is_not_finite_has_diverged)
{
    struct both f;
    struct fl_train_task task;
    struct fl_trainer *bad;

    both_init(&f, &fl_solver_sgd);
    bad = both_open(&f, "fake_trainer", "nan");
    ck_assert_msg(fl_trainer_prepare(bad, &f.server.model, &f.err) == FL_OK, "%s", f.err.msg);
    task = task_of(&f.server);
    ck_assert_int_eq(fl_trainer_run(bad, &task, &f.b, &f.err), FL_ENUMERIC);
    ck_assert_msg(strstr(f.err.msg, "the trained model is not finite in unit") != NULL, "%s",
                  f.err.msg);
    fl_trainer_free(bad);
    both_done(&f);
}
