/* Writing records, on the thread that owns the store. Each public function is one transaction.
 * Reading back is in store_load.c, files other than the database are not handled here. */

#include "server/store/store.h"

#include <inttypes.h>
#include <string.h>

#include "server/store/generation_impl.h"
#include "server/store/store_impl.h"

/* --- writing; all of these functions run inside a transaction --- */

/* Floats are stored in native byte order. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "float blobs are written as they lie");

/* The row borrows from `rec`. */
static struct fl__part part_row(const struct fl_store *store, const struct fl_participant_rec *rec)
{
    struct fl__part part = {.rec = *rec, .divergence = rec->divergence, .units = rec->units};

    part.divergence_len = rec->divergence != NULL ? store->n_units * sizeof(*rec->divergence) : 0;
    part.units_len = rec->units != NULL ? store->n_units : 0;
    part.rec.received.metrics = rec->received.metrics != NULL ? rec->received.metrics : "";
    part.rec.trained.metrics = rec->trained.metrics != NULL ? rec->trained.metrics : "";
    (void)memcpy(part.rms, rec->rms, sizeof(part.rms));
    return part;
}

static int put_parts(struct fl_store *store, const struct fl_participant_rec *parts, size_t n,
                     struct fl_err *err)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const struct fl__part part = part_row(store, &parts[i]);
        int rv = fl__part_put(&store->db, FL__DB_SET_PART, &part, err);

        if (rv != FL_OK) {
            return rv;
        }
        if (fl_db_changes(&store->db) == 0) {
            rv = fl__part_put(&store->db, FL__DB_PUT_PART, &part, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

static struct fl__client_row client_row(const struct fl_client_rec *rec)
{
    struct fl__client_row row = {.rec = *rec};
    size_t n = 0;

    while (n < FL_OFFENCES_MAX && rec->offences[n].kind != 0) {
        n++;
    }
    row.offences_len = n * sizeof(rec->offences[0]);
    (void)memcpy(row.offences, rec->offences, row.offences_len);
    return row;
}

/* `which`: the statement for a client that has a record; one without gets one. */
static int put_clients(struct fl_store *store, enum fl__db_statement which,
                       const struct fl_client_rec *clients, size_t n, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const struct fl__client_row row = client_row(&clients[i]);
        int rv;

        if (row.rec.id >= FL_CLIENT_NUMBERS) {
            return fl_err_set(err, FL_EINVAL, "client '%s' has number %" PRIu32, row.rec.name,
                              row.rec.id);
        }
        /* A known client is updated without its name, which would rewrite an index page too. */
        rv = fl__client_put(&store->db, which, &row, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (fl_db_changes(&store->db) == 0) {
            rv = fl__client_put(&store->db, FL__DB_PUT_CLIENT, &row, err);
            if (rv != FL_OK) {
                return rv;
            }
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
    struct fl__open_round open;
    int rv = fl__open_round_one(&q, &open, err);

    if (rv == FL_ENOENT) {
        return fl_err_set(err, FL_ESTATE, "no round is open, round %" PRIu64 " was meant", round);
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (open.round != round || open.attempt != attempt) {
        return fl_err_set(err, FL_ESTATE,
                          "round %" PRIu64 " attempt %" PRIu32 " is not open, %" PRIu64
                          " attempt %" PRIu32 " is",
                          round, attempt, open.round, open.attempt);
    }
    return FL_OK;
}

int fl_store_put_clients(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                         struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, put_clients(store, FL__DB_SET_CLIENT, clients, n, err), err);
}

int fl_store_put_quarantine(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                            struct fl_err *err)
{
    /* The operator gets a confirmation, so the change must survive a power failure. */
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, put_clients(store, FL__DB_SET_QUARANTINE, clients, n, err), err);
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

int fl_store_put_pause(struct fl_store *store, const char *reason, struct fl_err *err)
{
    struct fl_query q;
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (reason == NULL) {
        return fl_db_end(&store->db, fl__store_run(store, FL__DB_DROP_PAUSE, err), err);
    }
    q = fl_db_query(&store->db, FL__DB_PUT_PAUSE);
    fl_query_text(&q, reason);
    return fl_db_end(&store->db, fl_query_run(&q, err), err);
}

int fl_store_put_selection(struct fl_store *store, const struct fl_selection *selection,
                           struct fl_err *err)
{
    const struct fl__open_round open = {
        .round = selection->round, .attempt = selection->attempt, .size = selection->size};
    size_t i;
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_after_last(store, selection->round, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__open_round_put(&store->db, FL__DB_PUT_OPEN, &open, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_run_with(store, FL__DB_SET_EXPECTED, selection->expected, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = put_clients(store, FL__DB_SET_CLIENT, selection->clients, selection->n_clients, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (selection->ended != NULL) {
        rv = fl__store_put_participations(store, selection->round, selection->ended, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl__store_run(store, FL__DB_DROP_PARTS, err);
    if (rv != FL_OK) {
        goto done;
    }
    /* In the order of the selection; the table is empty. */
    for (i = 0; i < selection->n_parts; i++) {
        struct fl_query q = fl_db_query(&store->db, FL__DB_PUT_PART);
        const struct fl__part part = part_row(store, &selection->parts[i]);

        fl__part_bind(&q, &part);
        fl_query_u64(&q, i); /* position */
        rv = fl_query_run(&q, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
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
    return fl__round_put(&store->db, FL__DB_PUT_ROUND, rec, err);
}

int fl_store_commit(struct fl_store *store, const struct fl_round_rec *round,
                    const struct fl_client_rec *clients, size_t n_clients,
                    const struct fl_participations *taken, struct fl_err *err)
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
    rv = put_clients(store, FL__DB_SET_CLIENT, clients, n_clients, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (taken != NULL) {
        rv = fl__store_put_participations(store, round->round, taken, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl__store_drop_open(store, err);
done:
    return fl_db_end(&store->db, rv, err);
}
