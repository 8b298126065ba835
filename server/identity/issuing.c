/*
 * Issues certificates: checks the clock, the limits and the owner of the name, signs, and stores
 * the certificate. Shared by joining.c and reissue.c, which decide whether a peer gets one. Runs on
 * the thread of the authority.
 */

#include "server/identity/issuing_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/model/digest.h"
#include "libfl/pki/issue.h"
#include "libfl/pki/when.h"

#define DAY_MS (INT64_C(86400) * 1000)

bool fl__is_refusal(int rv)
{
    return rv == FL_ENOENT || rv == FL_EAGAIN || rv == FL_EPERM || rv == FL_EREFUSED ||
           rv == FL_EEXIST || rv == FL_EINVAL || rv == FL_EFORMAT || rv == FL_ELIMIT;
}

void fl_joined_done(struct fl_joined *joined)
{
    fl_chain_unref(joined->chain);
    fl_chain_unref(joined->roots);
    fl__labels_free(joined->labels, joined->n_labels);
    *joined = (struct fl_joined){0};
}

int fl_joined_wire(const struct fl_chain *chain, struct fl_wire_chain *ret)
{
    size_t n = fl_chain_len(chain);
    struct fl_buf der;
    size_t i;
    int rv;

    if (n > FL_WIRE_MAX_CHAIN) {
        return FL_ELIMIT;
    }
    fl_buf_init(&der, FL_WIRE_MAX_CERTIFICATE);
    *ret = (struct fl_wire_chain){.list = calloc(n, sizeof(*ret->list))};
    if (ret->list == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        fl_buf_clear(&der);
        rv = fl_chain_der(chain, i, &der);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl_wire_bytes_copy(der.data, der.len, &ret->list[i]);
        if (rv != FL_OK) {
            goto fail;
        }
        ret->n++;
    }
    fl_buf_done(&der);
    return FL_OK;
fail:
    fl_buf_done(&der);
    fl_wire_chain_done(ret);
    return rv;
}

/* A server with a wrong clock must not issue certificates that others cannot use. */
static int check_clock(const struct fl_authority *a, int64_t now, struct fl_err *err)
{
    struct fl_cert_info info;
    char clock[FL_WHEN_TEXT];
    char begins[FL_WHEN_TEXT];
    char by[FL_WHEN_TEXT];

    fl_chain_info(a->files.intermediate, 0, &info);
    if (now >= info.not_before) {
        return FL_OK;
    }
    return fl_err_set(err, FL_EPERM,
                      "the server's clock says %s, which is %s before its own certificate becomes "
                      "valid (%s): the clock is wrong, set it (timedatectl)",
                      fl_when_text(clock, sizeof(clock), now),
                      fl_span_text(by, sizeof(by), info.not_before - now),
                      fl_when_text(begins, sizeof(begins), info.not_before));
}

int fl__issue(struct fl_authority *a, const struct fl__wanted *wanted, int64_t now_ms,
              struct fl_joined *ret, struct fl_cert_info *ret_info, struct fl_err *err)
{
    int64_t now = now_ms / 1000;
    struct fl_issue issue = {.federation = a->conf.federation,
                             .not_before = now - a->conf.spans.back_date,
                             .not_after = now + wanted->span_s,
                             .role = wanted->role,
                             .name = wanted->name};
    struct fl__certificate row = {
        .role = wanted->role, .issued_ms = now_ms, .by = wanted->by, .joined = wanted->joined};
    int rv = check_clock(a, now, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__random(&a->conf, issue.serial, sizeof(issue.serial), err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_issue_leaf(a->files.intermediate, a->files.intermediate_key, wanted->key, &issue,
                       &ret->chain, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_chain_info(ret->chain, 0, ret_info);
    ret->roots = fl_chain_ref(a->roots);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", wanted->name);
    row.serial_len = ret_info->serial_len;
    row.not_before = ret_info->not_before;
    row.not_after = ret_info->not_after;
    (void)memcpy(row.serial, ret_info->serial, sizeof(row.serial));
    (void)memcpy(row.key, ret_info->key, sizeof(row.key));
    (void)snprintf(row.name, sizeof(row.name), "%s", wanted->name);
    if (wanted->parent != NULL) {
        row.parent_len = wanted->parent_len;
        (void)memcpy(row.parent, wanted->parent, wanted->parent_len);
    }
    fl_buf_init(&row.der, FL_CERT_MAX);
    rv = fl_chain_der(ret->chain, 0, &row.der);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "a certificate for '%s': %s", wanted->name, fl_strerror(rv));
        goto done;
    }
    rv = fl__certificate_put(&a->db, FL__SQL_PUT_CERTIFICATE, &row, err);
done:
    fl_buf_done(&row.der);
    return rv;
}

int fl__issued_before(struct fl_authority *a, const struct fl__certificate *certificate,
                      struct fl_joined *ret, struct fl_err *err)
{
    struct fl_der der = {.data = certificate->der.data, .len = certificate->der.len};
    struct fl_chain *leaf = NULL;
    struct fl_chain *above = NULL;
    int rv = fl_chain_from_der(&der, 1, "identity.db", &leaf, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_chain_part(a->files.intermediate, 0, 1, &above);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_chain_join(leaf, above, &ret->chain);
    if (rv != FL_OK) {
        goto fail;
    }
    fl_chain_unref(leaf);
    fl_chain_unref(above);
    ret->roots = fl_chain_ref(a->roots);
    ret->again = true;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", certificate->name);
    return FL_OK;
fail:
    fl_chain_unref(leaf);
    fl_chain_unref(above);
    return fl_err_wrap(err, rv, "the certificate of '%s'", certificate->name);
}

int fl__check_burst(struct fl_authority *a, const char *name, int64_t now_ms, struct fl_err *err)
{
    int64_t span = a->conf.spans.leaf * 1000 < DAY_MS ? a->conf.spans.leaf * 1000 : DAY_MS;
    struct fl_query q = fl_db_query(&a->db, FL__SQL_COUNT_RECENT);
    char text[FL_WHEN_TEXT];
    uint64_t n;
    int rv;

    fl_query_text(&q, name);
    fl_query_u64(&q, (uint64_t)(now_ms > span ? now_ms - span : 0));
    rv = fl_query_number(&q, &n, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (n >= FL__NAME_BURST) {
        return fl_err_set(
            err, FL_EAGAIN,
            "'%s' got %llu certificates within %s, refused: that is more than renewal needs, check "
            "why they do not reach the client",
            name, (unsigned long long)n, fl_span_text(text, sizeof(text), span / 1000));
    }
    return FL_OK;
}

int fl__check_key(struct fl_authority *a, const uint8_t *key, const char *name, int64_t now_ms,
                  struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_OTHER_NAME);
    struct fl__certificate other;
    int rv;

    fl_query_blob(&q, key, FL_KEY_HASH);
    fl_query_text(&q, name);
    fl_query_u64(&q, (uint64_t)(now_ms / 1000 - a->conf.spans.grace));
    rv = fl__certificate_one(&q, &other, err);
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    return fl_err_set(err, FL_EEXIST,
                      "this key is in use by '%s' and a key has only one name: '%s' needs a key of "
                      "its own, use another state folder",
                      other.name, name);
}

int fl__holder_of(struct fl_authority *a, const char *name, const uint8_t *key, int64_t now_ms,
                  struct fl__holder *ret, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&a->db, FL__SQL_HOLDER);

    fl_query_text(&q, name);
    fl_query_u64(&q, (uint64_t)(now_ms / 1000 - a->conf.spans.grace));
    fl_query_blob(&q, key, FL_KEY_HASH);
    return fl__holder_one(&q, ret, err);
}

int fl__check_name(struct fl_authority *a, const char *name, const uint8_t *key, int64_t made_ms,
                   int64_t now_ms, bool *ret_replaces, struct fl_err *err)
{
    struct fl__holder holder;
    char hex[2 * FL_KEY_HASH + 1];
    char since[FL_WHEN_TEXT];
    int rv = fl__holder_of(a, name, key, now_ms, &holder, err);

    *ret_replaces = false;
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    if (made_ms > holder.joined_ms) {
        *ret_replaces = true;
        return FL_OK;
    }
    return fl_err_set(
        err, FL_EEXIST,
        "the name '%s' is taken by another key (%.8s…, certificate of %s): if its host was "
        "reinstalled, run on the server: flctl invite %s; otherwise join by another name",
        name, fl_hex(hex, holder.key, sizeof(holder.key)),
        fl_when_text(since, sizeof(since), holder.issued_ms / 1000), name);
}
