/*
 * The payloads of a task: which are fetched, what they have to look like, what of an earlier try
 * and of the disk is used again.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/store/cache.h"
#include "libfl/base/fs.h"
#include "libfl/container/container.h"
#include "libfl/model/digest.h"
#include "tests/lib/client_spy.h"
#include "tests/lib/suites.h"

#define UNION_BYTES 64 /* of all summaries; nothing here looks into them */

static const struct rig_server plain, mixing = {.solver = "fedmix"}, own = {.personal = "own"},
                                      half = {.broadcast = "float16"};
static uint8_t summaries[UNION_BYTES];

static size_t bytes(const struct rig *r)
{
    return r->count * sizeof(float);
}

static struct rig_payload model_of(const struct rig *r)
{
    return (struct rig_payload){"model", r->theta, bytes(r), false};
}

static int choose(struct rig *r, struct fl_inputs *listed, bool has_own, struct fl_inputs *ret)
{
    return fl_inputs_choose(r->setup, listed, has_own, &r->log, ret, &r->err);
}

static struct fl_input input_of(const char *name, uint64_t len)
{
    struct fl_input in = {.bytes = len};

    ck_assert_int_eq(fl_str_copy(in.name, sizeof(in.name), name), FL_OK);
    return in;
}

/* --- listing --- */

TEST(a_list_takes_the_place_of_the_one_before)
{
    struct rig_payload payloads[FL_WIRE_MAX_PAYLOADS + 1];
    char names[FL_WIRE_MAX_PAYLOADS + 1][8];
    struct fl_inputs listed = {.n = 0};
    size_t i;

    for (i = 0; i <= FL_WIRE_MAX_PAYLOADS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "b%zu", i);
        payloads[i] = (struct rig_payload){names[i], names[i], i, i == 1};
    }
    rig_list(payloads, 3, &listed);
    ck_assert_uint_eq(listed.n, 3);
    ck_assert_uint_eq(fl_inputs_find(&listed, "b2")->bytes, 2);
    ck_assert(fl_inputs_find(&listed, "b1")->has_digest);
    ck_assert(!fl_inputs_find(&listed, "b2")->has_digest);
    rig_list(payloads + 3, 1, &listed);
    ck_assert_uint_eq(listed.n, 1);
    ck_assert_ptr_null(fl_inputs_find(&listed, "b2"));
    fl_inputs_done(&listed);
}

/* --- choosing --- */

TEST(a_payload_of_the_wrong_size_is_refused_with_both_numbers)
{
    struct fl_inputs listed = {.n = 0};
    struct fl_inputs chosen;
    struct rig_payload model;
    char want[160];
    struct rig r;

    client_rig_init(&r, &plain, false);
    model = model_of(&r);
    model.len -= 4;
    rig_list(&model, 1, &listed);
    ck_assert_int_eq(choose(&r, &listed, false, &chosen), FL_EPROTO);
    (void)snprintf(
        want, sizeof(want),
        "payload 'model' has %zu bytes, expected %zu entries of the model, which are %zu bytes "
        "as float32",
        bytes(&r) - 4, r.count, bytes(&r));
    ck_assert_str_eq(r.err.msg, want);
    ck_assert_ptr_null(chosen.setup);
    fl_inputs_done(&listed);
    rig_done(&r);
}

TEST(an_opaque_payload_has_a_limit)
{
    struct fl_inputs listed = {.n = 2};
    struct fl_inputs chosen;
    struct rig r;

    client_rig_init(&r, &mixing, false);
    listed.list[0] = input_of("model", bytes(&r));
    listed.list[1] = input_of("mixup", (UINT64_C(1) << 30) + 1);
    ck_assert_int_eq(choose(&r, &listed, false, &chosen), FL_EPROTO);
    ck_assert_str_eq(r.err.msg, "payload 'mixup' has 1073741825 bytes, the limit is 1073741824");
    listed.list[1].bytes--;
    ck_assert_int_eq(choose(&r, &listed, false, &chosen), FL_OK);
    ck_assert(fl_inputs_find(&chosen, "mixup")->opaque);
    ck_assert(!fl_inputs_find(&chosen, "model")->opaque);
    fl_inputs_done(&chosen);
    rig_done(&r);
}

TEST(a_model_comes_in_the_form_of_the_broadcast_and_is_decoded_once)
{
    struct fl_inputs listed = {.n = 1};
    struct fl_inputs chosen;
    uint8_t *coded;
    struct rig r;

    client_rig_init(&r, &half, false);
    ck_assert_int_eq(
        fl_broadcast_place(&fl_broadcast_float16, NULL, r.setup->layout, r.theta, NULL), FL_OK);
    coded = calloc(1, bytes(&r));
    ck_assert_int_eq(fl_broadcast_encode(r.setup->broadcast, r.setup->layout, r.theta, coded),
                     FL_OK);
    listed.list[0] = input_of("model", bytes(&r) / 2);
    ck_assert_int_eq(choose(&r, &listed, false, &chosen), FL_OK);
    fl_input_lend(&chosen.list[0], coded);
    ck_assert_int_eq(fl_input_decode(&chosen.list[0], r.setup, NULL, NULL, &r.err), FL_OK);
    ck_assert_int_eq(fl_input_decode(&chosen.list[0], r.setup, NULL, NULL, &r.err), FL_OK);
    ck_assert_uint_eq(chosen.list[0].bytes, bytes(&r));
    ck_assert(!chosen.list[0].lent);
    ck_assert_mem_eq(chosen.list[0].data, r.theta, bytes(&r));
    fl_inputs_done(&chosen);
    free(coded);
    rig_done(&r);
}

TEST(a_model_in_another_form_than_the_broadcast_is_refused)
{
    struct fl_inputs listed = {.n = 1};
    struct fl_inputs chosen;
    struct rig r;

    client_rig_init(&r, &half, false);
    listed.list[0] = input_of("model", bytes(&r));
    ck_assert_int_eq(choose(&r, &listed, false, &chosen), FL_EPROTO);
    ck_assert_ptr_nonnull(strstr(r.err.msg, "bytes as float16"));
    ck_assert_int_eq(fl_inputs_choose_model(r.setup, &listed.list[0], &chosen, &r.err), FL_EPROTO);
    rig_done(&r);
}

TEST(a_task_without_a_model_is_refused)
{
    struct fl_inputs listed = {.n = 0};
    struct fl_inputs chosen;
    struct rig r;

    client_rig_init(&r, &plain, false);
    ck_assert_int_eq(choose(&r, &listed, true, &chosen), FL_EPROTO);
    ck_assert_str_eq(r.err.msg, "the task lists no payload 'model'");
    rig_done(&r);
}

/* Which one of them a client starts from; NULL: none, its own model. */
static void expect_start(struct rig *r, bool has_own, bool personal_model, const char *want)
{
    struct fl_inputs listed = {.n = 0};
    struct fl_inputs chosen;

    listed.list[listed.n++] = input_of("model", bytes(r));
    if (personal_model) {
        listed.list[listed.n++] = input_of("personal_model", bytes(r));
    }
    ck_assert_int_eq(choose(r, &listed, has_own, &chosen), FL_OK);
    ck_assert_uint_eq(chosen.n, want != NULL);
    if (want != NULL) {
        ck_assert_str_eq(chosen.list[0].name, want);
    }
    ck_assert_ptr_eq(chosen.setup, r->setup);
    fl_inputs_done(&chosen);
}

TEST(one_payload_is_where_a_client_starts_or_none_with_its_own_model)
{
    struct rig r;

    client_rig_init(&r, &own, false);
    expect_start(&r, false, false, "model");
    expect_start(&r, false, true, "personal_model");
    expect_start(&r, true, true, "personal_model");
    expect_start(&r, true, false, NULL);
    rig_describe(&r, &plain); /* One model for all. */
    expect_start(&r, true, true, "model");
    rig_done(&r);
}

TEST_EACH(that_nobody_collection_anything_is_told, 2)
{
    struct rig_payload list[2];
    struct fl_inputs listed = {.n = 0};
    struct fl_inputs chosen;
    struct rig r;

    client_rig_init(&r, &mixing, false);
    list[0] = model_of(&r);
    list[1] = (struct rig_payload){"mixup", summaries, _i == 0 ? 0 : UNION_BYTES, true};
    rig_list(list, 2, &listed);
    ck_assert_int_eq(choose(&r, &listed, false, &chosen), FL_OK);
    ck_assert(
        (strstr(r.lines,
                "no client sent a data summary for 'mixup': solver 'fedmix' makes plain steps") !=
         NULL) == (_i == 0));
    fl_inputs_done(&chosen);
    fl_inputs_done(&listed);
    rig_done(&r);
}

/* --- an earlier try --- */

static struct fl_inputs one_input(struct rig *r, uint64_t len, int digest, uint64_t have)
{
    struct fl_inputs in = {.setup = fl_setup_ref(r->setup), .n = 1};

    in.list[0] = input_of("model", len);
    in.list[0].has_digest = digest != 0;
    in.list[0].digest[7] = (uint8_t)digest;
    if (have > 0) {
        in.list[0].data = malloc(len);
        in.list[0].have = have;
    }
    return in;
}

TEST(what_an_earlier_try_has_of_the_same_payload_is_used_again)
{
    struct fl_inputs old;
    struct fl_inputs now;
    uint8_t *data;
    struct rig r;

    client_rig_init(&r, &plain, false);
    old = one_input(&r, 100, 3, 40); /* In part: the rest is fetched behind it. */
    now = one_input(&r, 100, 3, 0);
    data = old.list[0].data;
    fl_inputs_reuse(&now, &old);
    ck_assert_ptr_eq(now.list[0].data, data);
    ck_assert_uint_eq(now.list[0].have, 40);
    ck_assert_ptr_null(old.setup); /* All of it was removed. */
    ck_assert_uint_eq(old.n, 0);
    fl_inputs_done(&now);
    rig_done(&r);
}

TEST_EACH(what_an_earlier_try_has_of_another_payload_is_not_used, 4)
{
    /* Another size, another digest, one more or one less; and of another description. */
    static const struct {
        uint64_t len;
        int digest;
    } rows[] = {{101, 3}, {100, 4}, {100, 0}, {100, 3}};
    struct fl_inputs old;
    struct fl_inputs now;
    struct rig r;

    client_rig_init(&r, &plain, false);
    old = one_input(&r, 100, 3, 100);
    if (_i == 3) {
        rig_describe(&r, &own);
    }
    now = one_input(&r, rows[_i].len, rows[_i].digest, 0);
    fl_inputs_reuse(&now, &old);
    ck_assert_ptr_null(now.list[0].data);
    ck_assert_uint_eq(now.list[0].have, 0);
    ck_assert_uint_eq(old.n, 0);
    fl_inputs_done(&now);
    rig_done(&r);
}

TEST(a_task_that_comes_again_fetches_only_what_is_not_here)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_inputs in = {.n = 0};
    struct rig_payload list[3];
    struct rig r;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    list[0] = model_of(&r);
    list[1] = (struct rig_payload){"first", r.theta, bytes(&r), false};
    list[2] = (struct rig_payload){"second", r.theta, bytes(&r), false};
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 2, &in), 2);
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 3, &in), 1);
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 3, &in), 0);
    fl_inputs_done(&in);
    rig_done(&r);
}

/* --- opaque payloads, and the disk --- */

TEST(an_opaque_payload_that_is_not_its_sha256_is_refused)
{
    struct fl_input in = input_of("mixup", UNION_BYTES);
    struct fl_err err = {0};

    in.data = summaries;
    in.opaque = true;
    in.has_digest = true;
    ck_assert_int_eq(fl_input_check(&in, &err), FL_EFORMAT);
    ck_assert_str_eq(err.msg, "the payload 'mixup' does not match its SHA-256");
    ck_assert_int_eq(fl_sha256(summaries, UNION_BYTES, in.digest), FL_OK);
    ck_assert_int_eq(fl_input_check(&in, &err), FL_OK);
    in.digest[0] ^= 1;
    in.has_digest = false; /* There is nothing to go by. */
    ck_assert_int_eq(fl_input_check(&in, &err), FL_OK);
    in.has_digest = true;
    in.opaque = false; /* A model is checked where it is used. */
    ck_assert_int_eq(fl_input_check(&in, &err), FL_OK);
    in.opaque = true;
    in.cached = true; /* It was read by its digest. */
    ck_assert_int_eq(fl_input_check(&in, &err), FL_OK);
}

/* FedMix with a union of two summaries, this client's and another's. */
static struct fl_buf make_union(struct rig *r)
{
    struct fl_buf all;
    size_t one;

    fl_buf_init(&all, SIZE_MAX / 2);
    ck_assert_int_eq(fl_trainer_summary(r->worker.trainer, 1, &all, NULL), FL_OK);
    one = all.len;
    ck_assert_int_eq(fl_trainer_summary(r->worker.trainer, 1, &all, NULL), FL_OK);
    all.data[one + 20] ^= 1;
    return all;
}

TEST(a_payload_that_was_cached_is_not_fetched_again)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_inputs in = {.n = 0};
    struct rig_payload list[2];
    struct fl_buf all;
    struct rig r;

    client_rig_init(&r, &mixing, false);
    all = make_union(&r);
    list[0] = model_of(&r);
    list[1] = (struct rig_payload){"mixup", all.data, all.len, true};
    fl_result_unref(rig_train(&r, &task, list, 2));
    ck_assert(rig_has_file(&r, "summaries.bin"));
    task = rig_task(2, 1);
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 2, &in), 1); /* The model alone. */
    ck_assert(fl_inputs_find(&in, "mixup")->cached);
    ck_assert_mem_eq(fl_inputs_find(&in, "mixup")->data, all.data, all.len);
    fl_inputs_done(&in);
    /* Another union of the same length: that of the disk is of no use. */
    all.data[24] ^= 1;
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 2, &in), 2);
    ck_assert(!fl_inputs_find(&in, "mixup")->cached);
    fl_inputs_done(&in);
    fl_buf_done(&all);
    rig_done(&r);
}

TEST_EACH(a_damaged_cache_file_counts_as_none, 2)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_buf file;
    struct fl_inputs in = {.n = 0};
    struct rig_payload list[2];
    struct rig r;

    client_rig_init(&r, &mixing, false);
    list[0] = model_of(&r);
    list[1] = (struct rig_payload){"mixup", summaries, UNION_BYTES, true};
    ck_assert_int_eq(fl_cache_save(r.dir, FL_CACHE_SUMMARIES, summaries, UNION_BYTES, NULL), FL_OK);
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 2, &in), 1);
    fl_inputs_done(&in);
    ck_assert_int_eq(fl_fs_read(client_rig_path(&r, "summaries.bin"), 1 << 20, &file, NULL), FL_OK);
    if (_i == 0) { /* Cut, or changed. */
        file.len--;
    } else {
        file.data[FL_CONTAINER_PAGE + 9] ^= 1;
    }
    ck_assert_int_eq(
        fl_fs_replace(client_rig_path(&r, "summaries.bin"), file.data, file.len, false, NULL),
        FL_OK);
    fl_buf_done(&file);
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 2, &in), 2);
    fl_inputs_done(&in);
    rig_done(&r);
}

TEST(what_is_here_already_is_better_than_the_cache)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_inputs in = {.n = 0};
    struct rig_payload list[2];
    uint8_t *data;
    struct rig r;

    client_rig_init(&r, &mixing, false);
    list[0] = model_of(&r);
    list[1] = (struct rig_payload){"mixup", summaries, UNION_BYTES, true};
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 2, &in), 2);
    data = fl_inputs_find(&in, "mixup")->data;
    ck_assert_int_eq(fl_cache_save(r.dir, FL_CACHE_SUMMARIES, summaries, UNION_BYTES, NULL), FL_OK);
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 2, &in), 0);
    ck_assert_ptr_eq(fl_inputs_find(&in, "mixup")->data, data);
    fl_inputs_done(&in);
    rig_done(&r);
}

TEST(only_an_opaque_payload_with_a_digest_goes_to_the_disk_and_once)
{
    struct fl_inputs in = {.n = 1};
    struct rig r;

    client_rig_init(&r, &plain, false);
    in.list[0] = input_of("mixup", UNION_BYTES);
    in.list[0].data = malloc(UNION_BYTES);
    (void)memset(in.list[0].data, 1, UNION_BYTES);
    fl_inputs_save(&in, r.dir, &r.log);
    in.list[0].has_digest = true;
    fl_inputs_save(&in, r.dir, &r.log);
    in.list[0].opaque = true;
    in.list[0].cached = true;
    fl_inputs_save(&in, r.dir, &r.log);
    ck_assert(!rig_has_file(&r, "summaries.bin"));
    in.list[0].cached = false;
    fl_inputs_save(&in, r.dir, &r.log);
    ck_assert(rig_has_file(&r, "summaries.bin"));
    ck_assert_str_eq(r.lines, "");
    fl_inputs_done(&in);
    rig_done(&r);
}

TEST(a_cache_that_cannot_be_written_is_a_warning)
{
    struct fl_inputs in = {.n = 1};
    struct rig r;

    client_rig_init(&r, &plain, false);
    in.list[0] = input_of("mixup", UNION_BYTES);
    in.list[0].data = calloc(UNION_BYTES, 1);
    in.list[0].opaque = in.list[0].has_digest = true;
    fl_inputs_save(&in, client_rig_path(&r, "missing"), &r.log);
    ck_assert_ptr_nonnull(strstr(
        r.lines,
        "payload 'mixup' is not saved on disk and will be fetched again, ignoring: cannot create"));
    fl_inputs_done(&in);
    rig_done(&r);
}

/* --- settling --- */

TEST(a_client_that_keeps_and_caches_nothing_has_nothing_to_settle)
{
    const struct fl_task task = {.key = {1, 1}};
    struct rig_payload list[2];
    struct fl_inputs listed = {.n = 0};
    struct fl_settling s;
    struct rig r;

    client_rig_init(&r, &plain, false);
    list[0] = model_of(&r);
    rig_list(list, 1, &listed);
    ck_assert(!fl_settling_begin(&r.worker, r.setup, &listed, &task, &s));
    fl_settling_done(&s);
    rig_describe(&r, &own); /* It keeps something. */
    ck_assert(fl_settling_begin(&r.worker, r.setup, &listed, &task, &s));
    fl_settling_done(&s);
    rig_describe(&r, &mixing);
    ck_assert(!fl_settling_begin(&r.worker, r.setup, &listed, &task, &s));
    fl_settling_done(&s);
    list[0] = model_of(&r); /* Each description has a model of its own. */
    list[1] = (struct rig_payload){"mixup", summaries, UNION_BYTES, true};
    rig_list(list, 2, &listed); /* It can be on the disk. */
    ck_assert(fl_settling_begin(&r.worker, r.setup, &listed, &task, &s));
    fl_settling_done(&s);
    fl_inputs_done(&listed);
    rig_done(&r);
}

TEST(what_cannot_be_chosen_leaves_the_earlier_try)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_inputs listed = {.n = 0};
    struct fl_inputs in = {.n = 0};
    struct rig_payload model;
    struct fl_settling s;
    struct rig r;

    client_rig_init(&r, &plain, false);
    model = model_of(&r);
    ck_assert_uint_eq(rig_fetch(&r, &task, &model, 1, &in), 1);
    model.len -= 4;
    rig_list(&model, 1, &listed);
    (void)fl_settling_begin(&r.worker, r.setup, &listed, &task, &s);
    ck_assert_int_eq(fl_settling_choose(&s, &listed, &r.log, &in, &r.err), FL_EPROTO);
    fl_settling_done(&s);
    ck_assert_mem_eq(fl_inputs_find(&in, "model")->data, r.theta, bytes(&r));
    fl_inputs_done(&listed);
    fl_inputs_done(&in);
    rig_done(&r);
}

/* --- bytes --- */

TEST(payloads_are_filled_one_after_the_other_where_the_last_bytes_ended)
{
    struct fl_inputs in = {.n = 3};
    struct fl_input *at = NULL;
    struct fl_err err = {0};

    in.list[0] = input_of("model", 5);
    in.list[1] =
        input_of("nothing", 0); /* Nobody collection anything: there is nothing to fetch. */
    in.list[2] = input_of("control", 4);
    ck_assert_int_eq(fl_inputs_next(&in, &at), FL_OK);
    ck_assert_ptr_eq(at, &in.list[0]);
    ck_assert_int_eq(fl_input_add(at, 0, "ab", 2, &err), FL_OK);
    ck_assert_int_eq(fl_inputs_next(&in, &at), FL_OK);
    ck_assert_ptr_eq(at, &in.list[0]); /* The next try goes on with it. */
    ck_assert_int_eq(fl_input_add(at, 2, NULL, 0, &err), FL_OK);
    ck_assert_int_eq(fl_input_add(at, 2, "cde", 3, &err), FL_OK);
    ck_assert_mem_eq(at->data, "abcde", 5);
    ck_assert_int_eq(fl_inputs_next(&in, &at), FL_OK);
    ck_assert_ptr_eq(at, &in.list[2]);
    ck_assert_int_eq(fl_input_add(at, 0, "1234", 4, &err), FL_OK);
    ck_assert_int_eq(fl_inputs_next(&in, &at), FL_OK);
    ck_assert_ptr_null(at);
    ck_assert_ptr_nonnull(in.list[1].data);
    fl_inputs_done(&in);
}

TEST_EACH(a_chunk_with_a_gap_or_past_the_end_is_refused_and_changes_nothing, 5)
{
    static const struct {
        uint64_t offset;
        size_t len;
    } rows[] = {{3, 1}, {1, 1}, {2, 4}, {UINT64_MAX, 1}, {2, SIZE_MAX}};
    struct fl_inputs in = {.n = 1};
    struct fl_input *at = NULL;
    struct fl_err err = {0};

    in.list[0] = input_of("model", 5);
    ck_assert_int_eq(fl_inputs_next(&in, &at), FL_OK);
    ck_assert_int_eq(fl_input_add(at, 0, "ab", 2, &err), FL_OK);
    ck_assert_int_eq(fl_input_add(at, rows[_i].offset, "xxxx", rows[_i].len, &err), FL_EPROTO);
    ck_assert_ptr_nonnull(strstr(err.msg, "expected offset 2 of 5 bytes"));
    ck_assert_uint_eq(at->have, 2);
    fl_inputs_done(&in);
}

TEST(what_came_for_another_round_is_fetched_anew)
{
    struct fl_task first = rig_task(1, 0);
    struct fl_task second = rig_task(2, 0);
    struct fl_inputs in = {.n = 0};
    struct rig_payload model;
    struct rig r;

    client_rig_init(&r, &plain, false);
    model = model_of(&r);
    ck_assert_uint_eq(rig_fetch(&r, &first, &model, 1, &in), 1);
    ck_assert_uint_eq(rig_fetch(&r, &first, &model, 1, &in), 0);
    ck_assert_uint_eq(rig_fetch(&r, &second, &model, 1, &in), 1);
    fl_inputs_done(&in);
    rig_done(&r);
}

TEST(the_model_of_an_evaluation_has_the_size_of_the_model)
{
    struct fl_input payload;
    struct fl_inputs chosen;
    struct rig r;

    client_rig_init(&r, &plain, false);
    payload = input_of("theta", bytes(&r));
    ck_assert_int_eq(fl_inputs_choose_model(r.setup, &payload, &chosen, &r.err), FL_OK);
    ck_assert_uint_eq(chosen.n, 1);
    ck_assert_str_eq(chosen.list[0].name, "theta");
    ck_assert_ptr_eq(chosen.setup, r.setup);
    fl_inputs_done(&chosen);
    payload.bytes++;
    ck_assert_int_eq(fl_inputs_choose_model(r.setup, &payload, &chosen, &r.err), FL_EPROTO);
    ck_assert_ptr_nonnull(strstr(r.err.msg, "payload 'theta' has "));
    ck_assert_ptr_null(chosen.setup);
    rig_done(&r);
}
