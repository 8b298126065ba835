#ifndef FL_SERVER_IDENTITY_INVITATIONS_H
#define FL_SERVER_IDENTITY_INVITATIONS_H

/*
 * Invitations: a line that lets one client, or several, join. The hash of its token is stored; the
 * line itself is returned only once. An invitation is for a name, or for a pattern, where * stands
 * for any letters and ? for one.
 *
 * Limits: at most FL_INVITATIONS_MAX are stored; an expired one is deleted after 30 days.
 */

#include "libfl/pki/invitation.h"
#include "libfl/wire/messages.h"
#include "server/identity/authority.h"

#define FL_INVITATIONS_MAX     100000
#define FL_INVITATION_USES_MAX 100000
/* Longest validity: a year. */
#define FL_INVITATION_VALID_MAX_MS (INT64_C(366) * 86400 * 1000)

struct fl_invitation {
    const char *name; /* or pattern */
    const struct fl_pair *labels;
    size_t n_labels;  /* at most FL_WIRE_LABELS_BYTES in all */
    uint32_t uses;    /* 0: 1 */
    int64_t valid_ms; /* 0: as configured */
};

struct fl_invited {
    const char *line; /* secret, wiped after the call; prefix is not secret */
    char prefix[FL_TOKEN_PREFIX_TEXT];
    int64_t ends_ms;
};

/* An error ends the calls; the invitations are stored anyway. */
typedef int fl_invited_cb(void *ctx, size_t i, const struct fl_invited *invited);

struct fl_invitations {
    const struct fl_invitation *list;
    size_t n;
    const char *by; /* the requester, for the audit */
};

/*
 * Create the invitations in one transaction, all or none, then call `cb` for each. FL_EINVAL: a
 * name, label or number, with its position; FL_ELIMIT: too many; FL_EPERM: the name is revoked.
 */
FL_MUST_CHECK int fl_authority_invite(struct fl_authority *authority,
                                      const struct fl_invitations *invitations, int64_t now_ms,
                                      fl_invited_cb *cb, void *ctx, struct fl_err *err);

enum fl_invitation_state {
    FL_INVITATION_OPEN,
    FL_INVITATION_OVER,
    FL_INVITATION_USED,
    FL_INVITATION_WITHDRAWN
};

/* "open", "over", "used", "withdrawn". */
const char *fl_invitation_state_text(enum fl_invitation_state state);

struct fl_invitation_info {
    char prefix[FL_TOKEN_PREFIX_TEXT];
    char name[FL_IDENTITY_NAME_MAX];
    struct fl_pair *labels;
    size_t n_labels;
    uint32_t uses, used;
    int64_t made_ms, ends_ms;
    const char *by;
    enum fl_invitation_state state;
};

/*
 * Oldest first; `info` is valid during the call, an error of `cb` ends the iteration. Do not change
 * the authority meanwhile.
 */
typedef int fl_invitation_cb(void *ctx, const struct fl_invitation_info *info);
FL_MUST_CHECK int fl_authority_invitations(struct fl_authority *authority, int64_t now_ms,
                                           fl_invitation_cb *cb, void *ctx, struct fl_err *err);

/*
 * Ends the validity of an invitation. FL_ENOENT: no invitation has this prefix. `*ret_used`: how
 * many clients joined by it before.
 */
FL_MUST_CHECK int fl_authority_withdraw(struct fl_authority *authority, const char *prefix,
                                        const char *by, int64_t now_ms,
                                        char ret_name[FL_IDENTITY_NAME_MAX], uint32_t *ret_used,
                                        struct fl_err *err);

#endif
