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

static int load_client(struct fl_store *store, struct fl_query *q, struct fl_client_rec *ret,
                       struct fl_err *err)
{
    struct fl__client_row row;
    size_t i;
    int rv = fl__client_next(q, &row, err);

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? db_damaged(store, "clients are missing", err) : rv;
    }
    if (!fl_name_valid(row.rec.name)) {
        return db_damaged(store, "a client has a bad name", err);
    }
    if (row.offences_len % sizeof(ret->offences[0]) != 0) {
        return db_damaged(store, "the offences of a client are cut", err);
    }
    *ret = row.rec;
    (void)memcpy(ret->offences, row.offences, row.offences_len);
    for (i = 0; i * sizeof(ret->offences[0]) < row.offences_len; i++) {
        if (ret->offences[i].kind < FL_OFFENCE_CLAIM || ret->offences[i].kind > FL_OFFENCE_UPDATE) {
            return db_damaged(store, "an offence of a client is of no known kind", err);
        }
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
        rv = load_client(store, &q, &clients[r->n_clients], err);
        if (rv != FL_OK) {
            goto done;
        }
        r->n_clients++;
    }
done:
    fl_query_reset(&q);
    return rv;
}

/* A copy of a blob of exactly `want` bytes; NULL stays NULL. */
static int copy_blob(const struct fl_store *store, const void *data, size_t len, size_t want,
                     void **ret, struct fl_err *err)
{
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

/* The coordinator gets these arrays const; the store owns and frees them. */
static void free_const(const void *p)
{
    void *q;

    (void)memcpy(&q, &p, sizeof(q));
    free(q);
}

static void free_part(const struct fl_participant_rec *part)
{
    free(part->divergence);
    free(part->units);
    free_const(part->received.metrics);
    free_const(part->trained.metrics);
}

static int read_part(struct fl_store *store, struct fl_query *q, struct fl_participant_rec *ret,
                     struct fl_err *err)
{
    struct fl__part part;
    void *divergence = NULL;
    void *units = NULL;
    int rv = fl__part_next(q, &part, err);

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? db_damaged(store, "parts are missing", err) : rv;
    }
    rv = copy_blob(store, part.divergence, part.divergence_len,
                   store->n_units * sizeof(*ret->divergence), &divergence, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = copy_blob(store, part.units, part.units_len, store->n_units, &units, err);
    if (rv != FL_OK) {
        free(divergence);
        return rv;
    }
    *ret = part.rec;
    ret->divergence = divergence;
    ret->units = units;
    ret->received.metrics = fl_str_dup(part.rec.received.metrics);
    ret->trained.metrics = fl_str_dup(part.rec.trained.metrics);
    (void)memcpy(ret->rms, part.rms, sizeof(ret->rms));
    if (ret->received.metrics == NULL || ret->trained.metrics == NULL) {
        free_part(ret);
        return load_no_memory(err);
    }
    return FL_OK;
}

static int load_open(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_OPEN);
    struct fl_participant_rec *parts;
    struct fl__open_round open;
    uint64_t n = 0;
    int rv = fl__open_round_one(&q, &open, err);

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    r->open_round = open.round;
    r->open_attempt = open.attempt;
    r->planned = open.planned;
    r->size = open.size;
    if (!open.same) { /* Opened under another compatibility digest: drop this attempt. */
        r->open_attempt++;
        r->planned = false;
        return FL_OK;
    }
    rv = fl__store_number(store, FL__DB_COUNT_PARTS, &n, err);
    if (rv != FL_OK || n == 0) {
        return rv;
    }
    parts = calloc(n, sizeof(*parts));
    if (parts == NULL) {
        return load_no_memory(err);
    }
    r->parts = parts;
    q = fl_db_query(&store->db, FL__DB_GET_PARTS);
    while (r->n_parts < n) {
        rv = read_part(store, &q, &parts[r->n_parts], err);
        if (rv != FL_OK) {
            goto done;
        }
        r->n_parts++;
    }
done:
    fl_query_reset(&q);
    return rv;
}

static int load_counts(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_RESUMED);
    struct fl__folder folder;
    int rv = fl__folder_one(&q, &folder, err);

    if (rv != FL_OK) {
        return rv;
    }
    store->epoch = folder.epoch;
    r->expected = folder.expected;
    /* All client states may have been reset since the epoch was written. */
    r->epoch = folder.epoch > folder.kept_since ? folder.epoch : folder.kept_since + 1;
    r->used_round = folder.used_round;
    r->used_attempt = (uint32_t)folder.used_attempt;
    return FL_OK;
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
    if (fl_str_copy(r->pause, sizeof(r->pause), fl_query_string(&q)) != FL_OK ||
        r->pause[0] == '\0') {
        rv = db_damaged(store, "the reason of a pause is too long, or missing", err);
    }
done:
    fl_query_reset(&q);
    return rv;
}

/* What follows from the losses of all rounds. */
static int load_losses(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_EACH_LOSS);
    struct fl_round_rec rec;
    int rv;

    while ((rv = fl__round_next(&q, &rec, err)) == FL_OK) {
        fl_plateau_add(&r->plateau, rec.round, rec.train_loss);
        fl_loss_trend_add(&r->trend, rec.round, rec.train_loss);
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

static int load_bounds(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl_round_rec rec;
    int rv = r->committed > 0 ? fl_store_round(store, r->committed, &rec, err) : FL_ENOENT;

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    r->bounds = fl_round_bounds_of(&rec);
    return FL_OK;
}

int fl_store_load(struct fl_store *store, struct fl_coord_resume *ret, struct fl_err *err)
{
    static int (*const loads[])(struct fl_store *, struct fl_coord_resume *, struct fl_err *) = {
        load_clients, load_bounds, load_counts, load_newest_up, load_open, load_pause, load_losses};
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

void fl_store_resume_done(struct fl_coord_resume *resume)
{
    size_t i;

    for (i = 0; i < resume->n_parts; i++) {
        free_part(&resume->parts[i]);
    }
    free_const(resume->parts);
    free_const(resume->clients);
    *resume = (struct fl_coord_resume){0};
}

/* --- history --- */

int fl_store_has_round(struct fl_store *store, uint64_t round, bool *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_HAS_ROUND);
    uint64_t n = 0;
    int rv;

    fl_query_u64(&q, round);
    rv = fl_query_number(&q, &n, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = round == 0 || n != 0;
    return FL_OK;
}

int fl_store_round(struct fl_store *store, uint64_t round, struct fl_round_rec *ret,
                   struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ROUND);
    struct fl_round_rec found;
    int rv;

    fl_query_u64(&q, round);
    rv = fl__round_one(&q, &found, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = found;
    return FL_OK;
}

static int load_rounds(struct fl_query *q, fl_store_round_cb cb, void *ctx, struct fl_err *err)
{
    struct fl_round_rec r;
    int rv;

    while ((rv = fl__round_next(q, &r, err)) == FL_OK) {
        rv = cb(ctx, &r);
        if (rv != FL_OK) {
            fl_query_reset(q);
            return rv;
        }
    }
    fl_query_reset(q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl_store_rounds(struct fl_store *store, uint32_t last, fl_store_round_cb cb, void *ctx,
                    struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ROUNDS);

    fl_query_u64(&q, last == 0 ? (uint64_t)INT64_MAX : last);
    return load_rounds(&q, cb, ctx, err);
}

int fl_store_rounds_before(struct fl_store *store, uint64_t before, uint32_t most,
                           fl_store_round_cb cb, void *ctx, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_ROUNDS_BEFORE);

    fl_query_u64(&q, before);
    fl_query_u64(&q, most);
    return load_rounds(&q, cb, ctx, err);
}

int fl_store_totals(struct fl_store *store, struct fl_round_rec *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_EACH_ROUND);
    struct fl_round_rec totals;
    struct fl_round_rec r;
    int rv;

    fl_figures_init(&fl_round_rows, &totals);
    while ((rv = fl__round_next(&q, &r, err)) == FL_OK) {
        fl_round_add(&totals, &r);
    }
    fl_query_reset(&q);
    if (rv != FL_ENOENT) {
        return rv;
    }
    *ret = totals;
    return FL_OK;
}
