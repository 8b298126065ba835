#ifndef FL_BASE_DESCRIPTORS_H
#define FL_BASE_DESCRIPTORS_H

/* The limit of open descriptors of this process: the soft limit applies, and the process may raise
 * it to the hard limit.
 */

#include <stdint.h>

/*
 * Raise the soft limit to the hard one; returns the new soft limit. `*ret_before` (may be NULL)
 * gets the old one: child programs get it back, as programs that use select() rely on a low limit.
 */
uint64_t fl_descriptors_raise(uint64_t *ret_before);
/* The value that fl_descriptors_raise() would return; changes nothing. */
uint64_t fl_descriptors_most(void);

#endif
