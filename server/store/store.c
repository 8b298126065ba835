/* Opening the state folder and writing records, on the thread that owns the store. Each public
 * function is one transaction. Reading back is in store_load.c, files other than the database are
 * not handled here. */

#include "server/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/digest.h"
#include "server/store/generation_impl.h"
#include "server/store/store_impl.h"

static void describe_model(const struct fl_layout *layout, char *out, size_t size)
{
    const uint8_t *d = fl_layout_shape_digest(layout);

    (void)snprintf(out, size, "%zu units, %zu values, digest %02x%02x%02x%02x%02x%02x",
                   fl_layout_units(layout), fl_layout_count(layout), d[0], d[1], d[2], d[3], d[4],
                   d[5]);
}

static const enum fl_db_sync sync_of[] = {[FL_DURABLE_PROCESS] = FL_DB_SYNC_NORMAL,
                                          [FL_DURABLE_POWER] = FL_DB_SYNC_FULL,
                                          [FL_DURABLE_SCRATCH] = FL_DB_SYNC_NEVER};

static int claim_folder(struct fl_store *store, const char *federation,
                        const struct fl_layout *layout, const char *model,
                        const uint8_t id[FL__STORE_ID_SIZE], struct fl_err *err)
{
    const struct fl__generation_row line = {.line = 1, .state_generation = 1};
    const struct fl__generation_row *rec = &line;
    struct fl_query query = fl_db_query(&store->db, FL__DB_PUT_FEDERATION);
    struct fl_query *q = &query;
    uint8_t identity[FL__IDENTITY];
    int rv = fl_random_bytes(identity, sizeof(identity));

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "no random bytes for the state folder");
    }
    /* The federation row must be as durable as the records that depend on it. */
    rv = fl_db_begin_durable(&store->db, err);
    if (rv != FL_OK) {
        return rv;
    }
    FL__LINE_ROW(FL__ROW_BIND)
    fl_query_text(q, federation);
    fl_query_blob(q, fl_layout_shape_digest(layout), FL_DIGEST_SIZE);
    fl_query_text(q, model);
    fl_query_blob(q, id, FL__STORE_ID_SIZE);
    fl_query_blob(q, identity, sizeof(identity));
    fl_query_blob(q, identity, sizeof(identity));
    return fl_db_end(&store->db, fl_query_run(q, err), err);
}

static int other_federation(const char *dir, const char *name, const char *federation, bool empty,
                            struct fl_err *err)
{
    return fl_err_set(
        err, FL_ESTATE,
        "state folder '%s' belongs to federation '%s', not '%s': use another folder, or the name "
        "it had%s",
        dir, name, federation,
        empty ? "; no round is committed in it: to begin again under the new name remove "
                "federation.db*, models and spool there"
              : "");
}

int fl_store_check_name(const char *dir, const char *federation, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char name[FL_NAME_MAX];
    uint64_t rounds = 0;

    if (fl_fs_join(path, sizeof(path), dir, "federation.db") != FL_OK || !fl_fs_exists(path) ||
        fl_db_first_row(&fl__store_db, path,
                        "SELECT name, (SELECT COUNT(*) FROM round) FROM federation", name,
                        sizeof(name), &rounds, NULL) != FL_OK ||
        strcmp(name, federation) == 0)
    {
        return FL_OK;
    }
    return other_federation(dir, name, federation, rounds == 0, err);
}

bool fl_store_knows_client(const char *dir, const char *name)
{
    char path[FL__STORE_PATH_MAX];
    char sql[64 + FL_NAME_MAX];
    char found[FL_NAME_MAX];
    uint64_t id;

    FL_REQUIRE(fl_name_allowed(name)); /* so it has no quote */
    (void)snprintf(sql, sizeof(sql), "SELECT name, id FROM client WHERE name = '%s'", name);
    return fl_fs_join(path, sizeof(path), dir, "federation.db") == FL_OK && fl_fs_exists(path) &&
           fl_db_first_row(&fl__store_db, path, sql, found, sizeof(found), &id, NULL) == FL_OK;
}

static int other_model(const char *dir, const char *had, const char *makes, struct fl_err *err)
{
    return fl_err_set(
        err, FL_ESTATE,
        "state folder '%s' belongs to another model (%s), the configuration makes %s: "
        "use another folder, or the model it had",
        dir, had, makes);
}

int fl_store_check_model(const char *dir, const struct fl_layout *layout, struct fl_err *err)
{
    char digest[2 * FL_DIGEST_SIZE + 1];
    char sql[64 + sizeof(digest)];
    char path[FL__STORE_PATH_MAX];
    char had[128];
    char makes[128];
    uint64_t same = 0;

    (void)snprintf(sql, sizeof(sql), "SELECT model, layout = x'%s' FROM federation",
                   fl_hex(digest, fl_layout_shape_digest(layout), FL_DIGEST_SIZE));
    if (fl_fs_join(path, sizeof(path), dir, "federation.db") != FL_OK || !fl_fs_exists(path) ||
        fl_db_first_row(&fl__store_db, path, sql, had, sizeof(had), &same, NULL) != FL_OK ||
        same != 0)
    {
        return FL_OK;
    }
    describe_model(layout, makes, sizeof(makes));
    return other_model(dir, had, makes, err);
}

static int check_row(struct fl_query *q, const char *dir, const char *federation,
                     const struct fl_layout *layout, const char *model,
                     uint8_t ret_id[FL__STORE_ID_SIZE], struct fl_err *err)
{
    const char *name = fl_column_text(q);
    size_t len = 0;
    const void *digest = fl_column_blob(q, &len);
    const void *id;

    if (strcmp(name, federation) != 0) {
        return other_federation(dir, name, federation, /* empty= */ false, err);
    }
    if (len != FL_DIGEST_SIZE || memcmp(digest, fl_layout_shape_digest(layout), len) != 0) {
        return other_model(dir, fl_column_text(q), model, err);
    }
    (void)fl_column_text(q);
    id = fl_column_blob(q, &len);
    if (len != FL__STORE_ID_SIZE) {
        return fl_err_set(err, FL_EFORMAT, "state database '%s' is damaged: no id", q->db->path);
    }
    (void)memcpy(ret_id, id, len);
    return FL_OK;
}

/* The folder must belong to this federation and model; an empty folder is claimed for them. */
static int check_owner(struct fl_store *store, const char *dir, const char *federation,
                       const struct fl_layout *layout, const uint8_t *rebuild, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_FEDERATION);
    uint8_t id[FL__STORE_ID_SIZE];
    char model[128];
    int rv = fl_query_next(&q, err);

    describe_model(layout, model, sizeof(model));
    rv = rv == FL_OK ? check_row(&q, dir, federation, layout, model, id, err) : rv;
    fl_query_reset(&q);
    if (rv == FL_ENOENT) {
        if (rebuild != NULL) {
            (void)memcpy(id, rebuild, sizeof(id));
            rv = FL_OK;
        } else {
            rv = fl__store_check_new(dir, "holds no federation", err);
            rv = rv == FL_OK ? fl_random_bytes(id, sizeof(id)) : rv;
        }
        rv = rv == FL_OK ? claim_folder(store, federation, layout, model, id, err) : rv;
    }
    if (rv == FL_OK) {
        (void)fl_hex(store->id, id, sizeof(id));
    }
    return rv;
}

const char *fl_store_id(const struct fl_store *store)
{
    return store->id;
}

static int make_folders(const char *dir, struct fl_err *err)
{
    static const char *const names[] = {"models", "spool", "personal_models", "summaries"};
    char path[FL__STORE_PATH_MAX];
    size_t i;
    int rv = fl_fs_mkdirs(dir, err);

    /* SQLite's own message would name a file that does not exist. */
    if (rv == FL_OK && faccessat(AT_FDCWD, dir, R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        rv = fl_fs_denied(err, errno, "use state folder", dir);
    }
    for (i = 0; rv == FL_OK && i < sizeof(names) / sizeof(names[0]); i++) {
        if (fl_fs_join(path, sizeof(path), dir, names[i]) != FL_OK) {
            return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
        }
        rv = fl_fs_mkdirs(path, err);
    }
    /* Make the new folders durable, so that files synced in them survive a power failure. */
    return rv == FL_OK ? fl_fs_sync_dir(dir, err) : rv;
}

int fl__store_open_path(const char *dir, const char *path, const char *federation,
                        const struct fl_layout *layout, enum fl_durability durability,
                        const uint8_t *rebuild, struct fl_store **ret, struct fl_err *err)
{
    struct fl_store *store = calloc(1, sizeof(*store));
    int rv;

    if (store == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    store->n_units = fl_layout_units(layout);
    (void)memcpy(store->layout, fl_layout_digest(layout), sizeof(store->layout));
    if (fl_str_copy(store->dir, sizeof(store->dir), dir) != FL_OK) {
        free(store);
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    rv = fl_db_open(&store->db, &fl__store_db, path, sync_of[durability], err);
    if (rv == FL_OK) {
        rv = check_owner(store, dir, federation, layout, rebuild, err);
    }
    if (rv != FL_OK) {
        fl_store_close(store);
        return rv;
    }
    *ret = store;
    return FL_OK;
}

int fl_store_check(const char *dir, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct stat st;

    if (fl_fs_join(path, sizeof(path), dir, "federation.db") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    if (stat(path, &st) != 0) {
        return errno == ENOENT ? fl__store_check_new(dir, "is missing", err) : FL_OK;
    }
    return st.st_size == 0 ? fl__store_check_new(dir, "is empty", err) : FL_OK;
}

int fl_store_open(const char *dir, const char *federation, const struct fl_layout *layout,
                  enum fl_durability durability, struct fl_store **ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv = make_folders(dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_fs_join(path, sizeof(path), dir, "federation.db") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    rv = fl_store_check(dir, err);
    rv = rv == FL_OK ? fl__store_open_path(dir, path, federation, layout, durability,
                                           /* rebuild= */ NULL, ret, err)
                     : rv;
    if (rv == FL_EFORMAT && err != NULL) {
        struct fl_err inner = *err;

        (void)fl_err_set(err, rv,
                         "%.300s; 'fl-serverd --recover CONFIG' sets it aside and begins again at "
                         "the newest good checkpoint",
                         fl_err_text(&inner, rv));
    }
    return rv;
}

void fl_store_close(struct fl_store *store)
{
    if (store == NULL) {
        return;
    }
    fl_db_close(&store->db);
    free(store);
}

/* --- writing; all of these functions run inside a transaction --- */

int fl__store_number(struct fl_store *store, enum fl__db_statement which, uint64_t *ret,
                     struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, which);
    int rv = fl_query_next(&q, err);

    if (rv == FL_OK) {
        *ret = fl_column_u64(&q);
    }
    fl_query_reset(&q);
    return rv;
}

int fl__store_last_round(struct fl_store *store, uint64_t *ret, struct fl_err *err)
{
    return fl__store_number(store, FL__DB_LAST_ROUND, ret, err);
}

int fl__store_is_new(struct fl_store *store, bool *ret, struct fl_err *err)
{
    uint64_t n = 0;
    int rv = fl__store_number(store, FL__DB_COUNT_RECORDS, &n, err);

    *ret = n == 0;
    return rv;
}

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
    if (rv == FL_OK && fl_db_changes(&store->db) == 0) {
        rv = write_client(store, FL__DB_PUT_CLIENT, c, err);
    }
    return rv;
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
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < n; i++) {
        struct fl_query q = part_query(store, FL__DB_PUT_PART, &parts[i]);

        fl_query_u64(&q, i);
        rv = fl_query_run(&q, err);
    }
    return rv;
}

static int put_parts(struct fl_store *store, const struct fl_participant_rec *parts, size_t n,
                     struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < n; i++) {
        struct fl_query q = part_query(store, FL__DB_SET_PART, &parts[i]);

        rv = fl_query_run(&q, err);
        if (rv == FL_OK && fl_db_changes(&store->db) == 0) {
            q = part_query(store, FL__DB_PUT_PART, &parts[i]);
            rv = fl_query_run(&q, err);
        }
    }
    return rv;
}

static int put_clients(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                       struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < n; i++) {
        rv = put_client(store, &clients[i], err);
    }
    return rv;
}

static int store_run(struct fl_store *store, enum fl__db_statement which, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, which);

    return fl_query_run(&q, err);
}

/* A committed round can never be opened or committed again. */
static int check_after_last(struct fl_store *store, uint64_t round, struct fl_err *err)
{
    uint64_t last = 0;
    int rv = fl__store_number(store, FL__DB_LAST_ROUND, &last, err);

    if (rv == FL_OK && round <= last) {
        rv = fl_err_set(err, FL_ESTATE, "round %" PRIu64 " is committed, the last is %" PRIu64,
                        round, last);
    }
    return rv;
}

static int check_open(struct fl_store *store, uint64_t round, uint32_t attempt, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&store->db, FL__DB_GET_OPEN);
    int rv = fl_query_next(&q, err);

    if (rv == FL_OK) {
        uint64_t open_round = fl_column_u64(&q);
        uint64_t open_attempt = fl_column_u64(&q);

        if (open_round != round || open_attempt != attempt) {
            rv = fl_err_set(err, FL_ESTATE,
                            "round %" PRIu64 " attempt %" PRIu32 " is not open, %" PRIu64
                            " attempt %" PRIu64 " is",
                            round, attempt, open_round, open_attempt);
        }
    } else if (rv == FL_ENOENT) {
        rv = fl_err_set(err, FL_ESTATE, "no round is open, round %" PRIu64 " was meant", round);
    }
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
    struct fl_query q;
    int rv = FL_OK;

    if (epoch == 0 || epoch == store->epoch) {
        return FL_OK;
    }
    rv = fl_db_begin_durable(&store->db, err);
    if (rv != FL_OK) {
        return rv;
    }
    q = fl_db_query(&store->db, FL__DB_SET_EPOCH);
    fl_query_u64(&q, epoch);
    rv = fl_db_end(&store->db, fl_query_run(&q, err), err);
    store->epoch = rv == FL_OK ? epoch : store->epoch;
    return rv;
}

int fl_store_forget(struct fl_store *store, const struct fl_client_rec *clients, size_t n,
                    struct fl_err *err)
{
    struct fl_query q;
    /* The operator gets a confirmation, so the change must survive a power failure. */
    int rv = fl_db_begin_durable(&store->db, err);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; rv == FL_OK && i < n; i++) {
        q = fl_db_query(&store->db, clients[i].forgotten ? FL__DB_MARK_CLIENT : FL__DB_DROP_CLIENT);
        fl_query_u64(&q, clients[i].id);
        rv = fl_query_run(&q, err);
    }
    return fl_db_end(&store->db, rv, err);
}

static int write_pause(struct fl_store *store, const char *reason, struct fl_err *err)
{
    struct fl_query q;

    if (reason == NULL) {
        return store_run(store, FL__DB_DROP_PAUSE, err);
    }
    q = fl_db_query(&store->db, FL__DB_PUT_PAUSE);
    fl_query_text(&q, reason);
    return fl_query_run(&q, err);
}

int fl_store_put_pause(struct fl_store *store, const char *reason, struct fl_err *err)
{
    int rv = fl_db_begin_durable(&store->db, err);

    return rv == FL_OK ? fl_db_end(&store->db, write_pause(store, reason, err), err) : rv;
}

static int write_selection(struct fl_store *store, const struct fl_selection *sel,
                           struct fl_err *err)
{
    const struct fl_round_size *rec = &sel->size;
    struct fl_query query;
    struct fl_query *q = &query;
    int rv = check_after_last(store, sel->round, err);

    if (rv != FL_OK) {
        return rv;
    }
    query = fl_db_query(&store->db, FL__DB_PUT_OPEN);
    fl_query_u64(q, sel->round);
    fl_query_u64(q, sel->attempt);
    FL__SIZE_ROW(FL__ROW_BIND)
    rv = fl_query_run(q, err);
    if (rv == FL_OK) {
        query = fl_db_query(&store->db, FL__DB_SET_EXPECTED);
        fl_query_u64(q, sel->expected);
        rv = fl_query_run(q, err);
    }
    if (rv == FL_OK) {
        rv = put_clients(store, sel->clients, sel->n_clients, err);
    }
    if (rv == FL_OK) {
        rv = store_run(store, FL__DB_DROP_PARTS, err);
    }
    return rv == FL_OK ? put_first_parts(store, sel->parts, sel->n_parts, err) : rv;
}

int fl_store_put_selection(struct fl_store *store, const struct fl_selection *selection,
                           struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_db_end(&store->db, write_selection(store, selection, err), err);
}

int fl_store_put_plan(struct fl_store *store, uint64_t round, uint32_t attempt,
                      const struct fl_participant_rec *parts, size_t n, struct fl_err *err)
{
    int rv = fl_db_begin(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_open(store, round, attempt, err);
    if (rv == FL_OK) {
        rv = put_parts(store, parts, n, err);
    }
    if (rv == FL_OK) {
        rv = store_run(store, FL__DB_SET_PLANNED, err);
    }
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
    if (rv == FL_OK) {
        rv = put_parts(store, part, 1, err);
    }
    return fl_db_end(&store->db, rv, err);
}

static int put_round(struct fl_store *store, const struct fl_round_rec *rec, struct fl_err *err)
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
    if (rv == FL_OK) {
        rv = put_round(store, round, err);
    }
    if (rv == FL_OK) {
        rv = put_clients(store, clients, n_clients, err);
    }
    if (rv == FL_OK) {
        rv = store_run(store, FL__DB_DROP_PARTS, err);
    }
    if (rv == FL_OK) {
        rv = store_run(store, FL__DB_DROP_OPEN, err);
    }
    return fl_db_end(&store->db, rv, err);
}

int fl__store_restore(struct fl_store *store, uint64_t round, struct fl_err *err)
{
    struct fl_round_rec rec;
    /* The component settings behind the clients' states are unknown here, so the clients restart
     * their states. */
    const struct fl_rewind why = {
        .reason = "recovered", .keep_anew = true, .wall_ms = fl_clock_wall_ms()};
    bool known = false;
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    fl_figures_init(&fl_round_rows, &rec);
    rec.round = round;
    rec.attempt = 1;
    rec.started_ms = rec.ended_ms = why.wall_ms;
    rv = fl__store_rewind(store, round, &why, err);
    rv = rv == FL_OK ? fl_store_has_round(store, round, &known, err) : rv;
    rv = rv == FL_OK && !known ? put_round(store, &rec, err) : rv;
    return fl_db_end(&store->db, rv, err);
}
