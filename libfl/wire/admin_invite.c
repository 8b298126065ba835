/*
 * Messages of fl.v1.Admin about invitations. Pure functions, any thread. Creates no tokens: the
 * server does.
 */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/base/str.h"
#include "libfl/wire/admin_identity.h"
#include "libfl/wire/identity_impl.h"

/* A line with 64 labels. */
#define LINE_MAX_BYTES 65536
/* FL_WIRE_MAX_INVITES of the longest names, with a few labels each. */
#define INVITE_MAX_BYTES (4u << 20)

bool fl_wire_prefix_valid(const char *prefix)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    return strlen(prefix) == FL_WIRE_PREFIX_SIZE - 1 &&
           strspn(prefix, letters) == FL_WIRE_PREFIX_SIZE - 1;
}

static int copy_prefix(const char *field, const char *value, char ret[FL_WIRE_PREFIX_SIZE],
                       struct fl_err *err)
{
    if (!fl_wire_prefix_valid(value)) {
        return fl_err_set(err, FL_EPROTO,
                          "%s: is not the beginning of a token (%d of [A-Za-z0-9_-], as "
                          "flctl invitations lists it)",
                          field, FL_WIRE_PREFIX_SIZE - 1);
    }
    return fl_str_copy(ret, FL_WIRE_PREFIX_SIZE, value);
}

static int copy_pattern(const char *field, const char *value, char ret[FL_NAME_MAX],
                        struct fl_err *err)
{
    if (!fl_wire_pattern_valid(value)) {
        return fl_err_set(err, FL_EPROTO,
                          "%s: is neither a name nor a pattern (1 to %d of [A-Za-z0-9._*?-], not "
                          "starting with a dot)",
                          field, FL_NAME_MAX - 1);
    }
    return fl_str_copy(ret, FL_NAME_MAX, value);
}

/* --- Invite --- */

int fl_wire_invite_encode(const struct fl_wire_invite *invite, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__NewInvitation *entries = fl__arena_array(&arena, invite->n + 1, sizeof(*entries));
    Fl__V1__InviteRequest msg;
    size_t i;
    int rv;

    fl__v1__invite_request__init(&msg);
    msg.invitations = fl__arena_array(&arena, invite->n + 1, sizeof(*msg.invitations));
    rv = entries != NULL && msg.invitations != NULL ? FL_OK : FL_ENOMEM;
    for (i = 0; rv == FL_OK && i < invite->n; i++) {
        const struct fl_wire_new_invitation *one = &invite->list[i];

        fl__v1__new_invitation__init(&entries[i]);
        entries[i].name = fl_wire_lend(one->name);
        entries[i].uses = one->uses;
        entries[i].valid_ms = one->valid_ms;
        rv = fl__wire_put_labels(&arena, &one->labels, &entries[i].labels);
        msg.invitations[i] = &entries[i];
    }
    msg.n_invitations = invite->n;
    rv = rv == FL_OK ? fl__wire_pack(&msg.base, out) : rv;
    fl__arena_done(&arena);
    return rv;
}

static int take_new(const Fl__V1__NewInvitation *msg, struct fl_wire_new_invitation *ret,
                    struct fl_err *err)
{
    int rv = copy_pattern("InviteRequest.invitations.name", msg->name, ret->name, err);

    ret->uses = msg->uses;
    ret->valid_ms = msg->valid_ms;
    if (rv == FL_OK) {
        rv = fl__wire_check_range("InviteRequest.invitations.valid_ms", msg->valid_ms, 0,
                                  FL_WIRE_MAX_VALID_MS, err);
    }
    return rv != FL_OK ? rv
                       : fl__wire_take_labels("InviteRequest.invitations.labels", msg->labels,
                                              &ret->labels, err);
}

static int take_invite(const Fl__V1__InviteRequest *msg, struct fl_wire_invite *ret,
                       struct fl_err *err)
{
    int rv;

    if (msg->n_invitations == 0) {
        return fl_err_set(err, FL_EPROTO,
                          "InviteRequest.invitations: empty, expected at least one");
    }
    rv = fl__wire_check_count("InviteRequest.invitations", msg->n_invitations, FL_WIRE_MAX_INVITES,
                              err);
    if (rv != FL_OK) {
        return rv;
    }
    ret->list = calloc(msg->n_invitations, sizeof(*ret->list));
    if (ret->list == NULL) {
        return FL_ENOMEM;
    }
    while (rv == FL_OK && ret->n < msg->n_invitations) {
        rv = take_new(msg->invitations[ret->n], &ret->list[ret->n], err);
        ret->n++;
    }
    return rv;
}

/* Many invitations with the shortest names take more memory per byte than other messages. */
#define INVITE_EXTRA ((size_t)FL_WIRE_MAX_INVITES * 192)

int fl_wire_invite_decode(const void *data, size_t len, struct fl_wire_invite *ret,
                          struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_invite invite = {.n = 0};
    int rv;

    if (len > INVITE_MAX_BYTES) {
        return fl_err_set(err, FL_ELIMIT, "InviteRequest: %zu bytes, at most %u are taken", len,
                          INVITE_MAX_BYTES);
    }
    rv = fl__wire_unpack_capped(&fl__v1__invite_request__descriptor, data, len,
                                FL__WIRE_COST(len) + INVITE_EXTRA, &u, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = take_invite((const Fl__V1__InviteRequest *)u.msg, &invite, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_invite_done(&invite);
        return rv;
    }
    *ret = invite;
    return FL_OK;
}

void fl_wire_invite_done(struct fl_wire_invite *invite)
{
    size_t i;

    for (i = 0; i < invite->n; i++) {
        fl_wire_labels_done(&invite->list[i].labels);
    }
    free(invite->list);
    *invite = (struct fl_wire_invite){.n = 0};
}

int fl_wire_invited_encode(const struct fl_wire_invited *reply, struct fl_buf *out)
{
    Fl__V1__InviteReply msg;

    fl__v1__invite_reply__init(&msg);
    msg.line = reply->line;
    msg.prefix = fl_wire_lend(reply->prefix);
    msg.ends_ms = reply->ends_ms;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_invited_decode(const void *data, size_t len, struct fl_wire_invited *ret,
                           struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_invited reply = {NULL};
    const Fl__V1__InviteReply *msg;
    int rv = fl__wire_unpack(&fl__v1__invite_reply__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__InviteReply *)u.msg;
    reply.ends_ms = msg->ends_ms;
    rv = copy_prefix("InviteReply.prefix", msg->prefix, reply.prefix, err);
    rv = rv != FL_OK ? rv : fl__wire_take_text("InviteReply.line", msg->line, &reply.line, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = reply;
    }
    return rv;
}

void fl_wire_invited_done(struct fl_wire_invited *reply)
{
    if (reply->line != NULL) {
        explicit_bzero(reply->line, strlen(reply->line));
    }
    free(reply->line);
    *reply = (struct fl_wire_invited){NULL};
}

/* --- ListInvitations --- */

int fl_wire_list_invitations_encode(bool all, struct fl_buf *out)
{
    Fl__V1__ListInvitationsRequest msg;

    fl__v1__list_invitations_request__init(&msg);
    msg.all = all;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_list_invitations_decode(const void *data, size_t len, bool *ret_all, struct fl_err *err)
{
    struct fl__unpacked u;
    int rv = fl__wire_unpack(&fl__v1__list_invitations_request__descriptor, data, len,
                             LINE_MAX_BYTES, &u, err);

    if (rv == FL_OK) {
        *ret_all = ((const Fl__V1__ListInvitationsRequest *)u.msg)->all != 0;
        fl__wire_unpacked_done(&u);
    }
    return rv;
}

int fl_wire_invitation_encode(const struct fl_wire_invitation *invitation, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__InvitationInfo msg;
    int rv;

    fl__v1__invitation_info__init(&msg);
    msg.prefix = fl_wire_lend(invitation->prefix);
    msg.name = fl_wire_lend(invitation->name);
    msg.uses = invitation->uses;
    msg.used = invitation->used;
    msg.made_ms = invitation->made_ms;
    msg.ends_ms = invitation->ends_ms;
    msg.by = fl__wire_clean(&arena, invitation->by);
    msg.state = fl__wire_clean(&arena, invitation->state);
    rv = msg.by != NULL && msg.state != NULL
             ? fl__wire_put_labels(&arena, &invitation->labels, &msg.labels)
             : FL_ENOMEM;
    rv = rv == FL_OK ? fl__wire_pack(&msg.base, out) : rv;
    fl__arena_done(&arena);
    return rv;
}

static int take_invitation(const Fl__V1__InvitationInfo *msg, struct fl_wire_invitation *ret,
                           struct fl_err *err)
{
    int rv;

    ret->uses = msg->uses;
    ret->used = msg->used;
    ret->made_ms = msg->made_ms;
    ret->ends_ms = msg->ends_ms;
    if ((rv = copy_prefix("InvitationInfo.prefix", msg->prefix, ret->prefix, err)) != FL_OK ||
        (rv = copy_pattern("InvitationInfo.name", msg->name, ret->name, err)) != FL_OK ||
        (rv = fl__wire_take_text("InvitationInfo.by", msg->by, &ret->by, err)) != FL_OK ||
        (rv = fl__wire_take_text("InvitationInfo.state", msg->state, &ret->state, err)) != FL_OK)
    {
        return rv;
    }
    return fl__wire_take_labels("InvitationInfo.labels", msg->labels, &ret->labels, err);
}

int fl_wire_invitation_decode(const void *data, size_t len, struct fl_wire_invitation *ret,
                              struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_invitation invitation = {.by = NULL};
    int rv =
        fl__wire_unpack(&fl__v1__invitation_info__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = take_invitation((const Fl__V1__InvitationInfo *)u.msg, &invitation, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_invitation_done(&invitation);
        return rv;
    }
    *ret = invitation;
    return FL_OK;
}

void fl_wire_invitation_done(struct fl_wire_invitation *invitation)
{
    free(invitation->by);
    free(invitation->state);
    fl_wire_labels_done(&invitation->labels);
    *invitation = (struct fl_wire_invitation){.by = NULL};
}

/* --- WithdrawInvitation --- */

int fl_wire_withdraw_encode(const char *prefix, struct fl_buf *out)
{
    Fl__V1__WithdrawInvitationRequest msg;

    fl__v1__withdraw_invitation_request__init(&msg);
    msg.prefix = fl_wire_lend(prefix);
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_withdraw_decode(const void *data, size_t len, char ret_prefix[FL_WIRE_PREFIX_SIZE],
                            struct fl_err *err)
{
    struct fl__unpacked u;
    int rv = fl__wire_unpack(&fl__v1__withdraw_invitation_request__descriptor, data, len,
                             LINE_MAX_BYTES, &u, err);

    if (rv == FL_OK) {
        rv = copy_prefix("WithdrawInvitationRequest.prefix",
                         ((const Fl__V1__WithdrawInvitationRequest *)u.msg)->prefix, ret_prefix,
                         err);
        fl__wire_unpacked_done(&u);
    }
    return rv;
}

int fl_wire_withdrawn_encode(const struct fl_wire_withdrawn *reply, struct fl_buf *out)
{
    Fl__V1__WithdrawInvitationReply msg;

    fl__v1__withdraw_invitation_reply__init(&msg);
    msg.name = fl_wire_lend(reply->name);
    msg.used = reply->used;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_withdrawn_decode(const void *data, size_t len, struct fl_wire_withdrawn *ret,
                             struct fl_err *err)
{
    struct fl__unpacked u;
    const Fl__V1__WithdrawInvitationReply *msg;
    struct fl_wire_withdrawn reply = {.name = ""};
    int rv = fl__wire_unpack(&fl__v1__withdraw_invitation_reply__descriptor, data, len,
                             LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__WithdrawInvitationReply *)u.msg;
    reply.used = msg->used;
    rv = copy_pattern("WithdrawInvitationReply.name", msg->name, reply.name, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = reply;
    }
    return rv;
}
