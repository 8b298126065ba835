/*
 * Operations on existing chains: parts, text, files, order, dates, and whether a key belongs to
 * one. Any thread. Verifies no signatures (verify.c).
 */

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/native.h"
#include "libfl/pki/pki_impl.h"
#include "libfl/pki/when.h"

/* The certificates were checked before, so this fails for lack of memory or room only. */
static int add_from(struct fl_chain *chain, const struct fl_chain *from, size_t first, size_t n)
{
    size_t i;
    int rv;

    for (i = first; i < first + n; i++) {
        bool there = false;
        size_t k;

        for (k = 0; k < chain->n; k++) {
            there = there || X509_cmp(chain->certs[k].x509, from->certs[i].x509) == 0;
        }
        if (!there) {
            rv = fl__chain_add(chain, from->certs[i].x509, chain->origin, NULL);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

int fl_chain_part(const struct fl_chain *chain, size_t first, size_t n, struct fl_chain **ret)
{
    struct fl_chain *part;
    int rv;

    FL_REQUIRE(n > 0 && first < chain->n && n <= chain->n - first);
    rv = fl__chain_create(chain->origin, &part);
    if (rv != FL_OK) {
        return rv;
    }
    rv = add_from(part, chain, first, n);
    if (rv != FL_OK) {
        fl_chain_unref(part);
        return rv;
    }
    *ret = part;
    return FL_OK;
}

int fl_chain_join(const struct fl_chain *a, const struct fl_chain *b, struct fl_chain **ret)
{
    struct fl_chain *both;
    int rv = fl__chain_create(a->origin, &both);

    if (rv != FL_OK) {
        return rv;
    }
    rv = add_from(both, a, 0, a->n);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = add_from(both, b, 0, b->n);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = both;
    return FL_OK;
fail:
    fl_chain_unref(both);
    return rv;
}

int fl_chain_pem(const struct fl_chain *chain, struct fl_buf *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int rv = FL_ENOMEM;
    char *text;
    long len;
    size_t i;

    if (bio == NULL) {
        goto done;
    }
    for (i = 0; i < chain->n; i++) {
        if (PEM_write_bio_X509(bio, chain->certs[i].x509) != 1) {
            goto done;
        }
    }
    len = BIO_get_mem_data(bio, &text);
    rv = fl_buf_add(out, text, (size_t)len);
done:
    BIO_free(bio);
    return fl__openssl_forget(rv);
}

int fl_chain_der(const struct fl_chain *chain, size_t i, struct fl_buf *out)
{
    unsigned char *der = NULL;
    int len;
    int rv;

    FL_REQUIRE(i < chain->n);
    len = i2d_X509(chain->certs[i].x509, &der);
    rv = len > 0 ? fl_buf_add(out, der, (size_t)len) : FL_ENOMEM;
    OPENSSL_free(der);
    return fl__openssl_forget(rv);
}

int fl_chain_save(const struct fl_chain *chain, const char *path, bool sync, struct fl_err *err)
{
    struct fl_buf pem;
    int rv;

    fl_buf_init(&pem, 2 * FL_CHAIN_MAX * FL_CERT_MAX);
    rv = fl_chain_pem(chain, &pem);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot write '%s': %s", path, fl_strerror(rv));
        goto done;
    }
    rv = fl_fs_replace(path, pem.data, pem.len, sync, err);
done:
    fl_buf_done(&pem);
    return rv;
}

size_t fl_chain_len(const struct fl_chain *chain)
{
    return chain->n;
}

void fl_chain_info(const struct fl_chain *chain, size_t i, struct fl_cert_info *ret)
{
    FL_REQUIRE(i < chain->n);
    *ret = chain->certs[i].info;
}

int fl_chain_find_key(const struct fl_chain *chain, size_t first, const uint8_t hash[FL_KEY_HASH])
{
    size_t i;

    for (i = first; i < chain->n; i++) {
        if (memcmp(chain->certs[i].info.key, hash, FL_KEY_HASH) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *fl_chain_origin(const struct fl_chain *chain)
{
    return chain->origin;
}

struct x509_st *fl_chain_native(const struct fl_chain *chain, size_t i)
{
    FL_REQUIRE(i < chain->n);
    return chain->certs[i].x509;
}

struct fl_chain *fl_chain_ref(struct fl_chain *chain)
{
    (void)atomic_fetch_add_explicit(&chain->refs, 1, memory_order_relaxed);
    return chain;
}

void fl_chain_unref(struct fl_chain *chain)
{
    size_t i;

    if (chain == NULL || atomic_fetch_sub_explicit(&chain->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (i = 0; i < chain->n; i++) {
        X509_free(chain->certs[i].x509);
    }
    free(chain->certs);
    free(chain->origin);
    free(chain);
}

const char *fl__cert_text(char *out, const struct fl_cert_info *info)
{
    (void)snprintf(out, FL_CERT_TEXT, "certificate '%s' (serial %s)", info->subject,
                   info->serial_text);
    return out;
}

/* The name of a chain or key in messages: its file, or `otherwise`. */
static const char *origin_or(const char *origin, const char *otherwise)
{
    return origin[0] != '\0' ? origin : otherwise;
}

int fl_chain_fits(const struct fl_chain *chain, const struct fl_key *key, struct fl_err *err)
{
    char text[FL_CERT_TEXT];

    if (memcmp(chain->certs[0].info.key, key->hash, FL_KEY_HASH) == 0) {
        return FL_OK;
    }
    return fl_err_set(
        err, FL_ECONF,
        "'%s': %s has another key (%02x%02x%02x%02x…) than '%s' (%02x%02x%02x%02x…); put the "
        "certificate and the key that were created together in these two files",
        origin_or(chain->origin, "(memory)"), fl__cert_text(text, &chain->certs[0].info),
        chain->certs[0].info.key[0], chain->certs[0].info.key[1], chain->certs[0].info.key[2],
        chain->certs[0].info.key[3], origin_or(key->origin, "(memory)"), key->hash[0], key->hash[1],
        key->hash[2], key->hash[3]);
}

/* Roots may be anywhere after the leaf: there are two of them during a change. */
static bool has_place(const struct fl_chain *chain, size_t at)
{
    size_t i;

    for (i = 0; i < at; i++) {
        if (X509_check_issued(chain->certs[at].x509, chain->certs[i].x509) == X509_V_OK) {
            return true;
        }
    }
    return chain->certs[at].info.self_issued;
}

/* A wrong order fails with some peers only: OpenSSL sorts the received chain, others need not. */
static int check_order(const struct fl_chain *chain, struct fl_err *err)
{
    size_t i;

    if (chain->certs[0].info.is_ca) {
        return fl_err_set(err, FL_ECONF,
                          "'%s': its first certificate, '%s', is that of an authority; put the "
                          "certificate of this machine first, then its issuer, and so on",
                          chain->origin, chain->certs[0].info.subject);
    }
    for (i = 1; i < chain->n; i++) {
        if (!has_place(chain, i)) {
            return fl_err_set(
                err, FL_ECONF,
                "'%s': certificate %zu, '%s', is not the issuer of any before it; put the "
                "certificate of this machine first, then its issuer, and so on, and remove others",
                chain->origin, i + 1, chain->certs[i].info.subject);
        }
    }
    return FL_OK;
}

int fl_credentials_load(const char *certificate, const char *key_path, struct fl_chain **ret_chain,
                        struct fl_key **ret_key, struct fl_err *err)
{
    struct fl_chain *chain = NULL;
    struct fl_key *key = NULL;
    int rv = fl_chain_load(certificate, &chain, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_key_load(key_path, &key, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_chain_fits(chain, key, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = check_order(chain, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret_chain = chain;
    *ret_key = key;
    return FL_OK;
fail:
    fl_chain_unref(chain);
    fl_key_unref(key);
    return rv;
}

int fl_chain_dated(const struct fl_chain *chain, size_t i, int64_t now, int64_t soon_s,
                   const char *renew, struct fl_err *err)
{
    const struct fl_cert_info *info = &chain->certs[i].info;
    char text[FL_CERT_TEXT];
    char clock[FL_WHEN_TEXT];
    char date[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    (void)fl_when_text(clock, sizeof(clock), now);
    if (now < info->not_before) {
        return fl_err_set(
            err, FL_EPERM,
            "'%s': %s: not valid yet: this machine's clock says %s, the certificate begins %s, "
            "which is %s later; wait for time synchronisation or set the clock",
            origin_or(chain->origin, "(memory)"), fl__cert_text(text, info), clock,
            fl_when_text(date, sizeof(date), info->not_before),
            fl_span_text(span, sizeof(span), info->not_before - now));
    }
    if (now >= info->not_after) {
        return fl_err_set(err, FL_EPERM,
                          "'%s': %s: expired: this machine's clock says %s, the certificate ended "
                          "%s, which was %s earlier; if the clock is right, %s",
                          origin_or(chain->origin, "(memory)"), fl__cert_text(text, info), clock,
                          fl_when_text(date, sizeof(date), info->not_after),
                          fl_span_text(span, sizeof(span), now - info->not_after), renew);
    }
    if (info->not_after - now <= soon_s) {
        return fl_err_set(err, FL_EAGAIN,
                          "'%s': %s: expires soon: this machine's clock says %s, the certificate "
                          "ends %s, in %s; before that, %s",
                          origin_or(chain->origin, "(memory)"), fl__cert_text(text, info), clock,
                          fl_when_text(date, sizeof(date), info->not_after),
                          fl_span_text(span, sizeof(span), info->not_after - now), renew);
    }
    return FL_OK;
}
