#include "server/identity/plain_names.h"

#include "server/identity/authority_impl.h"

/* Both tables drop certificates that can no longer be used: a row is sufficient. */
static int has_certificate(struct fl_authority *a, const char *name, bool *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_HAS_CERTIFICATE);
    int rv;

    fl_query_text(&q, name);
    rv = fl_query_next(&q, err);
    *ret = rv == FL_OK;
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl_authority_check_plain(struct fl_authority *authority, const char *name, struct fl_err *err)
{
    bool certified = false;
    int rv = fl__check_revoked(authority, NULL, 0, NULL, name, err);

    rv = rv == FL_OK ? has_certificate(authority, name, &certified, err) : rv;
    if (rv != FL_OK || !certified) {
        return rv;
    }
    return fl_err_set(err, FL_EPERM, FL_PLAIN_NAME_REFUSED, name);
}

int fl_authority_note_shown(struct fl_authority *authority, const char *name, int64_t not_after,
                            struct fl_err *err)
{
    struct fl_query q;
    bool known;
    int rv;

    if (!authority->conf.own_pki) {
        return FL_OK;
    }
    q = fl_db_query(&authority->db, FL__SQL_GET_SHOWN);
    fl_query_text(&q, name);
    rv = fl_query_next(&q, err);
    known = rv == FL_OK && (int64_t)fl_column_u64(&q) >= not_after;
    fl_query_reset(&q);
    if (known || (rv != FL_OK && rv != FL_ENOENT)) {
        return known ? FL_OK : rv;
    }
    q = fl_db_query(&authority->db, FL__SQL_PUT_SHOWN);
    fl_query_text(&q, name);
    fl_query_u64(&q, (uint64_t)not_after);
    return fl_query_run(&q, err);
}
