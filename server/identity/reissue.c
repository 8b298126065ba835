/*
 * Renews certificates of clients and admins, and issues those of admins. Runs on the thread of the
 * authority. Joining by an invitation is in joining.c.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/pki/request.h"
#include "libfl/pki/when.h"
#include "libfl/wire/verbs.h"
#include "server/identity/issuing_impl.h"

static int check_who(const struct fl_authority *a, const struct fl_identity *who, int64_t now,
                     struct fl_err *err)
{
    char ended[FL_WHEN_TEXT];
    char ago[FL_WHEN_TEXT];
    char grace[FL_WHEN_TEXT];

    if (who->kind != FL_IDENTITY_CERTIFICATE ||
        (who->role != FL_ROLE_CLIENT && who->role != FL_ROLE_ADMIN))
    {
        return fl_err_set(err, FL_EPERM,
                          "only a client's or an admin's certificate is renewed here");
    }
    if (strcmp(who->federation, a->conf.federation) != 0) {
        return fl_err_set(
            err, FL_EPERM,
            "the certificate of '%s' is not of federation '%s': its issuer has to renew it",
            who->name, a->conf.federation);
    }
    if (now > who->not_after + a->conf.spans.grace) {
        return fl_err_set(
            err, FL_EPERM,
            "the certificate of '%s' expired at %s, %s ago, and can be renewed for %s only: run on "
            "the server: flctl invite %s, and on this host: fl-clientd --join",
            who->name, fl_when_text(ended, sizeof(ended), who->not_after),
            fl_span_text(ago, sizeof(ago), now - who->not_after),
            fl_span_text(grace, sizeof(grace), a->conf.spans.grace), who->name);
    }
    return FL_OK;
}

/*
 * The certificate that an earlier renewal issued for this key and that is still new, since its
 * reply was lost. FL_ENOENT: there is none, or it is not valid yet, issued while our clock was
 * ahead.
 */
static int renewed_before(struct fl_authority *a, const struct fl_identity *who, const uint8_t *key,
                          int64_t now, struct fl_joined *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_GET_SUCCESSOR);
    struct fl__certificate c = {0};
    int verb = 0;
    int rv;

    fl_query_blob(&q, who->serial, who->serial_len);
    fl_query_blob(&q, key, FL_KEY_HASH);
    rv = fl_query_next(&q, err);
    rv = rv == FL_OK ? fl__certificate_read(&q, &c) : rv;
    fl_query_reset(&q);
    if (rv == FL_OK) {
        rv = fl__revoked_by(a, c.serial, c.serial_len, NULL, NULL, &verb, NULL, 0, err);
    }
    if (rv == FL_OK && (verb != 0 || now < c.not_before ||
                        now >= c.not_before + (c.not_after - c.not_before) / 3 * 2))
    {
        rv = FL_ENOENT;
    }
    rv = rv == FL_OK ? fl__issued_before(a, &c, ret, err) : rv;
    fl__certificate_done(&c);
    return rv;
}

/* The audit entry of a certificate. */
struct noted {
    bool peer; /* a peer can cause it at will */
    const char *who, *what, *how;
};

static int issue_noted(struct fl_authority *a, const struct fl__wanted *wanted,
                       const struct noted *noted, int64_t now_ms, struct fl_joined *ret,
                       struct fl_err *err)
{
    char result[FL__BY_MAX];
    struct fl_cert_info info;
    int rv = fl__authority_begin(a, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__issue(a, wanted, now_ms, ret, &info, err);
    if (rv == FL_OK) {
        (void)snprintf(result, sizeof(result), "ok, serial %s%s", info.serial_text, noted->how);
        rv = fl__audit(a, noted->peer, noted->who, noted->what, wanted->name, result, now_ms, err);
    }
    return fl__authority_end(a, rv, err);
}

static int reissue_renew(struct fl_authority *a, const struct fl_identity *who,
                         const struct fl_key *key, const char *address, int64_t now_ms,
                         struct fl_joined *ret, struct fl_err *err)
{
    struct fl__wanted wanted = {.role = who->role,
                                .name = who->name,
                                .key = key,
                                .span_s = a->conf.spans.leaf,
                                .by = "renewal",
                                .parent = who->serial,
                                .parent_len = who->serial_len};
    const struct noted noted = {.peer = true,
                                .who = address,
                                .what = "renew",
                                .how = now_ms / 1000 > who->not_after ? ", within its grace" : ""};

    return issue_noted(a, &wanted, &noted, now_ms, ret, err);
}

int fl_authority_renew(struct fl_authority *authority, const struct fl_identity *who,
                       const uint8_t *request, size_t request_len, const char *address,
                       int64_t now_ms, struct fl_joined *ret, struct fl_err *err)
{
    struct fl_joined joined = {0};
    struct fl_key *key = NULL;
    struct fl_err own = {0};
    uint8_t hash[FL_KEY_HASH];
    int rv = fl__issues(authority, err);

    err = err != NULL ? err : &own;
    rv = rv == FL_OK ? check_who(authority, who, now_ms / 1000, err) : rv;
    rv = rv == FL_OK
             ? fl__check_revoked(authority, who->serial, who->serial_len, who->key, who->name, err)
             : rv;
    rv = rv == FL_OK ? fl_csr_check(request, request_len, &key, err) : rv;
    if (rv == FL_OK) {
        fl_key_hash(key, hash);
        rv = fl__check_revoked(authority, NULL, 0, hash, NULL, err);
        rv = rv == FL_OK ? fl__check_key(authority, hash, who->name, now_ms, err) : rv;
        rv = rv == FL_OK ? renewed_before(authority, who, hash, now_ms / 1000, &joined, err) : rv;
        if (rv == FL_ENOENT) {
            rv = fl__check_burst(authority, who->name, now_ms, err);
            rv = rv == FL_OK ? reissue_renew(authority, who, key, address, now_ms, &joined, err)
                             : rv;
        }
    }
    fl_key_unref(key);
    if (rv != FL_OK) {
        fl_joined_done(&joined);
        if (fl__is_refusal(rv)) {
            fl__audit_refusal(authority, address, "renew", who->name, err->msg, now_ms);
        }
        return rv;
    }
    *ret = joined;
    return FL_OK;
}

/* --- admins --- */

static int issue_admin(struct fl_authority *a, const char *name, const struct fl_key *key,
                       int64_t span_s, const char *by, int64_t now_ms, struct fl_joined *ret,
                       struct fl_err *err)
{
    struct fl__wanted wanted = {.role = FL_ROLE_ADMIN,
                                .name = name,
                                .key = key,
                                .span_s = span_s,
                                .by = by,
                                .joined = true};
    const struct noted noted = {
        .who = by, .what = fl_verbs[FL_VERB_ADMIN_CERTIFICATE].audit, .how = ""};

    return issue_noted(a, &wanted, &noted, now_ms, ret, err);
}

/*
 * In the last third of its certificate's validity an admin gets the next one, for another key,
 * while the present one stays valid: admin certificates are not renewed automatically (flctl warns
 * when it is time). Before, and for a client's name, the rules are those of joining.
 */
static int check_admin_name(struct fl_authority *a, const char *name, const uint8_t *key,
                            int64_t now_ms, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_HOLDER);
    char ends[FL_WHEN_TEXT];
    char from[FL_WHEN_TEXT];
    bool is_admin = false;
    int64_t begins = 0;
    int64_t end = 0;
    int64_t due;
    int rv;

    fl_query_text(&q, name);
    fl_query_u64(&q, (uint64_t)(now_ms / 1000 - a->conf.spans.grace));
    fl_query_blob(&q, key, FL_KEY_HASH);
    rv = fl_query_next(&q, err);
    if (rv == FL_OK) {
        size_t len;

        (void)fl_column_blob(&q, &len);
        end = (int64_t)fl_column_u64(&q);
        (void)fl_column_u64(&q); /* issued_ms, and the time of the last join */
        (void)fl_column_u64(&q);
        is_admin = fl_column_u64(&q) == FL_ROLE_ADMIN;
        begins = (int64_t)fl_column_u64(&q);
    }
    fl_query_reset(&q);
    due = end - (end - begins) / 3;
    if (rv == FL_ENOENT || (rv == FL_OK && is_admin && now_ms / 1000 >= due)) {
        return FL_OK;
    }
    if (rv == FL_OK && is_admin) {
        return fl_err_set(
            err, FL_EEXIST,
            "admin '%s' has a certificate that is valid until %s: the next one is issued from %s "
            "on; if its key is lost or stolen, first run: flctl evict %s",
            name, fl_when_text(ends, sizeof(ends), end), fl_when_text(from, sizeof(from), due),
            name);
    }
    return rv == FL_OK
               ? fl_err_set(err, FL_EEXIST,
                            "the name '%s' is taken by a client: an admin needs another one", name)
               : rv;
}

int fl_authority_issue_admin(struct fl_authority *authority, const char *name,
                             const uint8_t *request, size_t request_len, int64_t valid_ms,
                             const char *by, int64_t now_ms, struct fl_joined *ret,
                             struct fl_err *err)
{
    int64_t span = valid_ms > 0 ? valid_ms / 1000 : authority->conf.spans.leaf;
    struct fl_joined joined = {0};
    struct fl_key *key = NULL;
    uint8_t hash[FL_KEY_HASH];
    int rv = fl__issues(authority, err);

    if (rv == FL_OK && !fl_name_allowed(name)) {
        rv = fl_err_set(err, FL_EINVAL,
                        "invalid name of an admin: expected 1 to %d of [A-Za-z0-9._-], not "
                        "starting with a dot or '-'",
                        FL_IDENTITY_NAME_MAX - 1);
    }
    rv = rv == FL_OK ? fl_csr_check(request, request_len, &key, err) : rv;
    if (rv == FL_OK) {
        fl_key_hash(key, hash);
        rv = fl__check_revoked(authority, NULL, 0, hash, name, err);
        rv = rv == FL_OK ? fl__check_key(authority, hash, name, now_ms, err) : rv;
        rv = rv == FL_OK ? check_admin_name(authority, name, hash, now_ms, err) : rv;
        rv = rv == FL_OK ? fl__check_burst(authority, name, now_ms, err) : rv;
        rv = rv == FL_OK
                 ? issue_admin(authority, name, key, span > 0 ? span : 1, by, now_ms, &joined, err)
                 : rv;
    }
    fl_key_unref(key);
    if (rv != FL_OK) {
        fl_joined_done(&joined);
        return rv;
    }
    *ret = joined;
    return FL_OK;
}
