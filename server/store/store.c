/* Writing records, on the thread that owns the store. Each public function is one transaction.
 * Reading back is in store_load.c, files other than the database are not handled here. */

#include "server/store/store.h"

#include <inttypes.h>

#include "server/store/generation_impl.h"
#include "server/store/store_impl.h"

/* --- writing; all of these functions run inside a transaction --- */

static int write_client(struct fl_store *store, enum fl__db_statement which,
                        const struct fl_client_rec *rec, struct fl_err *err)
{
    struct fl_query query = fl_db_query(&store->db, which);
    struct fl_query *q = &query;

    FL__SQL_CLIENT(FL__SQL_BIND)
    fl_query_text(q, rec->agent);
    fl_query_u64(q, rec->id);
    fl_query_text(q, rec->name);
    return fl_query_run(q, err);
}

/* A known client is updated without its name: writing the name would rewrite an index page too. */
static int put_client(struct fl_store *store, const struct fl_client_rec *c, struct fl_err *err)
{
    int rv;

    if (c->id >= FL_CLIENT_NUMBERS) {
        return fl_err_set(err, FL_EINVAL, "client '%s' has number %" PRIu32, c->name, c->id);
    }
    rv = write_client(store, FL__DB_SET_CLIENT, c, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_changes(&store->db) == 0 ? write_client(store, FL__DB_PUT_CLIENT, c, err) : FL_OK;
}

/* Floats are stored in native byte order. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "float blobs are written as they lie");

static struct fl_query part_query(struct fl_store *store, enum fl__db_statement which,
                                  const struct fl_participant_rec *rec)
{
    struct fl_query query = fl_db_query(&store->db, which);
    struct fl_query *q = &query;

    FL__PART_ROW(FL__ROW_BIND)
    fl_query_u64(q, (uint64_t)rec->state);
    fl_query_blob(q, rec->divergence, store->n_units * sizeof(*rec->divergence));
    fl_query_blob(q, rec->units, store->n_units);
    fl_query_blob(q, rec->rms, sizeof(rec->rms));
    fl_query_u64(q, rec->client);
    return query;
}

/* Insert the participants of a selection in its order; the table is empty before. */
static int put_first_parts(struct fl_store *store, const struct fl_participant_rec *parts, size_t n,
                           struct fl_err *err)
{
    size_t i;

    for (i = 0; i < n; i++) {
        struct fl_query q = part_query(store, FL__DB_PUT_PART, &parts[i]);
        int rv;

        fl_query_u64(&q, i);
        rv = fl_query_run(&q, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int put_parts(struct fl_store *store, const struct fl_participant_rec *parts, size_t n,
                     struct fl_err *err)
{
    size_t i;

    for (i = 0; i < n; i++) {
        struct fl_query q = part_query(store, FL__DB_SET_PART, &parts[i]);
        int rv = fl_query_run(&q, err);

        if (rv != FL_OK) {
            return rv;
        }
        if (fl_db_changes(&store->db) == 0) {
            q = part_query(store, FL__DB_PUT_PART, &parts[i]);
            rv = fl_query_run(&q, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

static int put_clients(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                       struct fl_err *err)
{
    size_t i;

    for (i = 0; i < n; i++) {
        int rv = put_client(store, &clients[i], err);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* A committed round can never be opened or committed again. */
static int check_after_last(struct fl_store *store, uint64_t round, struct fl_err *err)
{
    uint64_t last = 0;
    int rv = fl__store_last_round(store, &last, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (round <= last) {
        return fl_err_set(err, FL_ESTATE, "round %" PRIu64 " is committed, the last is %" PRIu64,
                          round, last);
    }
    return FL_OK;
}

static int check_open(struct fl_store *store, uint64_t round, uint32_t attempt, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_OPEN);
    uint64_t open_round;
    uint64_t open_attempt;
    int rv = fl_query_next(&q, err);

    if (rv == FL_ENOENT) {
        rv = fl_err_set(err, FL_ESTATE, "no round is open, round %" PRIu64 " was meant", round);
    }
    if (rv != FL_OK) {
        goto done;
    }
    open_round = fl_column_u64(&q);
    open_attempt = fl_column_u64(&q);
    if (open_round != round || open_attempt != attempt) {
        rv = fl_err_set(err, FL_ESTATE,
                        "round %" PRIu64 " attempt %" PRIu32 " is not open, %" PRIu64
                        " attempt %" PRIu64 " is",
                        round, attempt, open_round, open_attempt);
    }
done:
    fl_query_reset(&q);
    return rv;
}

int fl_store_put_clients(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                         struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, put_clients(store, clients, n, err), err);
}

int fl_store_put_epoch(struct fl_store *store, uint64_t epoch, struct fl_err *err)
{
    int rv;

    if (epoch == 0 || epoch == store->epoch) {
        return FL_OK;
    }
    rv = fl_db_begin_durable(&store->db, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_end(&store->db, fl__store_run_with(store, FL__DB_SET_EPOCH, epoch, err), err);
    if (rv != FL_OK) {
        return rv;
    }
    store->epoch = epoch;
    return FL_OK;
}

int fl_store_forget(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                    struct fl_err *err)
{
    /* The operator gets a confirmation, so the change must survive a power failure. */
    int rv = fl_db_begin_durable(&store->db, err);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        rv = fl__store_run_with(store,
                                clients[i].forgotten ? FL__DB_MARK_CLIENT : FL__DB_DROP_CLIENT,
                                clients[i].id, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    return fl_db_end(&store->db, rv, err);
}

static int write_pause(struct fl_store *store, const char *reason, struct fl_err *err)
{
    struct fl_query q;

    if (reason == NULL) {
        return fl__store_run(store, FL__DB_DROP_PAUSE, err);
    }
    q = fl_db_query(&store->db, FL__DB_PUT_PAUSE);
    fl_query_text(&q, reason);
    return fl_query_run(&q, err);
}

int fl_store_put_pause(struct fl_store *store, const char *reason, struct fl_err *err)
{
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, write_pause(store, reason, err), err);
}

static int write_open(struct fl_store *store, const struct fl_selection *sel, struct fl_err *err)
{
    const struct fl_round_size *rec = &sel->size;
    struct fl_query query = fl_db_query(&store->db, FL__DB_PUT_OPEN);
    struct fl_query *q = &query;

    fl_query_u64(q, sel->round);
    fl_query_u64(q, sel->attempt);
    FL__SIZE_ROW(FL__ROW_BIND)
    return fl_query_run(q, err);
}

int fl_store_put_selection(struct fl_store *store, const struct fl_selection *selection,
                           struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_after_last(store, selection->round, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = write_open(store, selection, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_run_with(store, FL__DB_SET_EXPECTED, selection->expected, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = put_clients(store, selection->clients, selection->n_clients, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_run(store, FL__DB_DROP_PARTS, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = put_first_parts(store, selection->parts, selection->n_parts, err);
done:
    return fl_db_end(&store->db, rv, err);
}

int fl_store_put_plan(struct fl_store *store, uint64_t round, uint32_t attempt,
                      const struct fl_participant_rec *parts, size_t n, struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_open(store, round, attempt, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = put_parts(store, parts, n, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_run(store, FL__DB_SET_PLANNED, err);
done:
    return fl_db_end(&store->db, rv, err);
}

int fl_store_put_update(struct fl_store *store, uint64_t round, uint32_t attempt,
                        const struct fl_participant_rec *part, struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_open(store, round, attempt, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = put_parts(store, part, 1, err);
done:
    return fl_db_end(&store->db, rv, err);
}

int fl__store_put_round(struct fl_store *store, const struct fl_round_rec *rec, struct fl_err *err)
{
    struct fl_query query = fl_db_query(&store->db, FL__DB_PUT_ROUND);
    struct fl_query *q = &query;

    FL_ROUND_FIGURES(FL__SQL_BIND)
    return fl_query_run(q, err);
}

int fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                    const struct fl_client_rec *clients, size_t n_clients, struct fl_err *err)
{
    /* Older checkpoints are removed because of this record, so the record must be durable first. */
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_after_last(store, round->round, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_put_round(store, round, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = put_clients(store, clients, n_clients, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_drop_open(store, err);
done:
    return fl_db_end(&store->db, rv, err);
}
