#ifndef FL_PROGRAM_SHARED_H
#define FL_PROGRAM_SHARED_H

/*
 * Memory that we share with a program (memfd): what it may read, and what it may write. Empty until
 * it is given its size, once; from then on neither side can make it longer or shorter, and of what
 * is there to be read only we have a writable mapping, ever (F_SEAL_FUTURE_WRITE).
 *
 * Threading: none; the bytes are the program's too, so what is checked is copied out first.
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
    int fd;       /* ours; -1: none */
    int theirs;   /* what the program inherits: of weights one that can only read */
    uint8_t *map; /* of weights, once it has its size */
    size_t bytes;
};

FL_MUST_CHECK int fl_shared_create(enum fl_shared_kind kind, struct fl_shared *ret,
                                   struct fl_err *err);
/* All zero is allowed, and fd -1. */
void fl_shared_done(struct fl_shared *s);
/*
 * Give it its size, of which the first `used` bytes are taken from the system now: who has not
 * enough memory hears it here. FL_ENOMEM, FL_ENOSPC; FL_EPROTO: the program has done something to
 * it already.
 */
FL_MUST_CHECK int fl_shared_size(struct fl_shared *s, size_t bytes, size_t used,
                                 struct fl_err *err);
/* Inside of its size, as all of these. */
FL_MUST_CHECK int fl_shared_write(struct fl_shared *s, size_t offset, const void *data, size_t len,
                                  struct fl_err *err);
FL_MUST_CHECK int fl_shared_read(const struct fl_shared *s, size_t offset, void *data, size_t len,
                                 struct fl_err *err);

#endif
