#ifndef FL_SERVERD_ERRORS_H
#define FL_SERVERD_ERRORS_H

/*
 * The last thing that went wrong with each client, for people who look for the reason: the newest
 * FL_ERRORS_MAX of them, by name.
 * Threading: one thread.
 */

#include "server/store/store.h"

struct fl_errors {
    struct fl_client_error *list; /* [n] by rising name; owned */
    size_t n, cap;
};

/* Replaces the one that the client had; without room the oldest one goes. FL_ENOMEM. */
FL_MUST_CHECK int fl_errors_set(struct fl_errors *errors, const struct fl_client_error *error);
/* NULL: nothing is known. Valid until the next set or drop. */
const struct fl_client_error *fl_errors_find(const struct fl_errors *errors, const char *name);
void fl_errors_drop(struct fl_errors *errors, const char *name);
/*
 * Those that are `limit_ms` old at `up_ms` (the clock of fl_client_error.up_ms) and whose name is
 * not `known`: into old[errors->n]. Returns how many.
 */
size_t fl_errors_old(const struct fl_errors *errors, uint64_t up_ms, uint64_t limit_ms,
                     bool (*known)(void *ctx, const char *name), void *ctx,
                     struct fl_client_error *old);
void fl_errors_done(struct fl_errors *errors);

#endif
