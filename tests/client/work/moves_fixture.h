#ifndef FL_TESTS_MOVES_FIXTURE_H
#define FL_TESTS_MOVES_FIXTURE_H

/*
 * A client of a server with broadcast: lattice and three models, of which the last is the newest.
 * Every failure ends the test.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/store/cache.h"
#include "tests/lib/client_rig.h"
#include "tests/lib/moves_rig.h"

#define SEED 99

static const struct rig_server seeded = {.broadcast = "lattice", .model_seed = SEED},
                               unseeded = {.broadcast = "lattice"};

/* The server, and the client. */
static struct moves_rig server;
static struct fl_versions *versions;
static struct rig r;
static size_t bytes;

static inline void begin(const struct rig_server *of)
{
    struct fl_net_spec spec;
    float *first;

    client_rig_init(&r, of, false);
    bytes = r.count * sizeof(float);
    first = malloc(bytes);
    ck_assert_ptr_nonnull(first);
    spec = fl_setup_net(r.setup);
    ck_assert_int_eq(fl_net_draw(&spec, SEED, first, r.count, NULL), FL_OK);
    ck_assert_int_eq(fl_broadcast_place(r.setup->broadcast, r.setup->broadcast_options,
                                        r.setup->layout, first, NULL),
                     FL_OK);
    /* Where whole models are sent, any on the lattice will do. */
    moves_rig_init(&server, r.setup->layout,
                   fl_broadcast_sends_moves(r.setup->broadcast) ? first : NULL, 3);
    versions = moves_rig_versions(&server, 0, 2);
    free(first);
}

static inline void end(void)
{
    fl_versions_unref(versions);
    moves_rig_done(&server);
    rig_done(&r);
}

static inline void hold(size_t k)
{
    ck_assert_int_eq(fl_cache_save(r.dir, FL_CACHE_MODEL, server.models[k], bytes, NULL), FL_OK);
}

/* Is this model the one on the disk, undamaged? */
static inline bool holds(size_t k)
{
    uint8_t *data = NULL;
    bool same = fl_cache_load(r.dir, FL_CACHE_MODEL, server.digests[k], bytes, &data) == FL_OK &&
                memcmp(data, server.models[k], bytes) == 0;

    free(data);
    return same;
}

static inline struct fl_input listed_model(size_t k)
{
    struct fl_input in = {.name = "model", .bytes = bytes, .has_digest = true};

    (void)memcpy(in.digest, server.digests[k], sizeof(in.digest));
    return in;
}

/* Settle, and choose the model of a task (attempts before it in `in`) or of an evaluation. */
static inline void choose(size_t k, bool evaluation, struct fl_inputs *in)
{
    struct fl_inputs listed = {.n = 1, .list = {listed_model(k)}};
    struct fl_task task = rig_task(k + 1, 0);
    struct fl_settling s;
    int rv;

    ck_assert(evaluation ? fl_settling_begin_model(&r.worker, r.setup, &listed.list[0], &s)
                         : fl_settling_begin(&r.worker, r.setup, &listed, &task, &s));
    ck_assert_int_eq(fl_settling_run(&s, &r.worker, &r.err), FL_OK);
    rv = evaluation ? fl_settling_choose_model(&s, &listed.list[0], in, &r.err)
                    : fl_settling_choose(&s, &listed, &r.log, in, &r.err);
    ck_assert_msg(rv == FL_OK, "%s", r.err.msg);
    fl_settling_done(&s);
}

enum fetched { NOTHING, WHAT_CHANGED, WHOLE };

/* The answer of a server whose newest model is `newest`. */
static inline enum fetched fetch(size_t newest, struct fl_inputs *in)
{
    struct fl_blob *moves = NULL;
    struct fl_input *at = NULL;

    ck_assert_int_eq(fl_inputs_next(in, &at), FL_OK);
    if (at == NULL) {
        return NOTHING;
    }
    if (at->has_held && newest == 2 &&
        moves_difference(versions, r.setup->layout, server.models[2], at->held, &moves) == FL_OK)
    {
        ck_assert_int_eq(fl_input_add(at, at->have, fl_blob_data(moves) + at->have,
                                      fl_blob_len(moves) - (size_t)at->have, &r.err),
                         FL_OK);
        ck_assert(!fl_input_is_complete(at)); /* No size was listed: the call has to end. */
        fl_input_end(at);
        fl_blob_unref(moves);
    } else {
        if (at->has_held) { /* FAILED_PRECONDITION */
            fl_input_want_whole(at);
            ck_assert_int_eq(fl_inputs_next(in, &at), FL_OK);
        }
        ck_assert(!at->has_held);
        ck_assert_int_eq(fl_input_add(at, at->have,
                                      (const uint8_t *)server.models[newest] + at->have,
                                      bytes - (size_t)at->have, &r.err),
                         FL_OK);
        fl_input_end(at);
    }
    ck_assert(fl_input_is_complete(at));
    ck_assert_int_eq(fl_inputs_next(in, &at), FL_OK);
    ck_assert_ptr_null(at);
    return in->list[0].has_held ? WHAT_CHANGED : WHOLE;
}

static inline int decode(struct fl_inputs *in)
{
    return fl_input_decode(&in->list[0], r.setup, r.worker.state_dir, &r.log, &r.err);
}

/* What a whole task or evaluation downloads; it must end with model `k`, in memory and on disk. */
static inline enum fetched receive(size_t k, bool evaluation)
{
    struct fl_inputs in = {.n = 0};
    enum fetched got;
    int rv;

    choose(k, evaluation, &in);
    got = fetch(k, &in);
    rv = decode(&in);
    ck_assert_msg(rv == FL_OK, "%s", r.err.msg);
    ck_assert_uint_eq(in.list[0].bytes, bytes);
    ck_assert_mem_eq(in.list[0].data, server.models[k], bytes);
    ck_assert_int_eq(decode(&in), FL_OK); /* It is decoded once. */
    fl_inputs_done(&in);
    ck_assert(holds(k));
    return got;
}

#endif
