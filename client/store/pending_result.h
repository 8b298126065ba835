#ifndef FL_CLIENT_STORE_HELD_H
#define FL_CLIENT_STORE_HELD_H

/* The one finished result that a client holds until the server has counted or dismissed it. */

#include "client/store/result.h"
#include "libfl/base/log.h"

struct fl_pending_result {
    const char *state_dir;    /* borrowed; NULL: the result is in memory only */
    const struct fl_log *log; /* borrowed; may be NULL */
    struct fl_result *result; /* a reference, NULL: none */
};

/* What an earlier process left; a file that is damaged counts as none.
   FL_EVERSION: it is of a later one, and stays. */
FL_MUST_CHECK int fl_pending_result_load(struct fl_pending_result *held, struct fl_err *err);
/* Is it that of `key`? */
bool fl_pending_result_is(const struct fl_pending_result *held, struct fl_round_key key);
/* From now on `result`, which it takes and which is on disk where that went well. */
void fl_pending_result_put(struct fl_pending_result *held, struct fl_result *result);
/* No longer, on disk neither, when it is that of `key`. */
void fl_pending_result_drop(struct fl_pending_result *held, struct fl_round_key key);
/* What is on disk stays. */
void fl_pending_result_done(struct fl_pending_result *held);

#endif
