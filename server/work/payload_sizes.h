#ifndef FL_SERVER_WORK_SENT_H
#define FL_SERVER_WORK_SENT_H

/* What clients send up: which bundles in which order, and the form in which they announce them. */

#include "libfl/strategy/strategy.h"
#include "libfl/wire/messages.h"
#include "server/store/store.h"

/* The place of a bundle in an upload, 0 for "update"; FL_SPOOL_MAX_BUNDLES: it is not sent. */
size_t fl_sent_place(const struct fl_strategy *strategy, const char *bundle);

/*
 * The parts that `header` announces as the spool takes them: exactly the granted units, each once a
 * bundle, in the strategy's codec. FL_EINVAL, FL_ESHAPE: they are others. `*ret` is returned owned.
 */
FL_MUST_CHECK int fl_sent_parts(const struct fl_layout *layout, const struct fl_strategy *strategy,
                                const struct fl_wire_push_header *header, const uint8_t *grant,
                                struct fl_spool_part **ret, struct fl_err *err);

#endif
