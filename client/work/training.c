/*
 * One training: assembles the starting model, the solver's inputs and the client state, runs the
 * trainer, and writes client state and result in a crash-safe order. Runs on the training thread.
 * It neither fetches payloads nor sends results.
 */

#include "client/work/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/store/own_summary.h"
#include "client/work/local_model.h"
#include "client/work/momentum.h"
#include "client/work/terms.h"
#include "libfl/num/vec.h"

/* Far above any solver, which has at most two inputs and one kept value; checked. */
#define EXTRAS_MAX FL_WIRE_MAX_PAYLOADS

struct fl_training {
    const struct fl_worker *worker;
    struct fl_setup *setup; /* a reference */
    struct fl_round_key key;
    struct fl_train_task task;
    struct fl_train_result result;
    struct fl_inputs in;
    struct fl_solver_bytes inputs[EXTRAS_MAX], kept[EXTRAS_MAX];
    float *kept_values[EXTRAS_MAX]; /* owned; `kept` borrows them; NULL: never stored */
    bool has_kept;
    struct fl_round_key kept_of; /* the round that `kept` belongs to */
    size_t n_inputs, n_kept;
    struct fl_buf summary; /* the data summary that this client sent; empty: none */
    float *start;          /* the starting model, inside `in` */
    float *anchor;
    float *local;  /* trained values of the local tensors, packed; NULL: no local tensors */
    float *beside; /* the trained personal model of a policy with `beside`; else NULL */
    bool received; /* `start` came with the task and becomes the anchor */
    struct fl_result *made;
    atomic_bool cancel;
    struct fl_err err; /* error of the run, copied to the caller at its end */
};

static void training_drop_kept(struct fl_training *t)
{
    size_t i;

    for (i = 0; i < t->n_kept; i++) {
        free(t->kept_values[i]);
    }
    t->n_kept = 0;
}

void fl_training_free(struct fl_training *t)
{
    if (t == NULL) {
        return;
    }
    training_drop_kept(t);
    fl_buf_done(&t->summary);
    free(t->anchor);
    free(t->local);
    free(t->beside);
    fl_inputs_done(&t->in);
    fl_train_result_done(&t->result);
    fl_result_unref(t->made);
    fl_setup_unref(t->setup);
    free(t);
}

/* --- before training --- */

/*
 * start = (1 - beta) anchor + beta personalized model (libfl/strategy/personalization/personal.c);
 * with beta 1 the personalized model itself.
 */
static void training_blend_start(struct fl_training *t, const float *anchor)
{
    const struct fl_personal_own_options *own = fl_options_values(t->setup->personal_options);
    size_t n = fl_layout_count(t->setup->layout);
    double beta = own->beta;
    size_t i;

    for (i = 0; beta < 1.0 && i < n; i++) {
        t->start[i] = (float)((1.0 - beta) * (double)anchor[i] + beta * (double)t->start[i]);
    }
}

/*
 * For algorithms with a model per client: sets the starting model and the anchor of its proximal
 * term.
 */
static int start_own(struct fl_training *t)
{
    struct fl_input *in = fl_inputs_find(&t->in, "personal_model");
    float *anchor = NULL;
    int rv = fl_client_state_load(t->worker->keeps, FL_KEEP_ANCHOR, &anchor, &t->err);

    if (rv != FL_OK && rv != FL_ENOENT) {
        return rv;
    }
    if (t->in.own != NULL) {
        t->start = t->in.own;
        t->anchor = anchor; /* NULL: the own model is the anchor */
        return FL_OK;
    }
    if (in != NULL) {
        rv = anchor != NULL ? fl_input_own(in) : FL_OK; /* Blending changes it. */
        if (rv != FL_OK) {
            free(anchor);
            return rv;
        }
        t->start = (float *)(void *)in->data;
        if (anchor != NULL) {
            training_blend_start(t, anchor);
        }
    } else if ((in = fl_inputs_find(&t->in, "model")) != NULL) {
        t->start = (float *)(void *)in->data;
    }
    t->received = true;
    free(anchor);
    return FL_OK;
}

/* The received model with the local tensors of this client put in. */
static int start_received(struct fl_training *t, struct fl_input *in)
{
    const struct fl_layout *layout = t->setup->layout;
    float *kept = NULL;
    int rv = FL_ENOENT;

    if (fl_layout_local(layout) > 0) {
        rv = fl_client_state_load(t->worker->keeps, FL_KEEP_LOCAL, &kept, &t->err);
    }
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_input_own(in);
    if (rv != FL_OK) {
        goto done;
    }
    fl_local_put(layout, kept, (float *)(void *)in->data);
done:
    free(kept);
    t->start = (float *)(void *)in->data;
    return rv == FL_ENOENT ? FL_OK : rv;
}

static int load_kept(struct fl_training *t)
{
    const struct fl_setup *setup = t->setup;
    size_t n = fl_solver_keeps(setup->solver->keeps);
    size_t i;

    for (i = 0; i < n && i < EXTRAS_MAX; i++) {
        char name[FL_NAME_MAX];
        float *data = NULL;
        int rv = fl_kept_name(setup->solver, setup->solver->keeps[i].name, name);

        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_client_state_load(t->worker->keeps, name, &data, &t->err);
        if (rv != FL_OK && rv != FL_ENOENT) {
            return rv;
        }
        t->kept_values[i] = data;
        t->kept[i].data = data;
        t->kept[i].len = data != NULL ? fl_layout_count(setup->layout) * sizeof(*data) : 0;
        t->n_kept = i + 1;
    }
    t->has_kept = fl_client_state_wanted(t->worker->keeps);
    if (t->has_kept) { /* Loading may have found damage and changed this. */
        t->kept_of = fl_client_state_of(t->worker->keeps);
    }
    return FL_OK;
}

/*
 * Loads the data summary of this client, so that the trainer does not mix its samples with their
 * own means.
 */
static int load_summary(struct fl_training *t)
{
    const struct fl_worker *worker = t->worker;
    int rv;

    if (t->setup->solver->summary == NULL || worker->state_dir == NULL) {
        return FL_OK;
    }
    fl_buf_init(&t->summary, FL_SUMMARY_MAX);
    rv = fl_summary_load(worker->state_dir, &t->summary, &t->err);
    if (rv != FL_OK) {
        goto done;
    }
    if (t->summary.len > 0) {
        t->task.own_summary = (struct fl_solver_bytes){t->summary.data, t->summary.len};
    }
done:
    /* Without the file the trainer computes the summary from the data. */
    return rv == FL_ENOENT || rv == FL_EFORMAT || rv == FL_EVERSION ? FL_OK : rv;
}

/* Warns once per collection of summaries when that of this client is missing in it. */
static void training_log_left_out(const struct fl_training *t)
{
    const struct fl_buf *own = &t->summary;
    size_t i;

    for (i = 0; own->len > 0 && i < t->in.n; i++) {
        const struct fl_input *in = &t->in.list[i];

        if (in->opaque && !in->cached && !in->lent &&
            memmem(in->data, (size_t)in->bytes, own->data, own->len) == NULL)
        {
            fl_log_peer(
                t->worker->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "the server does not distribute the data summary of this client: its values are "
                "outside the range of the others (limits.summary_range of the server), an operator "
                "dropped it, or it arrived after the first round began; 'flctl summaries' at the "
                "server shows which. Training continues with those of the others");
        }
    }
}

static int training_prepare(struct fl_training *t)
{
    const struct fl_personal_ops *personal = t->setup->personal;
    const char *const *name = t->setup->solver->inputs;
    struct fl_input *in = fl_inputs_find(&t->in, "model");
    int rv = in != NULL
                 ? fl_input_decode(in, t->setup, t->worker->state_dir, t->worker->log, &t->err)
                 : FL_OK;

    if (rv != FL_OK) {
        return rv;
    }
    if (personal->own) {
        rv = start_own(t);
    } else if (in != NULL) {
        rv = start_received(t, in);
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (t->start == NULL) {
        return fl_err_set(&t->err, FL_ESTATE, "no model was fetched");
    }
    rv = load_kept(t);
    if (rv != FL_OK) {
        return rv;
    }
    for (; name != NULL && *name != NULL && t->n_inputs < EXTRAS_MAX; name++) {
        in = fl_inputs_find(&t->in, *name);
        t->inputs[t->n_inputs] = (struct fl_solver_bytes){in != NULL ? in->data : NULL,
                                                          in != NULL ? (size_t)in->bytes : 0};
        t->n_inputs++;
    }
    rv = load_summary(t);
    if (rv != FL_OK) {
        return rv;
    }
    training_log_left_out(t);
    if (t->worker->state_dir != NULL) {
        fl_inputs_save(&t->in, t->worker->state_dir, t->worker->log);
    }
    t->task.model = t->start;
    t->task.anchor = t->anchor;
    t->task.raw = personal->own;
    t->task.space = t->setup->space;
    t->task.evaluate_trained = personal->trained && !personal->beside;
    t->task.inputs = t->n_inputs > 0 ? t->inputs : NULL;
    t->task.kept = t->n_kept > 0 ? t->kept : NULL;
    return FL_OK;
}

/* --- the personal model beside the global one --- */

/*
 * Trains the personal model of a policy with `beside` (Ditto): repeats the steps of this task from
 * the client's stored personal model, with the received model as anchor. Reports its accuracy.
 */
static int training_run_beside(struct fl_training *t)
{
    struct fl_train_task task = t->task;
    struct fl_train_result result = {0};
    float *own = NULL;
    int rv;

    if (!t->setup->personal->beside) {
        return FL_OK;
    }
    rv = fl_client_state_load(t->worker->keeps, FL_KEEP_PERSONAL, &own, &t->err);
    if (rv != FL_OK && rv != FL_ENOENT) {
        return rv;
    }
    task.model = own != NULL ? own : t->start;
    task.anchor = t->start;
    task.raw = true;
    task.beside = true;
    task.space = NULL;
    task.evaluate_trained = true;
    task.inputs = task.kept = NULL;
    rv = fl_trainer_run(t->worker->trainer, &task, &result, &t->err);
    if (rv != FL_OK) {
        (void)fl_err_wrap(&t->err, rv, "training the personal model");
        goto done;
    }
    t->result.has_trained = result.has_trained;
    t->result.trained = result.trained;
    t->beside = result.delta;
    result.delta = NULL;
done:
    fl_train_result_done(&result);
    free(own);
    return rv;
}

/* --- after training --- */

/* Over trainable entries only, as are all inner products. */
static double inner_product(const struct fl_layout *layout, const float *a, const float *b)
{
    double sum = 0.0;
    size_t t;
    size_t i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; fl_tensor_counts(tensor) && i < tensor->offset + tensor->count;
             i++) {
            sum += (double)a[i] * (double)b[i];
        }
    }
    return sum;
}

static int take_previous(struct fl_training *t)
{
    float *previous = NULL;
    int rv;

    if (!t->setup->welcome.wants_previous_dot) {
        return FL_OK;
    }
    rv = fl_client_state_load(t->worker->keeps, FL_KEEP_PREVIOUS, &previous, &t->err);
    if (rv != FL_OK) {
        goto done;
    }
    t->made->previous_dot = inner_product(t->setup->layout, previous, t->result.delta);
done:
    free(previous);
    return rv == FL_ENOENT ? FL_OK : rv;
}

static int take_mask(struct fl_training *t)
{
    const struct fl_setup *setup = t->setup;
    const struct fl_layout *layout = setup->layout;
    struct fl_result *made = t->made;

    if (setup->upload->mask == NULL) {
        return FL_OK;
    }
    made->n_mask = fl_neurons_total(layout);
    made->mask = malloc(made->n_mask + 1);
    return made->mask == NULL ? FL_ENOMEM
                              : setup->upload->mask(setup->upload_options, layout, t->start,
                                                    t->result.delta, made->mask);
}

static int check_block(const struct fl_training *t, const struct fl_buf *block, const char *name,
                       struct fl_err *err)
{
    size_t want = fl_layout_count(t->setup->layout) * sizeof(float);

    return block->len == want
               ? FL_OK
               : fl_err_set(err, FL_ESHAPE, "the solver '%s' made %zu bytes of '%s', expected %zu",
                            t->setup->solver->policy.name, block->len, name, want);
}

static void clear_blocks(const struct fl_layout *layout, const struct fl_buf *blocks, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) { /* check_block() rejects blocks of another length. */
        if (blocks[i].len == fl_layout_count(layout) * sizeof(float)) {
            fl_local_clear(layout, (float *)(void *)blocks[i].data);
        }
    }
}

/*
 * Removes the local tensors from everything that leaves this function: the displacement, the
 * solver's payloads, and its kept values, whose counterpart on the server has no entries for them
 * (SCAFFOLD's control). So local tensors are trained by plain steps of the solver.
 */
static int take_local(struct fl_training *t)
{
    const struct fl_layout *layout = t->setup->layout;
    size_t n = fl_layout_local(layout);
    struct fl_train_result *r = &t->result;
    float *moved;
    size_t i;

    if (n == 0) {
        return FL_OK;
    }
    t->local = malloc(n * sizeof(*t->local));
    moved = malloc(n * sizeof(*moved));
    if (t->local == NULL || moved == NULL) {
        free(moved);
        return FL_ENOMEM;
    }
    fl_local_pack(layout, t->start, t->local);
    fl_local_pack(layout, r->delta, moved);
    for (i = 0; i < n; i++) {
        t->local[i] += moved[i];
    }
    free(moved);
    fl_local_clear(layout, r->delta);
    clear_blocks(layout, r->sent, r->n_sent);
    clear_blocks(layout, r->kept, r->n_kept);
    fl_local_divergence(layout, r->delta, r->divergence);
    return FL_OK;
}

/*
 * With training.client_momentum the displacement becomes the momentum, which is kept as it is sent.
 * Attempts that are not aggregated leave the kept one as it was.
 */
static int take_momentum(struct fl_training *t)
{
    double beta = t->setup->welcome.training.client_momentum;
    float *kept = NULL;
    int rv;

    if (!(beta > 0)) {
        return FL_OK;
    }
    rv = fl_client_state_load(t->worker->keeps, FL_KEEP_MOMENTUM, &kept, &t->err);
    if (rv != FL_OK && rv != FL_ENOENT) {
        return rv;
    }
    fl_momentum_apply(t->setup->layout, beta, kept, t->result.delta, t->result.divergence);
    free(kept);
    return FL_OK;
}

/*
 * The displacement becomes the nearest one of the space, P z; divergences are the norms of z, which
 * the server compares with the upload.
 */
static int take_space(struct fl_training *t)
{
    const struct fl_space *space = t->setup->space;
    struct fl_train_result *r = &t->result;
    struct fl_space_map map;
    float *z;
    size_t l;
    int rv;

    if (space == NULL) {
        return FL_OK;
    }
    rv = fl_space_map_make(space, t->task.asked.draw, &map);
    if (rv != FL_OK) {
        return rv;
    }
    z = malloc((map.numbers + 1) * sizeof(*z));
    if (z == NULL) {
        fl_space_map_done(&map);
        return FL_ENOMEM;
    }
    fl_space_fold(&map, r->delta, z);
    fl_space_unfold(&map, z, r->delta);
    for (l = 0; l < fl_layout_units(space->updates); l++) {
        const struct fl_unit *unit = fl_layout_unit(space->updates, l);
        const float *numbers = z + unit->offset;

        r->divergence[l] = (float)sqrt(fl_vec_dot(numbers, numbers, unit->n_trainable));
    }
    free(z);
    fl_space_map_done(&map);
    return FL_OK;
}

/* New kept values of the solver; an empty block leaves the previous value. */
static int solver_values(struct fl_training *t, struct fl_client_state_value *values,
                         char names[][FL_NAME_MAX], size_t *n)
{
    const struct fl_solver_ops *solver = t->setup->solver;
    size_t i;
    int rv;

    for (i = 0; i < t->result.n_kept && i < EXTRAS_MAX; i++) {
        const struct fl_buf *block = &t->result.kept[i];

        if (block->len == 0) {
            continue;
        }
        rv = check_block(t, block, solver->keeps[i].name, &t->err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_kept_name(solver, solver->keeps[i].name, names[*n]);
        if (rv != FL_OK) {
            return rv;
        }
        values[*n] = (struct fl_client_state_value){names[*n], (const float *)(void *)block->data};
        (*n)++;
    }
    return FL_OK;
}

static int write_pending(struct fl_training *t)
{
    const struct fl_setup *setup = t->setup;
    struct fl_client_state *keeps = t->worker->keeps;
    struct fl_client_state_value values[EXTRAS_MAX + 6];
    char names[EXTRAS_MAX][FL_NAME_MAX];
    size_t n = 0;
    int rv;

    if (!fl_client_state_wanted(keeps)) {
        return FL_OK;
    }
    rv = solver_values(t, values, names, &n);
    if (rv != FL_OK) {
        goto done;
    }
    if (setup->welcome.wants_previous_dot) {
        values[n++] = (struct fl_client_state_value){FL_KEEP_PREVIOUS, t->result.delta};
    }
    if (setup->welcome.training.client_momentum > 0) {
        values[n++] = (struct fl_client_state_value){FL_KEEP_MOMENTUM, t->result.delta};
    }
    if (t->beside != NULL) {
        values[n++] = (struct fl_client_state_value){FL_KEEP_PERSONAL, t->beside};
    }
    if (setup->personal->own) { /* The trained model itself, not the displacement. */
        values[n++] = (struct fl_client_state_value){FL_KEEP_PERSONAL, t->result.delta};
    }
    if (setup->personal->own && t->received) {
        values[n++] = (struct fl_client_state_value){FL_KEEP_ANCHOR, t->start};
    }
    if (t->local != NULL) {
        values[n++] = (struct fl_client_state_value){FL_KEEP_LOCAL, t->local};
    }
    rv = fl_client_state_put(keeps, t->key, values, n, &t->err);
done:
    t->made->pending = rv == FL_OK;
    for (n = 0; n < t->result.n_kept; n++) {
        fl_buf_done(&t->result.kept[n]);
    }
    if (rv != FL_OK) {
        return fl_err_wrap(&t->err, rv, "cannot save the client state of the next round");
    }
    return FL_OK;
}

static int take_sent(struct fl_training *t)
{
    struct fl_train_result *r = &t->result;
    struct fl_result *made = t->made;
    size_t i;

    made->sent = calloc(r->n_sent + 1, sizeof(*made->sent));
    if (made->sent == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < r->n_sent; i++) {
        int rv = check_block(t, &r->sent[i], "what it sends", &t->err);

        if (rv != FL_OK) {
            return rv;
        }
        made->sent[made->n_sent++] = (float *)(void *)r->sent[i].data;
        r->sent[i] = (struct fl_buf){0};
    }
    return FL_OK;
}

static void training_take_result(struct fl_training *t)
{
    const struct fl_layout *layout = t->setup->layout;
    struct fl_train_result *r = &t->result;
    struct fl_result *made = t->made;

    made->key = t->key;
    made->draw = t->task.asked.draw;
    made->has_kept = t->has_kept;
    made->kept = t->kept_of;
    made->samples = r->samples;
    made->steps = r->steps;
    made->train_loss = r->train_loss;
    made->has_received = r->has_received;
    made->received = r->received;
    made->has_trained = r->has_trained;
    made->trained = r->trained;
    made->n_units = fl_layout_units(layout);
    made->n_floats = fl_layout_count(layout);
    made->divergence = r->divergence;
    made->delta = r->delta;
    (void)memcpy(made->digest, fl_layout_digest(layout), sizeof(made->digest));
    (void)memcpy(made->generation, t->setup->welcome.generation, sizeof(made->generation));
    r->divergence = NULL;
    r->delta = NULL;
}

static int keep_result(struct fl_training *t)
{
    const struct fl_worker *worker = t->worker;
    size_t i;
    int rv;

    t->made = fl_result_new();
    if (t->made == NULL) {
        return FL_ENOMEM;
    }
    /* Free what only the training needed before more memory is allocated. */
    training_drop_kept(t);
    fl_buf_done(&t->summary);
    free(t->anchor);
    t->anchor = NULL;
    for (i = 0; i < t->in.n; i++) {
        if ((float *)(void *)t->in.list[i].data != t->start) {
            fl_input_drop(&t->in.list[i]);
        }
    }
    rv = take_local(t);
    if (rv != FL_OK) {
        return rv;
    }
    rv = take_momentum(t);
    if (rv != FL_OK) {
        return rv;
    }
    rv = take_space(t);
    if (rv != FL_OK) {
        return rv;
    }
    rv = take_mask(t);
    if (rv != FL_OK) {
        return rv;
    }
    if (!t->setup->personal->own || !t->received) { /* Else the inputs hold the next anchor. */
        fl_inputs_done(&t->in);
    }
    rv = take_previous(t);
    if (rv != FL_OK) {
        return rv;
    }
    rv = write_pending(t);
    if (rv != FL_OK) {
        return rv;
    }
    rv = take_sent(t);
    if (rv != FL_OK) {
        return rv;
    }
    training_take_result(t);
    if (worker->state_dir == NULL) {
        return FL_OK;
    }
    rv = fl_result_save(worker->state_dir, t->made, &t->err);
    if (rv != FL_OK) {
        /*
         * Without the file the result is lost with the process, which is better than dropping it
         * now.
         */
        fl_log(worker->log, FL_LOG_WARNING, "client",
               "the result is not saved on disk, so a restart loses it: %s",
               fl_err_text(&t->err, rv));
    }
    return FL_OK;
}

/* --- interface --- */

int fl_training_new(const struct fl_worker *worker, const struct fl_task *task,
                    struct fl_inputs *inputs, fl_training_progress_fn *progress, void *ctx,
                    struct fl_training **ret, struct fl_err *err)
{
    bool fits = inputs->setup != NULL && inputs->setup == worker->setup;
    struct fl_training *t = fits ? calloc(1, sizeof(*t)) : NULL;

    if (t == NULL) {
        fl_inputs_done(inputs);
        return fits ? FL_ENOMEM
                    : fl_err_set(err, FL_ESTATE, "the fetched payloads are for another setup");
    }
    t->worker = worker;
    t->setup = fl_setup_ref(inputs->setup);
    t->key = task->key;
    t->in = *inputs;
    *inputs = (struct fl_inputs){.n = 0};
    atomic_init(&t->cancel, false);
    t->task = (struct fl_train_task){.asked = *task,
                                     .summary_seed = worker->seed,
                                     .release = worker->release,
                                     .cancel = &t->cancel,
                                     .progress = progress,
                                     .ctx = ctx};
    *ret = t;
    return FL_OK;
}

int fl_training_run(struct fl_training *t, struct fl_err *err)
{
    /* The previous result may have reported too few samples. */
    int rv = fl_terms_check_training(t->worker, &t->err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = training_prepare(t);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_trainer_run(t->worker->trainer, &t->task, &t->result, &t->err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_terms_check_result(&t->worker->terms, t->result.samples, t->result.steps, &t->err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = training_run_beside(t);
    if (rv != FL_OK) {
        goto done;
    }
    rv = keep_result(t);
done:
    if (rv != FL_OK) {
        fl_result_unref(t->made); /* Drop a partial result. */
        t->made = NULL;
        if (err != NULL) {
            *err = t->err;
        }
    }
    return rv;
}

void fl_training_cancel(struct fl_training *training)
{
    atomic_store(&training->cancel, true);
}

struct fl_result *fl_training_take(struct fl_training *training)
{
    struct fl_result *made = training->made;

    training->made = NULL;
    return made;
}
