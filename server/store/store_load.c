/* Reading records back: what the core resumes from, and the history for people. */

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "server/store/store_impl.h"

static int damaged(const struct fl_store *store, const char *what, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT, "state database '%s' is damaged: %s", store->db.path, what);
}

static int no_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
}

static int read_client(struct fl_store *store, struct fl__query *q, struct fl_client_rec *c,
                       struct fl_err *err)
{
    uint64_t id = fl__column_u64(q);

    *c = (struct fl_client_rec){0};
    if (id >= FL_CLIENT_NUMBERS) {
        return damaged(store, "a client has an impossible number", err);
    }
    c->id = (uint32_t)id;
    if (fl_str_copy(c->name, sizeof(c->name), fl__column_text(q)) != FL_OK ||
        !fl_name_valid(c->name) ||
        fl_str_copy(c->agent, sizeof(c->agent), fl__column_text(q)) != FL_OK)
    {
        return damaged(store, "a client has a bad name", err);
    }
    c->samples = fl__column_u64(q);
    c->score = fl__column_f64(q);
    c->scored = fl__column_u64(q) != 0;
    c->n_selected = fl__column_u64(q);
    c->n_accepted = fl__column_u64(q);
    c->n_rejected = fl__column_u64(q);
    c->n_lost = fl__column_u64(q);
    c->last_loss = fl__column_f64(q);
    c->last_seen_ms = fl__column_u64(q);
    c->counted_round = fl__column_u64(q);
    c->counted_attempt = (uint32_t)fl__column_u64(q);
    c->counted_update = fl__column_u64(q) != 0;
    c->seen_up_ms = fl__column_u64(q);
    c->forgotten = fl__column_u64(q) != 0;
    return FL_OK;
}

static int count(struct fl_store *store, enum fl__db_statement which, size_t *ret,
                 struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, which);
    int rv = fl__query_next(&q, err);

    if (rv == FL_OK) {
        *ret = (size_t)fl__column_u64(&q);
    }
    fl__query_reset(&q);
    return rv;
}

static int load_clients(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_GET_CLIENTS);
    struct fl_client_rec *clients;
    size_t n = 0;
    int rv = count(store, FL__DB_COUNT_CLIENTS, &n, err);

    if (rv != FL_OK || n == 0) {
        return rv;
    }
    clients = calloc(n, sizeof(*clients));
    if (clients == NULL) {
        return no_memory(err);
    }
    r->clients = clients;
    for (r->n_clients = 0; rv == FL_OK && r->n_clients < n; r->n_clients++) {
        rv = fl__query_next(&q, err);
        if (rv == FL_OK) {
            rv = read_client(store, &q, &clients[r->n_clients], err);
        }
    }
    fl__query_reset(&q);
    return rv == FL_ENOENT ? damaged(store, "clients are missing", err) : rv;
}

/* A copy of a blob column of exactly `want` bytes; NULL stays NULL. */
static int read_blob(struct fl_store *store, struct fl__query *q, size_t want, void **ret,
                     struct fl_err *err)
{
    size_t len = 0;
    const void *data = fl__column_blob(q, &len);

    *ret = NULL;
    if (data == NULL) {
        return FL_OK;
    }
    if (len != want) {
        return damaged(store, "a part is of another model", err);
    }
    *ret = malloc(want);
    if (*ret == NULL) {
        return no_memory(err);
    }
    (void)memcpy(*ret, data, want);
    return FL_OK;
}

static void read_eval(struct fl__query *q, struct fl_eval_rec *e)
{
    e->samples = fl__column_u64(q);
    e->correct = fl__column_u64(q);
    e->loss_sum = fl__column_f64(q);
}

static int read_part(struct fl_store *store, struct fl__query *q, struct fl_part_rec *p,
                     struct fl_err *err)
{
    uint64_t client = fl__column_u64(q);
    uint64_t state = fl__column_u64(q);
    void *divergence = NULL;
    void *units = NULL;
    int rv;

    *p = (struct fl_part_rec){0};
    if (client >= FL_CLIENT_NUMBERS || state < FL_PART_SELECTED || state > FL_PART_LOST) {
        return damaged(store, "a part has no client or state", err);
    }
    p->client = (uint32_t)client;
    p->state = (enum fl_part_state)state;
    p->samples = fl__column_u64(q);
    p->steps = fl__column_u64(q);
    p->train_loss = fl__column_f64(q);
    rv = read_blob(store, q, store->n_units * sizeof(*p->divergence), &divergence, err);
    p->divergence = divergence;
    if (rv == FL_OK) {
        rv = read_blob(store, q, store->n_units, &units, err);
        p->units = units;
    }
    p->upload_bytes = fl__column_u64(q);
    p->previous_dot = fl__column_f64(q);
    read_eval(q, &p->received);
    read_eval(q, &p->trained);
    return rv;
}

static int load_parts(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_GET_PARTS);
    struct fl_part_rec *parts;
    size_t n = 0;
    int rv = count(store, FL__DB_COUNT_PARTS, &n, err);

    if (rv != FL_OK || n == 0) {
        return rv;
    }
    parts = calloc(n, sizeof(*parts));
    if (parts == NULL) {
        return no_memory(err);
    }
    r->parts = parts;
    for (r->n_parts = 0; rv == FL_OK && r->n_parts < n; r->n_parts++) {
        rv = fl__query_next(&q, err);
        if (rv == FL_OK) {
            rv = read_part(store, &q, &parts[r->n_parts], err);
        }
    }
    fl__query_reset(&q);
    return rv == FL_ENOENT ? damaged(store, "parts are missing", err) : rv;
}

static int load_open(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_GET_OPEN);
    bool same = true;
    int rv = fl__query_next(&q, err);

    if (rv == FL_OK) {
        r->open_round = fl__column_u64(&q);
        r->open_attempt = (uint32_t)fl__column_u64(&q);
        r->planned = fl__column_u64(&q) != 0;
        r->size.selected = (uint32_t)fl__column_u64(&q);
        r->size.population = (uint32_t)fl__column_u64(&q);
        r->size.members = (uint32_t)fl__column_u64(&q);
        same = fl__column_u64(&q) != 0;
    }
    fl__query_reset(&q);
    if (rv == FL_ENOENT) {
        return FL_OK;
    }
    if (rv == FL_OK && !same) { /* Not what it was opened under: nothing of it counts. */
        r->open_attempt++;
        r->planned = false;
        return FL_OK;
    }
    return rv == FL_OK ? load_parts(store, r, err) : rv;
}

static int load_counts(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_GET_COUNTS);
    int rv = fl__query_next(&q, err);

    if (rv == FL_OK) {
        r->expected = fl__column_u64(&q);
        r->departed = fl__column_u64(&q);
    }
    fl__query_reset(&q);
    return rv;
}

static int load_up(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_NEWEST_UP);
    int rv = fl__query_next(&q, err);

    if (rv == FL_OK) {
        r->up_ms = fl__column_u64(&q);
    }
    fl__query_reset(&q);
    return rv;
}

static int load_used(struct fl_store *store, struct fl_coord_resume *r, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_GET_USED);
    int rv = fl__query_next(&q, err);

    if (rv == FL_OK) {
        r->used_round = fl__column_u64(&q);
        r->used_attempt = (uint32_t)fl__column_u64(&q);
    }
    fl__query_reset(&q);
    return rv;
}

int fl_store_load(struct fl_store *store, struct fl_coord_resume *ret, struct fl_err *err)
{
    struct fl_coord_resume r = {0};
    struct fl__query q = fl__db_query(&store->db, FL__DB_LAST_ROUND);
    int rv = fl__query_next(&q, err);

    if (rv == FL_OK) {
        r.committed = fl__column_u64(&q);
    }
    fl__query_reset(&q);
    if (rv == FL_OK) {
        rv = load_clients(store, &r, err);
    }
    if (rv == FL_OK) {
        rv = load_counts(store, &r, err);
    }
    if (rv == FL_OK) {
        rv = load_up(store, &r, err);
    }
    if (rv == FL_OK) {
        rv = load_used(store, &r, err);
    }
    if (rv == FL_OK) {
        rv = load_open(store, &r, err);
    }
    if (rv != FL_OK) {
        fl_store_resume_done(&r);
        return rv;
    }
    *ret = r;
    return FL_OK;
}

/* The core only reads these, so they are const there; here they are ours to free. */
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

static uint32_t saturate(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

void fl__store_read_round(struct fl__query *q, struct fl_round_rec *r)
{
    r->round = fl__column_u64(q);
    r->attempt = (uint32_t)fl__column_u64(q);
    r->n_selected = (uint32_t)fl__column_u64(q);
    r->n_responders = (uint32_t)fl__column_u64(q);
    r->accuracy = fl__column_f64(q);
    r->loss = fl__column_f64(q);
    r->train_loss = fl__column_f64(q);
    r->uplink_bytes = fl__column_u64(q);
    r->feedback_bytes = fl__column_u64(q);
    r->uplink_bytes_full = fl__column_u64(q);
    r->downlink_bytes = fl__column_u64(q);
    r->started_ms = fl__column_u64(q);
    r->ended_ms = fl__column_u64(q);
    r->personal_accuracy = fl__column_f64(q);
    r->personal_mean = fl__column_f64(q);
    r->received_accuracy = fl__column_f64(q);
    r->received_mean = fl__column_f64(q);
    r->n_personal = (uint32_t)fl__column_u64(q);
    r->effective = fl__column_f64(q);
    r->self_weight = fl__column_f64(q);
}

int fl_store_has_round(struct fl_store *store, uint64_t round, bool *ret, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_HAS_ROUND);
    int rv;

    fl__query_u64(&q, round);
    rv = fl__query_next(&q, err);
    if (rv == FL_OK) {
        *ret = round == 0 || fl__column_u64(&q) != 0;
    }
    fl__query_reset(&q);
    return rv;
}

int fl_store_round(struct fl_store *store, uint64_t round, struct fl_round_rec *ret,
                   struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_GET_ROUND);
    int rv;

    fl__query_u64(&q, round);
    rv = fl__query_next(&q, err);
    if (rv == FL_OK) {
        fl__store_read_round(&q, ret);
    }
    fl__query_reset(&q);
    return rv;
}

int fl_store_rounds(struct fl_store *store, uint32_t last, fl_store_round_cb cb, void *ctx,
                    struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_GET_ROUNDS);
    struct fl_round_rec r;
    int rv;

    fl__query_u64(&q, last == 0 ? (uint64_t)INT64_MAX : last);
    while ((rv = fl__query_next(&q, err)) == FL_OK) {
        fl__store_read_round(&q, &r);
        rv = cb(ctx, &r);
        if (rv != FL_OK) {
            fl__query_reset(&q);
            return rv;
        }
    }
    fl__query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

/* Columns of a statement's only row, or none: they then stay as they are. */
static int last_values(struct fl_store *store, enum fl__db_statement which, double *const *columns,
                       size_t n, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, which);
    int rv = fl__query_next(&q, err);
    size_t i;

    for (i = 0; rv == FL_OK && i < n; i++) {
        *columns[i] = fl__column_f64(&q);
    }
    fl__query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

static int last_measured(struct fl_store *store, struct fl_round_rec *r, struct fl_err *err)
{
    double n_personal = 0.0;
    const struct {
        enum fl__db_statement which;
        double *columns[3];
        size_t n;
    } last[] = {
        {FL__DB_LAST_EVALUATION, {&r->accuracy, &r->loss}, 2},
        {FL__DB_LAST_PERSONAL, {&r->personal_accuracy, &r->personal_mean, &n_personal}, 3},
        {FL__DB_LAST_RECEIVED, {&r->received_accuracy, &r->received_mean}, 2},
        {FL__DB_LAST_ATTENTION, {&r->effective, &r->self_weight}, 2},
        {FL__DB_LAST_TRAIN_LOSS, {&r->train_loss}, 1},
    };
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < sizeof(last) / sizeof(last[0]); i++) {
        rv = last_values(store, last[i].which, last[i].columns, last[i].n, err);
    }
    r->n_personal = (uint32_t)n_personal;
    return rv;
}

int fl_store_totals(struct fl_store *store, struct fl_round_rec *ret, struct fl_err *err)
{
    struct fl__query q = fl__db_query(&store->db, FL__DB_TOTALS);
    struct fl_round_rec r = {.accuracy = -1.0,
                             .personal_accuracy = -1.0,
                             .personal_mean = -1.0,
                             .received_accuracy = -1.0,
                             .received_mean = -1.0};
    int rv = fl__query_next(&q, err);

    if (rv == FL_OK) {
        r.round = fl__column_u64(&q);
        r.attempt = saturate(fl__column_u64(&q));
        r.n_selected = saturate(fl__column_u64(&q));
        r.n_responders = saturate(fl__column_u64(&q));
        r.uplink_bytes = fl__column_u64(&q);
        r.feedback_bytes = fl__column_u64(&q);
        r.uplink_bytes_full = fl__column_u64(&q);
        r.downlink_bytes = fl__column_u64(&q);
        r.started_ms = fl__column_u64(&q);
        r.ended_ms = fl__column_u64(&q);
    }
    fl__query_reset(&q);
    rv = rv == FL_OK ? last_measured(store, &r, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    *ret = r;
    return FL_OK;
}
