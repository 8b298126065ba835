/*
 * Every allocation of what a client does with a task may fail: an error, nothing left behind, and
 * the same step works when it is made again.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/store/cache.h"
#include "client/work/data_summary.h"
#include "libfl/model/digest.h"
#include "tests/lib/client_rig.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"

/* Between them these have all that is kept, sent, masked and blended. */
static const struct rig_server servers[] = {
    {.solver = "scaffold",
     .codec = "ternary share=0.1 residual=yes",
     .upload = "fedadp rho=0.5",
     .wants_previous_dot = true},
    {.solver = "sgd", .personal = "own beta=0.5"},
};
#define SERVERS 2

/* Nothing of Check in between: its macros allocate. */
static int train(struct fl_worker *worker, const struct fl_task *task, struct fl_inputs *inputs,
                 struct fl_result **ret)
{
    struct fl_training *t = NULL;
    int rv = fl_training_new(worker, task, inputs, NULL, NULL, &t, NULL);

    if (rv == FL_OK) {
        rv = fl_training_run(t, NULL);
    }
    if (rv == FL_OK) {
        *ret = fl_training_take(t);
    }
    fl_training_free(t);
    return rv;
}

/* As rig_fetch(), for a personalized model where there is one. */
static struct fl_inputs inputs_of(struct rig *r, const struct fl_task *task)
{
    const char *name = r->setup->personal->own ? "personal_model" : "model";
    struct rig_payload list[] = {{"model", r->theta, r->count * sizeof(float), false},
                                 {"control", r->theta, r->count * sizeof(float), false},
                                 {name, r->theta, r->count * sizeof(float), false}};
    struct fl_inputs in = {.n = 0};

    (void)rig_fetch(r, task, list, r->setup->personal->own ? 3 : 2, &in);
    return in;
}

/* Round `round` is trained, coded and counted. */
static void whole_round(struct rig *r, uint64_t round)
{
    struct fl_task task = rig_task(round, round - 1);
    struct fl_inputs in = inputs_of(r, &task);
    struct fl_result *result = NULL;

    ck_assert_int_eq(train(&r->worker, &task, &in, &result), FL_OK);
    rig_grant(r, result);
    fl_result_unref(result);
}

TEST_EACH(a_description_without_memory_is_an_error, SERVERS)
{
    size_t n = 1;
    size_t i;

    for (i = 0; i < n; i++) {
        struct fl_wire_welcome w = rig_welcome(&servers[_i]);
        struct fl_setup *s = NULL;
        int rv;

        failmalloc_start(i > 0 ? i - 1 : SIZE_MAX, false);
        rv = fl_setup_create(&w, &s, NULL);
        if (i == 0) {
            n = failmalloc_stop() + 1;
            ck_assert_int_eq(rv, FL_OK);
            fl_setup_unref(s);
            continue;
        }
        (void)failmalloc_stop();
        ck_assert_msg(rv == FL_ENOMEM, "allocation %zu of %zu: %d", i - 1, n - 1, rv);
        ck_assert_ptr_null(w.layout);
    }
    ck_assert_uint_gt(n, 4);
}

TEST_EACH(a_worker_without_memory_is_not_prepared, SERVERS)
{
    struct rig r;
    size_t n;
    size_t i;

    client_rig_init(&r, &servers[_i], false);
    failmalloc_start(SIZE_MAX, false);
    i = fl_worker_prepare(&r.worker, r.setup, NULL) == FL_OK;
    n = failmalloc_stop();
    ck_assert_uint_eq(i, 1);
    for (i = 0; i < n; i++) {
        int rv;

        failmalloc_start(i, false);
        rv = fl_worker_prepare(&r.worker, r.setup, NULL);
        (void)failmalloc_stop();
        ck_assert_msg(rv == FL_ENOMEM, "allocation %zu of %zu: %d", i, n, rv);
        ck_assert(!fl_client_state_wanted(r.worker.keeps));
    }
    ck_assert_int_eq(fl_worker_prepare(&r.worker, r.setup, NULL), FL_OK);
    rig_done(&r);
}

TEST_EACH(settling_without_memory_has_changed_nothing, SERVERS)
{
    size_t n = 0;
    struct rig r;
    uint64_t round;

    client_rig_init(&r, &servers[_i], false);
    whole_round(&r, 1);
    /* The first of them counts. */
    for (round = 2; round < n + 3; round++) {
        struct fl_task task = rig_task(round, round - 1);
        struct fl_inputs listed = {.n = 0};
        struct fl_settling s;
        size_t counted;
        int rv;

        ck_assert(fl_settling_begin(&r.worker, r.setup, &listed, &task, &s));
        failmalloc_start(round > 2 ? round - 3 : SIZE_MAX, false);
        rv = fl_settling_run(&s, &r.worker, NULL);
        counted = failmalloc_stop();
        n = round > 2 ? n : counted;
        ck_assert_msg(rv == (round > 2 ? FL_ENOMEM : FL_OK), "allocation %d of %zu: %d",
                      (int)round - 3, n, rv);
        fl_settling_done(&s);
        whole_round(&r, round); /* Settles again. */
    }
    ck_assert_uint_gt(n, 0);
    rig_done(&r);
}

/* Allocations that saving the result takes, the last ones. Without them it lives as long as the
 * process, with a warning. */
#define RESULT_SAVE 4

TEST_EACH(a_training_without_memory_is_an_error_and_the_next_one_works, SERVERS)
{
    struct fl_task task = rig_task(3, 2);
    struct fl_result *result = NULL;
    struct fl_inputs in;
    struct rig r;
    float *delta;
    size_t n;
    size_t i;
    int rv;

    client_rig_init(&r, &servers[_i], true);
    whole_round(&r, 1);
    whole_round(&r, 2);
    in = inputs_of(&r, &task);
    failmalloc_start(SIZE_MAX, false);
    rv = train(&r.worker, &task, &in, &result);
    n = failmalloc_stop();
    ck_assert_int_eq(rv, FL_OK);
    delta = result->delta;
    result->delta = NULL;
    fl_result_unref(result);
    ck_assert_uint_gt(n, RESULT_SAVE);
    for (i = 0; i < n; i++) {
        in = inputs_of(&r, &task);
        result = NULL;
        failmalloc_start(i, false);
        rv = train(&r.worker, &task, &in, &result);
        (void)failmalloc_stop();
        ck_assert_msg(rv == (i < n - RESULT_SAVE ? FL_ENOMEM : FL_OK), "allocation %zu of %zu: %d",
                      i, n, rv);
        ck_assert((result == NULL) == (rv != FL_OK));
        fl_result_unref(result);
        ck_assert_ptr_null(in.setup); /* Taken on error too. */
    }
    in = inputs_of(&r, &task);
    ck_assert_int_eq(train(&r.worker, &task, &in, &result), FL_OK);
    ck_assert_mem_eq(result->delta, delta, r.count * sizeof(float));
    free(delta);
    fl_result_unref(result);
    rig_done(&r);
}

TEST_EACH(a_push_without_memory_is_an_error_and_the_next_one_works, SERVERS)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result = NULL;
    struct fl_code code;
    struct fl_inputs in;
    struct rig r;
    unsigned spared = 0;
    size_t n = 1;
    size_t i;

    client_rig_init(&r, &servers[_i], false);
    in = inputs_of(&r, &task);
    ck_assert_int_eq(train(&r.worker, &task, &in, &result), FL_OK);
    for (i = 0; i <= n; i++) {
        size_t counted;
        int rv;

        code = rig_code(&r, result, NULL);
        failmalloc_start(i > 0 ? i - 1 : SIZE_MAX, false);
        rv = fl_code_run(&code, NULL);
        counted = failmalloc_stop();
        n = i > 0 ? n : counted;
        /* Making the coded bytes' memory smaller may fail. */
        ck_assert_msg(rv == (i > 0 ? FL_ENOMEM : FL_OK) || (rv == FL_OK && ++spared == 1),
                      "allocation %zu of %zu: %d", i, n, rv);
        fl_code_done(&code);
    }
    rig_grant(&r, result);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(a_summary_or_a_push_without_memory_is_not_begun)
{
    const struct rig_server mixing = {.solver = "fedmix"};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_data_summary summary;
    struct fl_code code;
    struct rig r;
    size_t n = 0;
    int rv[2];

    client_rig_init(&r, &mixing, false);
    r.worker.terms = (struct fl_worker_terms){.summaries = true, .least_group = 10};
    result = rig_train_plain(&r, &task);
    failmalloc_start(0, true);
    rv[0] = fl_code_begin(&code, &r.worker, result, NULL, 0);
    (void)failmalloc_stop();
    ck_assert_int_eq(rv[0], FL_ENOMEM);
    do {
        failmalloc_start(n++, false);
        rv[1] = fl_data_summary_make(&r.worker, &summary, &r.err);
        (void)failmalloc_stop();
        ck_assert(rv[1] == FL_OK || rv[1] == FL_ENOMEM);
        ck_assert((summary.data.len > 0) == (rv[1] == FL_OK)); /* Not taken for an empty one. */
        fl_data_summary_done(&summary);
    } while (rv[1] != FL_OK);
    ck_assert_uint_gt(n, 1);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(what_lies_on_the_disk_is_not_lost_without_memory)
{
    struct fl_result *result = NULL;
    struct fl_client_state *keeps = NULL;
    uint8_t sha[FL_DIGEST_SIZE];
    uint8_t *data = NULL;
    struct rig r;
    size_t i;
    int rv[3];

    client_rig_init(&r, &servers[0], false);
    whole_round(&r, 1);
    ck_assert_int_eq(fl_cache_save(r.dir, FL_CACHE_SUMMARIES, "union", 5, NULL), FL_OK);
    ck_assert_int_eq(fl_sha256("union", 5, sha), FL_OK);
    failmalloc_start(0, true);
    rv[0] = fl_result_load(r.dir, &result, NULL);
    rv[1] = fl_cache_load(r.dir, FL_CACHE_SUMMARIES, sha, 5, &data);
    rv[2] = fl_client_state_open(r.dir, NULL, &keeps, NULL);
    (void)failmalloc_stop();
    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(rv[i], FL_ENOMEM);
    }
    /* The result, then what it consists of. */
    for (i = 0; rv[0] != FL_OK; i++) {
        failmalloc_start(i, false);
        rv[0] = fl_result_load(r.dir, &result, NULL);
        (void)failmalloc_stop();
        ck_assert(rv[0] == FL_OK || rv[0] == FL_ENOMEM);
    }
    /* Head (its bytes, sections, fields), checksums; the result itself, divergence, delta, what is
     * sent and its list, mask. */
    ck_assert_uint_eq(i, 4 + 1 + 6);
    fl_result_unref(result);
    for (i = 0; rv[2] != FL_OK; i++) {
        failmalloc_start(i, false);
        rv[2] = fl_client_state_open(r.dir, NULL, &keeps, NULL);
        (void)failmalloc_stop();
        ck_assert(rv[2] == FL_OK || rv[2] == FL_ENOMEM);
    }
    fl_client_state_free(keeps);
    ck_assert_int_eq(fl_cache_load(r.dir, FL_CACHE_SUMMARIES, sha, 5, &data), FL_OK);
    free(data);
    rig_restart(&r);
    ck_assert(fl_client_state_pending(r.worker.keeps, (struct fl_round_key){1, 1}));
    rig_done(&r);
}
