#ifndef FL_STRATEGY_UPLOAD_IMPL_H
#define FL_STRATEGY_UPLOAD_IMPL_H

/* Shared by the policies with n clients per unit. */

#include "libfl/strategy/upload/upload.h"

struct fl__upload_share {
    int64_t n;
    double share;
};
extern const struct fl_opt_spec fl__upload_share_options[];

/* n_t = n, or max(1, llround(share K_t)), at most n_clients: docs/algorithms.md#partial-uploads */
size_t fl__upload_count(const struct fl_options *o, const struct fl_upload_input *in);

/* fl_upload_ops.senders: the option n. */
size_t fl__upload_senders(const struct fl_options *o);

#endif
