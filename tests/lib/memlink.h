#ifndef FL_TESTS_MEMLINK_H
#define FL_TESTS_MEMLINK_H

/*
 * Two streams (libfl/net/stream.h) joined in memory, as two sockets are, without a loop: a test
 * says how many bytes arrive at a time, which of them are damaged and where the connection is cut.
 * Callbacks run in memlink_run() only, and in the order in which a loop runs them.
 */

#include <check.h>

#include "libfl/net/stream.h"

enum { MEMLINK_CLIENT, MEMLINK_SERVER };

struct memend {
    struct fl_stream stream; /* First. */
    struct memlink *link;
    const struct fl_stream_cbs *cbs;
    void *ctx;
    bool opened;
    bool due;
    bool its_turn;
    bool paused;
    bool flushing;
    bool closing;
    bool closed;   /* on_close was called */
    bool finished; /* has sent its end */
    int code;
    /* What it sent and the other has not got yet, from `start`. */
    uint8_t *wire;
    size_t start, len, cap;
    size_t sent;    /* bytes so far */
    size_t arrived; /* of those at the other end */
    size_t step;    /* bytes of it that arrive at a time; 0: all */
    size_t first;   /* ... the first time; 0: as many as later */
    size_t take;    /* bytes that a write takes at a time; 0: all */
    size_t taken;   /* of the turn */
    size_t damage;  /* the place of a byte that arrives changed; SIZE_MAX: none */
    size_t cut;     /* after so many bytes nothing arrives but the end; SIZE_MAX: never */
    bool held;      /* nothing of it arrives for now */
    unsigned turns; /* with something to do */
};

struct memlink {
    struct memend end[2];
    bool inside; /* a callback runs */
};

/* Called with true before each callback of a stream and with false behind it, when set. */
extern void (*memlink_theirs)(bool theirs);

void memlink_init(struct memlink *link);
/* Until nothing moves any more. */
void memlink_run(struct memlink *link);
/* One turn of the loop; false: nothing moved. */
bool memlink_turn(struct memlink *link);
/* The same of many that are on one loop: what is woken in a turn has its turn in the next. */
bool memlink_turn_all(struct memlink *const *links, size_t n);
/* Let `len` bytes of nobody's arrive at `end`. */
void memlink_inject(struct memlink *link, int end, const void *data, size_t len);
/* Both ends have to be closed. */
void memlink_done(struct memlink *link);

#endif
