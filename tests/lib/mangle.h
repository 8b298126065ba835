#ifndef FL_TESTS_MANGLE_H
#define FL_TESTS_MANGLE_H

/*
 * A filter that is as inconvenient as one may be: both sides greet each other before a byte goes
 * through; bytes are changed and cut into frames; writes are gathered in batches, and each is held
 * back for a turn of the loop; the first bytes are delivered one by one; a last frame says goodbye.
 */

#include "libfl/net/stream.h"

extern const struct fl_stream_filter mangle_filter;

/* A frame that no mangle sends, behind its greeting: who receives it fails with FL_EPROTO. */
#define MANGLE_GREETING "mangled."
#define MANGLE_BROKEN   "mangled.\xff\xff"

#endif
