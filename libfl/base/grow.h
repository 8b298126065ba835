#ifndef FL_BASE_GROW_H
#define FL_BASE_GROW_H

#include <stddef.h>

#include "libfl/base/err.h"

/*
 * Make room for one more element: `list` is the address of a pointer to `*cap` elements of `size`
 * bytes from malloc(), or of NULL, of which `n` are in use. The pointer and `*cap` change only when
 * the list is full; the new elements are not initialized. FL_ENOMEM leaves both as they are.
 */
FL_MUST_CHECK int fl_grow(void *list, size_t *cap, size_t n, size_t size);

/* Give the list `cap` elements, at least those in use; else as fl_grow(). */
FL_MUST_CHECK int fl_resize(void *list, size_t cap, size_t size);

/* Make `index` one of the `*n` elements: new ones are zero. Else as fl_grow(). */
FL_MUST_CHECK int fl_grow_zeroed(void *list, size_t *n, size_t index, size_t size);

#endif
