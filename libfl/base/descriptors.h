#ifndef FL_BASE_DESCRIPTORS_H
#define FL_BASE_DESCRIPTORS_H

/* The limit of open descriptors of this process: the soft one counts, up to the hard one is ours.
 */

#include <stdint.h>

/*
 * Raise the soft limit to the hard one; returns what it then is. `*ret_before` (may be NULL) is
 * what it was: what we start gets that back, as programs that use select() count on a low one.
 */
uint64_t fl_descriptors_raise(uint64_t *ret_before);
/* What fl_descriptors_raise() would return; nothing is changed. */
uint64_t fl_descriptors_most(void);

#endif
