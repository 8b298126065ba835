#ifndef FL_PKI_TRUST_H
#define FL_PKI_TRUST_H

/*
 * The roots, revocation lists and rules that one side trusts, and the verification of a chain.
 * OpenSSL builds and checks the path (X.509 strict, purposes, names, revocation lists); this module
 * sets its parameters, finds the identity in the certificate, and writes the message of a
 * rejection.
 *
 * Threading: a fl_trust is immutable after creation and its reference count is atomic; any number
 * of threads may verify with it at once. New roots, lists or rules need a new one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/identity.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/names.h"

#define FL_TRUST_FILES 16
/* A list of 100 000 revoked serial numbers has 4 MB. */
#define FL_CRL_FILE_MAX (16u * 1024 * 1024)

struct fl_trust;

/*
 * All are copied or referenced; the files are read once, at creation. At least one root is
 * required.
 */
struct fl_trust_setup {
    const struct fl_chain *roots; /* NULL: only those of the files */
    const char *const *root_files;
    size_t n_root_files;
    const struct fl_chain *intermediates; /* used when a peer does not send its own; NULL */
    /*
     * PEM or DER, several lists in one file or several files. With any list, the issuer of every
     * leaf must have one that has not expired.
     */
    const char *const *crl_files;
    size_t n_crl_files;
    const char *federation; /* fl:// names must be of this federation; NULL with rules */
    struct fl_rules *rules; /* an operator's own PKI: only these define identities; NULL */
    /*
     * Grace period in seconds: how long after its expiry a client's certificate may still be used
     * for renewing. It is verified at its last second, so that an intermediate or root that expired
     * meanwhile does not prevent its clients from renewing; revocation lists are the current ones.
     */
    int64_t grace_s;
};

enum fl_refusal_reason {
    FL_REFUSED_NOT,     /* it was accepted, or out of memory */
    FL_REFUSED_UNKNOWN, /* no path to a trusted root: another federation, or an incomplete chain */
    FL_REFUSED_CLOCK,   /* not valid yet: a clock is wrong */
    FL_REFUSED_EXPIRED, /* expired, and its grace period too */
    FL_REFUSED_REVOKED, /* on a revocation list */
    FL_REFUSED_LIST,    /* the list itself is missing, expired or invalid */
    FL_REFUSED_PURPOSE, /* a client's used as a server's, a leaf that signs */
    FL_REFUSED_HOST,    /* not the expected server */
    FL_REFUSED_NAME,    /* of another federation, no rule matches, two names */
    FL_REFUSED_SIGNATURE, /* does not match its issuer's key */
    FL_REFUSED_WEAK,      /* key or digest too short */
    FL_REFUSED_FORM       /* does not conform to RFC 5280 */
};

struct fl_refusal {
    enum fl_refusal_reason reason;
    /*
     * TLS alert (RFC 8446, section 6): for example 45, certificate_expired; 80 when out of memory.
     */
    int alert;
};

/* A literal of one word: "unknown", "clock", … */
const char *fl_refusal_text(enum fl_refusal_reason reason);

FL_MUST_CHECK int fl_trust_create(const struct fl_trust_setup *setup, struct fl_trust **ret,
                                  struct fl_err *err);
struct fl_trust *fl_trust_ref(struct fl_trust *trust);
void fl_trust_unref(struct fl_trust *trust); /* NULL is allowed. */
/* All roots, those of files too; lives as long as the trust. */
const struct fl_chain *fl_trust_roots(const struct fl_trust *trust);

/*
 * The identity in the leaf's fl:// URI, without verification: for the holder of a certificate.
 * FL_ENOENT: no URI; FL_EFORMAT: an invalid one, or several.
 */
FL_MUST_CHECK int fl_chain_name(const struct fl_chain *chain, struct fl_uri_name *ret);

/* A chain to be verified; borrowed for the call. */
struct fl_claim {
    const struct fl_chain *chain; /* leaf first, then in any order */
    /*
     * FL_ROLE_SERVER: it must be a server's and `host`'s; the name is that of its fl:// URI, in an
     * operator's own PKI `host`. FL_ROLE_CLIENT: a client's or an admin's, the identity says which.
     */
    enum fl_role purpose;
    const char *host; /* of a server; NULL: any */
    int64_t now;      /* seconds since 1970 */
};
/*
 * Verifies a chain. On FL_OK `ret` is filled; `lapsed` is set only with a grace period. Otherwise
 * FL_EPERM, `*ret_refusal` (may be NULL) and a message that names the certificate, what was
 * expected, what was found and what to do (the caller puts the peer in front); or FL_ENOMEM.
 */
FL_MUST_CHECK int fl_trust_verify(const struct fl_trust *trust, const struct fl_claim *claim,
                                  struct fl_identity *ret, struct fl_refusal *ret_refusal,
                                  struct fl_err *err);
/*
 * True when a certificate that was verified before, with any trust, is on a revocation list of this
 * one: so a newer list applies to established connections. `why` names the list, for the peer and
 * the log.
 */
bool fl_trust_listed(const struct fl_trust *trust, const struct fl_identity *who, char *why,
                     size_t size);
/* All that an invitation says about the server; borrowed. */
struct fl_pin {
    const uint8_t *key; /* hash of the root's public key [FL_KEY_HASH] */
    const char *federation;
};
/*
 * Joining: only an invitation is known. The self-signed certificate of the pinned key is taken from
 * the chain, and the rest is verified with it; the purpose of the claim is FL_ROLE_SERVER.
 * `ret_roots` (may be NULL) is that root, to be stored.
 */
FL_MUST_CHECK int fl_pin_verify(const struct fl_pin *pin, const struct fl_claim *claim,
                                struct fl_identity *ret, struct fl_chain **ret_roots,
                                struct fl_refusal *ret_refusal, struct fl_err *err);

#endif
