/*
 * Join: finds the invitation of a token, checks it and the wanted name, and issues a certificate in
 * one transaction with the use of the invitation and the audit entry. Runs on the thread of the
 * authority.
 */

#include "server/identity/joining.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/match.h"
#include "libfl/base/str.h"
#include "libfl/pki/request.h"
#include "libfl/pki/when.h"
#include "server/identity/issuing_impl.h"

/* A key that joins by an invitation; in the end also what it gets. */
struct join {
    const struct fl_joining *request;
    const struct fl__invitation *in;
    const struct fl_key *key;
    uint8_t hash[FL_KEY_HASH]; /* of the key */
    char name[FL_IDENTITY_NAME_MAX];
    bool reissue;  /* for a use that is counted already, whose certificate is no longer valid */
    bool replaces; /* the host that had the name */
    int64_t now_ms;
};

/* Constant time. */
static bool equal_hash(const uint8_t a[FL__TOKEN_HASH], const uint8_t b[FL__TOKEN_HASH])
{
    unsigned differs = 0;
    size_t i;

    for (i = 0; i < FL__TOKEN_HASH; i++) {
        differs |= (unsigned)(a[i] ^ b[i]);
    }
    return differs == 0;
}

/* FL_ENOENT: no such token. Owned on FL_OK. */
static int join_find_invitation(struct fl_authority *a, const uint8_t *token,
                                struct fl__invitation *ret, struct fl_err *err)
{
    struct fl_query q;
    uint8_t hash[FL__TOKEN_HASH];
    char prefix[FL_TOKEN_PREFIX_TEXT];
    int rv = fl_token_hash(token, hash);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "a token: %s", fl_strerror(rv));
    }
    q = fl_db_query(&a->db, FL__SQL_FIND_INVITATION);
    fl_query_text(&q, fl_token_prefix(token, prefix));
    rv = fl__invitation_one(&q, ret, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!equal_hash(hash, ret->hash)) {
        fl__invitation_done(ret);
        *ret = (struct fl__invitation){0};
        return FL_ENOENT;
    }
    return FL_OK;
}

static int wrong_token(struct fl_authority *a, const struct fl_joining *join, int64_t now_ms,
                       struct fl_err *err)
{
    char address[FL__ADDRESS_TEXT];
    int64_t wait_ms = 0;

    if (!fl__join_attempts_wrong(&a->attempts, join->address, now_ms, &wait_ms)) {
        fl__address(join->address, address);
        return fl_err_set(err, FL_EAGAIN,
                          "too many wrong tokens from %s: the next attempt is accepted in %lld s; "
                          "a valid token is accepted at once",
                          address, (long long)(wait_ms / 1000 + 1));
    }
    return fl_err_set(
        err, FL_ENOENT,
        "no invitation has this token: copy the whole line again, or get a new one (on "
        "the server: flctl invite NAME)");
}

static const char *reinvite_name(const struct fl__invitation *in)
{
    return strpbrk(in->name, "*?") == NULL ? in->name : "NAME";
}

static int join_check_open(const struct fl__invitation *in, int64_t now_ms, struct fl_err *err)
{
    char when[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    if (in->withdrawn_ms != 0) {
        return fl_err_set(err, FL_EREFUSED,
                          "this invitation (%s) was withdrawn at %s: for a new one run on the "
                          "server: flctl invite %s",
                          in->prefix, fl_when_text(when, sizeof(when), in->withdrawn_ms / 1000),
                          reinvite_name(in));
    }
    if (in->ends_ms <= now_ms) {
        return fl_err_set(err, FL_EREFUSED,
                          "this invitation (%s) expired at %s, %s ago by the server's clock: for a "
                          "new one run on the server: flctl invite %s",
                          in->prefix, fl_when_text(when, sizeof(when), in->ends_ms / 1000),
                          fl_span_text(span, sizeof(span), (now_ms - in->ends_ms) / 1000),
                          reinvite_name(in));
    }
    return FL_OK;
}

/* The name to join by; `wanted` "": the name of the invitation. */
static int choose_name(const struct fl__invitation *in, const char *wanted, char *out,
                       struct fl_err *err)
{
    bool pattern = fl_name_is_pattern(in->name);

    if (wanted[0] == '\0' && pattern) {
        return fl_err_set(err, FL_EINVAL,
                          "this invitation is for any name like '%s': choose one with fl-clientd "
                          "--join --name NAME",
                          in->name);
    }
    if (wanted[0] != '\0' && !fl_name_allowed(wanted)) {
        return fl_err_set(
            err, FL_EINVAL,
            "invalid name: expected 1 to %d of [A-Za-z0-9._-], not starting with a dot or '-'",
            FL_IDENTITY_NAME_MAX - 1);
    }
    if (wanted[0] != '\0' && !fl_name_matches(in->name, wanted)) {
        return fl_err_set(err, FL_EREFUSED,
                          "this invitation is for '%s', but '%s' was requested: join by a name "
                          "that it is for, or run on the server: flctl invite %s",
                          in->name, wanted, wanted);
    }
    return fl_str_copy(out, FL_IDENTITY_NAME_MAX, wanted[0] != '\0' ? wanted : in->name);
}

static int used_up(struct fl_authority *a, const struct fl__invitation *in, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_LAST_USE);
    struct fl__use use;
    char when[FL_WHEN_TEXT];
    const char *name;
    int rv;

    fl_query_u64(&q, in->id);
    rv = fl__use_one(&q, &use, err);
    if (rv != FL_OK && rv != FL_ENOENT) {
        return rv;
    }
    name = use.name[0] != '\0' ? use.name : "?";
    if (in->uses > 1) {
        return fl_err_set(err, FL_EREFUSED,
                          "this invitation (%s) is used up, by %u other keys: for a new one run on "
                          "the server: flctl invite %s",
                          in->prefix, in->used, reinvite_name(in));
    }
    return fl_err_set(
        err, FL_EREFUSED,
        "this invitation (%s) was used by another key, for '%s' at %s: if that was not you, inform "
        "the operator of the server (flctl evict %s); for a new one: flctl invite %s",
        in->prefix, name, fl_when_text(when, sizeof(when), use.at_ms / 1000), name,
        reinvite_name(in));
}

/*
 * FL_ENOENT: this key has not joined by this invitation. Otherwise it gets the same certificate, if
 * that is still valid; it is not: FL_ENOENT and `reissue`, for the same use.
 */
static int join_issued_before(struct fl_authority *a, struct join *j, struct fl_joined *ret,
                              struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_GET_USE);
    struct fl__certificate certificate;
    struct fl__use use;
    int rv;

    fl_query_u64(&q, j->in->id);
    fl_query_blob(&q, j->hash, sizeof(j->hash));
    rv = fl__use_one(&q, &use, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (strcmp(use.name, j->name) != 0) {
        return fl_err_set(err, FL_EREFUSED,
                          "this key joined by this invitation as '%s', but now '%s' is requested",
                          use.name, j->name);
    }
    rv = fl__check_revoked(
        a,
        &(struct fl_revoked){
            .serial = use.serial, .serial_len = use.serial_len, .key = j->hash, .name = j->name},
        err);
    if (rv != FL_OK) {
        return rv;
    }
    q = fl_db_query(&a->db, FL__SQL_GET_CERTIFICATE);
    fl_query_blob(&q, use.serial, use.serial_len);
    rv = fl__certificate_one(&q, &certificate, err);
    if (rv != FL_OK) {
        j->reissue = rv == FL_ENOENT;
        return rv;
    }
    j->reissue = certificate.not_after <= j->now_ms / 1000;
    rv = j->reissue ? FL_ENOENT : fl__issued_before(a, &certificate, ret, err);
    fl__certificate_done(&certificate);
    return rv;
}

/* The name is transferred to this key: revokes the certificates of other keys for it. */
static int join_replace_holder(struct fl_authority *a, const struct join *j, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_REVOKE_NAME);
    char why[96];
    const struct fl__revocation row = {
        .verb = FL_REVOCATION_REPLACED, .why = why, .by = "join", .at_ms = j->now_ms};

    (void)snprintf(why, sizeof(why), "another host joined by this name, invitation %s",
                   j->in->prefix);
    fl__revocation_bind(&q, &row);
    fl_query_u64(&q, (uint64_t)a->conf.spans.grace);
    fl_query_text(&q, j->name);
    fl_query_blob(&q, j->hash, sizeof(j->hash));
    a->revocations_stale = true;
    return fl_query_run(&q, err);
}

/* Inside a transaction: certificate, use and audit, all or none. */
static int join_admit_key(struct fl_authority *a, const struct join *j, struct fl_joined *ret,
                          struct fl_err *err)
{
    char by[FL__BY_MAX];
    char result[2 * FL__BY_MAX];
    struct fl__wanted wanted = {.role = FL_ROLE_CLIENT,
                                .name = j->name,
                                .key = j->key,
                                .span_s = a->conf.spans.leaf,
                                .by = by,
                                .joined = true};
    const struct fl_audit_line line = {.at_ms = j->now_ms,
                                       .who = j->request->address,
                                       .what = "join",
                                       .object = j->name,
                                       .result = result};
    struct fl__use use = {.invitation = j->in->id, .at_ms = j->now_ms};
    struct fl_cert_info info;
    struct fl_query q;
    int rv;

    (void)snprintf(by, sizeof(by), "invitation %s", j->in->prefix);
    if (j->replaces) {
        rv = join_replace_holder(a, j, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl__issue(a, &wanted, j->now_ms, ret, &info, err);
    if (rv != FL_OK) {
        return rv;
    }
    use.serial_len = info.serial_len;
    (void)memcpy(use.key, j->hash, sizeof(use.key));
    (void)memcpy(use.name, j->name, sizeof(use.name));
    (void)memcpy(use.serial, info.serial, sizeof(use.serial));
    rv = fl__use_put(&a->db, FL__SQL_PUT_USE, &use, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!j->reissue) {
        q = fl_db_query(&a->db, FL__SQL_COUNT_USE);
        fl_query_u64(&q, j->in->id);
        rv = fl_query_run(&q, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    (void)snprintf(result, sizeof(result), "ok, invitation %s, serial %s%s", j->in->prefix,
                   info.serial_text, j->replaces ? ", in place of the host that had the name" : "");
    return fl__audit(a, &line, err);
}

/* What has to be right before a key gets a certificate that it did not have. */
static int join_check(struct fl_authority *a, struct join *j, struct fl_err *err)
{
    const struct fl_revoked whom = {.name = j->name, .key = j->hash};
    bool exact = strcmp(j->in->name, j->name) == 0;
    int rv;

    if (!j->reissue && j->in->used >= j->in->uses) {
        return used_up(a, j->in, err);
    }
    rv = fl__check_revoked(a, &whom, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__check_key(a, j->hash, j->name, j->now_ms, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__check_name(a, j->name, j->hash, exact ? j->in->made_ms : -1, j->now_ms, &j->replaces,
                        err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__check_burst(a, j->name, j->now_ms, err);
}

/* `in` is found, and owned by the caller. */
static int join_with(struct fl_authority *a, const struct fl_joining *request,
                     const struct fl__invitation *in, int64_t now_ms, struct fl_joined *ret,
                     struct fl_err *err)
{
    struct join j = {.request = request, .in = in, .now_ms = now_ms};
    struct fl_key *key = NULL;
    int rv = join_check_open(in, now_ms, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_csr_check(request->request, request->request_len, &key, err);
    if (rv != FL_OK) {
        return rv;
    }
    j.key = key;
    fl_key_hash(key, j.hash);
    rv = choose_name(in, request->name, j.name, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = join_issued_before(a, &j, ret, err);
    if (rv == FL_ENOENT) {
        rv = join_check(a, &j, err);
        if (rv != FL_OK) {
            goto done;
        }
        rv = fl__authority_begin(a, err);
        if (rv != FL_OK) {
            goto done;
        }
        rv = fl__authority_end(a, join_admit_key(a, &j, ret, err), err);
    }
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__labels_unpack(in->labels.data, in->labels.len, &ret->labels, &ret->n_labels);
done:
    fl_key_unref(key);
    return rv;
}

int fl_authority_join(struct fl_authority *authority, const struct fl_joining *join, int64_t now_ms,
                      struct fl_joined *ret, struct fl_err *err)
{
    struct fl_joined joined = {0};
    struct fl__invitation in = {0};
    struct fl_err own = {0};
    int rv = fl__issues(authority, err);

    if (rv != FL_OK) {
        return rv;
    }
    err = err != NULL ? err : &own;
    rv = join_find_invitation(authority, join->token, &in, err);
    if (rv == FL_ENOENT) {
        rv = wrong_token(authority, join, now_ms, err);
    }
    if (rv != FL_OK) {
        goto refused;
    }
    rv = join_with(authority, join, &in, now_ms, &joined, err);
    fl__invitation_done(&in);
    if (rv != FL_OK) {
        goto refused;
    }
    *ret = joined;
    return FL_OK;
refused:
    fl_joined_done(&joined);
    if (fl__is_refusal(rv)) {
        fl__audit_refusal(authority, join->address, "join", in.name, err->msg, now_ms);
    }
    return rv;
}
