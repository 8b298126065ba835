/*
 * identity.db of an authority: opens it, compares the federation that it is of, and deletes expired
 * rows. Synchronous, on the caller's thread. Its rows are read and written where they are used.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "server/identity/authority_impl.h"

#define DAY_MS       (INT64_C(86400) * 1000)
#define FORGOTTEN_MS (30 * DAY_MS) /* how long an expired invitation is still recognized */

static int identity_db_wrong_federation(const char *path, const char *name, const char *federation,
                                        bool empty, struct fl_err *err)
{
    return fl_err_set(err, FL_ESTATE,
                      "'%s' belongs to federation '%s', but this is '%s': correct `federation`, or "
                      "use another state folder%s",
                      path, name, federation,
                      empty ? "; it has issued no client certificate: to start again under the new "
                              "name remove the folder that contains it, then run fl-serverd --init"
                            : "");
}

int fl_authority_check_name(const char *state_dir, const char *federation, struct fl_err *err)
{
    const struct fl_authority_conf conf = {.state_dir = state_dir};
    char path[FL__PATH_MAX];
    char name[FL_NAME_MAX];
    uint64_t certificates = 0;

    if (fl__files_path(path, &conf, "identity.db", NULL) != FL_OK || !fl_fs_exists(path) ||
        fl_db_first_row(&fl__identity_db, path,
                        "SELECT name, (SELECT COUNT(*) FROM certificate) FROM federation", name,
                        sizeof(name), &certificates, NULL) != FL_OK ||
        strcmp(name, federation) == 0)
    {
        return FL_OK;
    }
    return identity_db_wrong_federation(path, name, federation, certificates == 0, err);
}

/* A new database gets the name of the federation; another one must have it. */
static int identity_db_check_federation(struct fl_db *db, const struct fl_authority_conf *conf,
                                        struct fl_err *err)
{
    struct fl_query q = fl_db_query(db, FL__SQL_GET_FEDERATION);
    struct fl__federation row;
    int rv = fl__federation_one(&q, &row, err);

    if (rv == FL_ENOENT) {
        (void)snprintf(row.name, sizeof(row.name), "%s", conf->federation);
        return fl__federation_put(db, FL__SQL_PUT_FEDERATION, &row, err);
    }
    if (rv != FL_OK || strcmp(row.name, conf->federation) == 0) {
        return rv;
    }
    return identity_db_wrong_federation(db->path, row.name, conf->federation, /* empty= */ false,
                                        err);
}

int fl__identity_db_open(const struct fl_authority_conf *conf, struct fl_db *db, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__files_path(path, conf, "identity.db", err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_open(db, &fl__identity_db, path, FL_DB_SYNC_FULL, err);
    if (rv == FL_EFORMAT && err != NULL) {
        struct fl_err inner = *err;

        return fl_err_set(
            err, rv,
            "%.300s: restore it from a backup (flctl restore); without it all revocations are lost",
            fl_err_text(&inner, rv));
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = identity_db_check_federation(db, conf, err);
    if (rv != FL_OK) {
        fl_db_close(db);
    }
    return rv;
}

/* Delete rows that had expired at `then_ms`. */
static int identity_db_delete_expired(struct fl_authority *a, int64_t then_ms, int64_t now_ms,
                                      struct fl_err *err)
{
    int64_t ended = then_ms / 1000 - a->conf.spans.grace - DAY_MS / 1000;
    const struct {
        enum fl__identity_statement statement;
        int64_t value;
    } steps[] = {{FL__SQL_DROP_INVITATIONS, then_ms - FORGOTTEN_MS},
                 {FL__SQL_DROP_USES, -1},
                 {FL__SQL_DROP_CERTIFICATES, ended},
                 {FL__SQL_DROP_SHOWN, ended},
                 {FL__SQL_DROP_REVOCATIONS, then_ms / 1000 - DAY_MS / 1000},
                 {FL__SQL_SET_CLEANED, now_ms}};
    size_t i;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct fl_query q = fl_db_query(&a->db, steps[i].statement);
        int rv;

        if (steps[i].statement != FL__SQL_DROP_USES) {
            fl_query_u64(&q, (uint64_t)(steps[i].value > 0 ? steps[i].value : 0));
        }
        rv = fl_query_run(&q, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl__identity_db_clean(struct fl_authority *a, int64_t now_ms, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_GET_CLEANED);
    uint64_t cleaned = 0;
    int64_t last_ms;
    int rv = fl_query_number(&q, &cleaned, err);

    if (rv != FL_OK && rv != FL_ENOENT) {
        return rv;
    }
    last_ms = (int64_t)cleaned;
    if (now_ms >= last_ms && now_ms - last_ms < DAY_MS) {
        return FL_OK;
    }
    rv = fl__authority_begin(a, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = identity_db_delete_expired(a, now_ms > last_ms ? last_ms : 0, now_ms, err);
    a->revocations_stale = true;
    return fl__authority_end(a, rv, err);
}
