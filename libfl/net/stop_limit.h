#ifndef FL_NET_STOP_LIMIT_H
#define FL_NET_STOP_LIMIT_H

/*
 * A time limit on the stop of a daemon. A thread that waits for a disk which does not answer cannot
 * be joined, so an orderly end would wait for ever. When the limit passes, a thread of its own logs
 * the reason and ends the process; what is on disk is what a kill at that moment would leave.
 *
 * Threading: begin and end on one thread; `last_words` runs on the limit's own.
 */

#include "libfl/base/log.h"

struct fl_stop_limit;

/* Writes what the stop still waits for into `out`. */
typedef void fl_stop_last_words_fn(void *ctx, char *out, size_t size);

/*
 * From now the stop has `limit_ms`. Then one line (ERROR, `component`) is logged and the process
 * exits with `exit_code`. FL_ENOMEM and errors of eventfd(2) and pthread_create(3); `err` has the
 * text.
 */
FL_MUST_CHECK int fl_stop_limit_begin(uint64_t limit_ms, const struct fl_log *log,
                                      const char *component, int exit_code,
                                      fl_stop_last_words_fn *last_words, void *ctx,
                                      struct fl_stop_limit **ret, struct fl_err *err);
/* The stop came to its end; frees. NULL is allowed. */
void fl_stop_limit_end(struct fl_stop_limit *limit);

#endif
