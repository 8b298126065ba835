#ifndef FL_PROGRAM_SHARED_H
#define FL_PROGRAM_SHARED_H

/*
 * Memory shared with a program (memfd): an area that it may read, or one that it may write. It is
 * empty until its size is set, once; then neither side can resize it, and only this process ever
 * has a writable mapping of the read-only area (F_SEAL_FUTURE_WRITE).
 *
 * Threading: none; the program can change the bytes at any time, so copy data before checking it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

enum fl_shared_kind {
    FL_SHARED_WEIGHTS, /* the program reads */
    FL_SHARED_RESULT   /* the program writes */
};

struct fl_shared {
    enum fl_shared_kind kind;
    int fd;       /* of this process; -1: none */
    int theirs;   /* inherited by the program: read-only for weights */
    uint8_t *map; /* of weights, after the size was set */
    size_t bytes;
};

FL_MUST_CHECK int fl_shared_create(enum fl_shared_kind kind, struct fl_shared *ret,
                                   struct fl_err *err);
/* All zero with fd -1 is allowed. */
void fl_shared_done(struct fl_shared *s);
/*
 * Set the size and allocate the first `used` bytes now, so that a lack of memory is reported here.
 * FL_ENOMEM, FL_ENOSPC; FL_EPROTO: the program has already changed the memory.
 */
FL_MUST_CHECK int fl_shared_size(struct fl_shared *s, size_t bytes, size_t used,
                                 struct fl_err *err);
/* Within its size, as for all functions below. */
FL_MUST_CHECK int fl_shared_write(struct fl_shared *s, size_t offset, const void *data, size_t len,
                                  struct fl_err *err);
FL_MUST_CHECK int fl_shared_read(const struct fl_shared *s, size_t offset, void *data, size_t len,
                                 struct fl_err *err);

#endif
