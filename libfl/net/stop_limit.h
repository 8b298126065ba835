#ifndef FL_NET_STOP_LIMIT_H
#define FL_NET_STOP_LIMIT_H

/*
 * A time limit on the stop of a daemon. A thread that waits for a disk that does not respond cannot
 * be joined, so an orderly stop would never end. When the limit passes, a separate thread logs the
 * reason and exits the process; the files on disk are as after a kill at that moment.
 *
 * Threading: begin and end on one thread; `last_words` runs on the limit's own thread.
 */

#include "libfl/base/log.h"

struct fl_stop_limit;

/* Writes into `out` what the stop still waits for. */
typedef void fl_stop_last_words_fn(void *ctx, char *out, size_t size);

/* Borrows all. */
struct fl_stop_limit_setup {
    uint64_t limit_ms;
    const struct fl_log *log;
    const char *component; /* of the line in the log */
    int exit_code;
    fl_stop_last_words_fn *last_words;
    void *ctx;
};

/*
 * The stop must end within `limit_ms` from now. Otherwise one line (ERROR, `component`) is logged
 * and the process exits with `exit_code`. FL_ENOMEM and errors of eventfd(2) and pthread_create(3);
 * `err` has the text. Copies `setup`.
 */
FL_MUST_CHECK int fl_stop_limit_begin(const struct fl_stop_limit_setup *setup,
                                      struct fl_stop_limit **ret, struct fl_err *err);
/* The stop has ended; frees. NULL is allowed. */
void fl_stop_limit_end(struct fl_stop_limit *limit);

#endif
