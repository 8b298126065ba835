#ifndef FL_WIRE_SAMPLES_IDENTITY_H
#define FL_WIRE_SAMPLES_IDENTITY_H

/* Samples of fl.v1.Identity, of the identity messages of fl.v1.Admin and of central settings: rows
   of wire_samples[]. */

#include "libfl/wire/admin_identity.h"
#include "tests/lib/wire_samples.h"

#define WIRE_IDENTITY_SAMPLES(X) \
    X(join)                      \
    X(joined)                    \
    X(renew)                     \
    X(renewed)                   \
    X(invite)                    \
    X(invited)                   \
    X(list_invitations)          \
    X(invitation)                \
    X(withdraw)                  \
    X(withdrawn)                 \
    X(list_certificates)         \
    X(certificate)               \
    X(issue_admin)               \
    X(issued_admin)              \
    X(revoke)                    \
    X(revoke_serial)             \
    X(revoke_key)                \
    X(revoke_reply)              \
    X(list_audit)                \
    X(audit)                     \
    X(central)                   \
    X(label_client)              \
    X(schedule_client)           \
    X(limit_client)
#define WIRE_N_IDENTITY_SAMPLES 24

#define X(name)                                    \
    int wire_sample_##name##_(struct fl_buf *out); \
    int wire_recode_##name##_(const void *data, size_t len, struct fl_buf *out, struct fl_err *err);
WIRE_IDENTITY_SAMPLES(X)
#undef X

#endif
