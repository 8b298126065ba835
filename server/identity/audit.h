#ifndef FL_SERVER_IDENTITY_AUDIT_H
#define FL_SERVER_IDENTITY_AUDIT_H

/*
 * The audit: every invitation, join, renewal, revocation and action of an operator, with its author
 * and its result. An entry is written in the transaction of what it describes, and is then logged
 * (fl_authority_conf.say).
 *
 * Entries about operators are kept permanently. Of entries that peers can cause at will, renewals
 * and refused joins, the newest FL_AUDIT_PEERS_MAX are kept. The first refusal of an address within
 * an hour is an entry of its own, further ones are counted, and the count is an entry later; at
 * most FL_AUDIT_REFUSALS entries within an hour.
 */

#include "server/identity/authority.h"

#define FL_AUDIT_PEERS_MAX 50000
#define FL_AUDIT_REFUSALS  60

struct fl_audit_line {
    uint64_t number; /* starting at 1 */
    int64_t at_ms;
    const char *who, *what, *object, *result;
    bool peer; /* a peer can cause it at will */
};

/*
 * An action of an operator outside the authority (pause, rollback …). Texts are cut to 300 bytes
 * and control characters are replaced.
 */
FL_MUST_CHECK int fl_authority_audit(struct fl_authority *authority, const char *who,
                                     const char *what, const char *object, const char *result,
                                     int64_t now_ms, struct fl_err *err);
/*
 * The newest `last` entries, oldest first; `line` is valid during the call, an error of `cb` ends
 * the iteration.
 */
typedef int fl_audit_cb(void *ctx, const struct fl_audit_line *line);
FL_MUST_CHECK int fl_authority_audit_lines(struct fl_authority *authority, size_t last,
                                           fl_audit_cb *cb, void *ctx, struct fl_err *err);

#endif
