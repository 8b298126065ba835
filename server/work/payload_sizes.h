#ifndef FL_SERVER_WORK_PAYLOAD_SIZES_H
#define FL_SERVER_WORK_PAYLOAD_SIZES_H

/* Uploads of clients: which payloads in which order, and the form in which they are announced. */

#include "libfl/strategy/strategy.h"
#include "libfl/wire/messages.h"
#include "server/store/store.h"

/* Index of a payload in an upload, 0 for "update"; FL_SPOOL_MAX_PAYLOADS: it is not sent. */
size_t fl_sent_place(const struct fl_strategy *strategy, const char *payload);

/*
 * The sections that `header` announces, in the form of the spool: exactly the units of the upload
 * mask, each once per payload, in the strategy's codec. FL_EINVAL, FL_ESHAPE: they are others.
 * `*ret` is returned owned.
 */
FL_MUST_CHECK int fl_sent_parts(const struct fl_layout *layout, const struct fl_strategy *strategy,
                                const struct fl_wire_push_header *header, const uint8_t *grant,
                                struct fl_spool_part **ret, struct fl_err *err);

#endif
