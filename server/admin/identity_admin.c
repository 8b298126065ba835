/*
 * Admin calls about invitations, certificates and the audit: decoding, the work on the identity
 * thread, and the answers, one fl_identity_rpc for each verb. Revocation is in identity_revoke.c;
 * the calls' life cycle is in identity_calls.c.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/admin/identity_calls.h"
#include "server/auth/auth.h"
#include "server/identity/audit.h"
#include "server/identity/certificates.h"
#include "server/identity/invitations.h"

static int64_t identity_admin_now_ms(void)
{
    return (int64_t)fl_clock_wall_ms();
}

static const char *identity_admin_by(const struct fl_identity_request *r, char out[FL_BY_TEXT])
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
    const struct fl_wire_invite *request = &r->in.invite;
    struct fl_invitation *list = calloc(request->n, sizeof(*list));
    char who[FL_BY_TEXT];
    size_t i;

    if (list == NULL) {
        r->code = FL_ENOMEM;
        return;
    }
    for (i = 0; i < request->n; i++) {
        const struct fl_wire_new_invitation *one = &request->list[i];

        list[i] = (struct fl_invitation){.name = one->name,
                                         .labels = one->labels.list,
                                         .n_labels = one->labels.n,
                                         .uses = one->uses,
                                         .valid_ms = (int64_t)one->valid_ms};
    }
    fl_authority_bound(authority, fl_frontend_port(r->admin->setup.frontend));
    r->code = fl_authority_invite(
        authority,
        &(struct fl_invitations){.list = list, .n = request->n, .by = identity_admin_by(r, who)},
        identity_admin_now_ms(), on_invited, r, &r->err);
    free(list);
}

const struct fl_identity_rpc fl_identity_rpc_invite = {
    .decode = decode_invite, .work = work_invite, .done = done_invite};

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
    r->code =
        fl_authority_invitations(authority, identity_admin_now_ms(), on_invitation, r, &r->err);
}

const struct fl_identity_rpc fl_identity_rpc_invitations = {.decode = decode_invitations,
                                                            .work = work_invitations};

static int decode_withdraw(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_withdraw_decode(data, len, r->in.prefix, &r->err);
}

static void work_withdraw(struct fl_authority *authority, struct fl_identity_request *r)
{
    struct fl_wire_withdrawn reply = {.used = 0};
    char who[FL_BY_TEXT];

    r->code = fl_authority_withdraw(authority, r->in.prefix, identity_admin_by(r, who),
                                    identity_admin_now_ms(), reply.name, &reply.used, &r->err);
    if (r->code != FL_OK) {
        return;
    }
    FL_IDENTITY_REPLY(r, fl_wire_withdrawn_encode, &reply);
}

const struct fl_identity_rpc fl_identity_rpc_withdraw = {.decode = decode_withdraw,
                                                         .work = work_withdraw};

/* --- ListCertificates, IssueAdmin --- */

static int decode_certificates(struct fl_identity_request *r, const void *data, size_t len)
{
    return fl_wire_list_certificates_decode(data, len, &r->in.certificates, &r->err);
}

static int identity_admin_on_certificate(void *ctx, const struct fl_certificate *c)
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
    r->code = fl_authority_certificates(authority, r->in.certificates.name, identity_admin_now_ms(),
                                        identity_admin_on_certificate, r, &r->err);
}

const struct fl_identity_rpc fl_identity_rpc_certificates = {.decode = decode_certificates,
                                                             .work = work_certificates};

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
    const struct fl_wire_issue_admin *request = &r->in.admin;
    struct fl_wire_issued_admin reply = {.chain = {NULL}};
    struct fl_joined issued = {.name = ""};
    char who[FL_BY_TEXT];
    const struct fl_admin_wanted wanted = {
        .name = request->name,
        .request = {.data = request->request.data, .len = request->request.len},
        .valid_ms = (int64_t)request->valid_ms,
        .by = identity_admin_by(r, who)};

    r->code =
        fl_authority_issue_admin(authority, &wanted, identity_admin_now_ms(), &issued, &r->err);
    if (r->code != FL_OK) {
        goto done;
    }
    (void)snprintf(r->certified, sizeof(r->certified), "%s", request->name);
    r->code = fl_identity_chains(&issued, &reply.chain, &reply.roots);
    if (r->code != FL_OK) {
        goto done;
    }
    FL_IDENTITY_REPLY(r, fl_wire_issued_admin_encode, &reply);
done:
    fl_wire_issued_admin_done(&reply);
    fl_joined_done(&issued);
}

const struct fl_identity_rpc fl_identity_rpc_issue_admin = {
    .decode = decode_issue_admin, .work = work_issue_admin, .done = done_issue_admin};

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

const struct fl_identity_rpc fl_identity_rpc_audit = {.decode = decode_audit, .work = work_audit};
