#ifndef FL_SERVER_IDENTITY_JOINING_H
#define FL_SERVER_IDENTITY_JOINING_H

/*
 * Issues certificates: by an invitation, by a present certificate, or for an admin on behalf of an
 * operator. A certificate is stored before it is returned. A peer that repeats a request, since the
 * reply was lost, gets the same certificate.
 */

#include "libfl/wire/wire_identity.h"
#include "server/identity/authority.h"

struct fl_joining {
    const uint8_t *token;   /* FL_TOKEN_SIZE bytes */
    const char *name;       /* wanted name; "": that of the invitation */
    const uint8_t *request; /* PKCS #10, DER */
    size_t request_len;
    const char *address; /* of the peer, with or without a port: the key of the rate limit */
};

struct fl_joined {
    char name[FL_IDENTITY_NAME_MAX];
    struct fl_chain *chain; /* the peer's certificate first, without the root */
    struct fl_chain *roots; /* to be trusted from now on */
    struct fl_pair *labels;
    size_t n_labels;
    bool again; /* issued by an earlier request */
};

/* A zeroed struct is allowed. */
void fl_joined_done(struct fl_joined *joined);

/* Convert to a wire message; owned: fl_wire_chain_done(). FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_joined_wire(const struct fl_chain *chain, struct fl_wire_chain *ret);

/*
 * FL_ENOENT: no such token; FL_EAGAIN: the same, and this address has tried too many; FL_EPERM: the
 * invitation is expired, withdrawn, used by another key or for another name, or the name or key is
 * revoked; FL_EEXIST: the name is taken; FL_EINVAL, FL_EFORMAT, FL_ELIMIT: the request. The texts
 * are also for the peer: what is wrong and which command helps on which host. Other codes (FL_EIO,
 * FL_ENOSPC, …) are failures of the server.
 */
FL_MUST_CHECK int fl_authority_join(struct fl_authority *authority, const struct fl_joining *join,
                                    int64_t now_ms, struct fl_joined *ret, struct fl_err *err);
/*
 * The next certificate of `who`, a verified certificate of a client or an admin; `address` is for
 * the audit. FL_EPERM: revoked, or expired for longer than the grace; FL_EAGAIN: too many in a day.
 */
FL_MUST_CHECK int fl_authority_renew(struct fl_authority *authority, const struct fl_identity *who,
                                     const struct fl_der *request, const char *address,
                                     int64_t now_ms, struct fl_joined *ret, struct fl_err *err);

struct fl_admin_wanted {
    const char *name;
    struct fl_der request; /* PKCS #10 */
    int64_t valid_ms;      /* 0: the validity of a client's */
    const char *by;        /* the operator */
};

/* A certificate for an admin. FL_EEXIST: the name is taken. */
FL_MUST_CHECK int fl_authority_issue_admin(struct fl_authority *authority,
                                           const struct fl_admin_wanted *wanted, int64_t now_ms,
                                           struct fl_joined *ret, struct fl_err *err);

#endif
