#ifndef FL_STRATEGY_UPLOAD_IMPL_H
#define FL_STRATEGY_UPLOAD_IMPL_H

/* What the policies that ask n clients per unit share. */

#include "libfl/strategy/upload.h"

/* The rows `n` and `share` of an option table. */
/* clang-format off */
#define FL__UPLOAD_SHARE_OPTIONS                                                      \
    {.name = "n", .type = FL_OPT_INT, .def = "0", .min = 0, .max = 1e9,               \
     .help = "Clients that upload each unit; 0: take the share."},                    \
    {.name = "share", .type = FL_OPT_FLOAT, .def = "0.2", .min = 0, .max = 1,         \
     .help = "Part of the selected clients that uploads each unit, at least one."}
/* clang-format on */

/* n_t = n, or max(1, llround(share K_t)) (docs/formulas.md#partial-uploads); at most n_clients. */
size_t fl__upload_count(const struct fl_options *o, const struct fl_upload_input *in);

#endif
