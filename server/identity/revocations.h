#ifndef FL_SERVER_IDENTITY_REVOCATIONS_H
#define FL_SERVER_IDENTITY_REVOCATIONS_H

/*
 * Peers that are refused although their certificates verify: by serial number and by public key,
 * never by a certificate's fingerprint, which anyone can change (an ECDSA signature has two valid
 * forms); and by name, the only identifier known of an operator's own PKI.
 */

#include "server/identity/authority.h"

/* The lower number is the more final one. */
enum fl_revocation_verb {
    FL_REVOCATION_REVOKED = 1, /* permanently */
    FL_REVOCATION_EVICTED,     /* until the client joins again */
    FL_REVOCATION_REPLACED,    /* another host has the name now */
    FL_REVOCATION_DISABLED     /* until it is enabled */
};

/* Immutable and reference-counted; any thread. */
struct fl_revocations;

struct fl_revocations *fl_revocations_ref(struct fl_revocations *revocations);
void fl_revocations_unref(struct fl_revocations *revocations); /* NULL is allowed. */
/*
 * `why` (may be NULL) is for the log and for the peer, which has authenticated as `who`: the verb,
 * time, operator, reason, and what to do, with the name.
 */
bool fl_revocations_has(const struct fl_revocations *revocations, const struct fl_identity *who,
                        char *why, size_t size);
/*
 * True when the revocation that fl_revocations_has() finds lasts until `flctl enable` and does not
 * concern the certificate.
 */
bool fl_revocations_temporary(const struct fl_revocations *revocations,
                              const struct fl_identity *who);

/*
 * The current revocations, a reference for the caller; the same object while nothing has changed.
 * FL_ENOMEM, FL_EIO …
 */
FL_MUST_CHECK int fl_authority_revocations(struct fl_authority *authority,
                                           struct fl_revocations **ret, struct fl_err *err);

/* The target of a verb: one of the three. */
struct fl_revoked {
    const char *name; /* NULL: none */
    const uint8_t *serial;
    size_t serial_len;  /* 0: none */
    const uint8_t *key; /* FL_KEY_HASH bytes; NULL: none */
};

/*
 * Each is on disk when it returns; `*ret_n` (may be NULL): number of affected certificates that
 * were still usable. `reason` may be "".
 *
 * Revoke, permanently. A name: its certificates, their keys, and the name, which never joins again.
 * A serial or a key: only that one, and the name may join again with another key. Targets that were
 * never issued here are revoked too.
 */
FL_MUST_CHECK int fl_authority_revoke(struct fl_authority *authority, const struct fl_revoked *whom,
                                      const char *reason, const char *by, int64_t now_ms,
                                      size_t *ret_n, struct fl_err *err);
/*
 * Revokes the present certificates of a name. With a new invitation it joins again. FL_ENOENT: it
 * has no certificate.
 */
FL_MUST_CHECK int fl_authority_evict(struct fl_authority *authority, const struct fl_revoked *whom,
                                     const char *reason, const char *by, int64_t now_ms,
                                     size_t *ret_n, struct fl_err *err);
/* The certificates stay, but are refused and not renewed. FL_EEXIST: a longer revocation exists. */
FL_MUST_CHECK int fl_authority_disable(struct fl_authority *authority,
                                       const struct fl_revoked *whom, const char *reason,
                                       const char *by, int64_t now_ms, size_t *ret_n,
                                       struct fl_err *err);
/* FL_ENOENT: it is not disabled; the text has its state. */
FL_MUST_CHECK int fl_authority_enable(struct fl_authority *authority, const struct fl_revoked *whom,
                                      const char *by, int64_t now_ms, size_t *ret_n,
                                      struct fl_err *err);

#endif
