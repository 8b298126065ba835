/*
 * Steps that a program makes by docs/trainers.md#parts, against those of the solvers: the
 * network is ours here too, its steps are not.
 */
#include <check.h>

#include "libfl/strategy/external_training.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fixture.h"

/*
 * Both ways round the same numbers in another order, 25 steps long: 2e-5 apart at most in a network
 * without ReLU. With it a hidden number comes to lie on the other side now and then: 1e-4 then.
 */
#define TOLERANCE 1e-4
#define ROUNDS    3

static const struct {
    const struct fl_solver_ops *ops;
    const char *option1, *option2;
} cases[] = {
    {&fl_solver_sgd, NULL, NULL},
    {&fl_solver_prox, "mu=0.3", NULL},
    {&fl_solver_prox, "mu=0.3", "anchor=moving"},
    {&fl_solver_scaffold, NULL, NULL},
    {&fl_solver_scaffold, "mu=0.2", "rebuild_dc=yes"},
    {&fl_solver_feddyn, "alpha=0.2", NULL},
    {&fl_solver_igfl_c, NULL, NULL},
    {&fl_solver_igfl_c, "mu=0.2", "denominator=P"},
};
#define N_CASES (sizeof(cases) / sizeof(cases[0]))
#define N_WAYS  (sizeof(setups) / sizeof(setups[0]))

/* One client over a few rounds: what it keeps, and what the server told it. */
struct side {
    float *model, *anchor;
    struct fl_buf kept, sent, told;
};

/* What the step of a program is, entry by entry. */
struct stepper {
    const struct fl_external *external;
    const struct fl_solver_setup *how;
    float *anchor, *gradient, *drift, *velocity; /* internal order; NULL: none */
};

static void update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct stepper *s = ctx;
    size_t i;

    for (i = 0; i < n; i++) {
        size_t at = offset + i;
        double x = (double)params[i];
        double g = (double)grad[i];

        g += s->gradient != NULL ? (double)s->gradient[at] : 0.0;
        g += s->anchor != NULL ? s->external->mu * (x - (double)s->anchor[at]) : 0.0;
        g += s->how->weight_decay * x;
        s->velocity[at] = (float)(s->how->momentum * (double)s->velocity[at] + g);
        x -= s->external->learning_rate * (double)s->velocity[at];
        x += s->drift != NULL ? (double)s->drift[at] / STEPS : 0.0;
        params[i] = (float)x;
    }
}

static float *internal(const struct fixture *f, const float *exported)
{
    float *block = exported != NULL ? calloc(f->block, sizeof(float)) : NULL;

    if (block != NULL) {
        fl_net_import(f->net, block, exported);
    }
    return block;
}

static struct fl_external_task task_of(const struct fixture *f, const struct fl_solver_setup *how,
                                       const struct side *side, const float *start,
                                       const struct fl_solver_bytes *inputs,
                                       const struct fl_solver_bytes *kept)
{
    return (struct fl_external_task){.layout = fl_net_layout(f->net),
                                     .model = start,
                                     .anchor = side->anchor,
                                     .learning_rate = how->learning_rate,
                                     .momentum = how->momentum,
                                     .n_selected = how->n_selected,
                                     .population = how->population,
                                     .adapting = how->adapting,
                                     .inputs = inputs,
                                     .kept = kept};
}

static void replace(struct fl_buf *of, struct fl_buf *with)
{
    fl_buf_done(of);
    *of = *with;
    *with = (struct fl_buf){0};
}

/* A round by the page's formula. */
static void round_outside(struct fixture *f, const struct fl_solver_ops *ops,
                          const struct fl_options *o, const struct fl_solver_setup *how,
                          struct side *side)
{
    const struct fl_solver_bytes inputs = {side->told.data, side->told.len};
    const struct fl_solver_bytes kept = {side->kept.data, side->kept.len};
    float *start = calloc(f->count, sizeof(float));
    struct fl_external_task task;
    struct fl_external external = {0};
    struct fl_buf kept_now = {0};
    struct fl_buf sent_now = {0};
    struct stepper s = {&external, how, NULL, NULL, NULL, calloc(f->block, sizeof(float))};
    size_t i;

    (void)memcpy(start, side->model, f->count * sizeof(float));
    task = task_of(f, how, side, start, &inputs, &kept);
    fl_buf_init(&kept_now, SIZE_MAX);
    fl_buf_init(&sent_now, SIZE_MAX);
    ck_assert_int_eq(fl_external_begin(ops, o, &task, &external, NULL), FL_OK);
    ck_assert_uint_eq(external.parts, fl_external_parts(ops, o, how->adapting));
    if ((external.parts & FL_CAPABILITY_PULL) != 0) {
        s.anchor = internal(f, side->anchor != NULL ? side->anchor : start);
    }
    s.gradient = internal(f, external.gradient);
    s.drift = internal(f, external.drift);
    ck_assert_int_eq(s.gradient != NULL, (external.parts & FL_CAPABILITY_GRADIENT) != 0);
    ck_assert_int_eq(s.drift != NULL, (external.parts & FL_CAPABILITY_DRIFT) != 0);
    fl_net_set(f->net, start);
    for (i = 0; i < STEPS; i++) {
        (void)fl_net_step(f->net, f->x[i], f->y[i], BATCH, update, &s);
    }
    fl_net_get(f->net, side->model);
    if (!how->adapting) {
        const struct fl_external_outcome outcome = {
            .trained = side->model, .steps = STEPS, .kept = &kept_now, .sent = &sent_now};

        ck_assert_int_eq(fl_external_finish(ops, o, &task, &outcome, NULL), FL_OK);
    }
    replace(&side->kept, &kept_now);
    replace(&side->sent, &sent_now);
    free(s.anchor);
    free(s.gradient);
    free(s.drift);
    free(s.velocity);
    free(start);
    fl_external_done(&external);
}

/* The same round by the solver. */
static void round_inside(struct fixture *f, const struct fl_solver_ops *ops,
                         const struct fl_options *o, const struct fl_solver_setup *how,
                         struct side *side)
{
    const struct fl_solver_bytes inputs = {side->told.data, side->told.len};
    const struct fl_solver_bytes kept = {side->kept.data, side->kept.len};
    struct fl_solver_setup setup = *how;
    struct fl_solver *solver = NULL;
    struct fl_buf kept_now = {0};
    struct fl_buf sent_now = {0};
    size_t i;

    fl_buf_init(&kept_now, SIZE_MAX);
    fl_buf_init(&sent_now, SIZE_MAX);
    setup.net = f->net;
    setup.n_steps = STEPS;
    setup.round = 1;
    setup.anchor = side->anchor;
    setup.inputs = &inputs;
    setup.kept = &kept;
    fl_net_set(f->net, side->model);
    ck_assert_int_eq(ops->create(o, &setup, &solver, NULL), FL_OK);
    for (i = 0; i < STEPS; i++) {
        (void)ops->step(solver, f->x[i], f->y[i], BATCH);
    }
    if (ops->finish != NULL && !how->adapting) {
        ck_assert_int_eq(ops->finish(solver, &kept_now, &sent_now, NULL), FL_OK);
    }
    ops->destroy(solver);
    fl_net_get(f->net, side->model);
    replace(&side->kept, &kept_now);
    replace(&side->sent, &sent_now);
}

static void check_blocks(const struct fl_buf *a, const struct fl_buf *b)
{
    size_t i;

    ck_assert_uint_eq(a->len, b->len);
    for (i = 0; i < a->len / sizeof(float); i++) {
        float x = ((const float *)(const void *)a->data)[i];
        float y = ((const float *)(const void *)b->data)[i];

        /* SCAFFOLD divides a displacement by what the steps add up to. */
        ck_assert_double_eq_tol((double)x, (double)y, TOLERANCE * 10);
    }
}

static void side_done(struct side *side)
{
    free(side->model);
    free(side->anchor);
    fl_buf_done(&side->kept);
    fl_buf_done(&side->sent);
    fl_buf_done(&side->told);
}

/* What the server tells in the next round: the same small vector to both, as if of many clients. */
static void tell(struct side *side, size_t count, int round)
{
    size_t i;

    fl_buf_done(&side->told);
    fl_buf_init(&side->told, SIZE_MAX);
    ck_assert_int_eq(fl_buf_reserve(&side->told, count * sizeof(float)), FL_OK);
    for (i = 0; i < count; i++) {
        ((float *)(void *)side->told.data)[i] = 0.01f * (float)((i + (size_t)round) % 7) - 0.03f;
    }
    side->told.len = count * sizeof(float);
}

static const char *const smooth[] = {"dense 301", "dense 4"};

static void same_rounds(const struct fl_solver_ops *ops, const struct fl_options *o,
                        const struct fl_solver_setup *how, bool anchored)
{
    struct side out = {NULL};
    struct side in = {NULL};
    struct side *const sides[] = {&out, &in};
    struct fixture *f = calloc(1, sizeof(*f));
    size_t i;
    int t;

    fixture_init_with(f, smooth, sizeof(smooth) / sizeof(smooth[0]));
    for (i = 0; i < 2; i++) {
        size_t k;

        sides[i]->model = calloc(f->count, sizeof(float));
        (void)memcpy(sides[i]->model, f->start, f->count * sizeof(float));
        sides[i]->anchor = anchored ? calloc(f->count, sizeof(float)) : NULL;
        for (k = 0; anchored && k < f->count; k++) {
            sides[i]->anchor[k] = 0.5f * f->start[k];
        }
    }
    for (t = 0; t < ROUNDS; t++) {
        round_outside(f, ops, o, how, &out);
        round_inside(f, ops, o, how, &in);
        for (i = 0; i < f->count; i++) {
            ck_assert_double_eq_tol((double)out.model[i], (double)in.model[i], TOLERANCE);
        }
        check_blocks(&out.kept, &in.kept);
        check_blocks(&out.sent, &in.sent);
        tell(&out, f->count, t);
        tell(&in, f->count, t);
        /* Rounding does not pile up: both go on from the same. */
        (void)memcpy(out.model, in.model, f->count * sizeof(float));
        if (in.kept.len > 0) {
            (void)memcpy(out.kept.data, in.kept.data, in.kept.len);
        }
    }
    side_done(&out);
    side_done(&in);
    fixture_done(f);
    free(f);
}

TEST_EACH(steps_by_the_page_are_the_solvers, (N_CASES * N_WAYS))
{
    const struct fl_solver_ops *ops = cases[(size_t)_i / N_WAYS].ops;
    struct fl_options *o = options_of(&ops->policy, cases[(size_t)_i / N_WAYS].option1,
                                      cases[(size_t)_i / N_WAYS].option2, NULL);
    struct fl_solver_setup how = setups[(size_t)_i % N_WAYS];

    how.n_selected = 3;
    how.population = 10;
    same_rounds(ops, o, &how, false);
    same_rounds(ops, o, &how, true);
    how.adapting = true;
    same_rounds(ops, o, &how, false);
    fl_options_free(o);
}

static unsigned parts_of(const struct fl_solver_ops *ops, const char *option, bool adapting)
{
    struct fl_options *o = options_of(&ops->policy, option, NULL, NULL);
    unsigned parts = fl_external_parts(ops, o, adapting);

    fl_options_free(o);
    return parts;
}

/* docs/trainers.md#parts. */
TEST(a_solver_asks_for_the_parts_that_it_needs_and_no_others)
{
    ck_assert_uint_eq(parts_of(&fl_solver_sgd, NULL, false), 0);
    ck_assert_uint_eq(parts_of(&fl_solver_prox, "mu=0", false), 0);
    ck_assert_uint_eq(parts_of(&fl_solver_prox, "mu=1", true), FL_CAPABILITY_PULL);
    ck_assert_uint_eq(parts_of(&fl_solver_scaffold, NULL, false), FL_CAPABILITY_GRADIENT);
    ck_assert_uint_eq(parts_of(&fl_solver_scaffold, "mu=1", true), FL_CAPABILITY_PULL);
    ck_assert_uint_eq(parts_of(&fl_solver_igfl_c, "mu=1", false),
                      FL_CAPABILITY_PULL | FL_CAPABILITY_DRIFT);
    ck_assert_uint_eq(parts_of(&fl_solver_pfedme, NULL, false), FL_CAPABILITY_PFEDME);
    ck_assert_uint_eq(parts_of(&fl_solver_per_fedavg, NULL, true), FL_CAPABILITY_PER_FEDAVG);
    ck_assert_uint_eq(parts_of(&fl_solver_fedmix, NULL, false), FL_CAPABILITY_MIXUP);
    ck_assert_uint_eq(parts_of(&fl_solver_fedmix, "lambda=0", false), 0);
    ck_assert_uint_eq(parts_of(&fl_solver_naivemix, NULL, true), 0);
}

TEST(what_peers_sent_in_another_size_or_not_finite_is_refused)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct fl_options *o = options_of(&fl_solver_scaffold.policy, NULL, NULL, NULL);
    struct side side = {NULL};
    struct fl_solver_bytes inputs;
    struct fl_external_task task;
    struct fl_external external;
    struct fl_err err = {0};

    fixture_init(f);
    tell(&side, f->count, 0);
    inputs = (struct fl_solver_bytes){side.told.data, side.told.len - sizeof(float)};
    task = task_of(f, &setups[0], &side, f->start, &inputs, NULL);
    ck_assert_int_eq(fl_external_begin(&fl_solver_scaffold, o, &task, &external, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "'control' has"));
    inputs.len = side.told.len;
    ((float *)(void *)side.told.data)[3] = NAN;
    ck_assert_int_eq(fl_external_begin(&fl_solver_scaffold, o, &task, &external, &err),
                     FL_ENUMERIC);
    side_done(&side);
    fl_options_free(o);
    fixture_done(f);
    free(f);
}

TEST(a_count_that_the_server_did_not_tell_is_said)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct fl_options *o = options_of(&fl_solver_igfl_c.policy, NULL, NULL, NULL);
    struct side side = {NULL};
    struct fl_external_task task;
    struct fl_external external;
    struct fl_err err = {0};

    fixture_init(f);
    task = task_of(f, &setups[0], &side, f->start, NULL, NULL);
    ck_assert_int_eq(fl_external_begin(&fl_solver_igfl_c, o, &task, &external, &err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "did not send"));
    fl_options_free(o);
    fixture_done(f);
    free(f);
}
