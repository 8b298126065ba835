#ifndef FL_CLIENT_STORE_HELD_H
#define FL_CLIENT_STORE_HELD_H

/* The one finished result that a client keeps until the server has aggregated or dismissed it. */

#include "client/store/result.h"
#include "libfl/base/log.h"

struct fl_pending_result {
    const char *state_dir;    /* borrowed; NULL: the result is in memory only */
    const struct fl_log *log; /* borrowed; may be NULL */
    struct fl_result *result; /* a reference, NULL: none */
};

/*
 * Load the result of an earlier process; a damaged file counts as none. FL_EVERSION: the file is of
 * a later version, and stays.
 */
FL_MUST_CHECK int fl_pending_result_load(struct fl_pending_result *held, struct fl_err *err);
/* The key of the result; round 0: none. */
struct fl_round_key fl_pending_result_key(const struct fl_pending_result *held);
/* Is the result that of `key`? */
bool fl_pending_result_is(const struct fl_pending_result *held, struct fl_round_key key);
/* Replace the result by `result`, which it takes; it is on disk already unless saving failed. */
void fl_pending_result_put(struct fl_pending_result *held, struct fl_result *result);
/* Drop the result, on disk too, when it is that of `key`. */
void fl_pending_result_drop(struct fl_pending_result *held, struct fl_round_key key);
/* Free the result in memory; the file stays. */
void fl_pending_result_done(struct fl_pending_result *held);

#endif
