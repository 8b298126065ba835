/*
 * Join: finds the invitation of a token, checks it and the wanted name, and issues a certificate in
 * one transaction with the use of the invitation and the audit entry. Runs on the thread of the
 * authority.
 */

#include "server/identity/joining.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/pki/request.h"
#include "libfl/pki/when.h"
#include "server/identity/invitations.h"
#include "server/identity/issuing_impl.h"

struct invitation {
    int64_t id;
    char prefix[FL_TOKEN_PREFIX_TEXT];
    char name[FL_IDENTITY_NAME_MAX];
    uint32_t uses, used;
    int64_t made_ms, ends_ms, withdrawn_ms;
    struct fl_buf labels;
};

/* Constant time. */
static bool equal_hash(const uint8_t *a, const void *b, size_t len)
{
    const uint8_t *p = b;
    unsigned differs = len != 32;
    size_t i;

    for (i = 0; i < len && i < 32; i++) {
        differs |= (unsigned)(a[i] ^ p[i]);
    }
    return differs == 0;
}

/* FL_ENOENT: no such token. `ret->labels` is owned on FL_OK. */
static int join_find_invitation(struct fl_authority *a, const uint8_t *token,
                                struct invitation *ret, struct fl_err *err)
{
    struct fl_query q;
    uint8_t hash[32];
    const void *stored;
    const void *labels;
    size_t len;
    int rv = fl_token_hash(token, hash);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "a token: %s", fl_strerror(rv));
    }
    *ret = (struct invitation){0};
    fl_buf_init(&ret->labels, FL_WIRE_LABELS_BYTES);
    q = fl_db_query(&a->db, FL__SQL_FIND_INVITATION);
    fl_query_text(&q, fl_token_prefix(token, ret->prefix));
    rv = fl_query_next(&q, err);
    if (rv == FL_OK) {
        ret->id = (int64_t)fl_column_u64(&q);
        stored = fl_column_blob(&q, &len);
        rv = stored != NULL && equal_hash(hash, stored, len) ? FL_OK : FL_ENOENT;
    }
    if (rv == FL_OK) {
        (void)snprintf(ret->name, sizeof(ret->name), "%s", fl_column_text(&q));
        labels = fl_column_blob(&q, &len);
        rv = fl_buf_add(&ret->labels, labels != NULL ? labels : "", labels != NULL ? len : 0);
        ret->uses = (uint32_t)fl_column_u64(&q);
        ret->used = (uint32_t)fl_column_u64(&q);
        ret->made_ms = (int64_t)fl_column_u64(&q);
        ret->ends_ms = (int64_t)fl_column_u64(&q);
        ret->withdrawn_ms = (int64_t)fl_column_u64(&q);
        rv = rv == FL_OK ? FL_OK : fl_err_set(err, rv, "labels: %s", fl_strerror(rv));
    }
    fl_query_reset(&q);
    if (rv != FL_OK) {
        fl_buf_done(&ret->labels);
    }
    return rv;
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

static const char *reinvite_name(const struct invitation *in)
{
    return strpbrk(in->name, "*?") == NULL ? in->name : "NAME";
}

static int join_check_open(const struct invitation *in, int64_t now_ms, struct fl_err *err)
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
static int choose_name(const struct invitation *in, const char *wanted, char *out,
                       struct fl_err *err)
{
    bool pattern = strpbrk(in->name, "*?") != NULL;

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
    if (wanted[0] != '\0' && !fl_invitation_fits(in->name, wanted)) {
        return fl_err_set(err, FL_EREFUSED,
                          "this invitation is for '%s', but '%s' was requested: join by a name "
                          "that it is for, or run on the server: flctl invite %s",
                          in->name, wanted, wanted);
    }
    return fl_str_copy(out, FL_IDENTITY_NAME_MAX, wanted[0] != '\0' ? wanted : in->name);
}

static int used_up(struct fl_authority *a, const struct invitation *in, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_LAST_USE);
    char name[FL_IDENTITY_NAME_MAX] = "?";
    char when[FL_WHEN_TEXT];
    int64_t at_ms = 0;
    int rv;

    fl_query_u64(&q, (uint64_t)in->id);
    rv = fl_query_next(&q, err);
    if (rv == FL_OK) {
        (void)snprintf(name, sizeof(name), "%s", fl_column_text(&q));
        at_ms = (int64_t)fl_column_u64(&q);
    }
    fl_query_reset(&q);
    if (rv != FL_OK && rv != FL_ENOENT) {
        return rv;
    }
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
        in->prefix, name, fl_when_text(when, sizeof(when), at_ms / 1000), name, reinvite_name(in));
}

/*
 * FL_ENOENT: this key has not joined by this invitation. Otherwise it gets the same certificate, if
 * that is still valid; `*ret_over`: it is not, and may be reissued for the same use.
 */
static int join_issued_before(struct fl_authority *a, const struct invitation *in,
                              const uint8_t *key, const char *name, int64_t now_ms,
                              struct fl_joined *ret, bool *ret_reissue, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_GET_USE);
    struct fl__certificate certificate = {0};
    char had[FL_IDENTITY_NAME_MAX];
    uint8_t serial[FL_SERIAL_MAX];
    const void *data;
    size_t len = 0;
    int rv;

    *ret_reissue = false;
    fl_query_u64(&q, (uint64_t)in->id);
    fl_query_blob(&q, key, FL_KEY_HASH);
    rv = fl_query_next(&q, err);
    if (rv == FL_OK) {
        (void)snprintf(had, sizeof(had), "%s", fl_column_text(&q));
        data = fl_column_blob(&q, &len);
        len = len < sizeof(serial) ? len : sizeof(serial);
        (void)memcpy(serial, data != NULL ? data : "", data != NULL ? len : 0);
    }
    fl_query_reset(&q);
    if (rv != FL_OK) {
        return rv;
    }
    if (strcmp(had, name) != 0) {
        return fl_err_set(err, FL_EREFUSED,
                          "this key joined by this invitation as '%s', but now '%s' is requested",
                          had, name);
    }
    rv = fl__check_revoked(a, serial, len, key, name, err);
    if (rv != FL_OK) {
        return rv;
    }
    q = fl_db_query(&a->db, FL__SQL_GET_CERTIFICATE);
    fl_query_blob(&q, serial, len);
    rv = fl_query_next(&q, err);
    if (rv == FL_OK) {
        rv = fl__certificate_read(&q, &certificate);
    }
    fl_query_reset(&q);
    *ret_reissue = rv == FL_ENOENT || (rv == FL_OK && certificate.not_after <= now_ms / 1000);
    if (rv == FL_OK && !*ret_reissue) {
        rv = fl__issued_before(a, &certificate, ret, err);
    }
    fl__certificate_done(&certificate);
    return *ret_reissue ? FL_ENOENT : rv;
}

/* The name is transferred to this key: revokes the certificates of other keys for it. */
static int join_replace_holder(struct fl_authority *a, const char *name, const uint8_t *key,
                               const char *prefix, int64_t now_ms, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_REVOKE_NAME);
    char why[96];

    (void)snprintf(why, sizeof(why), "another host joined by this name, invitation %s", prefix);
    fl_query_text(&q, name);
    fl_query_u64(&q, FL_REVOCATION_REPLACED);
    fl_query_text(&q, why);
    fl_query_text(&q, "join");
    fl_query_u64(&q, (uint64_t)now_ms);
    fl_query_u64(&q, (uint64_t)a->conf.spans.grace);
    fl_query_blob(&q, key, FL_KEY_HASH);
    a->revocations_stale = true;
    return fl_query_run(&q, err);
}

static int put_use(struct fl_authority *a, const struct invitation *in, const uint8_t *key,
                   const char *name, const struct fl_cert_info *info, bool reissued, int64_t now_ms,
                   struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_PUT_USE);
    int rv;

    fl_query_u64(&q, (uint64_t)in->id);
    fl_query_blob(&q, key, FL_KEY_HASH);
    fl_query_text(&q, name);
    fl_query_blob(&q, info->serial, info->serial_len);
    fl_query_u64(&q, (uint64_t)now_ms);
    rv = fl_query_run(&q, err);
    if (rv == FL_OK && !reissued) {
        q = fl_db_query(&a->db, FL__SQL_COUNT_USE);
        fl_query_u64(&q, (uint64_t)in->id);
        rv = fl_query_run(&q, err);
    }
    return rv;
}

/* Inside a transaction: certificate, use and audit, all or none. */
static int join_admit_key(struct fl_authority *a, const struct invitation *in,
                          const struct fl_joining *join, const char *name, const struct fl_key *key,
                          bool reissued, bool replaces, int64_t now_ms, struct fl_joined *ret,
                          struct fl_err *err)
{
    char by[FL__BY_MAX];
    char result[2 * FL__BY_MAX];
    uint8_t hash[FL_KEY_HASH];
    struct fl__wanted wanted = {.role = FL_ROLE_CLIENT,
                                .name = name,
                                .key = key,
                                .span_s = a->conf.spans.leaf,
                                .by = by,
                                .joined = true};
    struct fl_cert_info info;
    int rv = FL_OK;

    fl_key_hash(key, hash);
    (void)snprintf(by, sizeof(by), "invitation %s", in->prefix);
    if (replaces) {
        rv = join_replace_holder(a, name, hash, in->prefix, now_ms, err);
    }
    rv = rv == FL_OK ? fl__issue(a, &wanted, now_ms, ret, &info, err) : rv;
    rv = rv == FL_OK ? put_use(a, in, hash, name, &info, reissued, now_ms, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(result, sizeof(result), "ok, invitation %s, serial %s%s", in->prefix,
                   info.serial_text, replaces ? ", in place of the host that had the name" : "");
    return fl__audit(a, false, join->address, "join", name, result, now_ms, err);
}

static int check_use(struct fl_authority *a, const struct invitation *in, bool reissued,
                     struct fl_err *err)
{
    return reissued || in->used < in->uses ? FL_OK : used_up(a, in, err);
}

static int join_by(struct fl_authority *a, const struct invitation *in,
                   const struct fl_joining *join, const struct fl_key *key, int64_t now_ms,
                   struct fl_joined *ret, struct fl_err *err)
{
    char name[FL_IDENTITY_NAME_MAX] = "";
    uint8_t hash[FL_KEY_HASH];
    bool replaces = false;
    bool reissue = false;
    int rv = choose_name(in, join->name, name, err);

    fl_key_hash(key, hash);
    if (rv != FL_OK) {
        return rv;
    }
    rv = join_issued_before(a, in, hash, name, now_ms, ret, &reissue, err);
    if (rv != FL_ENOENT) {
        return rv;
    }
    rv = check_use(a, in, reissue, err);
    rv = rv == FL_OK ? fl__check_revoked(a, NULL, 0, hash, name, err) : rv;
    rv = rv == FL_OK ? fl__check_key(a, hash, name, now_ms, err) : rv;
    rv = rv == FL_OK ? fl__check_name(a, name, hash, strcmp(in->name, name) == 0 ? in->made_ms : -1,
                                      now_ms, &replaces, err)
                     : rv;
    rv = rv == FL_OK ? fl__check_burst(a, name, now_ms, err) : rv;
    rv = rv == FL_OK ? fl__authority_begin(a, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    rv = join_admit_key(a, in, join, name, key, reissue, replaces, now_ms, ret, err);
    return fl__authority_end(a, rv, err);
}

int fl_authority_join(struct fl_authority *authority, const struct fl_joining *join, int64_t now_ms,
                      struct fl_joined *ret, struct fl_err *err)
{
    struct fl_joined joined = {0};
    struct invitation in = {0};
    struct fl_key *key = NULL;
    struct fl_err own = {0};
    int rv = fl__issues(authority, err);

    if (rv != FL_OK) {
        return rv;
    }
    err = err != NULL ? err : &own;
    rv = join_find_invitation(authority, join->token, &in, err);
    if (rv == FL_ENOENT) {
        rv = wrong_token(authority, join, now_ms, err);
    } else if (rv == FL_OK) {
        rv = join_check_open(&in, now_ms, err);
        rv = rv == FL_OK ? fl_csr_check(join->request, join->request_len, &key, err) : rv;
        rv = rv == FL_OK ? join_by(authority, &in, join, key, now_ms, &joined, err) : rv;
        rv = rv == FL_OK ? fl__labels_unpack(in.labels.data, in.labels.len, &joined.labels,
                                             &joined.n_labels)
                         : rv;
        fl_buf_done(&in.labels);
    }
    fl_key_unref(key);
    if (rv != FL_OK) {
        fl_joined_done(&joined);
        if (fl__is_refusal(rv)) {
            fl__audit_refusal(authority, join->address, "join", in.name, err->msg, now_ms);
        }
        return rv;
    }
    *ret = joined;
    return FL_OK;
}
