#ifndef FL_PKI_TRUST_IMPL_H
#define FL_PKI_TRUST_IMPL_H

/* Declarations for verification, identity and rejection messages. */

#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include "libfl/pki/pki_impl.h"
#include "libfl/pki/trust.h"

#define FL_TRUST_LISTS 64

/* One revocation list; the store has it too. */
struct fl_revocation_list {
    X509_CRL *crl;
    char *file;
    uint8_t issuer[32]; /* as in struct fl_identity */
};

struct fl_trust {
    atomic_uint refs;
    X509_STORE *store;
    struct fl_chain *roots;
    struct fl_chain *helpers; /* NULL: none */
    char federation[FL_IDENTITY_NAME_MAX];
    struct fl_rules *rules;
    int64_t grace_s;
    size_t n_lists;
    struct fl_revocation_list lists[FL_TRUST_LISTS];
};

/* One verification and its result. */
struct fl_verifying {
    const struct fl_trust *trust;
    const struct fl_chain *chain;
    enum fl_role purpose;
    const char *host;
    int64_t now;
    bool lapsed;
    /* Of the first error. */
    int error; /* X509_V_ERR_… */
    int depth;
    X509 *cert;    /* borrowed: of the chain, the trust or the store */
    X509_CRL *crl; /* borrowed; NULL where the error is not about a list */
};

/* who.c: the identity of the leaf, after its path was verified. */
FL_MUST_CHECK int fl__who(const struct fl_verifying *v, struct fl_identity *ret,
                          struct fl_refusal *refusal, struct fl_err *err);
/* The only fl:// URI of a certificate; FL_ENOENT: none; FL_EFORMAT: several, or an invalid one. */
FL_MUST_CHECK int fl__uri_of(const X509 *x509, struct fl_uri_name *ret);
/* "serverAuth, clientAuth" of a certificate; returns `out`. */
const char *fl__usage_text(char *out, size_t size, X509 *x509);

/* refuse.c: the message for v->error. */
FL_MUST_CHECK int fl__refuse_path(const struct fl_verifying *v, struct fl_refusal *refusal,
                                  struct fl_err *err);
/* Records a reason and its alert; returns FL_EPERM. */
int fl__refuse(struct fl_refusal *refusal, enum fl_refusal_reason reason);

/* crl.c */
FL_MUST_CHECK int fl__lists_parse(struct fl_trust *trust, const void *data, size_t len,
                                  const char *origin, struct fl_err *err);
FL_MUST_CHECK int fl__lists_load(struct fl_trust *trust, const char *path, struct fl_err *err);
void fl__lists_free(struct fl_trust *trust);

#endif
