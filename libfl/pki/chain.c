/*
 * Creates chains of certificates from PEM, DER and OpenSSL's objects, and reads the fields of each
 * certificate. Any thread. Verifies no signatures (verify.c); files, text and order are in
 * chain_use.c.
 */
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/base/utc.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/native.h"
#include "libfl/pki/pki_impl.h"

int fl__time_read(const ASN1_TIME *t, int64_t *ret)
{
    struct tm tm;

    if (t == NULL || ASN1_TIME_to_tm(t, &tm) != 1) {
        return FL_EFORMAT;
    }
    *ret = fl_utc_seconds(&tm);
    return FL_OK;
}

int fl__time_write(int64_t s, ASN1_TIME *t)
{
    int64_t days = s / 86400;

    /* In days: `s` may exceed the range of a time_t or a long. */
    return days >= INT_MIN && days <= INT_MAX &&
                   ASN1_TIME_adj(t, 0, (int)days, (long)(s % 86400)) != NULL
               ? FL_OK
               : FL_ENOMEM;
}

void fl__name_text(const X509_NAME *name, char *out, size_t size)
{
    /* RFC 2253 format, but in the order of the certificate and with UTF-8 unescaped. */
    unsigned long how = XN_FLAG_RFC2253 & ~XN_FLAG_DN_REV & ~ASN1_STRFLGS_ESC_MSB;
    BIO *bio = BIO_new(BIO_s_mem());
    char *text;
    long len;

    (void)snprintf(out, size, "(no name)");
    if (bio != NULL && X509_NAME_print_ex(bio, name, 0, how) > 0) {
        len = BIO_get_mem_data(bio, &text);
        (void)snprintf(out, size, "%.*s", (int)len, text);
        (void)fl_str_clean(out);
    }
    BIO_free(bio);
}

int fl__name_hash(const X509_NAME *name, uint8_t out[32])
{
    return X509_NAME_digest(name, EVP_sha256(), out, NULL) == 1 ? FL_OK
                                                                : fl__openssl_forget(FL_ENOMEM);
}

/* RFC 5280, 4.1.2.2: a positive number of at most 20 bytes; some roots have 0. */
static int read_serial(const X509 *x509, struct fl_cert_info *info)
{
    static const char digits[] = "0123456789abcdef";
    const ASN1_INTEGER *serial = X509_get0_serialNumber(x509);
    const unsigned char *p;
    int len;
    int i;

    if (serial == NULL || ASN1_STRING_type(serial) != V_ASN1_INTEGER) {
        return FL_EFORMAT; /* negative */
    }
    p = ASN1_STRING_get0_data(serial);
    len = ASN1_STRING_length(serial);
    if (len < 1 || len > FL_SERIAL_MAX) {
        return FL_EFORMAT;
    }
    for (i = 0; i < len; i++) {
        info->serial[i] = p[i];
        info->serial_text[2 * i] = digits[p[i] >> 4];
        info->serial_text[2 * i + 1] = digits[p[i] & 15];
    }
    info->serial_len = (size_t)len;
    return FL_OK;
}

int fl__cert_info(X509 *x509, const char *what, struct fl_cert_info *info, struct fl_err *err)
{
    unsigned char *der = NULL;
    int len;
    int ok;

    (void)memset(info, 0, sizeof(*info));
    fl__name_text(X509_get_subject_name(x509), info->subject, sizeof(info->subject));
    if (read_serial(x509, info) != FL_OK) {
        return fl_err_set(err, FL_EFORMAT,
                          "%s: the serial number of certificate '%s' is not a positive number of "
                          "at most %d bytes (RFC 5280); have it issued again",
                          what, info->subject, FL_SERIAL_MAX);
    }
    if (fl__time_read(X509_get0_notBefore(x509), &info->not_before) != FL_OK ||
        fl__time_read(X509_get0_notAfter(x509), &info->not_after) != FL_OK)
    {
        return fl_err_set(err, FL_EFORMAT,
                          "%s: certificate '%s' has invalid dates; have it issued again", what,
                          info->subject);
    }
    /* Parses the extensions too, so that two threads never do so at once later. */
    info->is_ca = X509_check_ca(x509) == 1;
    info->self_issued = (X509_get_extension_flags(x509) & EXFLAG_SI) != 0;
    len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), &der);
    ok = len > 0 && EVP_Digest(der, (size_t)len, info->key, NULL, EVP_sha256(), NULL) == 1;
    OPENSSL_free(der);
    return ok ? FL_OK : FL_ENOMEM;
}

int fl__chain_create(const char *origin, struct fl_chain **ret)
{
    struct fl_chain *chain = calloc(1, sizeof(*chain));

    if (chain == NULL || (chain->origin = fl_str_dup(origin)) == NULL) {
        free(chain);
        return FL_ENOMEM;
    }
    atomic_init(&chain->refs, 1);
    *ret = chain;
    return FL_OK;
}

int fl__chain_add(struct fl_chain *chain, X509 *x509, const char *what, struct fl_err *err)
{
    struct fl_cert_info info;
    struct fl_cert *certs;
    int len = i2d_X509(x509, NULL);
    int rv;

    if (chain->n >= FL_CHAIN_MAX) {
        return fl_err_set(err, FL_ELIMIT, "%s: more than %d certificates in one chain", what,
                          FL_CHAIN_MAX);
    }
    if (len > FL_CERT_MAX) {
        return fl_err_set(err, FL_ELIMIT,
                          "%s: certificate too large: %d bytes, at most %d are accepted", what, len,
                          FL_CERT_MAX);
    }
    rv = len <= 0 ? FL_ENOMEM : fl__cert_info(x509, what, &info, err);
    if (rv != FL_OK) {
        return fl__openssl_verdict(rv, err);
    }
    certs = realloc(chain->certs, (chain->n + 1) * sizeof(*certs));
    if (certs == NULL) {
        return FL_ENOMEM;
    }
    chain->certs = certs;
    if (X509_up_ref(x509) != 1) {
        return FL_ENOMEM;
    }
    certs[chain->n++] = (struct fl_cert){.x509 = x509, .info = info};
    return fl__openssl_forget(FL_OK); /* an invalid extension leaves an error in OpenSSL's queue */
}

static int add_der(struct fl_chain *chain, const unsigned char *der, long len, const char *what,
                   struct fl_err *err)
{
    const unsigned char *p = der;
    X509 *x509;
    int rv;

    if (len > FL_CERT_MAX) {
        return fl_err_set(err, FL_ELIMIT,
                          "%s: certificate too large: %ld bytes, at most %d are accepted", what,
                          len, FL_CERT_MAX);
    }
    x509 = d2i_X509(NULL, &p, len);
    if (x509 == NULL || p != der + len) {
        X509_free(x509);
        return fl__openssl_verdict(
            fl_err_set(
                err, FL_EFORMAT,
                "%s: not a certificate: it is damaged or truncated; copy the whole file again",
                what),
            err);
    }
    rv = fl__chain_add(chain, x509, what, err);
    X509_free(x509);
    return rv;
}

static int chain_add_pem(struct fl_chain *chain, const void *pem, size_t len, struct fl_err *err)
{
    struct fl_pem scan = {.text = pem, .len = len};
    struct fl_pem_block block;
    bool key = false;
    int rv;

    while ((rv = fl__pem_next(&scan, chain->origin, &block, err)) == FL_OK) {
        if (strcmp(block.label, "CERTIFICATE") == 0 || strcmp(block.label, "X509 CERTIFICATE") == 0)
        {
            unsigned char *raw = NULL;
            char what[512];
            long bytes = 0;

            rv = fl__pem_bytes(&block, chain->origin, &raw, &bytes, err);
            if (rv != FL_OK) {
                return rv;
            }
            (void)snprintf(what, sizeof(what), "'%s': line %u", chain->origin, block.line);
            rv = add_der(chain, raw, bytes, what, err);
            OPENSSL_free(raw);
            if (rv != FL_OK) {
                return rv;
            }
        }
        key = key || fl_str_ends_with(block.label, "PRIVATE KEY");
    }
    if (rv != FL_ENOENT) {
        return rv;
    }
    if (chain->n > 0) {
        return FL_OK;
    }
    return fl_err_set(
        err, FL_EFORMAT,
        key ? "'%s' contains a private key and no certificate; check whether the files of "
              "certificate and key are swapped"
            : "'%s' contains no certificate, '-----BEGIN CERTIFICATE-----' was expected",
        chain->origin);
}

int fl_chain_parse(const void *pem, size_t len, const char *origin, struct fl_chain **ret,
                   struct fl_err *err)
{
    struct fl_chain *chain;
    char what[512];
    int rv = fl__chain_create(origin, &chain);

    if (rv != FL_OK) {
        return rv;
    }
    if (len > FL_CHAIN_FILE_MAX) {
        rv = fl_err_set(err, FL_ELIMIT, "'%s' is longer than %d bytes", origin, FL_CHAIN_FILE_MAX);
    } else if (fl__looks_like_der(pem, len)) {
        (void)snprintf(what, sizeof(what), "'%s'", origin);
        rv = add_der(chain, pem, (long)len, what, err);
    } else {
        rv = chain_add_pem(chain, pem, len, err);
    }
    if (rv != FL_OK) {
        fl_chain_unref(chain);
        return rv;
    }
    *ret = chain;
    return FL_OK;
}

int fl_chain_load(const char *path, struct fl_chain **ret, struct fl_err *err)
{
    struct fl_buf buf;
    int rv = fl_fs_read(path, FL_CHAIN_FILE_MAX, &buf, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_chain_parse(buf.data, buf.len, path, ret, err);
    fl_buf_done(&buf);
    return rv;
}

int fl_chain_from_der(const struct fl_der *certs, size_t n, const char *origin,
                      struct fl_chain **ret, struct fl_err *err)
{
    struct fl_chain *chain;
    char what[512];
    size_t i;
    int rv;

    if (n == 0) {
        return fl_err_set(err, FL_EFORMAT, "%s: no certificate", origin);
    }
    rv = fl__chain_create(origin, &chain);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        (void)snprintf(what, sizeof(what), "%s: certificate %zu", origin, i + 1);
        rv = certs[i].len > FL_CERT_MAX
                 ? fl_err_set(err, FL_ELIMIT, "%s: %zu bytes, at most %d are accepted", what,
                              certs[i].len, FL_CERT_MAX)
                 : add_der(chain, certs[i].data, (long)certs[i].len, what, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = chain;
    return FL_OK;
fail:
    fl_chain_unref(chain);
    return rv;
}

int fl_chain_from_native(const struct stack_st_X509 *certs, const char *origin,
                         struct fl_chain **ret, struct fl_err *err)
{
    struct fl_chain *chain;
    int rv = fl__chain_create(origin, &chain);
    int i;

    if (rv != FL_OK) {
        return rv;
    }
    if (certs == NULL || sk_X509_num(certs) < 1) {
        rv = fl_err_set(err, FL_EFORMAT, "%s: no certificate", origin);
        goto fail;
    }
    for (i = 0; i < sk_X509_num(certs); i++) {
        rv = fl__chain_add(chain, sk_X509_value(certs, i), origin, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = chain;
    return FL_OK;
fail:
    fl_chain_unref(chain);
    return rv;
}
