/*
 * broadcast: lattice on the client: the model that it holds, what changed since, and that the two
 * give the model of the server bit for bit, or the whole one is fetched.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/container/container.h"
#include "tests/client/work/moves_fixture.h"
#include "tests/lib/suites.h"

/* --- the model that it holds --- */

TEST_EACH(a_client_that_holds_the_listed_model_fetches_nothing, 2)
{
    begin(&unseeded);
    hold(2);
    ck_assert_int_eq(receive(2, _i == 1), NOTHING);
    end();
}

TEST_EACH(a_client_fetches_what_changed_since_the_model_that_it_holds, 4)
{
    begin(&unseeded);
    hold((size_t)_i % 2);
    ck_assert_int_eq(receive(2, _i >= 2), WHAT_CHANGED);
    ck_assert_str_eq(r.lines, "");
    end();
}

TEST_EACH(a_new_client_draws_the_first_model_where_it_is_sent_the_seed, 2)
{
    begin(&seeded);
    ck_assert_int_eq(receive(0, _i == 1), NOTHING);
    ck_assert_int_eq(receive(2, _i == 1), WHAT_CHANGED);
    end();
    begin(&unseeded);
    ck_assert_int_eq(receive(0, _i == 1), WHOLE);
    ck_assert_int_eq(receive(2, _i == 1), WHAT_CHANGED);
    end();
}

TEST(a_client_that_lost_its_folder_and_missed_rounds_draws_the_first_model)
{
    begin(&seeded);
    ck_assert_int_eq(receive(2, false), WHAT_CHANGED);
    end();
}

static struct fl_setup *setup_of_layers(const char *first)
{
    struct fl_wire_welcome w = rig_welcome(&seeded);
    struct fl_setup *setup = NULL;

    free(w.layers[0]);
    w.layers[0] = fl_str_dup(first);
    ck_assert_int_eq(fl_setup_create(&w, &setup, NULL), FL_OK);
    return setup;
}

/* Only the built-in trainer compares them: another one trains whatever the tensors are. */
TEST_EACH(layers_that_are_not_those_of_the_tensors_draw_nothing, 3)
{
    static const char *const layers[] = {"dense 4096", "dense 2", "dense nonsense"};
    struct fl_setup *moved;

    begin(&unseeded);
    moved = r.setup;
    r.setup = setup_of_layers(layers[_i]);
    ck_assert_int_eq(receive(2, false), WHOLE);
    fl_setup_unref(r.setup);
    r.setup = moved;
    end();
}

TEST(a_model_of_another_size_is_none)
{
    begin(&unseeded);
    ck_assert_int_eq(fl_cache_save(r.dir, FL_CACHE_MODEL, server.models[2], bytes - 4, NULL),
                     FL_OK);
    ck_assert_int_eq(receive(2, false), WHOLE);
    end();
}

/* Of another federation, say, or of rounds that were rolled back. */
TEST_EACH(a_model_that_the_server_does_not_know_is_replaced_by_a_whole_one, 2)
{
    begin(&unseeded);
    ck_assert_int_eq(fl_cache_save(r.dir, FL_CACHE_MODEL, r.theta, bytes, NULL), FL_OK);
    ck_assert_int_eq(receive(2, _i == 1), WHOLE);
    ck_assert_int_eq(receive(2, _i == 1), NOTHING);
    end();
}

/* --- what goes wrong --- */

static void damage_file(void)
{
    const char *path = client_rig_path(&r, FL_CACHE_MODEL);
    struct fl_buf file;

    ck_assert_int_eq(fl_fs_read(path, 1 << 24, &file, NULL), FL_OK);
    file.data[FL_CONTAINER_PAGE + 9] ^= 1;
    ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
    fl_buf_done(&file);
}

/* The held model: the listed one, or an earlier one; missing or damaged. */
TEST_EACH(a_held_model_that_is_gone_or_damaged_costs_one_task, 4)
{
    struct fl_inputs in = {.n = 0};

    begin(&unseeded);
    hold(_i % 2 == 0 ? 2 : 0);
    if (_i >= 2) {
        damage_file();
    }
    choose(2, false, &in);
    ck_assert_int_eq(fetch(2, &in), _i % 2 == 0 ? NOTHING : WHAT_CHANGED);
    if (_i < 2) {
        fl_cache_drop(r.dir, FL_CACHE_MODEL);
    }
    ck_assert_int_eq(decode(&in), FL_ENOENT);
    ck_assert_str_eq(
        r.err.msg,
        "the model of the earlier round is missing or damaged on disk; the next task downloads "
        "a whole one");
    fl_inputs_done(&in);
    ck_assert_int_eq(receive(2, false), WHOLE);
    end();
}

/* Changed bytes, an early end, no bytes at all, and another model than the listed one. */
TEST_EACH(what_changed_that_does_not_lead_to_the_listed_model_costs_one_task, 4)
{
    struct fl_inputs in = {.n = 0};
    struct fl_input *at;

    begin(&unseeded);
    hold(0);
    choose(2, false, &in);
    ck_assert_int_eq(fetch(2, &in), WHAT_CHANGED);
    at = &in.list[0];
    if (_i == 0) {
        at->data[at->have - 1] ^= 0x10;
    } else if (_i == 1) {
        at->have--;
    } else if (_i == 2) {
        at->have = 0;
    } else {
        (void)memcpy(at->digest, server.digests[1], sizeof(at->digest));
    }
    ck_assert_int_eq(decode(&in), FL_EFORMAT);
    fl_inputs_done(&in);
    ck_assert(!rig_has_file(&r, FL_CACHE_MODEL));
    ck_assert_int_eq(receive(2, false), WHOLE);
    end();
}

TEST(a_whole_model_that_is_not_the_listed_one_is_refused_and_not_kept)
{
    struct fl_inputs in = {.n = 0};

    begin(&unseeded);
    choose(2, false, &in);
    ck_assert_int_eq(fetch(2, &in), WHOLE);
    in.list[0].data[5] ^= 1;
    ck_assert_int_eq(decode(&in), FL_EFORMAT);
    ck_assert_str_eq(r.err.msg, "the payload 'model' does not match its SHA-256");
    ck_assert(!rig_has_file(&r, FL_CACHE_MODEL));
    fl_inputs_done(&in);
    end();
}

TEST(more_bytes_than_a_whole_model_are_refused)
{
    struct fl_inputs in = {.n = 0};
    struct fl_input *at = NULL;

    begin(&unseeded);
    hold(0);
    choose(2, false, &in);
    ck_assert_int_eq(fl_inputs_next(&in, &at), FL_OK);
    ck_assert_int_eq(fl_input_add(at, 0, server.models[0], bytes, &r.err), FL_OK);
    ck_assert_int_eq(fl_input_add(at, bytes, "x", 1, &r.err), FL_EPROTO);
    fl_inputs_done(&in);
    end();
}

/* Without it only the next download is longer. */
TEST(a_model_that_cannot_be_saved_is_trained_from)
{
    struct fl_inputs in = {.n = 0};

    begin(&unseeded);
    choose(2, false, &in);
    ck_assert_int_eq(fetch(2, &in), WHOLE);
    ck_assert_int_eq(mkdir(client_rig_path(&r, FL_CACHE_MODEL), 0700), 0);
    ck_assert_int_eq(decode(&in), FL_OK);
    ck_assert_mem_eq(in.list[0].data, server.models[2], bytes);
    ck_assert_ptr_nonnull(strstr(r.lines, "the model is not saved on disk"));
    fl_inputs_done(&in);
    end();
}

TEST(a_client_without_a_folder_fetches_whole_models)
{
    struct fl_inputs in = {.n = 0};
    struct fl_input listed;
    struct fl_settling s;

    begin(&seeded);
    listed = listed_model(2);
    r.worker.state_dir = NULL;
    ck_assert(!fl_settling_begin_model(&r.worker, r.setup, &listed, &s));
    ck_assert_int_eq(fl_settling_choose_model(&s, &listed, &in, &r.err), FL_OK);
    fl_settling_done(&s);
    ck_assert_int_eq(fetch(2, &in), WHOLE);
    ck_assert_int_eq(decode(&in), FL_OK);
    ck_assert_mem_eq(in.list[0].data, server.models[2], bytes);
    fl_inputs_done(&in);
    end();
}

/* --- attempts and evaluations that overlap --- */

TEST_EACH(a_broken_download_of_what_changed_goes_on_where_it_ended, 2)
{
    struct fl_inputs in = {.n = 0};
    struct fl_input *at = NULL;
    struct fl_blob *moves = NULL;

    begin(&unseeded);
    hold(0);
    choose(2, false, &in);
    ck_assert_int_eq(fl_inputs_next(&in, &at), FL_OK);
    ck_assert_int_eq(
        moves_difference(versions, r.setup->layout, server.models[2], at->held, &moves), FL_OK);
    ck_assert_int_eq(fl_input_add(at, 0, fl_blob_data(moves), 7, &r.err), FL_OK);
    fl_blob_unref(moves);
    choose(2, false, &in); /* The task is sent again. */
    ck_assert_uint_eq(in.list[0].have, 7);
    if (_i == 0) {
        ck_assert_int_eq(fetch(2, &in), WHAT_CHANGED);
    } else { /* From a server that does not know the model any more. */
        fl_input_want_whole(&in.list[0]);
        ck_assert_int_eq(fetch(2, &in), WHOLE);
    }
    ck_assert_int_eq(decode(&in), FL_OK);
    ck_assert_mem_eq(in.list[0].data, server.models[2], bytes);
    fl_inputs_done(&in);
    end();
}

TEST(a_broken_download_of_a_whole_model_stays_one)
{
    struct fl_inputs in = {.n = 0};
    struct fl_input *at = NULL;

    begin(&unseeded);
    choose(2, false, &in);
    ck_assert_int_eq(fl_inputs_next(&in, &at), FL_OK);
    ck_assert_int_eq(fl_input_add(at, 0, server.models[2], 12, &r.err), FL_OK);
    hold(0); /* By an evaluation. */
    choose(2, false, &in);
    ck_assert_uint_eq(in.list[0].have, 12);
    ck_assert_int_eq(fetch(2, &in), WHOLE);
    ck_assert_int_eq(decode(&in), FL_OK);
    fl_inputs_done(&in);
    ck_assert(holds(2));
    end();
}

/* Both look for the held model before either has stored the new one. */
TEST_EACH(a_task_and_an_evaluation_of_one_model_may_be_fetched_at_once, 2)
{
    struct fl_inputs task = {.n = 0};
    struct fl_inputs evaluation = {.n = 0};
    struct fl_inputs *first = _i == 0 ? &task : &evaluation;
    struct fl_inputs *second = _i == 0 ? &evaluation : &task;

    begin(&unseeded);
    hold(0);
    choose(2, true, &evaluation);
    choose(2, false, &task);
    ck_assert_int_eq(fetch(2, &task), WHAT_CHANGED);
    ck_assert_int_eq(fetch(2, &evaluation), WHAT_CHANGED);
    ck_assert_int_eq(decode(first), FL_OK);
    ck_assert_int_eq(decode(second), FL_OK);
    ck_assert_mem_eq(second->list[0].data, server.models[2], bytes);
    fl_inputs_done(&task);
    fl_inputs_done(&evaluation);
    end();
}

/* The aggregation was repeated, so that the evaluated model is not that of the next round. */
TEST(an_evaluation_that_stored_another_model_costs_one_task_and_stays)
{
    struct fl_inputs in = {.n = 0};

    begin(&unseeded);
    hold(0);
    choose(2, false, &in);
    ck_assert_int_eq(fetch(2, &in), WHAT_CHANGED);
    hold(1);
    ck_assert_int_eq(decode(&in), FL_ENOENT);
    fl_inputs_done(&in);
    ck_assert(holds(1));
    ck_assert_int_eq(receive(2, false), WHAT_CHANGED);
    end();
}

/* Through the training, which is what uses it. */
TEST(a_result_is_the_same_however_its_model_was_fetched)
{
    struct fl_task task = rig_task(3, 0);
    struct rig_payload model;
    struct fl_result *results[2];
    size_t k;

    for (k = 0; k < 2; k++) {
        struct fl_inputs in = {.n = 0};
        struct fl_training *t = NULL;

        begin(&unseeded);
        if (k == 0) {
            hold(0);
            choose(2, false, &in);
            ck_assert_int_eq(fetch(2, &in), WHAT_CHANGED);
            ck_assert_int_eq(fl_training_new(&r.worker, &task, &in, NULL, NULL, &t, &r.err), FL_OK);
            ck_assert_msg(fl_training_run(t, &r.err) == FL_OK, "%s", r.err.msg);
            results[k] = fl_training_take(t);
            fl_training_free(t);
        } else {
            model = (struct rig_payload){"model", server.models[2], bytes, true};
            results[k] = rig_train(&r, &task, &model, 1);
        }
        end();
    }
    ck_assert_mem_eq(results[0]->delta, results[1]->delta, bytes);
    fl_result_unref(results[0]);
    fl_result_unref(results[1]);
}
