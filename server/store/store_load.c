/* Reading records back, on the thread that owns the store: the state from which the coordinator
 * resumes, and the history of rounds for operators. Writes nothing. */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "server/store/store_impl.h"

static int db_damaged(const struct fl_store *store, const char *what, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT, "state database '%s' is damaged: %s", store->db.path, what);
}

static int load_no_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
}

static int read_client(struct fl_store *store, struct fl_query *q, struct fl_client_rec *rec,
                       struct fl_err *err)
{
    uint64_t id;

    *rec = (struct fl_client_rec){0};
    FL__SQL_CLIENT(FL__SQL_READ)
    if (fl_str_copy(rec->agent, sizeof(rec->agent), fl_column_text(q)) != FL_OK) {
        return db_damaged(store, "a client has a bad agent", err);
    }
    id = fl_column_u64(q);
    if (id >= FL_CLIENT_NUMBERS) {
        return db_damaged(store, "a client has an impossible number", err);
    }
    rec->id = (uint32_t)id;
    if (fl_str_copy(rec->name, sizeof(rec->name), fl_column_text(q)) != FL_OK ||
        !fl_name_valid(rec->name))
    {
        return db_damaged(store, "a client has a bad name", err);
    }
    return FL_OK;
}

static int load_clients(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_CLIENTS);
    struct fl_client_rec *clients;
    uint64_t n = 0;
    int rv = fl__store_number(store, FL__DB_COUNT_CLIENTS, &n, err);

    if (rv != FL_OK || n == 0) {
        return rv;
    }
    clients = calloc(n, sizeof(*clients));
    if (clients == NULL) {
        return load_no_memory(err);
    }
    r->clients = clients;
    while (r->n_clients < n) {
        rv = fl_query_next(&q, err);
        if (rv != FL_OK) {
            rv = rv == FL_ENOENT ? db_damaged(store, "clients are missing", err) : rv;
            goto done;
        }
        rv = read_client(store, &q, &clients[r->n_clients++], err);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    fl_query_reset(&q);
    return rv;
}

/* A copy of a blob column of exactly `want` bytes; NULL stays NULL. */
static int read_blob(struct fl_store *store, struct fl_query *q, size_t want, void **ret,
                     struct fl_err *err)
{
    size_t len = 0;
    const void *data = fl_column_blob(q, &len);

    *ret = NULL;
    if (data == NULL) {
        return FL_OK;
    }
    if (len != want) {
        return db_damaged(store, "a part is of another model", err);
    }
    *ret = malloc(want);
    if (*ret == NULL) {
        return load_no_memory(err);
    }
    (void)memcpy(*ret, data, want);
    return FL_OK;
}

static int read_part(struct fl_store *store, struct fl_query *q, struct fl_participant_rec *rec,
                     struct fl_err *err)
{
    uint64_t client;
    uint64_t state;
    void *divergence = NULL;
    void *units = NULL;
    void *rms = NULL;
    int rv;

    *rec = (struct fl_participant_rec){0};
    FL__PART_ROW(FL__ROW_READ)
    state = fl_column_u64(q);
    rv = read_blob(store, q, store->n_units * sizeof(*rec->divergence), &divergence, err);
    if (rv != FL_OK) {
        return rv;
    }
    rec->divergence = divergence;
    rv = read_blob(store, q, store->n_units, &units, err);
    if (rv != FL_OK) {
        return rv;
    }
    rec->units = units;
    rv = read_blob(store, q, sizeof(rec->rms), &rms, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (rms != NULL) {
        (void)memcpy(rec->rms, rms, sizeof(rec->rms));
        free(rms);
    }
    client = fl_column_u64(q);
    if (client >= FL_CLIENT_NUMBERS || state < FL_PARTICIPANT_SELECTED ||
        state > FL_PARTICIPANT_LOST) {
        return db_damaged(store, "a part has no client or state", err);
    }
    rec->client = (uint32_t)client;
    rec->state = (enum fl_participant_state)state;
    return FL_OK;
}

static int load_parts(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_PARTS);
    struct fl_participant_rec *parts;
    uint64_t n = 0;
    int rv = fl__store_number(store, FL__DB_COUNT_PARTS, &n, err);

    if (rv != FL_OK || n == 0) {
        return rv;
    }
    parts = calloc(n, sizeof(*parts));
    if (parts == NULL) {
        return load_no_memory(err);
    }
    r->parts = parts;
    while (r->n_parts < n) {
        rv = fl_query_next(&q, err);
        if (rv != FL_OK) {
            rv = rv == FL_ENOENT ? db_damaged(store, "parts are missing", err) : rv;
            goto done;
        }
        rv = read_part(store, &q, &parts[r->n_parts++], err);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    fl_query_reset(&q);
    return rv;
}

static int load_open(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query query = fl_db_query(&store->db, FL__DB_GET_OPEN);
    struct fl_query *q = &query;
    struct fl_round_size *rec = &r->size;
    bool same;
    int rv = fl_query_next(q, err);

    if (rv != FL_OK) {
        fl_query_reset(q);
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    r->open_round = fl_column_u64(q);
    r->open_attempt = (uint32_t)fl_column_u64(q);
    r->planned = fl_column_u64(q) != 0;
    FL__SIZE_ROW(FL__ROW_READ)
    same = fl_column_u64(q) != 0;
    fl_query_reset(q);
    if (!same) { /* Opened under another compatibility digest: drop this attempt. */
        r->open_attempt++;
        r->planned = false;
        return FL_OK;
    }
    return load_parts(store, r, err);
}

static int load_counts(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_COUNTS);
    int rv = fl_query_next(&q, err);

    if (rv != FL_OK) {
        goto done;
    }
    r->expected = fl_column_u64(&q);
    store->epoch = fl_column_u64(&q);
    r->epoch = fl_column_u64(&q);
done:
    fl_query_reset(&q);
    return rv;
}

static int load_used(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_USED);
    int rv = fl_query_next(&q, err);

    if (rv != FL_OK) {
        goto done;
    }
    r->used_round = fl_column_u64(&q);
    r->used_attempt = (uint32_t)fl_column_u64(&q);
done:
    fl_query_reset(&q);
    return rv;
}

static int load_newest_up(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    return fl__store_number(store, FL__DB_NEWEST_UP, &r->up_ms, err);
}

static int load_pause(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_PAUSE);
    int rv = fl_query_next(&q, err);

    if (rv != FL_OK) {
        rv = rv == FL_ENOENT ? FL_OK : rv;
        goto done;
    }
    if (fl_str_copy(r->pause, sizeof(r->pause), fl_column_text(&q)) != FL_OK || r->pause[0] == '\0')
    {
        rv = db_damaged(store, "the reason of a pause is too long, or missing", err);
    }
done:
    fl_query_reset(&q);
    return rv;
}

int fl_store_load(struct fl_store *store, struct fl_coord_resume *ret, struct fl_err *err)
{
    static int (*const loads[])(struct fl_store *, struct fl_coord_resume *, struct fl_err *) = {
        load_clients, load_counts, load_newest_up, load_used, load_open, load_pause};
    struct fl_coord_resume r = {0};
    size_t i;
    int rv = fl__store_last_round(store, &r.committed, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        rv = loads[i](store, &r, err);
        if (rv != FL_OK) {
            fl_store_resume_done(&r);
            return rv;
        }
    }
    *ret = r;
    return FL_OK;
}

/* The coordinator gets these arrays const; the store owns and frees them. */
static void free_const(const void *p)
{
    void *q;

    (void)memcpy(&q, &p, sizeof(q));
    free(q);
}

void fl_store_resume_done(struct fl_coord_resume *resume)
{
    size_t i;

    for (i = 0; i < resume->n_parts; i++) {
        free(resume->parts[i].divergence);
        free(resume->parts[i].units);
    }
    free_const(resume->parts);
    free_const(resume->clients);
    *resume = (struct fl_coord_resume){0};
}

/* --- history --- */

void fl__store_read_round(struct fl_query *q, struct fl_round_rec *rec)
{
    FL_ROUND_FIGURES(FL__SQL_READ)
}

int fl_store_has_round(struct fl_store *store, uint64_t round, bool *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_HAS_ROUND);
    int rv;

    fl_query_u64(&q, round);
    rv = fl_query_next(&q, err);
    if (rv != FL_OK) {
        goto done;
    }
    *ret = round == 0 || fl_column_u64(&q) != 0;
done:
    fl_query_reset(&q);
    return rv;
}

int fl_store_round(struct fl_store *store, uint64_t round, struct fl_round_rec *ret,
                   struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ROUND);
    int rv;

    fl_query_u64(&q, round);
    rv = fl_query_next(&q, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl__store_read_round(&q, ret);
done:
    fl_query_reset(&q);
    return rv;
}

int fl_store_rounds(struct fl_store *store, uint32_t last, fl_store_round_cb cb, void *ctx,
                    struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ROUNDS);
    struct fl_round_rec r;
    int rv;

    fl_query_u64(&q, last == 0 ? (uint64_t)INT64_MAX : last);
    while ((rv = fl_query_next(&q, err)) == FL_OK) {
        fl__store_read_round(&q, &r);
        rv = cb(ctx, &r);
        if (rv != FL_OK) {
            fl_query_reset(&q);
            return rv;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl_store_totals(struct fl_store *store, struct fl_round_rec *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_EACH_ROUND);
    struct fl_round_rec totals;
    struct fl_round_rec r;
    int rv;

    fl_figures_init(&fl_round_rows, &totals);
    while ((rv = fl_query_next(&q, err)) == FL_OK) {
        fl__store_read_round(&q, &r);
        fl_round_add(&totals, &r);
    }
    fl_query_reset(&q);
    if (rv != FL_ENOENT) {
        return rv;
    }
    *ret = totals;
    return FL_OK;
}
