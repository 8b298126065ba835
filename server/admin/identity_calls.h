#ifndef FL_SERVER_ADMIN_IDENTITY_CALLS_H
#define FL_SERVER_ADMIN_IDENTITY_CALLS_H

/*
 * Calls that the federation's authority answers: fl.v1.Identity, and those of fl.v1.Admin about
 * invitations, certificates and the audit. The network loop decodes a request, the identity thread
 * executes it, and the loop sends the answer when the change is in effect. A request whose peer
 * disconnected is freed when it is done; requests of unauthenticated peers and clients that the
 * identity thread has not begun are dropped then. Requests of operators are always executed.
 *
 * Private to identity_*.c.
 */

#include <stdatomic.h>

#include "libfl/wire/admin_identity.h"
#include "server/admin/admin_impl.h"
#include "server/admin/audit_note.h"
#include "server/admin/replies.h"
#include "server/identity/authority.h"
#include "server/identity/joining.h"

struct fl_identity_request {
    const struct fl_identity_rpc *kind;
    enum fl_verb verb; /* FL_VERB_N: Join, Renew */
    struct fl_admin *admin;
    struct fl_call *call; /* NULL: the peer disconnected */
    atomic_bool left;     /* the same, for the identity thread */
    bool asked;
    bool submitted; /* submitted to the identity thread */
    bool answered;
    uint32_t is; /* bits of enum fl_who */
    bool known;  /* `who` is valid */
    struct fl_identity who;
    char peer[64];
    uint64_t expelled; /* value of fl_frontend_expelled() before the request */
    union {
        struct fl_wire_join join;
        struct fl_wire_renew renew;
        struct fl_wire_invite invite;
        bool all; /* ListInvitations */
        char prefix[FL_WIRE_PREFIX_SIZE];
        struct fl_wire_list_certificates certificates;
        struct fl_wire_issue_admin admin;
        struct fl_wire_revoke revoke;
        uint32_t last; /* ListAudit */
    } in;
    /* Written by the identity thread, then used by the loop. */
    struct fl_replies replies;
    int code;
    struct fl_err err;
    struct fl_identity fresh;    /* Renew: identity by the new certificate */
    char certified[FL_NAME_MAX]; /* Join, IssueAdmin: the name that has a certificate now */
    bool connected; /* Revoke, Disable: a client of that name was connected at the request */
    size_t n_revoked;
    char excluded[FL_NAME_MAX];  /* the client that is revoked now, or "" */
    enum fl_revoked_keeps keeps; /* with `excluded` */
    char near[FL_NAME_MAX];      /* an existing name similar to the unknown one, or "" */
};

/* What a call does; the verbs on the thread IDENTITY (libfl/wire/verbs.h) name theirs. */
struct fl_identity_rpc {
    int (*decode)(struct fl_identity_request *r, const void *data, size_t len);
    /* Identity thread; results go into `code`, `err` and `replies`. */
    void (*work)(struct fl_authority *authority, struct fl_identity_request *r);
    /* Network loop, when the change is in effect and before the answer; may be NULL. */
    void (*landed)(struct fl_identity_request *r);
    void (*done)(struct fl_identity_request *r); /* frees what decode() allocated; may be NULL */
};

/* Append what `encode` makes of `item` to the replies; fl_identity_request.code is the result. */
#define FL_IDENTITY_REPLY(request, encode, item)                 \
    do {                                                         \
        struct fl_buf buf_;                                      \
                                                                 \
        fl_buf_init(&buf_, FL_WIRE_MAX_CONTROL);                 \
        buf_.secret = true; /* may contain an invitation */      \
        (request)->code = encode(item, &buf_);                   \
        if ((request)->code == FL_OK) {                          \
            (request)->code = fl_identity_reply(request, &buf_); \
        }                                                        \
        fl_buf_done(&buf_);                                      \
    } while (0)

FL_MUST_CHECK int fl_identity_reply(struct fl_identity_request *r, const struct fl_buf *message);
/* Convert the chains to those of a message; free both with fl_wire_chain_done(), also on error. */
FL_MUST_CHECK int fl_identity_chains(const struct fl_joined *joined, struct fl_wire_chain *chain,
                                     struct fl_wire_chain *roots);

/* identity_admin.c, identity_revoke.c: fl_identity_rpc_handler of each verb. */
#define FL__RPC_ON_CORE(handler)
#define FL__RPC_ON_COORDINATOR(handler)
#define FL__RPC_ON_DB(handler)
#define FL__RPC_ON_IDENTITY(handler) extern const struct fl_identity_rpc fl_identity_rpc_##handler;
#define FL__RPC_OF(id, name, method, access, audit, thread, handler, ...) \
    FL__RPC_ON_##thread(handler)
FL_VERBS(FL__RPC_OF)

#endif
