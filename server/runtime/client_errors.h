#ifndef FL_SERVER_RUNTIME_CLIENT_ERRORS_H
#define FL_SERVER_RUNTIME_CLIENT_ERRORS_H

/*
 * The newest error of each client, for operators: at most FL_ERRORS_MAX, sorted by name. Threading:
 * one thread.
 */

#include "server/store/store.h"

struct fl_errors {
    struct fl_client_error *list; /* [n] ascending by name; owned */
    size_t n, cap;
};

/* Replaces the client's previous error; when full, the oldest error is dropped. FL_ENOMEM. */
FL_MUST_CHECK int fl_errors_set(struct fl_errors *errors, const struct fl_client_error *error);
/* NULL: no error is recorded. Valid until the next set or drop. */
const struct fl_client_error *fl_errors_find(const struct fl_errors *errors, const char *name);
void fl_errors_drop(struct fl_errors *errors, const char *name);
/*
 * Errors that are `limit_ms` old at `up_ms` (the clock of fl_client_error.up_ms) and whose name is
 * not `known`: into old[errors->n]. Returns how many.
 */
size_t fl_errors_old(const struct fl_errors *errors, uint64_t up_ms, uint64_t limit_ms,
                     bool (*known)(void *ctx, const char *name), void *ctx,
                     struct fl_client_error *old);
void fl_errors_done(struct fl_errors *errors);

#endif
