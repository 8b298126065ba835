#include "server/identity/plain_names.h"

#include "server/identity/authority_impl.h"

int fl_authority_check_plain(struct fl_authority *authority, const char *name, struct fl_err *err)
{
    struct fl_query q;
    uint64_t one;
    int rv = fl__check_revoked(authority, &(struct fl_revoked){.name = name}, err);

    if (rv != FL_OK) {
        return rv;
    }
    /* Both tables drop certificates that can no longer be used: a row is sufficient. */
    q = fl_db_query(&authority->db, FL__SQL_HAS_CERTIFICATE);
    fl_query_text(&q, name);
    rv = fl_query_number(&q, &one, err);
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    return fl_err_set(err, FL_EPERM, FL_PLAIN_NAME_REFUSED, name);
}

int fl_authority_note_shown(struct fl_authority *authority, const char *name, int64_t not_after,
                            struct fl_err *err)
{
    struct fl_query q;
    uint64_t known;
    int rv;

    if (!authority->conf.own_pki) {
        return FL_OK;
    }
    q = fl_db_query(&authority->db, FL__SQL_GET_SHOWN);
    fl_query_text(&q, name);
    rv = fl_query_number(&q, &known, err);
    if (rv != FL_ENOENT && (rv != FL_OK || (int64_t)known >= not_after)) {
        return rv;
    }
    return fl__shown_put(&authority->db, FL__SQL_PUT_SHOWN,
                         &(struct fl__shown){.name = name, .not_after = not_after}, err);
}
