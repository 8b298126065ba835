#ifndef FL_PKI_IMPL_H
#define FL_PKI_IMPL_H

/* Declarations that the files of libfl/pki share. */

#include <openssl/x509.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libfl/base/buf.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/issue.h"
#include "libfl/pki/key.h"
#include "libfl/pki/names.h"

struct fl_key {
    atomic_uint refs;
    EVP_PKEY *pkey;
    bool has_private;
    uint8_t hash[FL_KEY_HASH];
    char *origin;
};

struct fl_cert {
    X509 *x509;
    struct fl_cert_info info;
};

struct fl_chain {
    atomic_uint refs;
    char *origin;
    size_t n;
    struct fl_cert *certs;
};

/* --- key.c --- */

/* Takes `pkey` on success. */
FL_MUST_CHECK int fl__key_wrap(EVP_PKEY *pkey, bool has_private, const char *origin,
                               struct fl_key **ret);
/* True when the kind of key is supported. `found` describes the kind, for messages. */
bool fl__key_kind(const EVP_PKEY *pkey, char *found, size_t size);
/* The digest that this kind of key signs with; NULL: it has its own. */
const EVP_MD *fl__key_digest(const EVP_PKEY *pkey);

/* --- pem.c --- */

/* The position of a scan of a PEM text; initially all zero except `text` and `len`. */
struct fl_pem {
    const char *text;
    size_t len;
    size_t at;
    unsigned line; /* lines before `at` */
};

struct fl_pem_block {
    char label[32]; /* "CERTIFICATE" */
    const char *text;
    size_t len;    /* both boundaries included */
    unsigned line; /* of the first line, from 1 */
};

/* The next block. FL_ENOENT: no more; FL_EFORMAT: a block without an end, `origin` is the file. */
FL_MUST_CHECK int fl__pem_next(struct fl_pem *pem, const char *origin, struct fl_pem_block *ret,
                               struct fl_err *err);
/*
 * Decodes the bytes within a block; release them with OPENSSL_free(). FL_EFORMAT: invalid base64.
 */
FL_MUST_CHECK int fl__pem_bytes(const struct fl_pem_block *block, const char *origin,
                                unsigned char **ret, long *ret_len, struct fl_err *err);

/* DER is one SEQUENCE of more than 127 bytes; no text begins with these two bytes. */
bool fl__looks_like_der(const void *data, size_t len);

/* --- chain.c --- */

/* An empty chain, to be filled before it is shared. */
FL_MUST_CHECK int fl__chain_create(const char *origin, struct fl_chain **ret);
/* Adds a reference to `x509`. FL_ELIMIT, FL_EFORMAT with a message that begins with `what`. */
FL_MUST_CHECK int fl__chain_add(struct fl_chain *chain, X509 *x509, const char *what,
                                struct fl_err *err);
/* FL_EFORMAT with a message that begins with `what`. */
FL_MUST_CHECK int fl__cert_info(X509 *x509, const char *what, struct fl_cert_info *info,
                                struct fl_err *err);
/* "certificate 'CN=edge-001' (serial 0a1b…)"; returns `out`. */
#define FL_CERT_TEXT 176
const char *fl__cert_text(char *out, const struct fl_cert_info *info);
/* A subject or issuer for messages, truncated to `size`. */
void fl__name_text(const X509_NAME *name, char *out, size_t size);
/* Seconds since 1970; FL_EFORMAT: not a valid time. */
FL_MUST_CHECK int fl__time_read(const ASN1_TIME *time, int64_t *ret);
/* FL_ENOMEM, also for a year after 9999, which such a time cannot express. */
FL_MUST_CHECK int fl__time_write(int64_t s, ASN1_TIME *time);

/* SHA-256 of its DER. FL_ENOMEM. */
FL_MUST_CHECK int fl__name_hash(const X509_NAME *name, uint8_t out[32]);

/* --- request.c --- */

/* Adds a common name, truncated to its maximum length. */
FL_MUST_CHECK int fl__subject_add(X509_NAME *subject, const char *name);

/* Clears OpenSSL's error queue after a failure that we have reported; returns `rv`. */
int fl__openssl_forget(int rv);
/*
 * The same where `rv` rejects a certificate: when OpenSSL failed because of memory, returns
 * FL_ENOMEM, because a rejection may be permanent and running out of memory is not.
 */
FL_MUST_CHECK int fl__openssl_verdict(int rv, struct fl_err *err);

#endif
