#ifndef FL_PKI_TRUST_H
#define FL_PKI_TRUST_H

/*
 * Whom one side believes, and the question whether it believes a chain. OpenSSL builds and checks
 * the path (X.509 strict, purposes, names, lists of revoked ones); here stands what is asked of it,
 * who the certificate then is for, and what is said when the answer is no.
 *
 * Threading: a fl_trust is immutable after creation and its count is atomic; any number of threads
 * may verify with it at once. New roots, lists or rules make a new one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/identity.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/names.h"

#define FL_TRUST_FILES 16
/* A list of 100 000 revoked serials has 4 MB. */
#define FL_CRL_FILE_MAX (16u * 1024 * 1024)

struct fl_trust;

/* All are copied or referenced; files are read once, here. At least one root is needed. */
struct fl_trust_setup {
    const struct fl_chain *roots; /* NULL: only those of the files */
    const char *const *root_files;
    size_t n_root_files;
    const struct fl_chain *intermediates; /* help where a peer does not send its own; NULL */
    /* PEM or DER, several lists in one file or several files. With any, every leaf's issuer has to
       have one that is not over. */
    const char *const *crl_files;
    size_t n_crl_files;
    const char *federation; /* fl:// names have to be of it; NULL with rules */
    struct fl_rules *rules; /* an operator's own PKI: only these say who somebody is; NULL */
    /*
     * How long a client's certificate that is over may still ask for a new one, in seconds. It is
     * looked at as of its last second, so an intermediate or root that ended meanwhile does not
     * keep its clients from renewing; lists of revoked ones are those of today.
     */
    int64_t grace_s;
};

enum fl_refusal_reason {
    FL_REFUSED_NOT,     /* it was believed, or memory was short */
    FL_REFUSED_UNKNOWN, /* no path to a root of ours: another federation, or a chain with a hole */
    FL_REFUSED_CLOCK,   /* not yet valid: somebody's clock is wrong */
    FL_REFUSED_EXPIRED, /* over, and its grace too */
    FL_REFUSED_REVOKED, /* by a list */
    FL_REFUSED_LIST,    /* the list itself is missing, over or bad */
    FL_REFUSED_PURPOSE, /* a client's used as a server's, a leaf that signs */
    FL_REFUSED_HOST,    /* not the server that was asked for */
    FL_REFUSED_NAME,    /* of another federation, no rule fits, two names */
    FL_REFUSED_SIGNATURE, /* does not fit its issuer's key */
    FL_REFUSED_WEAK,      /* key or digest too short */
    FL_REFUSED_FORM       /* not as RFC 5280 has it */
};

struct fl_refusal {
    enum fl_refusal_reason reason;
    /* Of TLS (RFC 8446, section 6): 45, certificate_expired, say; 80 for want of memory. */
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
 * Who the leaf says by its fl:// URI that it is for, whether that is to be believed or not: for the
 * holder of a certificate. FL_ENOENT: it has none; FL_EFORMAT: a damaged one, or several.
 */
FL_MUST_CHECK int fl_chain_name(const struct fl_chain *chain, struct fl_uri_name *ret);

/*
 * Is `chain` (leaf first, in any order behind it) to be believed at `now`, seconds since 1970?
 * `purpose` FL_ROLE_SERVER: it is a server's and `host`'s (NULL: any); the name is that of its
 * fl:// URI, in an operator's own PKI `host`. FL_ROLE_CLIENT: a client's or an admin's, the
 * identity says which. On FL_OK `ret` is filled; `lapsed` is set only with a grace. Else FL_EPERM,
 * `*ret_refusal` (may be NULL) and a message that names the certificate, what was expected, what
 * was found and what to do (the caller puts the peer in front); or FL_ENOMEM.
 */
FL_MUST_CHECK int fl_trust_verify(const struct fl_trust *trust, const struct fl_chain *chain,
                                  enum fl_role purpose, const char *host, int64_t now,
                                  struct fl_identity *ret, struct fl_refusal *ret_refusal,
                                  struct fl_err *err);
/*
 * Is a certificate that was verified before, under whatever trust, on one of the lists of this one?
 * So a connection that stands learns of a newer list. `why` says by which, for peer and log.
 */
bool fl_trust_listed(const struct fl_trust *trust, const struct fl_identity *who, char *why,
                     size_t size);
/*
 * Joining: of the root only the hash of its public key is known, by an invitation for `federation`.
 * The self-signed certificate of that key is taken out of `chain`, and the rest verified under it
 * as a server's. `ret_roots` (may be NULL) is that root, to be kept.
 */
FL_MUST_CHECK int fl_pin_verify(const uint8_t pin[FL_KEY_HASH], const char *federation,
                                const struct fl_chain *chain, const char *host, int64_t now,
                                struct fl_identity *ret, struct fl_chain **ret_roots,
                                struct fl_refusal *ret_refusal, struct fl_err *err);

#endif
