#ifndef FL_SERVER_IDENTITY_DENIALS_H
#define FL_SERVER_IDENTITY_DENIALS_H

/*
 * Who is not let in although his certificate verifies: by serial number and by public key, never by
 * a certificate's fingerprint, which anybody can change (an ECDSA signature has two valid forms);
 * and by name, which is all that there is of an operator's own PKI.
 */

#include "server/identity/authority.h"

/* What is more final has the lower number. */
enum fl_revocation_verb {
    FL_REVOCATION_REVOKED = 1, /* for good */
    FL_REVOCATION_EVICTED,     /* until it joins again */
    FL_REVOCATION_REPLACED,    /* another host has the name now */
    FL_REVOCATION_DISABLED     /* until it is enabled */
};

/* "revoked", … */
const char *fl_revocation_verb_text(enum fl_revocation_verb verb);

/* Immutable and counted; any thread. */
struct fl_revocations;

struct fl_revocations *fl_revocations_ref(struct fl_revocations *denials);
void fl_revocations_unref(struct fl_revocations *denials); /* NULL is allowed. */
/*
 * `why` (may be NULL) is for the log and for the peer, who has proved to be `who`: the verb, when,
 * by whom, the reason that was given, and what to do, with the name.
 */
bool fl_revocations_has(const struct fl_revocations *denials, const struct fl_identity *who,
                        char *why, size_t size);
/* Is what fl_revocations_has() finds a denial until `flctl enable`, and not of the certificate? */
bool fl_revocations_passing(const struct fl_revocations *denials, const struct fl_identity *who);
size_t fl_revocations_len(const struct fl_revocations *denials);

/*
 * The denials as they are now, a reference for the caller; the same ones again as long as nothing
 * changed. FL_ENOMEM, FL_EIO …
 */
FL_MUST_CHECK int fl_authority_revocations(struct fl_authority *authority,
                                           struct fl_revocations **ret, struct fl_err *err);

/* Whom a verb is about: one of the three. */
struct fl_revoked {
    const char *name; /* NULL: none */
    const uint8_t *serial;
    size_t serial_len;  /* 0: none */
    const uint8_t *key; /* FL_KEY_HASH bytes; NULL: none */
};

/*
 * Each on disk when it returns; `*ret_n` (may be NULL) certificates are touched that could still be
 * used. `reason` may be "".
 *
 * Revoke, for good. A name: its certificates, their keys, and the name, which never joins again. A
 * serial or a key: that one, and the name may join again with another key. What we never issued
 * is denied all the same.
 */
FL_MUST_CHECK int fl_authority_revoke(struct fl_authority *authority, const struct fl_revoked *whom,
                                      const char *reason, const char *by, int64_t now_ms,
                                      size_t *ret_n, struct fl_err *err);
/* The certificates until now; a name only. With a new invitation it joins again. FL_ENOENT: it has
   none. */
FL_MUST_CHECK int fl_authority_evict(struct fl_authority *authority, const struct fl_revoked *whom,
                                     const char *reason, const char *by, int64_t now_ms,
                                     size_t *ret_n, struct fl_err *err);
/* Kept, but not let in, not renewed. FL_EEXIST: denied for longer already. */
FL_MUST_CHECK int fl_authority_disable(struct fl_authority *authority,
                                       const struct fl_revoked *whom, const char *reason,
                                       const char *by, int64_t now_ms, size_t *ret_n,
                                       struct fl_err *err);
/* FL_ENOENT: it is not disabled; the text says what it is. */
FL_MUST_CHECK int fl_authority_enable(struct fl_authority *authority, const struct fl_revoked *whom,
                                      const char *by, int64_t now_ms, size_t *ret_n,
                                      struct fl_err *err);

#endif
