#ifndef FL_WIRE_ADMIN_IDENTITY_H
#define FL_WIRE_ADMIN_IDENTITY_H

/*
 * Messages of fl.v1.Admin about identities: invitations, certificates, revocations, the audit log.
 * As messages.h.
 */

#include "libfl/wire/wire_admin.h"
#include "libfl/wire/wire_identity.h"

/* The public prefix of a token, as text (base64url), with its NUL. */
#define FL_WIRE_PREFIX_SIZE 5
#define FL_WIRE_SERIAL_MAX  20
#define FL_WIRE_KEY_HASH    32
/* Longest validity of an invitation or a certificate: a hundred years, far above any real one. */
#define FL_WIRE_MAX_VALID_MS UINT64_C(3155760000000)
/* Maximum and default number of audit lines in a reply. */
#define FL_WIRE_MAX_AUDIT 10000
#define FL_WIRE_AUDIT     100

/* Maximum invitations per request. */
#define FL_WIRE_MAX_INVITES 10000

/* NewInvitation. */
struct fl_wire_new_invitation {
    char name[FL_NAME_MAX]; /* fl_wire_pattern_valid() was checked */
    struct fl_wire_labels labels;
    uint32_t uses;     /* 0: one */
    uint64_t valid_ms; /* 0: as configured */
};

/* InviteRequest. */
struct fl_wire_invite {
    struct fl_wire_new_invitation *list;
    size_t n; /* 1 to FL_WIRE_MAX_INVITES */
};

/* InviteReply. */
struct fl_wire_invited {
    char *line; /* secret: wiped by done() */
    char prefix[FL_WIRE_PREFIX_SIZE];
    uint64_t ends_ms;
};

/* InvitationInfo. */
struct fl_wire_invitation {
    char prefix[FL_WIRE_PREFIX_SIZE];
    char name[FL_NAME_MAX];
    uint32_t uses, used;
    uint64_t made_ms, ends_ms;
    char *by, *state;
    struct fl_wire_labels labels;
};

/* WithdrawInvitationReply. */
struct fl_wire_withdrawn {
    char name[FL_NAME_MAX];
    uint32_t used;
};

/* ListCertificatesRequest. */
struct fl_wire_list_certificates {
    char name[FL_NAME_MAX]; /* "": all */
    bool all;
};

/* CertificateInfo. */
struct fl_wire_certificate {
    char name[FL_NAME_MAX];
    char *role, *state, *why, *by;
    uint8_t serial[FL_WIRE_SERIAL_MAX];
    size_t serial_len; /* 1 to FL_WIRE_SERIAL_MAX */
    uint8_t key[FL_WIRE_KEY_HASH];
    uint64_t issued_ms, not_before_ms, not_after_ms;
};

/* IssueAdminRequest. */
struct fl_wire_issue_admin {
    char name[FL_NAME_MAX];
    struct fl_wire_bytes request;
    uint64_t valid_ms; /* 0: as configured */
};

/* IssueAdminReply. */
struct fl_wire_issued_admin {
    struct fl_wire_chain chain, roots;
};

/* DenyRequest: of Revoke, Evict, Disable and Enable. */
enum fl_wire_deny_what { FL_WIRE_DENY_NAME = 1, FL_WIRE_DENY_SERIAL, FL_WIRE_DENY_KEY };

struct fl_wire_deny {
    enum fl_wire_deny_what what;
    char name[FL_NAME_MAX];
    uint8_t serial[FL_WIRE_SERIAL_MAX];
    size_t serial_len;
    uint8_t key[FL_WIRE_KEY_HASH];
    char *reason; /* "": none; at most FL_WIRE_MAX_REASON bytes */
    bool force;   /* Revoke, Disable: even if no client is known by the name */
};

/* DenyReply. */
struct fl_wire_denied {
    uint32_t certificates, sessions;
    char *text;
};

/* AuditLine. */
struct fl_wire_audit {
    uint64_t number, time_ms;
    char *who, *what, *object, *result;
};

FL_MUST_CHECK int fl_wire_invite_encode(const struct fl_wire_invite *invite, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_invite_decode(const void *data, size_t len, struct fl_wire_invite *ret,
                                        struct fl_err *err);
void fl_wire_invite_done(struct fl_wire_invite *invite);
FL_MUST_CHECK int fl_wire_invited_encode(const struct fl_wire_invited *reply, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_invited_decode(const void *data, size_t len, struct fl_wire_invited *ret,
                                         struct fl_err *err);
void fl_wire_invited_done(struct fl_wire_invited *reply);
/* ListInvitationsRequest. */
FL_MUST_CHECK int fl_wire_list_invitations_encode(bool all, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_list_invitations_decode(const void *data, size_t len, bool *ret_all,
                                                  struct fl_err *err);
FL_MUST_CHECK int fl_wire_invitation_encode(const struct fl_wire_invitation *invitation,
                                            struct fl_buf *out);
FL_MUST_CHECK int fl_wire_invitation_decode(const void *data, size_t len,
                                            struct fl_wire_invitation *ret, struct fl_err *err);
void fl_wire_invitation_done(struct fl_wire_invitation *invitation);
/* WithdrawInvitationRequest. */
FL_MUST_CHECK int fl_wire_withdraw_encode(const char *prefix, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_withdraw_decode(const void *data, size_t len,
                                          char ret_prefix[FL_WIRE_PREFIX_SIZE], struct fl_err *err);
FL_MUST_CHECK int fl_wire_withdrawn_encode(const struct fl_wire_withdrawn *reply,
                                           struct fl_buf *out);
FL_MUST_CHECK int fl_wire_withdrawn_decode(const void *data, size_t len,
                                           struct fl_wire_withdrawn *ret, struct fl_err *err);
FL_MUST_CHECK int fl_wire_list_certificates_encode(const struct fl_wire_list_certificates *list,
                                                   struct fl_buf *out);
FL_MUST_CHECK int fl_wire_list_certificates_decode(const void *data, size_t len,
                                                   struct fl_wire_list_certificates *ret,
                                                   struct fl_err *err);
FL_MUST_CHECK int fl_wire_certificate_encode(const struct fl_wire_certificate *certificate,
                                             struct fl_buf *out);
FL_MUST_CHECK int fl_wire_certificate_decode(const void *data, size_t len,
                                             struct fl_wire_certificate *ret, struct fl_err *err);
void fl_wire_certificate_done(struct fl_wire_certificate *certificate);
FL_MUST_CHECK int fl_wire_issue_admin_encode(const struct fl_wire_issue_admin *issue,
                                             struct fl_buf *out);
FL_MUST_CHECK int fl_wire_issue_admin_decode(const void *data, size_t len,
                                             struct fl_wire_issue_admin *ret, struct fl_err *err);
void fl_wire_issue_admin_done(struct fl_wire_issue_admin *issue);
FL_MUST_CHECK int fl_wire_issued_admin_encode(const struct fl_wire_issued_admin *reply,
                                              struct fl_buf *out);
FL_MUST_CHECK int fl_wire_issued_admin_decode(const void *data, size_t len,
                                              struct fl_wire_issued_admin *ret, struct fl_err *err);
void fl_wire_issued_admin_done(struct fl_wire_issued_admin *reply);
FL_MUST_CHECK int fl_wire_deny_encode(const struct fl_wire_deny *deny, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_deny_decode(const void *data, size_t len, struct fl_wire_deny *ret,
                                      struct fl_err *err);
void fl_wire_deny_done(struct fl_wire_deny *deny);
FL_MUST_CHECK int fl_wire_denied_encode(const struct fl_wire_denied *reply, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_denied_decode(const void *data, size_t len, struct fl_wire_denied *ret,
                                        struct fl_err *err);
void fl_wire_denied_done(struct fl_wire_denied *reply);
/* ListAuditRequest: the newest `last`, 0: FL_WIRE_AUDIT. */
FL_MUST_CHECK int fl_wire_list_audit_encode(uint32_t last, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_list_audit_decode(const void *data, size_t len, uint32_t *ret_last,
                                            struct fl_err *err);
FL_MUST_CHECK int fl_wire_audit_encode(const struct fl_wire_audit *line, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_audit_decode(const void *data, size_t len, struct fl_wire_audit *ret,
                                       struct fl_err *err);
void fl_wire_audit_done(struct fl_wire_audit *line);
/* A prefix of a token as it is listed: four of [A-Za-z0-9_-]. */
bool fl_wire_prefix_valid(const char *prefix);

#endif
