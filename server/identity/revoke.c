/*
 * The operations revoke, evict, disable and enable, each one transaction with its audit entry. Runs
 * on the thread of the authority. Sessions are ended by the daemon.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/model/digest.h"
#include "libfl/wire/verbs.h"
#include "server/identity/authority_impl.h"

struct verb {
    enum fl_revocation_verb verb;
    const char *what;
    const char *reason, *by;
    int64_t now_ms;
};

static enum fl__revocation_kind kind_of(const struct fl_revoked *whom)
{
    return whom->name != NULL     ? FL__REVOKE_NAME
           : whom->serial_len > 0 ? FL__REVOKE_SERIAL
                                  : FL__REVOKE_KEY;
}

static const void *revoke_value_of(const struct fl_revoked *whom, size_t *ret_len)
{
    *ret_len = whom->name != NULL     ? strlen(whom->name)
               : whom->serial_len > 0 ? whom->serial_len
                                      : FL_KEY_HASH;
    return whom->name != NULL     ? (const void *)whom->name
           : whom->serial_len > 0 ? whom->serial
                                  : whom->key;
}

/* "edge-001", "serial 5f0a…", "key 5f0a…". */
static void object_of(const struct fl_revoked *whom, char *out, size_t size)
{
    char hex[2 * FL_IDENTITY_NAME_MAX + 1];
    size_t len;
    const void *value = revoke_value_of(whom, &len);

    if (whom->name != NULL) {
        (void)snprintf(out, size, "%s", whom->name);
    } else {
        (void)snprintf(out, size, "%s %s", whom->serial_len > 0 ? "serial" : "key",
                       fl_hex(hex, value, len));
    }
}

/* The row of `whom`; of its certificates and keys the statements choose kind and value. */
static struct fl__revocation revoke_row(const struct fl_revoked *whom, const struct verb *v)
{
    struct fl__revocation row = {
        .kind = kind_of(whom), .verb = v->verb, .why = v->reason, .by = v->by, .at_ms = v->now_ms};

    row.value = revoke_value_of(whom, &row.value_len);
    return row;
}

/* Revokes all certificates of a name, and with FL_REVOCATION_REVOKED their keys. */
static int revoke_certificates(struct fl_authority *a, const char *name,
                               const struct fl__revocation *row, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_REVOKE_NAME);
    int rv;

    fl__revocation_bind(&q, row);
    fl_query_u64(&q, (uint64_t)a->conf.spans.grace);
    fl_query_text(&q, name);
    fl_query_blob(&q, "", 0); /* but for this key: none */
    rv = fl_query_run(&q, err);
    if (rv != FL_OK || row->verb != FL_REVOCATION_REVOKED) {
        return rv;
    }
    q = fl_db_query(&a->db, FL__SQL_REVOKE_KEYS);
    fl__revocation_bind(&q, row);
    fl_query_text(&q, name);
    return fl_query_run(&q, err);
}

/* Count the target's certificates that could be used or renewed; of a serial whether it exists. */
static int revoke_count(struct fl_authority *a, const struct fl_revoked *whom, int64_t now_ms,
                        size_t *ret_n, struct fl_err *err)
{
    static const int statements[] = {[FL__REVOKE_SERIAL] = FL__SQL_COUNT_SERIAL,
                                     [FL__REVOKE_KEY] = FL__SQL_COUNT_KEY,
                                     [FL__REVOKE_NAME] = FL__SQL_COUNT_NAME};
    enum fl__revocation_kind kind = kind_of(whom);
    struct fl_query q = fl_db_query(&a->db, (size_t)statements[kind]);
    size_t len;
    const void *value = revoke_value_of(whom, &len);
    uint64_t n = 0;
    int rv;

    if (kind == FL__REVOKE_NAME) {
        fl_query_text(&q, whom->name);
    } else {
        fl_query_blob(&q, value, len);
    }
    if (kind != FL__REVOKE_SERIAL) {
        fl_query_u64(&q, (uint64_t)(now_ms / 1000 - a->conf.spans.grace));
    }
    rv = fl_query_number(&q, &n, err);
    *ret_n = (size_t)n;
    return rv;
}

static int revoke_apply(struct fl_authority *a, const struct fl_revoked *whom, const struct verb *v,
                        size_t *ret_n, struct fl_err *err)
{
    char object[3 * FL_IDENTITY_NAME_MAX];
    char result[2 * FL__AUDIT_TEXT];
    const struct fl__revocation row = revoke_row(whom, v);
    const struct fl_audit_line line = {
        .at_ms = v->now_ms, .who = v->by, .what = v->what, .object = object, .result = result};
    struct fl__revoked_state before;
    int rv = revoke_count(a, whom, v->now_ms, ret_n, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__revoked_by(a, whom, &before, err);
    if (rv != FL_OK) {
        return rv;
    }
    object_of(whom, object, sizeof(object));
    if (before.verb != 0 && before.verb < (int)v->verb) {
        return fl_err_set(err, FL_EEXIST, "'%s' was %s already", object, before.why);
    }
    if (v->verb == FL_REVOCATION_EVICTED && *ret_n == 0) {
        return fl_err_set(
            err, FL_ENOENT,
            "'%s' has no certificate issued here: flctl certificates lists those there are; to "
            "refuse a client with a certificate of an own PKI: flctl disable %s",
            object, object);
    }
    if (v->verb != FL_REVOCATION_EVICTED) {
        rv = fl__revocation_put(&a->db, FL__SQL_PUT_REVOCATION, &row, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (v->verb != FL_REVOCATION_DISABLED && whom->name != NULL) {
        rv = revoke_certificates(a, whom->name, &row, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    (void)snprintf(result, sizeof(result), "ok, %zu certificate%s%s%s", *ret_n,
                   *ret_n == 1 ? "" : "s", v->reason[0] != '\0' ? ": " : "", v->reason);
    return fl__audit(a, &line, err);
}

/* Ends the disabling of exactly this name, serial or key. */
static int revoke_enable(struct fl_authority *a, const struct fl_revoked *whom,
                         const struct verb *v, size_t *ret_n, struct fl_err *err)
{
    char object[3 * FL_IDENTITY_NAME_MAX];
    char result[64];
    const struct fl__revocation row = revoke_row(whom, v);
    const struct fl_audit_line line = {
        .at_ms = v->now_ms, .who = v->by, .what = v->what, .object = object, .result = result};
    struct fl__revoked_state before;
    struct fl_query q;
    int rv = fl__revoked_by(a, whom, &before, err);

    if (rv != FL_OK) {
        return rv;
    }
    object_of(whom, object, sizeof(object));
    if (before.verb != FL_REVOCATION_DISABLED) {
        return fl_err_set(err, FL_ENOENT, "'%s' is not disabled%s%s", object,
                          before.verb != 0 ? ": it was " : "", before.why);
    }
    rv = revoke_count(a, whom, v->now_ms, ret_n, err);
    if (rv != FL_OK) {
        return rv;
    }
    q = fl_db_query(&a->db, FL__SQL_DROP_REVOCATION);
    fl__revocation_bind(&q, &row);
    rv = fl_query_run(&q, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(result, sizeof(result), "ok, %zu certificate%s", *ret_n, *ret_n == 1 ? "" : "s");
    return fl__audit(a, &line, err);
}

typedef int revoke_step(struct fl_authority *a, const struct fl_revoked *whom, const struct verb *v,
                        size_t *ret_n, struct fl_err *err);

/* One step in a transaction. */
static int revoke_with_verb(struct fl_authority *a, const struct fl_revoked *whom,
                            const struct verb *v, revoke_step *step, size_t *ret_n,
                            struct fl_err *err)
{
    size_t n = 0;
    int rv;

    FL_REQUIRE((whom->name != NULL) + (whom->serial_len > 0) + (whom->key != NULL) == 1);
    if (whom->name != NULL && !fl_name_valid(whom->name)) {
        return fl_err_set(err, FL_EINVAL, "a name is 1 to %d of [A-Za-z0-9._-]",
                          FL_IDENTITY_NAME_MAX - 1);
    }
    if (whom->serial_len > FL_SERIAL_MAX) {
        return fl_err_set(err, FL_EINVAL, "a serial number has at most %d bytes", FL_SERIAL_MAX);
    }
    if (strlen(v->reason) >= FL__AUDIT_TEXT) {
        return fl_err_set(err, FL_EINVAL, "a reason has at most %d bytes", FL__AUDIT_TEXT - 1);
    }
    rv = fl__authority_begin(a, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__authority_end(a, step(a, whom, v, &n, err), err);
    a->revocations_stale = true;
    if (rv != FL_OK) {
        return rv;
    }
    if (ret_n != NULL) {
        *ret_n = n;
    }
    return FL_OK;
}

int fl_authority_revoke(struct fl_authority *authority, const struct fl_revoked *whom,
                        const char *reason, const char *by, int64_t now_ms, size_t *ret_n,
                        struct fl_err *err)
{
    struct verb v = {FL_REVOCATION_REVOKED, fl_verbs[FL_VERB_REVOKE].audit, reason, by, now_ms};

    return revoke_with_verb(authority, whom, &v, revoke_apply, ret_n, err);
}

int fl_authority_evict(struct fl_authority *authority, const struct fl_revoked *whom,
                       const char *reason, const char *by, int64_t now_ms, size_t *ret_n,
                       struct fl_err *err)
{
    struct verb v = {FL_REVOCATION_EVICTED, fl_verbs[FL_VERB_EVICT].audit, reason, by, now_ms};

    if (whom->name == NULL) {
        return fl_err_set(err, FL_EINVAL,
                          "only a name can be evicted, with all its certificates; revoke a single "
                          "serial number or key: flctl revoke");
    }
    return revoke_with_verb(authority, whom, &v, revoke_apply, ret_n, err);
}

int fl_authority_disable(struct fl_authority *authority, const struct fl_revoked *whom,
                         const char *reason, const char *by, int64_t now_ms, size_t *ret_n,
                         struct fl_err *err)
{
    struct verb v = {FL_REVOCATION_DISABLED, fl_verbs[FL_VERB_DISABLE].audit, reason, by, now_ms};

    return revoke_with_verb(authority, whom, &v, revoke_apply, ret_n, err);
}

int fl_authority_enable(struct fl_authority *authority, const struct fl_revoked *whom,
                        const char *by, int64_t now_ms, size_t *ret_n, struct fl_err *err)
{
    struct verb v = {FL_REVOCATION_DISABLED, fl_verbs[FL_VERB_ENABLE].audit, "", by, now_ms};

    return revoke_with_verb(authority, whom, &v, revoke_enable, ret_n, err);
}
