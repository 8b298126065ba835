/*
 * Batch-norms that stay on the client (FedBN): two rigs are the same client, once with a model that
 * is shared and once with one whose batch-norm stays.
 */

#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/work/local_model.h"
#include "tests/lib/client_rig.h"
#include "tests/lib/suites.h"

#define KILLED 77

static const struct rig_server shared = {.norm = true};
static const struct rig_server local = {.norm = true, .local = true};

static const char *kill_at; /* how the name of a file ends before which the process ends */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    size_t n = strlen(to);

    if (kill_at != NULL && n >= strlen(kill_at) && strcmp(to + n - strlen(kill_at), kill_at) == 0) {
        _exit(KILLED);
    }
    return __real_rename(from, to);
}

/* A variance is above zero. */
static void make_norm_good(struct rig *r)
{
    const struct fl_tensor *t = fl_layout_find(r->setup->layout, "bn1.running_var");
    size_t i;

    ck_assert_ptr_nonnull(t);
    for (i = 0; i < t->count; i++) {
        r->theta[t->offset + i] = 1;
    }
}

static void begin(struct rig *r, const struct rig_server *server)
{
    client_rig_init(r, server, true);
    make_norm_good(r);
}

static size_t n_local(const struct rig *r)
{
    return fl_layout_local(r->setup->layout);
}

/* Of `a`, whose layout marks what is local: do the others agree, bit for bit? */
static void expect_same_but_local(const struct rig *r, const float *a, const float *b)
{
    size_t t;

    for (t = 0; t < fl_layout_tensors(r->setup->layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(r->setup->layout, t);

        if (!tensor->local) {
            ck_assert_msg(
                memcmp(a + tensor->offset, b + tensor->offset, tensor->count * sizeof(*a)) == 0,
                "tensor '%s' differs", tensor->name);
        }
    }
}

static void expect_local_zero(const struct rig *r, const float *block)
{
    float *packed = malloc(n_local(r) * sizeof(*packed));
    size_t i;

    ck_assert_ptr_nonnull(packed);
    fl_local_pack(r->setup->layout, block, packed);
    for (i = 0; i < n_local(r); i++) {
        ck_assert(packed[i] == 0.0f); /* NOLINT: exactly */
    }
    free(packed);
}

static bool any_local(const struct rig *r, const float *block)
{
    float *packed = malloc(n_local(r) * sizeof(*packed));
    bool any = false;
    size_t i;

    ck_assert_ptr_nonnull(packed);
    fl_local_pack(r->setup->layout, block, packed);
    for (i = 0; i < n_local(r); i++) {
        any = any || packed[i] < 0 || packed[i] > 0;
    }
    free(packed);
    return any;
}

/* Train on from r->theta, all units granted; the result's. */
static struct fl_result *round_of(struct rig *r, uint64_t round, uint64_t counted)
{
    struct fl_task task = rig_task(round, counted);
    struct fl_result *result = rig_train_plain(r, &task);

    rig_grant(r, result);
    return result;
}

/* What `moved` makes of r->theta, packed; free(). */
static float *trained(const struct rig *r, const float *theta, const float *moved)
{
    float *sum = malloc(r->count * sizeof(*sum));
    float *packed = malloc(n_local(r) * sizeof(*packed));
    size_t i;

    ck_assert_ptr_nonnull(sum);
    ck_assert_ptr_nonnull(packed);
    for (i = 0; i < r->count; i++) {
        sum[i] = theta[i] + moved[i];
    }
    fl_local_pack(r->setup->layout, sum, packed);
    free(sum);
    return packed;
}

TEST(in_the_first_round_all_but_the_norm_is_sent_as_if_it_were_shared)
{
    struct rig a;
    struct rig b;
    struct fl_result *x;
    struct fl_result *y;
    size_t l;

    begin(&a, &shared);
    begin(&b, &local);
    x = round_of(&a, 1, 0);
    y = round_of(&b, 1, 0);
    expect_same_but_local(&b, x->delta, y->delta);
    ck_assert(any_local(&b, x->delta));
    expect_local_zero(&b, y->delta);
    for (l = 0; l < y->n_units; l++) {
        double want = fl_layout_unit(b.setup->layout, l)->n_local == 0 ? x->divergence[l] : 0;
        const struct fl_unit *unit = fl_layout_unit(b.setup->layout, l);
        size_t i;

        for (i = unit->offset; unit->n_local > 0 && i < unit->offset + unit->count; i++) {
            want += (double)y->delta[i] * (double)y->delta[i];
        }
        want = unit->n_local > 0 ? sqrt(want) : want;
        ck_assert_double_eq_tol(y->divergence[l], want, 1e-6 * want);
    }
    ck_assert(y->has_received && x->has_received);
    ck_assert_uint_eq(x->received.correct, y->received.correct);
    fl_result_unref(x);
    fl_result_unref(y);
    rig_done(&a);
    rig_done(&b);
}

TEST(the_norm_goes_on_from_what_it_was_trained_to_and_the_rest_from_what_was_received)
{
    struct rig a;
    struct rig b;
    struct fl_result *x;
    struct fl_result *y;
    float *want;
    float *kept;

    begin(&a, &shared);
    begin(&b, &local);
    x = round_of(&a, 1, 0);
    want = trained(&b, b.theta, x->delta);
    fl_result_unref(round_of(&b, 1, 0));
    fl_result_unref(x);
    /* The shared one is handed what the other has here. */
    fl_local_put(b.setup->layout, want, a.theta);
    rig_restart(&b);
    x = round_of(&a, 2, 0);
    y = round_of(&b, 2, 1);
    kept = rig_kept(&b, FL_KEEP_LOCAL);
    ck_assert_mem_eq(kept, want, n_local(&b) * sizeof(*kept));
    expect_same_but_local(&b, x->delta, y->delta);
    expect_local_zero(&b, y->delta);
    ck_assert_double_eq(x->train_loss, y->train_loss);
    ck_assert_uint_eq(x->received.correct, y->received.correct);
    fl_result_unref(x);
    fl_result_unref(y);
    free(kept);
    free(want);
    rig_done(&a);
    rig_done(&b);
}

TEST(what_was_not_counted_is_trained_again_from_what_was_there)
{
    struct rig r;
    struct fl_result *first;
    struct fl_result *again;
    float *kept;
    float *later;

    begin(&r, &local);
    fl_result_unref(round_of(&r, 1, 0));
    first = round_of(&r, 2, 1);
    kept = rig_kept(&r, FL_KEEP_LOCAL);
    /* Round 2 was not counted: round 3 begins where round 2 began. */
    again = round_of(&r, 3, 1);
    later = rig_kept(&r, FL_KEEP_LOCAL);
    ck_assert_mem_eq(kept, later, n_local(&r) * sizeof(*kept));
    ck_assert_double_eq(first->received.loss_sum, again->received.loss_sum);
    fl_result_unref(first);
    fl_result_unref(again);
    free(kept);
    free(later);
    rig_done(&r);
}

/* Ends in a process of its own before the file is published, then goes on as if nothing had been.
 */
static void die_at(struct rig *r, uint64_t round, uint64_t counted, const char *file)
{
    int status = 0;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        kill_at = file;
        fl_result_unref(round_of(r, round, counted));
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), KILLED);
    rig_restart(r);
}

static const char *const places[] = {".keep", "index", "result.bin"};

TEST_EACH(a_kill_anywhere_changes_nothing_of_what_comes_of_it, ARRAY_LEN(places))
{
    struct rig a;
    struct rig b;
    struct fl_result *x;
    struct fl_result *y;
    float *p;
    float *q;

    begin(&a, &local);
    begin(&b, &local);
    fl_result_unref(round_of(&a, 1, 0));
    die_at(&b, 1, 0, places[_i]);
    fl_result_unref(round_of(&b, 1, 0));
    x = round_of(&a, 2, 1);
    die_at(&b, 2, 1, places[_i]);
    y = round_of(&b, 2, 1);
    ck_assert_mem_eq(x->delta, y->delta, a.count * sizeof(*x->delta));
    p = rig_kept(&a, FL_KEEP_LOCAL);
    q = rig_kept(&b, FL_KEEP_LOCAL);
    ck_assert_mem_eq(p, q, n_local(&a) * sizeof(*p));
    fl_result_unref(x);
    fl_result_unref(y);
    free(p);
    free(q);
    rig_done(&a);
    rig_done(&b);
}

TEST(what_a_solver_sends_and_keeps_has_nothing_of_it)
{
    struct rig_server server = local;
    struct fl_result *result;
    struct rig r;
    float *control;
    size_t i;

    server.solver = "scaffold";
    begin(&r, &server);
    {
        float *zero = rig_filled(&r, 0);
        struct rig_payload payloads[] = {{"model", r.theta, r.count * sizeof(float), false},
                                         {"control", zero, r.count * sizeof(float), false}};
        struct fl_task task = rig_task(1, 0);

        result = rig_train(&r, &task, payloads, 2);
        ck_assert_uint_gt(result->n_sent, 0);
        for (i = 0; i < result->n_sent; i++) {
            expect_local_zero(&r, result->sent[i]);
        }
        expect_local_zero(&r, result->delta);
        rig_grant(&r, result);
        fl_result_unref(result);
        task = rig_task(2, 1);
        fl_result_unref(rig_train(&r, &task, payloads, 2));
        free(zero);
    }
    control = rig_kept(&r, "scaffold.control");
    expect_local_zero(&r, control);
    free(control);
    rig_done(&r);
}

static double loss_of(struct rig *r, const float *model)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_evaluation_result found;
    atomic_bool cancel;

    atomic_init(&cancel, false);
    ck_assert_msg(
        fl_evaluation_run(
            &r->worker,
            &(struct fl_evaluation_request){
                .setup = r->setup, .task = &task, .model = model, .rate = 0, .cancel = &cancel},
            &found, &r->err) == FL_OK,
        "%s", r->err.msg);
    return found.received.loss_sum;
}

TEST(an_evaluation_takes_the_norm_that_was_trained_last)
{
    struct rig a;
    struct rig b;
    struct fl_result *x;
    float *mine;
    double received;

    begin(&a, &shared);
    begin(&b, &local);
    received = loss_of(&b, b.theta);
    /* Never trained: as it was received. */
    ck_assert_double_eq(received, loss_of(&a, a.theta));
    x = round_of(&a, 1, 0);
    mine = trained(&b, b.theta, x->delta);
    fl_result_unref(x);
    fl_result_unref(round_of(&b, 1, 0));
    /* Its round may be counted or not: nobody has said it yet. */
    fl_local_put(b.setup->layout, mine, a.theta);
    ck_assert_double_ne(received, loss_of(&a, a.theta));
    ck_assert_double_eq(loss_of(&b, b.theta), loss_of(&a, a.theta));
    rig_restart(&b);
    ck_assert_double_eq(loss_of(&b, b.theta), loss_of(&a, a.theta));
    free(mine);
    rig_done(&a);
    rig_done(&b);
}

TEST(after_a_change_of_the_server_it_begins_with_what_is_received)
{
    struct rig_server again = local;
    struct rig r;
    struct fl_result *x;
    struct fl_result *y;

    begin(&r, &local);
    fl_result_unref(round_of(&r, 1, 0));
    rig_describe(&r, &shared);
    make_norm_good(&r);
    x = round_of(&r, 2, 1);
    ck_assert(!x->pending);
    again.state_generation = 1;
    rig_describe(&r, &again);
    make_norm_good(&r);
    y = round_of(&r, 2, 1);
    expect_same_but_local(&r, x->delta, y->delta);
    fl_result_unref(x);
    fl_result_unref(y);
    rig_done(&r);
}
