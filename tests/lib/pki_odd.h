#ifndef FL_LIB_PKI_ODD_H
#define FL_LIB_PKI_ODD_H

/*
 * Certificates and revocation lists that libfl/pki itself would not create: of foreign PKIs, weak,
 * damaged. A failure to create one ends the test.
 */

#include <openssl/evp.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"

struct odd_ext {
    int nid;
    const char *value; /* as in openssl.cnf; NULL ends a list */
};

struct odd_cert {
    const char *const *subject; /* pairs "CN", "x", then NULL; NULL: an empty subject */
    const struct fl_chain *issuer;
    EVP_PKEY *issuer_key; /* NULL: signs itself */
    EVP_PKEY *key;
    const struct odd_ext *exts;
    int64_t not_before, not_after;
    const EVP_MD *digest; /* NULL: SHA-256 */
    int64_t serial;       /* 0: 77 */
};

/* To be freed with X509_free(). */
struct x509_st *odd_x509(const struct odd_cert *odd);
/* The leaf, then `issuer`. */
struct fl_chain *odd_chain(const struct odd_cert *odd);

struct odd_list {
    const struct fl_chain *issuer; /* the first of it */
    EVP_PKEY *issuer_key;
    int64_t last, next;             /* next 0: none */
    const struct fl_chain *revoked; /* its leaf; NULL: nobody */
};

/* Appends PEM or DER. */
void odd_list(const struct odd_list *list, int pem, struct fl_buf *out);

#endif
