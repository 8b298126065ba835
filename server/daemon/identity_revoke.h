#ifndef FL_SERVERD_IDENTITY_DENY_H
#define FL_SERVERD_IDENTITY_DENY_H

/* The calls by which operators say who is not let in; rows of fl_identity_admin_kinds. */

#include "server/daemon/identity_calls.h"

FL_MUST_CHECK int fl_revocation_decode(struct fl_identity_request *r, const void *data, size_t len);
void fl_revocation_revoke(struct fl_authority *authority, struct fl_identity_request *r);
void fl_revocation_evict(struct fl_authority *authority, struct fl_identity_request *r);
void fl_revocation_disable(struct fl_authority *authority, struct fl_identity_request *r);
void fl_revocation_enable(struct fl_authority *authority, struct fl_identity_request *r);
/* When the sessions that it ends are told so: how many there were is known only now. */
void fl_revocation_landed(struct fl_identity_request *r);
void fl_revocation_done(struct fl_identity_request *r);

#endif
