/*
 * Requests for certificates: the key and the signing request of a first certificate (joining) or of
 * the next one (renewal), the checks of the server's reply, and its installation. Blocking, on the
 * caller's thread, under the lock of the folder. It has no connection (client/daemon/enrol.c,
 * renewal.c).
 */

#include "client/identity/enrolling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/identity/folder_impl.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/pki/request.h"
#include "libfl/pki/when.h"

#define HASH 32
/* Two hashes in hex, a blank, a line end. */
#define RECORD_MAX ((size_t)4 * HASH + 2)

struct fl_enrolling {
    char *dir;
    int lock;
    struct fl_key *key; /* saved in next.key */
    struct fl_buf request;
    char name[FL_IDENTITY_NAME_MAX];       /* required name of the certificate; "": any */
    char federation[FL_IDENTITY_NAME_MAX]; /* required federation, never "" */
    bool pinned;
    uint8_t pin[FL_KEY_HASH]; /* hash of the key that one of the roots must have */
};

/* --- the key of an invitation --- */

static void to_hex(char *out, const uint8_t hash[HASH])
{
    size_t i;

    for (i = 0; i < HASH; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", hash[i]);
    }
}

/* The contents of invitation.sha256 for this token and this key. */
static void record_of(const uint8_t token[HASH], const struct fl_key *key, char out[RECORD_MAX + 1])
{
    uint8_t hash[FL_KEY_HASH];

    fl_key_hash(key, hash);
    to_hex(out, token);
    out[(size_t)2 * HASH] = ' ';
    to_hex(out + (size_t)2 * HASH + 1, hash);
    (void)memcpy(out + RECORD_MAX - 1, "\n", 2);
}

/* Does invitation.sha256 have this record, from byte `from` on? */
static bool record_is(const char *dir, const char *expected, size_t from)
{
    char path[FL__PATH_MAX];
    struct fl_buf found;
    bool same;

    if (fl__identity_path(path, dir, FL__INVITATION, NULL) != FL_OK ||
        fl_fs_read(path, RECORD_MAX, &found, NULL) != FL_OK)
    {
        return false;
    }
    same = found.len == RECORD_MAX &&
           memcmp(found.data + from, expected + from, RECORD_MAX - from) == 0;
    fl_buf_done(&found);
    return same;
}

/* The key in file `name` if this invitation was used with it, else NULL. */
static struct fl_key *enrolling_key_of_invitation(const char *dir, const char *name,
                                                  const uint8_t token[HASH])
{
    char path[FL__PATH_MAX];
    char record[RECORD_MAX + 1];
    struct fl_key *key = NULL;

    if (fl__identity_path(path, dir, name, NULL) != FL_OK || !fl_fs_exists(path) ||
        fl_key_load(path, &key, NULL) != FL_OK)
    {
        return NULL;
    }
    record_of(token, key, record);
    if (!record_is(dir, record, 0)) {
        fl_key_unref(key);
        return NULL;
    }
    return key;
}

/* Saves the key on disk before it is used in a request. */
static int keep_key(struct fl_enrolling *e, struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__identity_path(path, e->dir, FL__NEXT_KEY, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_key_save(e->key, path, /* sync= */ true, err);
}

/*
 * The record is written last: a crash before it leaves a key that no request used. When the
 * certificate is in place already and its reply is requested again, the key goes through next.key
 * too, so that files are replaced in one way only.
 */
static int choose_key(struct fl_enrolling *e, const uint8_t token[HASH], struct fl_err *err)
{
    char path[FL__PATH_MAX];
    char record[RECORD_MAX + 1];
    int rv;

    e->key = enrolling_key_of_invitation(e->dir, FL__NEXT_KEY, token);
    if (e->key != NULL) {
        return FL_OK;
    }
    e->key = enrolling_key_of_invitation(e->dir, FL__KEY, token);
    if (e->key != NULL) {
        return keep_key(e, err);
    }
    rv = fl_key_make(&e->key);
    if (rv != FL_OK) {
        return rv;
    }
    rv = keep_key(e, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__identity_path(path, e->dir, FL__INVITATION, err);
    if (rv != FL_OK) {
        return rv;
    }
    record_of(token, e->key, record);
    return fl_fs_replace(path, record, RECORD_MAX, /* sync= */ true, err);
}

/* --- beginning --- */

static int enrolling_begin(const char *dir, const char *name, const char *federation,
                           struct fl_enrolling **ret, struct fl_err *err)
{
    struct fl_enrolling *e = calloc(1, sizeof(*e));
    int rv;

    if (e == NULL) {
        return FL_ENOMEM;
    }
    e->lock = -1;
    fl_buf_init(&e->request, FL_CSR_MAX);
    e->dir = fl_str_dup(dir);
    if (e->dir == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    rv = fl_str_copy(e->name, sizeof(e->name), name);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_str_copy(e->federation, sizeof(e->federation), federation);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__folder_take(dir, &e->lock, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__folder_settle(dir, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = e;
    return FL_OK;
fail:
    fl_enrolling_free(e);
    return rv;
}

static int make_request(struct fl_enrolling *e)
{
    return fl_csr_make(e->key, e->name[0] != '\0' ? e->name : "fl-client", &e->request);
}

int fl_enrolling_join(const char *dir, const struct fl_invite *invite, const char *name,
                      struct fl_enrolling **ret, struct fl_err *err)
{
    struct fl_enrolling *e = NULL;
    uint8_t token[HASH];
    int rv = enrolling_begin(dir, name, invite->federation, &e, err);

    if (rv != FL_OK) {
        return rv;
    }
    e->pinned = true;
    (void)memcpy(e->pin, invite->pin, sizeof(e->pin));
    rv = fl_token_hash(invite->token, token);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = choose_key(e, token, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = make_request(e);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = e;
    return FL_OK;
fail:
    fl_enrolling_free(e);
    return rv;
}

/*
 * Reuses the key of an earlier renewal, whose reply may be lost; else makes a new key, also in
 * place of one that an interrupted join left.
 */
static int choose_next_key(struct fl_enrolling *e, struct fl_err *err)
{
    static const uint8_t any[HASH];
    char record[RECORD_MAX + 1];
    char path[FL__PATH_MAX];
    int rv = fl__identity_path(path, e->dir, FL__NEXT_KEY, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_fs_exists(path) && fl_key_load(path, &e->key, NULL) == FL_OK) {
        record_of(any, e->key, record);
        if (!record_is(e->dir, record, (size_t)2 * HASH)) { /* not used with an invitation */
            return FL_OK;
        }
        fl_key_unref(e->key);
        e->key = NULL;
    }
    rv = fl_key_make(&e->key);
    if (rv != FL_OK) {
        return rv;
    }
    return keep_key(e, err);
}

int fl_enrolling_renew(const char *dir, const struct fl_client_identity *identity,
                       struct fl_enrolling **ret, struct fl_err *err)
{
    struct fl_enrolling *e = NULL;
    int rv = enrolling_begin(dir, identity->who.name, identity->who.federation, &e, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = choose_next_key(e, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = make_request(e);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = e;
    return FL_OK;
fail:
    fl_enrolling_free(e);
    return rv;
}

const uint8_t *fl_enrolling_request(const struct fl_enrolling *e, size_t *ret_len)
{
    *ret_len = e->request.len;
    return e->request.data;
}

/* --- the reply --- */

/*
 * A certificate from a server whose clock is ahead would replace a valid one, and would be rejected
 * until it becomes valid.
 */
static int check_begun(const struct fl_chain *chain, const struct fl_enrolling_reply *reply,
                       int64_t now, struct fl_err *err)
{
    struct fl_cert_info info;
    char begins[FL_WHEN_TEXT];
    char ours[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];
    char theirs[FL_WHEN_TEXT] = "unknown";

    fl_chain_info(chain, 0, &info);
    if (now >= info.not_before) {
        return FL_OK;
    }
    if (reply->server_now != 0) {
        (void)fl_when_text(theirs, sizeof(theirs), reply->server_now);
    }
    return fl_err_set(err, FL_EAGAIN,
                      "the certificate that the server sent is not valid before %s, %s from now "
                      "(this host's clock: %s, the server's: %s); it is not used: correct the "
                      "clock that is wrong (timedatectl)",
                      fl_when_text(begins, sizeof(begins), info.not_before),
                      fl_span_text(span, sizeof(span), info.not_before - now),
                      fl_when_text(ours, sizeof(ours), now), theirs);
}

/*
 * Verifies as of the end of the validity: an expired certificate may come from a lost reply, and
 * can still be renewed.
 */
static int check_chain(const struct fl_enrolling *e, const struct fl_chain *chain,
                       const struct fl_chain *roots, struct fl_identity *ret, struct fl_err *err)
{
    const struct fl_trust_setup setup = {.roots = roots, .federation = e->federation};
    struct fl_trust *trust = NULL;
    struct fl_cert_info info;
    int rv = fl_trust_create(&setup, &trust, err);

    if (rv != FL_OK) {
        goto done;
    }
    fl_chain_info(chain, 0, &info);
    rv = fl_trust_verify(
        trust, &(struct fl_claim){.chain = chain, .purpose = FL_ROLE_CLIENT, .now = info.not_after},
        ret, NULL, err);
done:
    fl_trust_unref(trust);
    if (rv != FL_OK) {
        return rv;
    }
    if (ret->role != FL_ROLE_CLIENT) {
        return fl_err_set(err, FL_EPERM,
                          "expected a client's certificate, found one of another role");
    }
    if (e->name[0] != '\0' && strcmp(e->name, ret->name) != 0) {
        return fl_err_set(err, FL_EPERM, "expected a certificate for '%s', found one for '%s'",
                          e->name, ret->name);
    }
    return FL_OK;
}

static int enrolling_read_chain(const struct fl_wire_chain *certs, const char *origin,
                                struct fl_chain **ret, struct fl_err *err)
{
    struct fl_der der[FL_WIRE_MAX_CHAIN];
    size_t i;

    if (certs->n == 0 || certs->n > FL_WIRE_MAX_CHAIN) {
        return fl_err_set(err, FL_EPROTO, "%s: expected 1 to %d certificates, found %zu", origin,
                          FL_WIRE_MAX_CHAIN, certs->n);
    }
    for (i = 0; i < certs->n; i++) {
        der[i] = (struct fl_der){certs->list[i].data, certs->list[i].len};
    }
    return fl_chain_from_der(der, certs->n, origin, ret, err);
}

/* Reads and checks what the server sent; the chains belong to the caller also on error. */
static int check_reply(const struct fl_enrolling *e, const struct fl_enrolling_reply *reply,
                       struct fl_chain **chain, struct fl_chain **roots, struct fl_identity *ret,
                       struct fl_err *err)
{
    int rv = enrolling_read_chain(reply->chain, "the server's reply", chain, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = enrolling_read_chain(reply->roots, "the roots in the server's reply", roots, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_chain_fits(*chain, e->key, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (e->pinned && fl_chain_find_key(*roots, 0, e->pin) < 0) {
        return fl_err_set(
            err, FL_EPROTO,
            "the root named in the invitation is not one of the %zu roots that the server sent",
            fl_chain_len(*roots));
    }
    return check_chain(e, *chain, *roots, ret, err);
}

int fl_enrolling_done(struct fl_enrolling *e, const struct fl_enrolling_reply *reply, int64_t now,
                      struct fl_identity *ret, struct fl_err *err)
{
    struct fl_chain *chain = NULL;
    struct fl_chain *roots = NULL;
    struct fl_identity who;
    int rv = check_reply(e, reply, &chain, &roots, &who, err);

    if (rv != FL_OK && rv != FL_ENOMEM) {
        rv = fl_err_wrap(err, FL_EPROTO, "the certificate that the server sent is rejected");
    }
    if (rv != FL_OK) {
        goto done;
    }
    rv = check_begun(chain, reply, now, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__folder_install(e->dir, chain, roots, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (ret != NULL) {
        *ret = who;
    }
done:
    fl_chain_unref(chain);
    fl_chain_unref(roots);
    return rv;
}

void fl_enrolling_free(struct fl_enrolling *e)
{
    if (e == NULL) {
        return;
    }
    if (e->lock >= 0) {
        (void)close(e->lock);
    }
    fl_key_unref(e->key);
    fl_buf_done(&e->request);
    free(e->dir);
    free(e);
}
