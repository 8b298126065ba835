#include "libfl/base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* `list` points to a pointer of the caller's type, so its value is copied. */
int fl_resize(void *list, size_t cap, size_t size)
{
    void *old;
    void *grown;

    (void)memcpy(&old, list, sizeof(old));
    grown = cap <= SIZE_MAX / size ? realloc(old, cap * size) : NULL;
    if (grown == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(list, &grown, sizeof(grown));
    return FL_OK;
}

int fl_grow(void *list, size_t *cap, size_t n, size_t size)
{
    size_t more = *cap > 0 ? 2 * *cap : 16;
    int rv;

    if (n < *cap) {
        return FL_OK;
    }
    rv = fl_resize(list, more, size);
    if (rv != FL_OK) {
        return rv;
    }
    *cap = more;
    return FL_OK;
}

int fl_grow_zeroed(void *list, size_t *n, size_t index, size_t size)
{
    size_t more = *n > 0 ? *n : 16;
    uint8_t *bytes;
    int rv;

    if (index < *n) {
        return FL_OK;
    }
    while (more <= index) {
        more *= 2;
    }
    rv = fl_resize(list, more, size);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(&bytes, list, sizeof(bytes));
    (void)memset(bytes + *n * size, 0, (more - *n) * size);
    *n = more;
    return FL_OK;
}
