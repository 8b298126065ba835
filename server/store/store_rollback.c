/*
 * An operator's rollback: recording the request, carrying it out at the next start, moving the
 * checkpoints of abandoned rounds, listing abandoned rounds. On the thread that owns the store.
 */

#include "server/store/store_rollback.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/grow.h"
#include "server/store/models_impl.h"
#include "server/store/store_impl.h"

static int read_request(struct fl_store *store, struct fl__rollback *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ROLLBACK);

    return fl__rollback_one(&q, ret, err);
}

int fl_store_ask_rollback(struct fl_store *store, uint64_t round, uint64_t wall_ms,
                          struct fl_err *err)
{
    const struct fl__rollback request = {.round = round, .at_ms = wall_ms};
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, fl__rollback_put(&store->db, FL__DB_PUT_ROLLBACK, &request, err),
                     err);
}

int fl_store_asked_rollback(struct fl_store *store, uint64_t *ret_round, struct fl_err *err)
{
    struct fl__rollback request = {.generation = 0};
    int rv = read_request(store, &request, err);

    *ret_round = request.round;
    if (rv != FL_OK) {
        return rv;
    }
    return request.generation != 0 ? FL_ENOENT : FL_OK;
}

int fl_store_drop_rollback(struct fl_store *store, struct fl_err *err)
{
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, fl__store_run(store, FL__DB_DROP_ROLLBACK, err), err);
}

static int roll_back(struct fl_store *store, bool restart_state, uint64_t wall_ms,
                     struct fl_rolled_back *r, struct fl_err *err)
{
    char reason[128];
    const struct fl_rewind why = {
        .reason = reason, .restart_state = restart_state, .wall_ms = wall_ms};
    struct fl__rollback request = {.generation = 0};
    struct fl__rollback done;
    struct fl_generation generation;
    int rv = read_request(store, &request, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_generation(store, &generation, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_last_round(store, &r->last, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_open_attempt(store, &r->dropped_round, &r->dropped_attempt, &r->dropped_updates,
                                err);
    if (rv != FL_OK) {
        return rv;
    }
    r->round = request.round;
    (void)snprintf(reason, sizeof(reason),
                   "rolled back to round %" PRIu64 ", rounds %" PRIu64 " to %" PRIu64 " abandoned",
                   r->round, r->round + 1, r->last);
    rv = fl__store_rewind(store, r->round, &why, err);
    if (rv != FL_OK) {
        return rv;
    }
    done = (struct fl__rollback){.last = r->last, .generation = generation.number};
    return fl__rollback_put(&store->db, FL__DB_NOTE_ROLLBACK, &done, err);
}

int fl_store_roll_back(struct fl_store *store, bool restart_state, uint64_t wall_ms,
                       struct fl_rolled_back *ret, struct fl_err *err)
{
    struct fl_rolled_back r = {.round = 0};
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_end(&store->db, roll_back(store, restart_state, wall_ms, &r, err), err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = r;
    return FL_OK;
}

/* --- the checkpoints --- */

struct kept {
    uint64_t *rounds;
    size_t n, cap;
};

static int keep_round(struct kept *k, uint64_t round)
{
    int rv = fl_grow(&k->rounds, &k->cap, k->n, sizeof(*k->rounds));

    if (rv != FL_OK) {
        return rv;
    }
    k->rounds[k->n++] = round;
    return FL_OK;
}

static int keep_pinned(void *ctx, const struct fl_pin_rec *pin)
{
    return keep_round(ctx, pin->round);
}

static int move_abandoned(struct fl_store *store, const struct fl__rollback *request,
                          struct fl_err *err)
{
    struct kept k = {.n = 0};
    int rv = keep_round(&k, request->last);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_store_pins(store, keep_pinned, &k, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__models_abandon(store->dir, request->round, request->generation, k.rounds, k.n, err);
done:
    free(k.rounds);
    return rv;
}

int fl_store_finish_rollback(struct fl_store *store, struct fl_err *err)
{
    struct fl__rollback request = {.generation = 0};
    int rv = read_request(store, &request, err);

    if (rv != FL_OK || request.generation == 0) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    rv = move_abandoned(store, &request, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_begin_durable(&store->db, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* Round numbers are reused: a pin on an abandoned round must not apply to its successor. */
    rv = fl__store_run_with(store, FL__DB_DROP_PINS_AFTER, request.round, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_run(store, FL__DB_DROP_ROLLBACK, err);
done:
    return fl_db_end(&store->db, rv, err);
}

int fl_store_abandoned(struct fl_store *store, uint32_t last, fl_store_abandoned_cb cb, void *ctx,
                       struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ABANDONED);
    struct fl_abandoned_round r;
    int rv;

    fl_query_u64(&q, last == 0 ? (uint64_t)INT64_MAX : last);
    while ((rv = fl__abandoned_next(&q, &r, err)) == FL_OK) {
        if (r.by[0] == '\0') {
            r.by = "not recorded";
        }
        rv = cb(ctx, &r);
        if (rv != FL_OK) {
            fl_query_reset(&q);
            return rv;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}
