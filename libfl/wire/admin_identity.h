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

/* clang-format off */

/* NewInvitation. */
#define FL_WIRE_ROWS_new_invitation(X)                                                             \
    X(PATTERN, name, name)                                                                         \
    X(LABELS, labels, labels)                                                                      \
    X(U32, uses, uses) /* 0: one */                                                                \
    X(U64, valid_ms, valid_ms, .max = FL_WIRE_MAX_VALID_MS) /* 0: as configured */

/* InviteRequest: at least one. */
#define FL_WIRE_ROWS_invite(X)                                                                     \
    X(ENTRIES, list, invitations, new_invitation, .none = "empty, expected at least one",          \
      .most = FL_WIRE_MAX_INVITES)

/* InviteReply; done() wipes the line. */
#define FL_WIRE_ROWS_invited(X)                                                                    \
    X(SECRET_TEXT, line, line)                                                                     \
    X(PREFIX, prefix, prefix)                                                                      \
    X(U64, ends_ms, ends_ms)

/* InvitationInfo. */
#define FL_WIRE_ROWS_invitation(X)                                                                 \
    X(PREFIX, prefix, prefix)                                                                      \
    X(PATTERN, name, name)                                                                         \
    X(U32, uses, uses)                                                                             \
    X(U32, used, used)                                                                             \
    X(U64, made_ms, made_ms)                                                                       \
    X(U64, ends_ms, ends_ms)                                                                       \
    X(TEXT, by, by)                                                                                \
    X(TEXT, state, state)                                                                          \
    X(LABELS, labels, labels)

/* WithdrawInvitationReply. */
#define FL_WIRE_ROWS_withdrawn(X)                                                                  \
    X(PATTERN, name, name)                                                                         \
    X(U32, used, used)

/* ListCertificatesRequest. */
#define FL_WIRE_ROWS_list_certificates(X)                                                          \
    X(OPTIONAL_NAME, name, name) /* "": all */                                                     \
    X(BOOL, all, all)

/* CertificateInfo. */
#define FL_WIRE_ROWS_certificate(X)                                                                \
    X(NAME_BUF, name, name)                                                                        \
    X(TEXT, role, role)                                                                            \
    X(SERIAL, serial, serial)                                                                      \
    X(KEY_HASH, key, key)                                                                          \
    X(TEXT, state, state)                                                                          \
    X(TEXT, why, why)                                                                              \
    X(TEXT, by, by)                                                                                \
    X(U64, issued_ms, issued_ms)                                                                   \
    X(U64, not_before_ms, not_before_ms)                                                           \
    X(U64, not_after_ms, not_after_ms)

/* IssueAdminRequest. */
#define FL_WIRE_ROWS_issue_admin(X)                                                                \
    X(NAME_BUF, name, name)                                                                        \
    X(BYTES, request, request, .min = 1, .max = FL_WIRE_MAX_CSR)                                   \
    X(U64, valid_ms, valid_ms, .max = FL_WIRE_MAX_VALID_MS) /* 0: as configured */

/* IssueAdminReply. */
#define FL_WIRE_ROWS_issued_admin(X)                                                               \
    X(CHAIN, chain, chain)                                                                         \
    X(CHAIN, roots, roots)

/* RevokeRequest: of Revoke, Evict, Disable and Enable; one of its first three fields. */
enum fl_wire_revoke_what { FL_WIRE_REVOKE_NAME = 1, FL_WIRE_REVOKE_SERIAL, FL_WIRE_REVOKE_KEY };
#define FL_WIRE_ROWS_revoke(X)                                                                       \
    X(NAME_BUF, name, name, .which = FL_WIRE_REVOKE_NAME)                                            \
    X(SERIAL, serial, serial, .which = FL_WIRE_REVOKE_SERIAL)                                        \
    X(KEY_HASH, key, key, .which = FL_WIRE_REVOKE_KEY)                                               \
    X(REASON, reason, reason) /* "": none */                                                       \
    X(BOOL, force, force) /* Revoke, Disable: even if no client is known by the name */
struct fl_wire_revoke {
    enum fl_wire_revoke_what what;
    FL_WIRE_ROWS_revoke(FL_WIRE_MEMBER)
};

/* RevokeReply. */
#define FL_WIRE_ROWS_revoke_reply(X)                                                                     \
    X(U32, certificates, certificates)                                                             \
    X(U32, sessions, sessions)                                                                     \
    X(TEXT, text, text)

/* AuditLine. */
#define FL_WIRE_ROWS_audit(X)                                                                      \
    X(U64, number, number)                                                                         \
    X(U64, time_ms, time_ms)                                                                       \
    X(TEXT, who, who)                                                                              \
    X(TEXT, what, what)                                                                            \
    X(TEXT, object, object)                                                                        \
    X(TEXT, result, result)

/*
 * An InviteRequest has FL_WIRE_MAX_INVITES of the longest names, with a few labels each; many with
 * the shortest names take more memory per byte than other messages.
 */
#define FL_WIRE_ADMIN_IDENTITY(X)                                                                   \
    X(TYPE, new_invitation, NewInvitation, new_invitation, 0)                                       \
    X(OWNER, invite, InviteRequest, invite_request, 4u << 20, .extra = (size_t)FL_WIRE_MAX_INVITES * 192) \
    X(OWNER, invited, InviteReply, invite_reply, FL_WIRE_MAX_LINE)                                  \
    X(OWNER, invitation, InvitationInfo, invitation_info, FL_WIRE_MAX_LINE)                         \
    X(CODEC, withdrawn, WithdrawInvitationReply, withdraw_invitation_reply, FL_WIRE_MAX_LINE)       \
    X(CODEC, list_certificates, ListCertificatesRequest, list_certificates_request, FL_WIRE_MAX_LINE) \
    X(OWNER, certificate, CertificateInfo, certificate_info, FL_WIRE_MAX_LINE)                      \
    X(OWNER, issue_admin, IssueAdminRequest, issue_admin_request, FL_WIRE_MAX_LINE)                 \
    X(OWNER, issued_admin, IssueAdminReply, issue_admin_reply, FL_WIRE_MAX_IDENTITY)                \
    X(OWNER, revoke_reply, RevokeReply, revoke_reply, FL_WIRE_MAX_LINE)                             \
    X(OWNER, audit, AuditLine, audit_line, FL_WIRE_MAX_LINE)
FL_WIRE_ADMIN_IDENTITY(FL_WIRE_DECLARE)

/* clang-format on */

FL_WIRE_OWNER(revoke)
/* ListInvitationsRequest: all of them? */
FL_WIRE_VALUE(list_invitations, bool, bool *)
/* WithdrawInvitationRequest: char[FL_WIRE_PREFIX_SIZE]. */
FL_WIRE_VALUE(withdraw, const char *, char *)
/* ListAuditRequest: the newest ones, 0: FL_WIRE_AUDIT. */
FL_WIRE_VALUE(list_audit, uint32_t, uint32_t *)
/* A prefix of a token as it is listed: four of [A-Za-z0-9_-]. */
bool fl_wire_prefix_valid(const char *prefix);

#endif
