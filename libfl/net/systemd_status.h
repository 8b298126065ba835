#ifndef FL_NET_STATUS_H
#define FL_NET_STATUS_H

/*
 * The line that `systemctl status` shows for a service: computed when something may have changed,
 * sent when it has changed, at most once a second.
 *
 * Threading: one loop.
 */

#include <stddef.h>

#include "libfl/net/loop.h"

/* Longest line, with its NUL. */
#define FL_STATUS_SIZE 768

struct fl_status;

/* Writes the current line. */
typedef void fl_status_fn(void *ctx, char *out, size_t size);

FL_MUST_CHECK int fl_status_create(struct fl_loop *loop, fl_status_fn *fill, void *ctx,
                                   struct fl_status **ret);
/* It may have changed: `fill` runs now, or within a second. Cheap. NULL is allowed. */
void fl_status_changed(struct fl_status *status);
/* NULL is allowed. */
void fl_status_close(struct fl_status *status);

#endif
