#ifndef FL_SERVER_IDENTITY_ROWS_IMPL_H
#define FL_SERVER_IDENTITY_ROWS_IMPL_H

/*
 * The rows of identity.db: each table has one list of its columns (libfl/db/db_row.h) and one
 * record. Times that end in _ms are of our clock, in ms since 1970; those of certificates are
 * seconds.
 */

#include "libfl/base/identity.h"
#include "libfl/base/str.h"
#include "libfl/db/db_row.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/invitation.h"
#include "libfl/pki/key.h"
#include "libfl/wire/messages.h"
#include "server/identity/audit.h"
#include "server/identity/invitations.h"
#include "server/identity/revocations.h"

#define FL__TOKEN_HASH 32 /* SHA-256 */

/* --- federation: one row --- */

struct fl__federation {
    char name[FL_NAME_MAX];
    int64_t cleaned_ms; /* time of the last deletion of expired rows */
};

#define FL__FEDERATION_ROWS(X) \
    X(CHARS, name, name)       \
    X(I64, cleaned_ms, cleaned_ms)

FL_ROW_TYPE(fl__federation, struct fl__federation)

/* --- invitation --- */

struct fl__invitation {
    uint64_t id;
    char prefix[FL_TOKEN_PREFIX_TEXT];
    uint8_t hash[FL__TOKEN_HASH];    /* of the token */
    char name[FL_IDENTITY_NAME_MAX]; /* or pattern */
    struct fl_buf labels;            /* keys and values, each with its NUL */
    uint32_t uses, used;
    int64_t made_ms, ends_ms;
    int64_t withdrawn_ms; /* 0: it is not */
    const char *by;
};

/* What is needed to use it. */
#define FL__INVITATION_USABLE(X)                                 \
    X(ID, id, id)                                                \
    X(CHARS, prefix, prefix)                                     \
    X(BYTES, hash, hash)                                         \
    X(CHARS, name, name)                                         \
    X(OPTIONAL_BUF, labels, labels, .max = FL_WIRE_LABELS_BYTES) \
    X(U32, uses, uses, .min = 1, .max = FL_INVITATION_USES_MAX)  \
    X(U32, used, used, .max = FL_INVITATION_USES_MAX)            \
    X(I64, made_ms, made_ms)                                     \
    X(I64, ends_ms, ends_ms)                                     \
    X(I64, withdrawn_ms, withdrawn_ms)

#define FL__INVITATION_ROWS(X) \
    FL__INVITATION_USABLE(X)   \
    X(TEXT, by, by)

FL_ROW_TYPE(fl__invitation, struct fl__invitation)

/* --- used: the keys that joined by an invitation, and their certificates --- */

struct fl__use {
    uint64_t invitation;
    uint8_t key[FL_KEY_HASH];
    char name[FL_IDENTITY_NAME_MAX];
    uint8_t serial[FL_SERIAL_MAX];
    size_t serial_len;
    int64_t at_ms;
};

#define FL__USE_ROWS(X)            \
    X(U64, invitation, invitation) \
    X(BYTES, key, key)             \
    X(CHARS, name, name)           \
    X(SHORT, serial, serial)       \
    X(I64, at_ms, at_ms)

FL_ROW_TYPE(fl__use, struct fl__use)

/* --- certificate --- */

struct fl__certificate {
    uint8_t serial[FL_SERIAL_MAX];
    size_t serial_len;
    char name[FL_IDENTITY_NAME_MAX];
    enum fl_role role;
    uint8_t key[FL_KEY_HASH];
    int64_t issued_ms, not_before, not_after;
    struct fl_buf der;
    const char *by;
    uint8_t parent[FL_SERIAL_MAX]; /* serial of its predecessor */
    size_t parent_len;             /* 0: none */
    bool joined;                   /* by an invitation */
};

/* What is needed to return it to its client again. */
#define FL__CERTIFICATE_ISSUED(X)                                    \
    X(SHORT, serial, serial)                                         \
    X(CHARS, name, name)                                             \
    X(ENUM, role, role, .min = FL_ROLE_CLIENT, .max = FL_ROLE_ADMIN) \
    X(BYTES, key, key)                                               \
    X(I64, issued_ms, issued_ms)                                     \
    X(I64, not_before, not_before)                                   \
    X(I64, not_after, not_after)                                     \
    X(BUF, der, der, .max = FL_CERT_MAX)

#define FL__CERTIFICATE_ROWS(X)       \
    FL__CERTIFICATE_ISSUED(X)         \
    X(TEXT, by, by)                   \
    X(OPTIONAL_SHORT, parent, parent) \
    X(BOOL, joined, joined)

FL_ROW_TYPE(fl__certificate, struct fl__certificate)

/* The holder of a name: its newest certificate, and when the last one by an invitation was issued.
 */
struct fl__holder {
    uint8_t key[FL_KEY_HASH];
    enum fl_role role;
    int64_t issued_ms, not_before, not_after;
    int64_t joined_ms; /* 0: never */
};

#define FL__HOLDER_ROWS(X)                                           \
    X(BYTES, key, key)                                               \
    X(ENUM, role, role, .min = FL_ROLE_CLIENT, .max = FL_ROLE_ADMIN) \
    X(I64, issued_ms, issued_ms)                                     \
    X(I64, not_before, not_before)                                   \
    X(I64, not_after, not_after)                                     \
    X(I64, joined_ms, joined_ms)

FL_ROW_TYPE(fl__holder, struct fl__holder)

/* --- revocation --- */

/* Objects of a revocation; the lower number is the more final one. */
enum fl__revocation_kind { FL__REVOKE_SERIAL = 1, FL__REVOKE_KEY, FL__REVOKE_NAME };

struct fl__revocation {
    enum fl__revocation_kind kind;
    const void *value; /* serial, hash of the key, or name */
    size_t value_len;
    enum fl_revocation_verb verb;
    const char *why, *by;
    int64_t at_ms;
    int64_t ends; /* when the target is no longer usable; 0: never */
};

#define FL__REVOCATION_ROWS(X)                                                       \
    X(ENUM, kind, kind, .min = FL__REVOKE_SERIAL, .max = FL__REVOKE_NAME)            \
    X(DATA, value, value, .max = FL_IDENTITY_NAME_MAX)                               \
    X(ENUM, verb, verb, .min = FL_REVOCATION_REVOKED, .max = FL_REVOCATION_DISABLED) \
    X(TEXT, why, why)                                                                \
    X(TEXT, by, by)                                                                  \
    X(I64, at_ms, at_ms)                                                             \
    X(I64, ends, ends)

FL_ROW_TYPE(fl__revocation, struct fl__revocation)

/* --- audit --- */

#define FL__AUDIT_ROWS(X)     \
    X(SERIES, number, number) \
    X(I64, at_ms, at_ms)      \
    X(TEXT, who, who)         \
    X(TEXT, what, what)       \
    X(TEXT, object, object)   \
    X(TEXT, result, result)   \
    X(BOOL, peer, peer)

FL_ROW_TYPE(fl__audit_line, struct fl_audit_line)

/*
 * --- shown: names that were shown with a certificate of an operator's own PKI, with the latest
 * expiry of such a certificate (s) ---
 */

struct fl__shown {
    const char *name;
    int64_t not_after;
};

#define FL__SHOWN_ROWS(X) \
    X(TEXT, name, name)   \
    X(I64, not_after, not_after)

FL_ROW_TYPE(fl__shown, struct fl__shown)

#endif
