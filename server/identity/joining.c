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

/* Not a question of how many bytes are equal. */
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
static int find(struct fl_authority *a, const uint8_t *token, struct invitation *ret,
                struct fl_err *err)
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

    if (!fl__join_attempts_wrong(&a->tries, join->address, now_ms, &wait_ms)) {
        fl__address(join->address, address);
        return fl_err_set(
            err, FL_EAGAIN,
            "too many wrong tokens from %s: one more is heard in %lld s; a line that is "
            "right is heard at once",
            address, (long long)(wait_ms / 1000 + 1));
    }
    return fl_err_set(
        err, FL_ENOENT,
        "no invitation has this token: copy the whole line again, or get a new one (on "
        "the server: flctl invite NAME)");
}

static const char *ask_again(const struct invitation *in)
{
    return strpbrk(in->name, "*?") == NULL ? in->name : "NAME";
}

static int check_open(const struct invitation *in, int64_t now_ms, struct fl_err *err)
{
    char when[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    if (in->withdrawn_ms != 0) {
        return fl_err_set(
            err, FL_EREFUSED,
            "this invitation (%s) was withdrawn at %s: for a new one run on the server: "
            "flctl invite %s",
            in->prefix, fl_when_text(when, sizeof(when), in->withdrawn_ms / 1000), ask_again(in));
    }
    if (in->ends_ms <= now_ms) {
        return fl_err_set(
            err, FL_EREFUSED,
            "this invitation (%s) ended at %s, %s ago by the server's clock: for a new "
            "one run on the server: flctl invite %s",
            in->prefix, fl_when_text(when, sizeof(when), in->ends_ms / 1000),
            fl_span_text(span, sizeof(span), (now_ms - in->ends_ms) / 1000), ask_again(in));
    }
    return FL_OK;
}

/* The name that it would be; "" is the one of the invitation. */
static int choose_name(const struct invitation *in, const char *wanted, char *out,
                       struct fl_err *err)
{
    bool pattern = strpbrk(in->name, "*?") != NULL;

    if (wanted[0] == '\0' && pattern) {
        return fl_err_set(err, FL_EINVAL,
                          "this invitation is for any of '%s': say which, fl-clientd --join --name "
                          "NAME",
                          in->name);
    }
    if (wanted[0] != '\0' && !fl_name_allowed(wanted)) {
        return fl_err_set(err, FL_EINVAL,
                          "the wanted name is no name: 1 to %d of [A-Za-z0-9._-], not starting "
                          "with a dot or '-'",
                          FL_IDENTITY_NAME_MAX - 1);
    }
    if (wanted[0] != '\0' && !fl_invitation_fits(in->name, wanted)) {
        return fl_err_set(
            err, FL_EREFUSED,
            "this invitation is for '%s', and '%s' was asked for: join by a name that "
            "it is for, or run on the server: flctl invite %s",
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
        return fl_err_set(
            err, FL_EREFUSED,
            "this invitation (%s) was used by %u other keys, as often as it may be: for "
            "a new one run on the server: flctl invite %s",
            in->prefix, in->used, ask_again(in));
    }
    return fl_err_set(
        err, FL_EREFUSED,
        "this invitation (%s) was used by another key, for '%s' at %s: if that was not "
        "you, tell whoever runs the server (flctl evict %s); for a new one: flctl invite "
        "%s",
        in->prefix, name, fl_when_text(when, sizeof(when), at_ms / 1000), name, ask_again(in));
}

/*
 * Has this key joined by this invitation before? FL_ENOENT: no. Else it is given what it was given,
 * if that is still good; `*ret_over`: it is not, and may be issued anew for the same use.
 */
static int given_before(struct fl_authority *a, const struct invitation *in, const uint8_t *key,
                        const char *name, int64_t now_ms, struct fl_joined *ret, bool *ret_over,
                        struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_GET_USE);
    struct fl__certificate certificate = {0};
    char had[FL_IDENTITY_NAME_MAX];
    uint8_t serial[FL_SERIAL_MAX];
    const void *data;
    size_t len = 0;
    int rv;

    *ret_over = false;
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
                          "this key joined by this invitation as '%s', and now '%s' is asked for",
                          had, name);
    }
    rv = fl__denied(a, serial, len, key, name, err);
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
    *ret_over = rv == FL_ENOENT || (rv == FL_OK && certificate.not_after <= now_ms / 1000);
    if (rv == FL_OK && !*ret_over) {
        rv = fl__give_again(a, &certificate, ret, err);
    }
    fl__certificate_done(&certificate);
    return *ret_over ? FL_ENOENT : rv;
}

/* The name goes over to this key: what others had of it is denied from now on. */
static int replace(struct fl_authority *a, const char *name, const uint8_t *key, const char *prefix,
                   int64_t now_ms, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_DENY_NAME);
    char why[96];

    (void)snprintf(why, sizeof(why), "another host joined by this name, invitation %s", prefix);
    fl_query_text(&q, name);
    fl_query_u64(&q, FL_REVOCATION_REPLACED);
    fl_query_text(&q, why);
    fl_query_text(&q, "join");
    fl_query_u64(&q, (uint64_t)now_ms);
    fl_query_u64(&q, (uint64_t)a->conf.spans.grace);
    fl_query_blob(&q, key, FL_KEY_HASH);
    a->denials_old = true;
    return fl_query_run(&q, err);
}

static int put_use(struct fl_authority *a, const struct invitation *in, const uint8_t *key,
                   const char *name, const struct fl_cert_info *info, bool again, int64_t now_ms,
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
    if (rv == FL_OK && !again) {
        q = fl_db_query(&a->db, FL__SQL_COUNT_USE);
        fl_query_u64(&q, (uint64_t)in->id);
        rv = fl_query_run(&q, err);
    }
    return rv;
}

/* Inside a transaction: certificate, use and audit, or nothing. */
static int admit(struct fl_authority *a, const struct invitation *in, const struct fl_joining *join,
                 const char *name, const struct fl_key *key, bool again, bool replaces,
                 int64_t now_ms, struct fl_joined *ret, struct fl_err *err)
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
        rv = replace(a, name, hash, in->prefix, now_ms, err);
    }
    rv = rv == FL_OK ? fl__issue(a, &wanted, now_ms, ret, &info, err) : rv;
    rv = rv == FL_OK ? put_use(a, in, hash, name, &info, again, now_ms, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(result, sizeof(result), "ok, invitation %s, serial %s%s", in->prefix,
                   info.serial_text, replaces ? ", in place of the host that had the name" : "");
    return fl__audit(a, false, join->address, "join", name, result, now_ms, err);
}

static int check_use(struct fl_authority *a, const struct invitation *in, bool again,
                     struct fl_err *err)
{
    return again || in->used < in->uses ? FL_OK : used_up(a, in, err);
}

static int join_by(struct fl_authority *a, const struct invitation *in,
                   const struct fl_joining *join, const struct fl_key *key, int64_t now_ms,
                   struct fl_joined *ret, struct fl_err *err)
{
    char name[FL_IDENTITY_NAME_MAX] = "";
    uint8_t hash[FL_KEY_HASH];
    bool replaces = false;
    bool over = false;
    int rv = choose_name(in, join->name, name, err);

    fl_key_hash(key, hash);
    if (rv != FL_OK) {
        return rv;
    }
    rv = given_before(a, in, hash, name, now_ms, ret, &over, err);
    if (rv != FL_ENOENT) {
        return rv;
    }
    rv = check_use(a, in, over, err);
    rv = rv == FL_OK ? fl__denied(a, NULL, 0, hash, name, err) : rv;
    rv = rv == FL_OK ? fl__check_key(a, hash, name, now_ms, err) : rv;
    rv = rv == FL_OK ? fl__check_name(a, name, hash, strcmp(in->name, name) == 0 ? in->made_ms : -1,
                                      now_ms, &replaces, err)
                     : rv;
    rv = rv == FL_OK ? fl__check_burst(a, name, now_ms, err) : rv;
    rv = rv == FL_OK ? fl__authority_begin(a, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    rv = admit(a, in, join, name, key, over, replaces, now_ms, ret, err);
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
    rv = find(authority, join->token, &in, err);
    if (rv == FL_ENOENT) {
        rv = wrong_token(authority, join, now_ms, err);
    } else if (rv == FL_OK) {
        rv = check_open(&in, now_ms, err);
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
