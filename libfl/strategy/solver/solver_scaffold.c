/*
 * solver: scaffold (SCAFFOLD: Karimireddy et al. 2020, Algorithm 1 and eq. 4)
 *
 *     x <- x - learning_rate (g - c_k + c)                                  each step
 *     dc_k = -c + (theta^t - theta_k) / (learning_rate a_k),  c_k <- c_k + dc_k
 *     server: s <- s + sum_k dc_k,  c = s / N
 *
 * with c_k and c the controls of the client and of the server, 0 at the start, and
 * a_k = sum over q = 1..steps of (1 - m^q) / (1 - m), what a constant gradient of 1 moves x
 * by under momentum m; without momentum it is the number of steps. This is option II of eq. 4.
 * With control: gradient it is option I,
 *
 *     c_k <- g_k(theta^t),  dc_k = its change
 *
 * the mean gradient of all samples at the received model, in batches as they are trained. Weight
 * decay and the proximal term count as parts of the gradient: controls hold them too.
 *
 * A client commits c_k only for the units whose upload was aggregated: then s = sum of all c_k,
 * unit by unit, whichever clients drop out. The server keeps the sum, because N may change between
 * rounds: a client that joins has c_k = 0, so c is the mean at once. N counts every client whose
 * c_k is in the sum (docs/algorithms.md#scaffolds-control).
 *
 * Updates have equal weights in their mean unless configured otherwise, as in the paper: c is a
 * plain mean, and sum_k w_k (c - c_k) is 0 over all clients for equal w_k only.
 *
 * With a learning rate of 0 option II has no gradient: dc_k is 0. (With rebuild_dc the server
 * cannot distinguish this from a model that did not move: dc_k is -c then, on both sides.)
 *
 * Options: mu (proximal term), control, rebuild_dc: dc_k is not sent; the server computes it from
 * the update and the number of steps reported, so the update must be exact (codec float32). State:
 * client: theta^t, c and c_k, three models, beside sgd's. Server: s, and c in a round. Cost: sgd's
 * and two more reads per step; control: gradient one more pass over the data and two more models.
 * One more model to download (c) and, without rebuild_dc, to upload (dc_k). Runs on the training
 * thread; server_step runs in the aggregation pass.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_impl.h"

enum control_of { OF_STEPS, OF_GRADIENT };

struct options {
    double mu;
    enum control_of control;
    bool rebuild_dc;
};

struct fl_solver {
    struct fl__sgd sgd;
    struct fl__prox prox;
    double factor; /* 1 / (learning_rate a_k) */
    bool rebuild;
    /* Internal order; all NULL when adapting. */
    float *start;       /* theta^t */
    float *control;     /* c */
    float *own_control; /* c_k */
    /* With control: gradient, else NULL: the mean so far, and the gradient of a batch. */
    float *gradient;
    float *of_batch;
};

static void scaffold_update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;
    float g[FL__SOLVER_CHUNK];
    size_t at;

    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;

        (void)memcpy(g, grad + at, m * sizeof(float));
        if (solver->control != NULL) {
            fl_vec_sub(g, g, solver->own_control + offset + at, m);
            fl_vec_axpy(g, 1.0f, solver->control + offset + at, m);
        }
        fl__prox_pull(&solver->prox, offset + at, m, params + at, g);
        fl__sgd_update(&solver->sgd, offset + at, m, params + at, g);
    }
}

static double scaffold_factor(const struct fl_options *o, double learning_rate, double momentum,
                              uint64_t n_steps)
{
    double moved = momentum < 1 ? learning_rate * fl_solver_momentum_steps(momentum, n_steps) : 0;
    double inverse = 1 / moved;

    (void)o;
    return moved > 0 && isfinite(inverse) ? inverse : 0;
}

static bool scaffold_rebuilds_dc(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->rebuild_dc;
}

static void scaffold_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        fl__prox_done(&solver->prox);
        free(solver->start);
        free(solver->control);
        free(solver->own_control);
        free(solver->gradient);
        free(solver->of_batch);
        free(solver);
    }
}

/* Room for the gradient at the received model, which starts with that of the weight decay. */
static int scaffold_take_gradient(struct fl_solver *solver, const struct fl_solver_setup *setup,
                                  struct fl_err *err)
{
    size_t n = fl_net_block(setup->net);
    struct fl__runs buffers = {.n = 0};
    int rv;

    solver->gradient = calloc(n, sizeof(*solver->gradient));
    solver->of_batch = calloc(n, sizeof(*solver->of_batch));
    if (solver->gradient == NULL || solver->of_batch == NULL) {
        return fl_err_set(err, FL_ENOMEM, "gradient of %zu parameters: out of memory", n);
    }
    if (!(setup->weight_decay > 0)) {
        return FL_OK;
    }
    rv = fl__runs_of_buffers(setup->net, &buffers, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_vec_axpy(solver->gradient, (float)setup->weight_decay, solver->start, n);
    fl__runs_copy(&buffers, solver->gradient, solver->of_batch); /* zeros */
    fl__runs_done(&buffers);
    return FL_OK;
}

static int scaffold_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                           struct fl_solver **ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    int rv;

    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    solver->rebuild = scaffold_rebuilds_dc(o);
    solver->factor = scaffold_factor(o, setup->learning_rate, setup->momentum, setup->n_steps);
    rv = fl__prox_init(&solver->prox, v->mu, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__sgd_init(&solver->sgd, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (!setup->adapting) {
        const struct fl_solver_bytes *control = setup->inputs;
        const struct fl_solver_bytes *own = setup->kept;

        rv = fl__solver_take(setup->net, control, "control", &solver->control, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl__solver_take(setup->net, own, "this client's control", &solver->own_control, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl__solver_copy(setup->net, &solver->start, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = v->control == OF_GRADIENT ? scaffold_take_gradient(solver, setup, err) : FL_OK;
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = solver;
    return FL_OK;
fail:
    scaffold_destroy(solver);
    return rv;
}

static double scaffold_step(struct fl_solver *solver, const float *x, const int32_t *y,
                            size_t batch)
{
    return fl_net_step(solver->sgd.net, x, y, batch, scaffold_update, solver);
}

static bool scaffold_wants_pass(const struct fl_solver *solver)
{
    return solver->gradient != NULL;
}

static void scaffold_pass(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch,
                          size_t samples)
{
    struct fl_net *net = solver->sgd.net;

    (void)fl_net_gradient(net, x, y, batch, solver->of_batch);
    fl_vec_axpy(solver->gradient, (float)((double)batch / (double)samples), solver->of_batch,
                fl_net_block(net));
}

/* Option I: c_k becomes the gradient; `change` is what it changes by. */
static int scaffold_take_control(struct fl_solver *solver, float *change, struct fl_err *err)
{
    size_t n = fl_net_block(solver->sgd.net);

    if (!fl_vec_finite(solver->gradient, n)) {
        return fl_err_set(err, FL_ENUMERIC,
                          "the gradient of all samples at the received model is not finite");
    }
    fl_vec_sub(change, solver->gradient, solver->own_control, n);
    (void)memcpy(solver->own_control, solver->gradient, n * sizeof(float));
    return FL_OK;
}

/* A displacement from `start` to `x` under c; all arrays have n entries. */
struct displacement {
    double factor;
    bool known; /* false: the gradient is unknown (dc_k = 0) */
    const float *x;
    const float *start;
    const float *control;
    size_t n;
};

/* Compute dc_k and own += dc_k; `change` may be one of the inputs. */
static void change_control(const struct displacement *d, float *change, float *own)
{
    size_t i;

    for (i = 0; i < d->n; i++) {
        double moved = (double)d->x[i] - (double)d->start[i];
        double dc = -(double)d->control[i] - moved * d->factor;

        change[i] = d->known ? (float)dc : 0;
        own[i] = (float)((double)own[i] + (double)change[i]);
    }
}

static int scaffold_finish(struct fl_solver *solver, struct fl_buf *kept, struct fl_buf *sent,
                           struct fl_err *err)
{
    struct fl_net *net = solver->sgd.net;
    float *change = solver->start; /* reused: each entry is read before it is written */
    const struct displacement moved = {.factor = solver->factor,
                                       .known = solver->factor > 0 || solver->rebuild,
                                       .x = fl_net_params(net),
                                       .start = solver->start,
                                       .control = solver->control,
                                       .n = fl_net_block(net)};
    int rv;

    if (solver->gradient == NULL) {
        change_control(&moved, change, solver->own_control);
    } else {
        rv = scaffold_take_control(solver, change, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl__solver_put(net, solver->own_control, &kept[0], err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!solver->rebuild) {
        return fl__solver_put(net, change, &sent[0], err);
    }
    return FL_OK;
}

static unsigned scaffold_external_parts(const struct fl_options *o, bool adapting)
{
    const struct options *v = fl_options_values(o);

    return (v->mu > 0 ? FL_CAPABILITY_PULL : 0u) | (adapting ? 0u : FL_CAPABILITY_GRADIENT);
}

static int scaffold_external_begin(const struct fl_options *o, const struct fl_external_task *task,
                                   struct fl_external *ret, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    float *own = NULL;
    int rv;

    ret->mu = v->mu;
    if (task->adapting) {
        return FL_OK;
    }
    if (v->control == OF_GRADIENT) {
        return fl_err_set(err, FL_ECONF,
                          "solver 'scaffold' with control: gradient needs the gradient of all "
                          "samples at the received model, which a program does not compute: use "
                          "'trainer: builtin', or control: steps on the server");
    }
    rv = fl__external_take(task->layout, task->inputs, "control", &ret->gradient, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__external_take(task->layout, task->kept, "this client's control", &own, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl_vec_sub(ret->gradient, ret->gradient, own, fl_layout_count(task->layout));
    fl__solver_clear_buffers(task->layout, ret->gradient);
done:
    free(own);
    return rv;
}

static int scaffold_external_finish(const struct fl_options *o, const struct fl_external_task *task,
                                    const float *trained, uint64_t steps, struct fl_buf *kept,
                                    struct fl_buf *sent, struct fl_err *err)
{
    double inverse = scaffold_factor(o, task->learning_rate, task->momentum, steps);
    struct displacement moved = {.factor = inverse,
                                 .known = inverse > 0 || scaffold_rebuilds_dc(o),
                                 .x = trained,
                                 .start = task->model,
                                 .n = fl_layout_count(task->layout)};
    float *control = NULL;
    float *own = NULL;
    int rv = fl__external_take(task->layout, task->inputs, "control", &control, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__external_take(task->layout, task->kept, "this client's control", &own, err);
    if (rv != FL_OK) {
        goto done;
    }
    /* dc_k overwrites c, entry by entry. */
    moved.control = control;
    change_control(&moved, control, own);
    rv = fl__external_put(task->layout, own, &kept[0], err);
    if (rv != FL_OK) {
        goto done;
    }
    if (!scaffold_rebuilds_dc(o)) {
        rv = fl__external_put(task->layout, control, &sent[0], err);
    }
done:
    free(control);
    free(own);
    return rv;
}

/* c from the sum, rounded as it is sent to the clients. */
static float mean_of(float sum, size_t members)
{
    return (float)((double)sum / (double)members);
}

static void scaffold_describe_mean(const float *state, size_t members, float *out, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        out[i] = mean_of(state[i], members);
    }
}

static void scaffold_server_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    bool rebuild = scaffold_rebuilds_dc(o);
    double senders = (double)block->n_senders;
    size_t i;

    for (i = 0; i < block->n; i++) {
        float sum = block->state[0][i];
        double change =
            rebuild ? -(double)mean_of(sum, block->members) - block->scaled[i] : block->means[0][i];

        block->state_new[0][i] = (float)((double)sum + senders * change);
    }
}

static int scaffold_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);

    return v->control == OF_GRADIENT && v->rebuild_dc
               ? fl_err_set(err, FL_ECONF,
                            "rebuild_dc follows from the update only with control: steps (option "
                            "II), found control: gradient (option I)")
               : FL_OK;
}

static const char *const controls[] = {[OF_STEPS] = "steps", [OF_GRADIENT] = "gradient", NULL};

static const struct fl_opt_spec options[] = {
    FL__PROX_OPTION(struct options, "0"),
    {FL_OPT(struct options, ENUM, control), .def = "steps", .choices = controls,
     .help = "What a client's control variate becomes: the mean gradient of its steps (option II), "
             "or the gradient of all its samples at the received model, by one more pass (option "
             "I)."},
    {FL_OPT(struct options, BOOL, rebuild_dc), .def = "no",
     .help = "The server computes the change of a client's control variate from its update, and "
             "the client does not send it: half the bytes uploaded."},
    FL_OPT_END_OF(struct options),
};

static const char *const control[] = {"control", NULL};
static const char *const control_sum[] = {"control_sum", NULL};
static const char *const control_change[] = {"control_change", NULL};
static const struct fl_keep keeps[] = {{"control", true}, {NULL, false}};

static const struct fl_agg_part server = {
    .n_state = 1,
    .state_names = control_sum,
    .tells = control,
    .tell = scaffold_describe_mean,
    .takes = control_change,
    .weighs_equally = true,
    .sums_kept = true,
    .step = scaffold_server_step,
    .wants_scaled = scaffold_rebuilds_dc,
};

const struct fl_solver_ops fl_solver_scaffold = {
    .policy =
        {
            .name = "scaffold",
            .help = "sgd corrected by control variates against the drift of the clients",
            .source = "SCAFFOLD, options I and II",
            .options = options,
            .check = scaffold_check,
        },
    .inputs = control,
    .sends = control_change,
    .keeps = keeps,
    .server = &server,
    .factor = scaffold_factor,
    .wants_pass = scaffold_wants_pass,
    .pass = scaffold_pass,
    .create = scaffold_create,
    .destroy = scaffold_destroy,
    .step = scaffold_step,
    .finish = scaffold_finish,
    .external = {scaffold_external_parts, scaffold_external_begin, scaffold_external_finish},
};
