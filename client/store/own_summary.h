#ifndef FL_CLIENT_SUMMARY_H
#define FL_CLIENT_SUMMARY_H

/*
 * The data summary that this client sent, <state_dir>/summary.bin. It is written before the first
 * byte is sent and never replaced: every server gets these bytes. Two summaries of nearly the same
 * samples (another group size, other groups, one sample more) would reveal single samples as their
 * differences.
 */

#include <stdint.h>

#include "libfl/base/buf.h"

/* FL_ENOENT: none. FL_EFORMAT: damaged. FL_EVERSION: of a later program. FL_EIO. */
FL_MUST_CHECK int fl_summary_group(const char *state_dir, uint64_t *ret, struct fl_err *err);
/* Read the whole summary into `out`, which is empty. The same errors; FL_ELIMIT, FL_ENOMEM. */
FL_MUST_CHECK int fl_summary_load(const char *state_dir, struct fl_buf *out, struct fl_err *err);
/*
 * `group`: the group size that the server requested (fl_solver_ops.summary_group). It is on disk
 * when this returns.
 */
FL_MUST_CHECK int fl_summary_save(const char *state_dir, uint64_t group, const void *data,
                                  size_t len, struct fl_err *err);

#endif
