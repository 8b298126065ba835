#ifndef FL_SERVERD_IDENTITY_CALLS_H
#define FL_SERVERD_IDENTITY_CALLS_H

/*
 * Calls that the federation's authority answers: fl.v1.Identity, and of fl.v1.Admin what is about
 * invitations, certificates and the audit. The network loop decodes a request, the guard's lane
 * does the work, the loop sends the answer when what changed is in force. A peer that goes away
 * meanwhile leaves its request to be freed when it is done; a stranger's or a client's that the
 * lane has not begun with is not done at all. What an operator asked for is done.
 *
 * Between the files of this part; frontend.c needs the functions at the end.
 */

#include <stdatomic.h>

#include "libfl/wire/admin_identity.h"
#include "server/daemon/auth.h"
#include "server/daemon/frontend_impl.h"

/* "uid 1000 (alice)", "admin ops-1, serial 5f0a…", an address. */
#define FL_BY_TEXT 256

struct fl_identity_request {
    const struct fl_identity_rpc *kind;
    struct fl_frontend *frontend;
    struct fl_call *call; /* NULL: the peer went away */
    atomic_bool left;     /* the same for the lane */
    bool asked;
    bool submitted; /* the lane has it */
    bool answered;
    uint32_t is; /* bits of enum fl_who */
    bool known;  /* `who` is */
    struct fl_identity who;
    char peer[64];
    uint64_t expelled; /* peers before it was asked for */
    union {
        struct fl_wire_join join;
        struct fl_wire_renew renew;
        struct fl_wire_invite invite;
        bool all; /* ListInvitations */
        char prefix[FL_WIRE_PREFIX_SIZE];
        struct fl_wire_list_certificates certificates;
        struct fl_wire_issue_admin admin;
        struct fl_wire_deny deny;
        uint32_t last; /* ListAudit */
    } in;
    /* Of the lane, then of the loop. */
    struct fl_replies replies;
    int code;
    struct fl_err err;
    struct fl_identity fresh;    /* Renew: who the peer is now */
    char certified[FL_NAME_MAX]; /* Join, IssueAdmin: the name that has a certificate now */
    bool connected;              /* Revoke, Disable: a client of that name, when it was asked for */
    size_t n_denied;
    char excluded[FL_NAME_MAX]; /* the client that is denied now, or "" */
    enum fl_denied_keeps keeps; /* with `excluded` */
    char near[FL_NAME_MAX];     /* a name like the one that nobody has, or "" */
};

struct fl_identity_rpc {
    const char *path;
    uint32_t who;
    int (*decode)(struct fl_identity_request *r, const void *data, size_t len);
    /* On the lane; the result into `code`, `err` and `replies`. */
    void (*work)(struct fl_authority *authority, struct fl_identity_request *r);
    /* On the loop, when it is in force and before the answer; may be NULL. */
    void (*landed)(struct fl_identity_request *r);
    void (*done)(struct fl_identity_request *r); /* what decode() made; may be NULL */
};

/* Append what `encode` makes of `item` to the replies; fl_identity_request.code says how it went.
 */
#define FL_IDENTITY_REPLY(request, encode, item)                 \
    do {                                                         \
        struct fl_buf buf_;                                      \
                                                                 \
        fl_buf_init(&buf_, FL_WIRE_MAX_CONTROL);                 \
        buf_.secret = true; /* an invitation */                  \
        (request)->code = encode(item, &buf_);                   \
        if ((request)->code == FL_OK) {                          \
            (request)->code = fl_identity_reply(request, &buf_); \
        }                                                        \
        fl_buf_done(&buf_);                                      \
    } while (0)

FL_MUST_CHECK int fl_identity_reply(struct fl_identity_request *r, const struct fl_buf *message);
/* A chain of libfl/pki as one of a message; free with fl_wire_chain_done(). */
FL_MUST_CHECK int fl_identity_chain(const struct fl_chain *chain, struct fl_wire_chain *ret);
/* Who asks, for the audit; on the lane, for it asks the system for the name of a user. */
const char *fl_identity_by(const struct fl_identity *who, const char *peer, char out[FL_BY_TEXT]);

/* identity_admin.c: ended by a NULL path. */
extern const struct fl_identity_rpc fl_identity_admin_kinds[];

#endif
