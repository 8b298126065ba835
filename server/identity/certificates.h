#ifndef FL_SERVER_IDENTITY_CERTIFICATES_H
#define FL_SERVER_IDENTITY_CERTIFICATES_H

/* The certificates issued here, until the grace period after their expiry has passed. */

#include "server/identity/authority.h"
#include "server/identity/revocations.h"

enum fl_certificate_state {
    FL_CERTIFICATE_VALID,
    FL_CERTIFICATE_LAPSED, /* expired, may be renewed */
    FL_CERTIFICATE_OVER,
    FL_CERTIFICATE_REVOKED,
    FL_CERTIFICATE_EVICTED,
    FL_CERTIFICATE_REPLACED,
    FL_CERTIFICATE_DISABLED
};

/* "valid", … */
const char *fl_certificate_state_text(enum fl_certificate_state state);

struct fl_certificate {
    char name[FL_IDENTITY_NAME_MAX];
    enum fl_role role;
    uint8_t serial[FL_SERIAL_MAX];
    size_t serial_len;
    uint8_t key[FL_KEY_HASH];
    int64_t issued_ms;
    int64_t not_before, not_after; /* s */
    enum fl_certificate_state state;
    const char *why; /* of a revocation, else "" */
    const char *by;  /* "invitation Ab3x", "renewal", an operator */
};

/*
 * Sorted by name, then by time. `name` "": all. Valid during the call, an error of `cb` ends the
 * iteration.
 */
typedef int fl_certificate_cb(void *ctx, const struct fl_certificate *certificate);
FL_MUST_CHECK int fl_authority_certificates(struct fl_authority *authority, const char *name,
                                            int64_t now_ms, fl_certificate_cb *cb, void *ctx,
                                            struct fl_err *err);

#endif
