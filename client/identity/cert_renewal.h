#ifndef FL_CLIENT_IDENTITY_RENEWING_H
#define FL_CLIENT_IDENTITY_RENEWING_H

/*
 * When a certificate is renewed, the pause after a failed renewal, and whether this host's clock
 * can be right. Pure; times are since 1970.
 */

#include "libfl/base/err.h"
#include "libfl/base/identity.h"

/*
 * When to request the next certificate, in ms: at about two thirds of the validity, at a point of
 * [60 %, 72 %) derived from key and serial, so that clients that joined together do not renew
 * together. The rest covers an unavailable server: ten days of thirty.
 */
int64_t fl_renewing_due_ms(const struct fl_identity *who);

/*
 * The pause after the `failures`-th consecutive failure (from 1): a minute, doubled up to an hour,
 * each time +-20 % derived from key, serial and number; but at most a twentieth of the remaining
 * validity, so that a short-lived certificate gets enough attempts, and at least a second.
 */
uint64_t fl_renewing_pause_ms(const struct fl_identity *who, unsigned failures, int64_t now_ms);

/*
 * FL_EAGAIN with a text when `now` (s) is before a time known to have passed: the start of the
 * client's certificate (`who` may be NULL), else `built` (s, build time of the program; 0:
 * unknown). The text names the first of them that is later than `now`, also when the other is later
 * still. A host without a battery for its clock starts in 1970, and no certificate can be judged
 * before its time service has set the clock.
 */
FL_MUST_CHECK int fl_renewing_clock(int64_t now, int64_t built, const struct fl_identity *who,
                                    struct fl_err *err);

#endif
