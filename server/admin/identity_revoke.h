#ifndef FL_SERVER_ADMIN_IDENTITY_REVOKE_H
#define FL_SERVER_ADMIN_IDENTITY_REVOKE_H

/*
 * The calls by which operators revoke, evict, disable and enable; rows of fl_identity_admin_kinds.
 */

#include "server/admin/identity_calls.h"

FL_MUST_CHECK int fl_revocation_decode(struct fl_identity_request *r, const void *data, size_t len);
void fl_revocation_revoke(struct fl_authority *authority, struct fl_identity_request *r);
void fl_revocation_evict(struct fl_authority *authority, struct fl_identity_request *r);
void fl_revocation_disable(struct fl_authority *authority, struct fl_identity_request *r);
void fl_revocation_enable(struct fl_authority *authority, struct fl_identity_request *r);
/*
 * `landed` of these calls: counts the sessions that the revocation ends and completes the answer.
 */
void fl_revocation_landed(struct fl_identity_request *r);
void fl_revocation_done(struct fl_identity_request *r);

#endif
