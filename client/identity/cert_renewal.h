#ifndef FL_CLIENT_IDENTITY_RENEWING_H
#define FL_CLIENT_IDENTITY_RENEWING_H

/*
 * When a certificate is renewed, how long to wait after a failure, and whether this host's clock
 * can be right. Pure; times are since 1970.
 */

#include "libfl/base/err.h"
#include "libfl/base/identity.h"

/*
 * When to ask for the next certificate, in ms: at about two thirds of the validity, at a point of
 * [60 %, 72 %) that key and serial draw, so that those who joined together do not come together.
 * The rest is for a server that is away: ten days of thirty.
 */
int64_t fl_renewing_due_ms(const struct fl_identity *who);

/*
 * The pause after the `failures`-th failure in a row (from 1 on): a minute, doubled to an hour,
 * each time +-20 % that key, serial and number draw; but never more than a twentieth of what is
 * left of the validity, so that a short one has its tries too, and never less than a second.
 */
uint64_t fl_renewing_pause_ms(const struct fl_identity *who, unsigned failures, int64_t now_ms);

/*
 * FL_EAGAIN with a text when `now` (s) is before what is known to be past: the beginning of the own
 * certificate (`who` may be NULL), else `built` (s, when the program was built; 0: not known). The
 * text names the first of them that says so, also when the other is later. A host without a battery
 * for its clock begins in 1970, and nothing that a certificate says of time can be judged before
 * its time service has set it.
 */
FL_MUST_CHECK int fl_renewing_clock(int64_t now, int64_t built, const struct fl_identity *who,
                                    struct fl_err *err);

#endif
