#ifndef FL_SERVER_IDENTITY_AUDIT_H
#define FL_SERVER_IDENTITY_AUDIT_H

/*
 * What was done, by whom, and what came of it: every invitation, join, renewal, denial and action
 * of an operator. A line is on disk in the transaction of what it is about, and is then said
 * (fl_authority_conf.say).
 *
 * What operators do is kept for good. What peers can cause at will, renewals and joins that were
 * refused, is kept for the newest FL_AUDIT_PEERS_MAX; of refusals the first of an address within an
 * hour is a line, the others are counted, and the count is a line later; FL_AUDIT_REFUSALS lines
 * within an hour at most.
 */

#include "server/identity/authority.h"

#define FL_AUDIT_PEERS_MAX 50000
#define FL_AUDIT_REFUSALS  60

struct fl_audit_line {
    uint64_t number; /* from 1 on */
    int64_t at_ms;
    const char *who, *what, *object, *result;
};

/* What an operator did elsewhere (pause, rollback …). Texts are cut to 300 bytes and cleaned. */
FL_MUST_CHECK int fl_authority_audit(struct fl_authority *authority, const char *who,
                                     const char *what, const char *object, const char *result,
                                     int64_t now_ms, struct fl_err *err);
/* The newest `last`, oldest first; valid during the call, an error of which ends it. */
typedef int fl_audit_cb(void *ctx, const struct fl_audit_line *line);
FL_MUST_CHECK int fl_authority_audit_lines(struct fl_authority *authority, size_t last,
                                           fl_audit_cb *cb, void *ctx, struct fl_err *err);

#endif
