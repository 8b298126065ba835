/*
 * The solver of simulated federations, both sides of it. What a client makes of a model is known
 * to whoever knows the model. Beside it go two controls: one of whole numbers, the sum of which on
 * the server is exact, and SCAFFOLD's, made on the server by the part of the real solver. Clients
 * are told both as SCAFFOLD tells its own.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/nn/net.h"
#include "tests/sim/fed.h"

struct fl_solver {
    struct fl_net *net;
    float start[FED_FLOATS];
    float control[FED_FLOATS], told[FED_FLOATS], kept[2][FED_FLOATS];
    bool rebuild;
    uint64_t made;
};

/* --- the client's side --- */

static void take(const struct fl_solver_bytes *bytes, float to[FED_FLOATS])
{
    (void)memset(to, 0, FED_FLOATS * sizeof(*to));
    if (bytes->len > 0) {
        ck_assert_uint_eq(bytes->len, FED_FLOATS * sizeof(*to));
        (void)memcpy(to, bytes->data, bytes->len);
    }
}

static int create_own(const struct fl_options *o, const struct fl_solver_setup *setup,
                      struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *s = calloc(1, sizeof(*s));

    (void)o;
    (void)err;
    ck_assert_ptr_nonnull(s);
    s->net = setup->net;
    fl_net_get(s->net, s->start);
    *ret = s;
    return FL_OK;
}

static bool rebuilds(const struct fl_options *o)
{
    return fl_solver_scaffold.server->wants_scaled(o);
}

static int create(const struct fl_options *o, const struct fl_solver_setup *setup,
                  struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *s = NULL;
    int rv = create_own(o, setup, &s, err);

    take(&setup->inputs[0], s->control);
    take(&setup->inputs[1], s->told);
    take(&setup->kept[0], s->kept[0]);
    take(&setup->kept[1], s->kept[1]);
    s->rebuild = rebuilds(o);
    *ret = s;
    return rv;
}

static void destroy(struct fl_solver *s)
{
    free(s);
}

static double step(struct fl_solver *s, const float *x, const int32_t *y, size_t batch)
{
    const struct fed_client *c = fed_working();
    float params[FED_FLOATS];

    (void)x;
    (void)y;
    (void)batch;
    s->made = fed_update(c->name, c->member.task.key.round, c->member.task.key.attempt, s->start);
    fed_floats(s->made, params);
    fl_net_set(s->net, params);
    return 1.0 + c->index;
}

static void put(struct fl_buf *out, const float block[FED_FLOATS])
{
    ck_assert_int_eq(fl_buf_add(out, block, FED_FLOATS * sizeof(*block)), FL_OK);
}

/* A whole number that depends on all that went into the training. */
static float change_of(const struct fl_solver *s, unsigned i)
{
    float both[] = {s->kept[0][i], s->control[i]};

    return (float)((int)(fed_hash(fl_hash64(both, sizeof(both)), s->made + i) % 2001) - 1000);
}

float fed_scaffold(float told, float update)
{
    return (float)(-(double)told - (double)update * FED_FACTOR);
}

static int finish(struct fl_solver *s, struct fl_buf *kept, struct fl_buf *sent, struct fl_err *err)
{
    float params[FED_FLOATS];
    float change[FED_FLOATS];
    float dc[FED_FLOATS];
    unsigned i;

    (void)err;
    fed_floats(s->made, params);
    for (i = 0; i < FED_FLOATS; i++) {
        change[i] = change_of(s, i);
        dc[i] = fed_scaffold(s->told[i], params[i] - s->start[i]);
        s->kept[0][i] += change[i];
        s->kept[1][i] = (float)((double)s->kept[1][i] + (double)dc[i]);
    }
    put(&kept[0], s->kept[0]);
    put(&kept[1], s->kept[1]);
    if (!s->rebuild) {
        put(&sent[0], change);
        put(&sent[1], dc);
    }
    return FL_OK;
}

/* --- the server's --- */

static double factor(const struct fl_options *o, double learning_rate, double momentum,
                     uint64_t steps)
{
    (void)o;
    (void)learning_rate;
    (void)momentum;
    (void)steps;
    return FED_FACTOR;
}

static void tell(const float *state, size_t members, float *told, size_t n)
{
    fl_solver_scaffold.server->tell(state, members, told, n);
}

static void server_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    bool rebuild = rebuilds(o);
    struct fl_agg_block scaffold = *block;
    size_t i;

    for (i = 0; i < block->n; i++) { /* The mean of whole numbers, and how many they were. */
        double sum = rebuild ? 0 : rint((double)block->n_senders * block->means[0][i]);

        block->state_new[0][i] = (float)((double)block->state[0][i] + sum);
    }
    scaffold.means = rebuild ? block->means : block->means + 1;
    scaffold.state = block->state + 1;
    scaffold.state_new = block->state_new + 1;
    fl_solver_scaffold.server->step(o, &scaffold);
}

static const char *const states[] = {"control_sum", "scaffold_sum", NULL};
static const char *const inputs[] = {"control", "told", NULL};
static const char *const sends[] = {"change", "dc", NULL};
static const struct fl_keep keeps[] = {{"control", true}, {"scaffold", true}, {NULL, false}};

static const struct fl_agg_part server = {
    .n_state = 2,
    .state_names = states,
    .tells = inputs,
    .tell = tell,
    .takes = sends,
    .weighs_equally = true,
    .sums_kept = true,
    .step = server_step,
    .wants_scaled = rebuilds,
};

/* With the options of `scaffold`. */
const struct fl_solver_ops fed_solver = {
    .policy = {.name = "sim", .help = "whole numbers", .source = "tests"},
    .inputs = inputs,
    .sends = sends,
    .keeps = keeps,
    .server = &server,
    .factor = factor,
    .create = create,
    .destroy = destroy,
    .step = step,
    .finish = finish,
};

const struct fl_solver_ops fed_solver_own = {
    .policy = {.name = "sim", .help = "whole numbers", .source = "tests"},
    .create = create_own,
    .destroy = destroy,
    .step = step,
};

void fed_set_broadcast(const struct fed_plan *plan, struct fl_strategy *strategy)
{
    struct fl_options *o;

    if (plan->broadcast == NULL) {
        return;
    }
    ck_assert_int_eq(fl_strategy_set(strategy, FL_COMPONENT_BROADCAST, plan->broadcast, NULL),
                     FL_OK);
    o = strategy->options[FL_COMPONENT_BROADCAST];
    if (strcmp(plan->broadcast, "ternary") == 0) {
        /* Lists of each unit are longer than a model of 32 bytes: downloads are whole ones. */
        ck_assert_int_eq(fl_options_set(o, "share", "0.3", NULL), FL_OK);
    } else if (fl_broadcast_sends_moves(strategy->broadcast)) {
        /* Few entries move: of all of them the whole model, 32 bytes, would be as short. */
        ck_assert_int_eq(fl_options_set(o, "step", "1", NULL), FL_OK);
        ck_assert_int_eq(fl_options_set(o, "threshold", "2", NULL), FL_OK);
        ck_assert_int_eq(fl_options_set(o, "halve_at", plan->halves ? "3" : "0", NULL), FL_OK);
        ck_assert_int_eq(fl_options_set(o, "history", plan->halves ? "1" : "1000", NULL), FL_OK);
    }
}

struct fl_strategy *fed_strategy(const struct fed_plan *plan)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_strategy_create(plan->own ? "fedavg+mcsa" : "scaffold", &s, &err) == FL_OK,
                  "%s", err.msg);
    if (!plan->own) {
        ck_assert_int_eq(fl_options_set(s->options[FL_COMPONENT_SOLVER], "rebuild_dc",
                                        plan->rebuild ? "yes" : "no", NULL),
                         FL_OK);
    }
    s->solver = plan->own ? &fed_solver_own : &fed_solver;
    fed_set_broadcast(plan, s);
    return s;
}
