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
    struct fl__certificate c;
    struct fl__revoked_state revoked;
    int rv;

    fl_query_blob(&q, who->serial, who->serial_len);
    fl_query_blob(&q, key, FL_KEY_HASH);
    rv = fl__certificate_one(&q, &c, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__revoked_by(a, &(struct fl_revoked){.serial = c.serial, .serial_len = c.serial_len},
                        &revoked, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (revoked.verb != 0 || now < c.not_before ||
        now >= c.not_before + (c.not_after - c.not_before) / 3 * 2)
    {
        rv = FL_ENOENT;
        goto done;
    }
    rv = fl__issued_before(a, &c, ret, err);
done:
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
    if (rv != FL_OK) {
        goto done;
    }
    (void)snprintf(result, sizeof(result), "ok, serial %s%s", info.serial_text, noted->how);
    rv = fl__audit(a,
                   &(struct fl_audit_line){.at_ms = now_ms,
                                           .who = noted->who,
                                           .what = noted->what,
                                           .object = wanted->name,
                                           .result = result,
                                           .peer = noted->peer},
                   err);
done:
    return fl__authority_end(a, rv, err);
}

/* `ret` may own something on error too. */
static int renew_request(struct fl_authority *a, const struct fl_identity *who,
                         const struct fl_der *request, const char *address, int64_t now_ms,
                         struct fl_joined *ret, struct fl_err *err)
{
    const struct fl_revoked whom = {
        .name = who->name, .serial = who->serial, .serial_len = who->serial_len, .key = who->key};
    struct fl__wanted wanted = {.role = who->role,
                                .name = who->name,
                                .span_s = a->conf.spans.leaf,
                                .by = "renewal",
                                .parent = who->serial,
                                .parent_len = who->serial_len};
    const struct noted noted = {.peer = true,
                                .who = address,
                                .what = "renew",
                                .how = now_ms / 1000 > who->not_after ? ", within its grace" : ""};
    uint8_t hash[FL_KEY_HASH];
    struct fl_key *key = NULL;
    int rv = fl__issues(a, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_who(a, who, now_ms / 1000, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__check_revoked(a, &whom, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_csr_check(request->data, request->len, &key, err);
    if (rv != FL_OK) {
        return rv;
    }
    wanted.key = key;
    fl_key_hash(key, hash);
    rv = fl__check_revoked(a, &(struct fl_revoked){.key = hash}, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__check_key(a, hash, who->name, now_ms, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = renewed_before(a, who, hash, now_ms / 1000, ret, err);
    if (rv != FL_ENOENT) {
        goto done;
    }
    rv = fl__check_burst(a, who->name, now_ms, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = issue_noted(a, &wanted, &noted, now_ms, ret, err);
done:
    fl_key_unref(key);
    return rv;
}

int fl_authority_renew(struct fl_authority *authority, const struct fl_identity *who,
                       const struct fl_der *request, const char *address, int64_t now_ms,
                       struct fl_joined *ret, struct fl_err *err)
{
    struct fl_joined joined = {0};
    struct fl_err own = {0};
    int rv;

    err = err != NULL ? err : &own;
    rv = renew_request(authority, who, request, address, now_ms, &joined, err);
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

/*
 * In the last third of its certificate's validity an admin gets the next one, for another key,
 * while the present one stays valid: admin certificates are not renewed automatically (flctl warns
 * when it is time). Before, and for a client's name, the rules are those of joining.
 */
static int check_admin_name(struct fl_authority *a, const char *name, const uint8_t *key,
                            int64_t now_ms, struct fl_err *err)
{
    struct fl__holder holder;
    char ends[FL_WHEN_TEXT];
    char from[FL_WHEN_TEXT];
    int64_t due;
    int rv = fl__holder_of(a, name, key, now_ms, &holder, err);

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    if (holder.role != FL_ROLE_ADMIN) {
        return fl_err_set(err, FL_EEXIST,
                          "the name '%s' is taken by a client: an admin needs another one", name);
    }
    due = holder.not_after - (holder.not_after - holder.not_before) / 3;
    if (now_ms / 1000 >= due) {
        return FL_OK;
    }
    return fl_err_set(
        err, FL_EEXIST,
        "admin '%s' has a certificate that is valid until %s: the next one is issued from %s on; "
        "if its key is lost or stolen, first run: flctl evict %s",
        name, fl_when_text(ends, sizeof(ends), holder.not_after),
        fl_when_text(from, sizeof(from), due), name);
}

int fl_authority_issue_admin(struct fl_authority *authority, const struct fl_admin_wanted *wanted,
                             int64_t now_ms, struct fl_joined *ret, struct fl_err *err)
{
    int64_t span = wanted->valid_ms > 0 ? wanted->valid_ms / 1000 : authority->conf.spans.leaf;
    struct fl__wanted issue = {.role = FL_ROLE_ADMIN,
                               .name = wanted->name,
                               .span_s = span > 0 ? span : 1,
                               .by = wanted->by,
                               .joined = true};
    const struct noted noted = {
        .who = wanted->by, .what = fl_verbs[FL_VERB_ADMIN_CERTIFICATE].audit, .how = ""};
    uint8_t hash[FL_KEY_HASH];
    struct fl_joined joined = {0};
    struct fl_key *key = NULL;
    int rv = fl__issues(authority, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_name_allowed(wanted->name)) {
        return fl_err_set(err, FL_EINVAL,
                          "invalid name of an admin: expected 1 to %d of [A-Za-z0-9._-], not "
                          "starting with a dot or '-'",
                          FL_IDENTITY_NAME_MAX - 1);
    }
    rv = fl_csr_check(wanted->request.data, wanted->request.len, &key, err);
    if (rv != FL_OK) {
        return rv;
    }
    issue.key = key;
    fl_key_hash(key, hash);
    rv = fl__check_revoked(authority, &(struct fl_revoked){.name = wanted->name, .key = hash}, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__check_key(authority, hash, wanted->name, now_ms, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = check_admin_name(authority, wanted->name, hash, now_ms, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__check_burst(authority, wanted->name, now_ms, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = issue_noted(authority, &issue, &noted, now_ms, &joined, err);
    if (rv != FL_OK) {
        goto done;
    }
    *ret = joined;
    joined = (struct fl_joined){0};
done:
    fl_key_unref(key);
    fl_joined_done(&joined);
    return rv;
}
