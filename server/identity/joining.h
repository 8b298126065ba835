#ifndef FL_SERVER_IDENTITY_JOINING_H
#define FL_SERVER_IDENTITY_JOINING_H

/*
 * Certificates for those who come: by an invitation, by the certificate they have, or for an admin
 * whom an operator vouches for. What is given is on disk before it is given. Who asks again for
 * what he was given already, since the reply was lost, gets the same certificate.
 */

#include "libfl/wire/wire_identity.h"
#include "server/identity/authority.h"

struct fl_joining {
    const uint8_t *token;   /* FL_TOKEN_SIZE bytes */
    const char *name;       /* wanted; "": the one of the invitation */
    const uint8_t *request; /* PKCS #10, DER */
    size_t request_len;
    const char *address; /* of the peer, with or without a port: wrong tokens are counted by it */
};

struct fl_joined {
    char name[FL_IDENTITY_NAME_MAX];
    struct fl_chain *chain; /* the peer's first, without the root */
    struct fl_chain *roots; /* to be believed from now on */
    struct fl_wire_pair *labels;
    size_t n_labels;
    bool again; /* given before */
};

/* Also of a zeroed one. */
void fl_joined_done(struct fl_joined *joined);

/* As a message carries it; owned: fl_wire_chain_done(). FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_joined_wire(const struct fl_chain *chain, struct fl_wire_chain *ret);

/*
 * FL_ENOENT: no such token; FL_EAGAIN: the same, and this address has tried too many; FL_EPERM: the
 * invitation is over, withdrawn, used by another key or for another name, or the name or key is
 * denied; FL_EEXIST: the name is taken; FL_EINVAL, FL_EFORMAT, FL_ELIMIT: the request. The texts
 * are for the peer, too: what is wrong and which command helps on which host. Others (FL_EIO,
 * FL_ENOSPC, …) are ours.
 */
FL_MUST_CHECK int fl_authority_join(struct fl_authority *authority, const struct fl_joining *join,
                                    int64_t now_ms, struct fl_joined *ret, struct fl_err *err);
/*
 * The next certificate of `who`, a client's or an admin's certificate that was verified; `address`
 * is for the audit. FL_EPERM: denied, or over for longer than the grace; FL_EAGAIN: too many in a
 * day.
 */
FL_MUST_CHECK int fl_authority_renew(struct fl_authority *authority, const struct fl_identity *who,
                                     const uint8_t *request, size_t request_len,
                                     const char *address, int64_t now_ms, struct fl_joined *ret,
                                     struct fl_err *err);
/* A certificate for an admin; `valid_ms` 0: as long as a client's. FL_EEXIST: the name is taken. */
FL_MUST_CHECK int fl_authority_issue_admin(struct fl_authority *authority, const char *name,
                                           const uint8_t *request, size_t request_len,
                                           int64_t valid_ms, const char *by, int64_t now_ms,
                                           struct fl_joined *ret, struct fl_err *err);

#endif
