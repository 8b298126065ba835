/* What operators ask the authority: invitations, certificates, who is not let in, the audit. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/daemon/guard.h"
#include "server/daemon/identity_calls.h"
#include "server/identity/audit.h"
#include "server/identity/certificates.h"
#include "server/identity/invitations.h"
#include "server/identity/joining.h"

#define ACTS  (FL_WHO_LOCAL | FL_WHO_ADMIN)
#define LOOKS (ACTS | FL_WHO_VIEWER)

static int64_t now_ms(void)
{
    return (int64_t)fl_clock_wall_ms();
}

static const char *by(const struct fl_identity_request *r, char out[FL_BY_TEXT])
{
    return fl_identity_by(r->known ? &r->who : NULL, r->peer, out);
}

/* --- Invite --- */

static int decode_invite(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_invite_decode(data, len, &r->in.invite, &r->err);
}

static void done_invite(struct fl_identity_request *r)
{
    fl_wire_invite_done(&r->in.invite);
}

static int on_invited(void *ctx, size_t i, const struct fl_invited *invited)
{
    struct fl_identity_request *r = ctx;
    struct fl_wire_invited reply = {.line = fl_wire_lend(invited->line),
                                    .ends_ms = (uint64_t)invited->ends_ms};

    (void)i;
    (void)snprintf(reply.prefix, sizeof(reply.prefix), "%s", invited->prefix);
    FL_IDENTITY_REPLY(r, fl_wire_invited_encode, &reply);
    return r->code;
}

static void work_invite(struct fl_authority *authority, struct fl_identity_request *r)
{
    const struct fl_wire_invite *asked = &r->in.invite;
    struct fl_invitation *list = calloc(asked->n, sizeof(*list));
    char who[FL_BY_TEXT];
    size_t i;

    if (list == NULL) {
        r->code = FL_ENOMEM;
        return;
    }
    for (i = 0; i < asked->n; i++) {
        const struct fl_wire_new_invitation *one = &asked->list[i];

        list[i] = (struct fl_invitation){.name = one->name,
                                         .labels = one->labels.list,
                                         .n_labels = one->labels.n,
                                         .uses = one->uses,
                                         .valid_ms = (int64_t)one->valid_ms};
    }
    fl_authority_bound(authority, r->front->port);
    r->code = fl_authority_invite(authority, list, asked->n, by(r, who), now_ms(), on_invited, r,
                                  &r->err);
    free(list);
}

/* --- ListInvitations, WithdrawInvitation --- */

static int decode_invitations(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_list_invitations_decode(data, len, &r->in.all, &r->err);
}

static int on_invitation(void *ctx, const struct fl_invitation_info *info)
{
    struct fl_identity_request *r = ctx;
    struct fl_wire_invitation v = {.uses = info->uses,
                                   .used = info->used,
                                   .made_ms = (uint64_t)info->made_ms,
                                   .ends_ms = (uint64_t)info->ends_ms,
                                   .by = fl_wire_lend(info->by),
                                   .state = fl_wire_lend(fl_invitation_state_text(info->state)),
                                   .labels = {info->labels, info->n_labels}};

    if (!r->in.all && info->state != FL_INVITATION_OPEN) {
        return FL_OK;
    }
    (void)snprintf(v.prefix, sizeof(v.prefix), "%s", info->prefix);
    (void)snprintf(v.name, sizeof(v.name), "%s", info->name);
    FL_IDENTITY_REPLY(r, fl_wire_invitation_encode, &v);
    return r->code;
}

static void work_invitations(struct fl_authority *authority, struct fl_identity_request *r)
{
    r->code = fl_authority_invitations(authority, now_ms(), on_invitation, r, &r->err);
}

static int decode_withdraw(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_withdraw_decode(data, len, r->in.prefix, &r->err);
}

static void work_withdraw(struct fl_authority *authority, struct fl_identity_request *r)
{
    struct fl_wire_withdrawn reply = {.used = 0};
    char who[FL_BY_TEXT];

    r->code = fl_authority_withdraw(authority, r->in.prefix, by(r, who), now_ms(), reply.name,
                                    &reply.used, &r->err);
    if (r->code == FL_OK) {
        FL_IDENTITY_REPLY(r, fl_wire_withdrawn_encode, &reply);
    }
}

/* --- ListCertificates, IssueAdmin --- */

static int decode_certificates(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_list_certificates_decode(data, len, &r->in.certificates, &r->err);
}

static int on_certificate(void *ctx, const struct fl_certificate *c)
{
    struct fl_identity_request *r = ctx;
    struct fl_wire_certificate w = {.role = fl_wire_lend(fl_role_text(c->role)),
                                    .state = fl_wire_lend(fl_certificate_state_text(c->state)),
                                    .why = fl_wire_lend(c->why),
                                    .by = fl_wire_lend(c->by),
                                    .serial_len = c->serial_len,
                                    .issued_ms = (uint64_t)c->issued_ms,
                                    .not_before_ms = (uint64_t)c->not_before * 1000,
                                    .not_after_ms = (uint64_t)c->not_after * 1000};

    if (!r->in.certificates.all &&
        (c->state == FL_CERTIFICATE_OVER || c->state == FL_CERTIFICATE_REPLACED))
    {
        return FL_OK;
    }
    (void)snprintf(w.name, sizeof(w.name), "%s", c->name);
    (void)memcpy(w.serial, c->serial, sizeof(w.serial));
    (void)memcpy(w.key, c->key, sizeof(w.key));
    FL_IDENTITY_REPLY(r, fl_wire_certificate_encode, &w);
    return r->code;
}

static void work_certificates(struct fl_authority *authority, struct fl_identity_request *r)
{
    r->code = fl_authority_certificates(authority, r->in.certificates.name, now_ms(),
                                        on_certificate, r, &r->err);
}

static int decode_issue_admin(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_issue_admin_decode(data, len, &r->in.admin, &r->err);
}

static void done_issue_admin(struct fl_identity_request *r)
{
    fl_wire_issue_admin_done(&r->in.admin);
}

static void work_issue_admin(struct fl_authority *authority, struct fl_identity_request *r)
{
    const struct fl_wire_issue_admin *asked = &r->in.admin;
    struct fl_wire_issued_admin reply = {.chain = {NULL}};
    struct fl_joined issued = {.name = ""};
    char who[FL_BY_TEXT];

    r->code =
        fl_authority_issue_admin(authority, asked->name, asked->request.data, asked->request.len,
                                 (int64_t)asked->valid_ms, by(r, who), now_ms(), &issued, &r->err);
    if (r->code == FL_OK) {
        r->code = fl_identity_chain(issued.chain, &reply.chain);
    }
    if (r->code == FL_OK) {
        r->code = fl_identity_chain(issued.roots, &reply.roots);
    }
    if (r->code == FL_OK) {
        FL_IDENTITY_REPLY(r, fl_wire_issued_admin_encode, &reply);
    }
    fl_wire_issued_admin_done(&reply);
    fl_joined_done(&issued);
}

/* --- Revoke, Evict, Disable, Enable --- */

static int decode_deny(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_deny_decode(data, len, &r->in.deny, &r->err);
}

static void done_deny(struct fl_identity_request *r)
{
    fl_wire_deny_done(&r->in.deny);
}

static struct fl_denied whom(const struct fl_wire_deny *deny)
{
    return (struct fl_denied){.name = deny->what == FL_WIRE_DENY_NAME ? deny->name : NULL,
                              .serial = deny->serial,
                              .serial_len =
                                  deny->what == FL_WIRE_DENY_SERIAL ? deny->serial_len : 0,
                              .key = deny->what == FL_WIRE_DENY_KEY ? deny->key : NULL};
}

/* Names that somebody has, for a slip of an operator: the first so many. */
#define NAMES_MAX 10000

struct names {
    const char *list[NAMES_MAX];
    size_t n;
};

static int on_name(void *ctx, const struct fl_certificate *c)
{
    struct names *names = ctx;
    char *copy;

    if (names->n == NAMES_MAX || (names->n > 0 && strcmp(names->list[names->n - 1], c->name) == 0))
    {
        return FL_OK;
    }
    copy = fl_str_dup(c->name);
    if (copy == NULL) {
        return FL_ENOMEM;
    }
    names->list[names->n++] = copy;
    return FL_OK;
}

static void find_near(struct fl_authority *authority, struct fl_identity_request *r)
{
    struct names *names = calloc(1, sizeof(*names));
    const char *near = NULL;
    size_t i;

    if (names != NULL &&
        fl_authority_certificates(authority, "", now_ms(), on_name, names, NULL) == FL_OK)
    {
        near = fl_str_nearest(r->in.deny.name, names->list, names->n);
    }
    if (near != NULL && strcmp(near, r->in.deny.name) != 0) {
        (void)snprintf(r->near, sizeof(r->near), "%s", near);
    }
    for (i = 0; names != NULL && i < names->n; i++) {
        free((char *)(uintptr_t)names->list[i]);
    }
    free(names);
}

static int on_excluded(void *ctx, const char *name, bool forgets)
{
    struct fl_identity_request *r = ctx;

    (void)snprintf(r->excluded, sizeof(r->excluded), "%s", name);
    r->forgotten = forgets;
    return FL_OK;
}

/* Whose update of the open round counts no more. In a PKI of the operator's own names are all that
   is known. */
static void find_excluded(struct fl_authority *authority, const struct fl_denied *target,
                          bool forgets, struct fl_identity_request *r)
{
    struct fl_err err = {0};
    int rv;

    if (target->name != NULL) {
        (void)on_excluded(r, target->name, forgets);
        return;
    }
    rv = fl_guard_each_denied(authority, target, on_excluded, r, &err);
    if (rv != FL_OK) {
        fl_log(r->front->srv->log, FL_LOG_ERROR, "identity",
               "what was denied is not known to the open round before the next start: %s",
               fl_err_text(&err, rv));
    }
}

typedef int (*deny_fn)(struct fl_authority *authority, const struct fl_denied *whom,
                       const char *reason, const char *by, int64_t now_ms, size_t *ret_n,
                       struct fl_err *err);

static void deny(struct fl_authority *authority, struct fl_identity_request *r, deny_fn verb)
{
    bool enables = strcmp(r->kind->path, "/fl.v1.Admin/Enable") == 0;
    bool forgets = strcmp(r->kind->path, "/fl.v1.Admin/Disable") != 0;
    const struct fl_wire_deny *asked = &r->in.deny;
    const struct fl_denied target = whom(asked);
    char who[FL_BY_TEXT];

    r->code = verb(authority, &target, asked->reason, by(r, who), now_ms(), &r->n_denied, &r->err);
    if (r->code == FL_OK && !enables) {
        find_excluded(authority, &target, forgets, r);
    }
    if (asked->what == FL_WIRE_DENY_NAME &&
        (r->code == FL_ENOENT || (r->code == FL_OK && r->n_denied == 0)))
    {
        find_near(authority, r);
    }
    if (r->code == FL_ENOENT && r->near[0] != '\0') {
        struct fl_err inner = r->err;

        (void)fl_err_set(&r->err, FL_ENOENT, "%s; did you mean '%s'?",
                         fl_err_text(&inner, FL_ENOENT), r->near);
    }
}

static void work_revoke(struct fl_authority *authority, struct fl_identity_request *r)
{
    deny(authority, r, fl_authority_revoke);
}

static void work_evict(struct fl_authority *authority, struct fl_identity_request *r)
{
    deny(authority, r, fl_authority_evict);
}

static void work_disable(struct fl_authority *authority, struct fl_identity_request *r)
{
    deny(authority, r, fl_authority_disable);
}

static int enable(struct fl_authority *authority, const struct fl_denied *target,
                  const char *reason, const char *who, int64_t now, size_t *ret_n,
                  struct fl_err *err)
{
    (void)reason;
    return fl_authority_enable(authority, target, who, now, ret_n, err);
}

static void work_enable(struct fl_authority *authority, struct fl_identity_request *r)
{
    deny(authority, r, enable);
}

/* "'edge-04'", "the certificate 5f0a…", "the key 01ab…" */
static const char *target_text(const struct fl_wire_deny *deny, char out[2 * FL_NAME_MAX])
{
    const uint8_t *data = deny->what == FL_WIRE_DENY_KEY ? deny->key : deny->serial;
    size_t n = deny->what == FL_WIRE_DENY_KEY ? sizeof(deny->key) : deny->serial_len;
    size_t at;
    size_t i;

    if (deny->what == FL_WIRE_DENY_NAME) {
        (void)snprintf(out, 2 * FL_NAME_MAX, "'%s'", deny->name);
        return out;
    }
    at = (size_t)snprintf(out, 2 * FL_NAME_MAX, "%s ",
                          deny->what == FL_WIRE_DENY_KEY ? "the key" : "the certificate");
    for (i = 0; i < n; i++) {
        (void)snprintf(out + at + 2 * i, 3, "%02x", data[i]);
    }
    return out;
}

/* Which follows what the verb means for whom it is about. */
static void verb_text(const struct fl_identity_request *r, const char *target, char *out,
                      size_t size)
{
    const struct fl_wire_deny *asked = &r->in.deny;
    bool name = asked->what == FL_WIRE_DENY_NAME;
    const char *verb = strrchr(r->kind->path, '/') + 1;

    if (strcmp(verb, "Revoke") == 0) {
        (void)snprintf(out, size, "%s is revoked for good%s", target,
                       name ? " and nobody joins by this name again"
                            : "; with another key and a new invitation its name may join again");
    } else if (strcmp(verb, "Evict") == 0) {
        (void)snprintf(out, size, "%s is sent away; flctl invite %s lets it come back", target,
                       asked->name);
    } else if (strcmp(verb, "Disable") == 0) {
        (void)snprintf(out, size, "%s is not let in until flctl enable", target);
    } else {
        (void)snprintf(out, size, "%s is let in again", target);
    }
}

/* When the sessions that it ends are told so: how many there were is known only now. */
static void landed_deny(struct fl_identity_request *r)
{
    const struct fl_wire_deny *asked = &r->in.deny;
    struct fl_wire_denied reply = {.certificates = (uint32_t)r->n_denied,
                                   .sessions = (uint32_t)(r->front->n_expelled - r->expelled)};
    bool enabled = strcmp(r->kind->path, "/fl.v1.Admin/Enable") == 0;
    char target[2 * FL_NAME_MAX];
    char what[512];
    char text[FL_WIRE_MAX_TEXT];
    int n;

    if (r->excluded[0] != '\0' && fl_front_exclude(r->front, r->excluded, r->forgotten) != FL_OK) {
        fl_serverd_no_memory(r->front->srv, "a client that is denied");
    }
    verb_text(r, target_text(asked, target), what, sizeof(what));
    n = snprintf(text, sizeof(text), "%s: %zu certificate%s", what, r->n_denied,
                 r->n_denied == 1 ? "" : "s");
    if (!enabled && n > 0 && (size_t)n < sizeof(text)) {
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      reply.sessions > 0
                          ? ", %u session%s; it ends within a second, and what it was uploading "
                            "is not aggregated"
                          : ", %u session%s",
                      reply.sessions, reply.sessions == 1 ? "" : "s");
    }
    if (!enabled && r->n_denied == 0 && n > 0 && (size_t)n < sizeof(text)) {
        (void)snprintf(text + n, sizeof(text) - (size_t)n,
                       "; none was issued here that could still be used%s%s%s",
                       r->near[0] != '\0' ? ", did you mean '" : "", r->near,
                       r->near[0] != '\0' ? "'?" : "");
    }
    reply.text = text;
    FL_IDENTITY_REPLY(r, fl_wire_denied_encode, &reply);
}

/* --- ListAudit --- */

static int decode_audit(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_list_audit_decode(data, len, &r->in.last, &r->err);
}

static int on_audit(void *ctx, const struct fl_audit_line *line)
{
    struct fl_identity_request *r = ctx;
    const struct fl_wire_audit w = {.number = line->number,
                                    .time_ms = (uint64_t)line->at_ms,
                                    .who = fl_wire_lend(line->who),
                                    .what = fl_wire_lend(line->what),
                                    .object = fl_wire_lend(line->object),
                                    .result = fl_wire_lend(line->result)};

    FL_IDENTITY_REPLY(r, fl_wire_audit_encode, &w);
    return r->code;
}

static void work_audit(struct fl_authority *authority, struct fl_identity_request *r)
{
    r->code = fl_authority_audit_lines(authority, r->in.last != 0 ? r->in.last : FL_WIRE_AUDIT,
                                       on_audit, r, &r->err);
}

const struct fl_identity_rpc fl_identity_admin_kinds[] = {
    {"/fl.v1.Admin/Invite", ACTS, decode_invite, work_invite, NULL, done_invite},
    {"/fl.v1.Admin/ListInvitations", LOOKS, decode_invitations, work_invitations, NULL, NULL},
    {"/fl.v1.Admin/WithdrawInvitation", ACTS, decode_withdraw, work_withdraw, NULL, NULL},
    {"/fl.v1.Admin/ListCertificates", LOOKS, decode_certificates, work_certificates, NULL, NULL},
    {"/fl.v1.Admin/IssueAdmin", ACTS, decode_issue_admin, work_issue_admin, NULL, done_issue_admin},
    {"/fl.v1.Admin/Revoke", ACTS, decode_deny, work_revoke, landed_deny, done_deny},
    {"/fl.v1.Admin/Evict", ACTS, decode_deny, work_evict, landed_deny, done_deny},
    {"/fl.v1.Admin/Disable", ACTS, decode_deny, work_disable, landed_deny, done_deny},
    {"/fl.v1.Admin/Enable", ACTS, decode_deny, work_enable, landed_deny, done_deny},
    {"/fl.v1.Admin/ListAudit", LOOKS, decode_audit, work_audit, NULL, NULL},
    {.path = NULL}};
