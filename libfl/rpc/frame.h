#ifndef FL_RPC_FRAME_H
#define FL_RPC_FRAME_H

/*
 * gRPC's length-prefixed messages ("Length-Prefixed-Message" of the gRPC over HTTP/2
 * specification): one byte of flags, four bytes of length, big-endian, then the message.
 * A streaming parser that keeps no message bytes: it may be fed runs of any length, cut
 * anywhere.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_FRAME_PREFIX 5

enum fl_frame_event {
    FL_FRAME_MORE, /* all input was used and no event is due */
    FL_FRAME_HEAD, /* a prefix is complete: `flags` and `len` are set */
    FL_FRAME_BODY, /* a run of message bytes, not empty */
    FL_FRAME_END   /* the message is complete */
};

/* All zero is the initial state. */
struct fl_frame {
    uint8_t prefix[FL_FRAME_PREFIX];
    uint8_t n_prefix;
    bool in_body;
    uint8_t flags; /* of the message that HEAD announced */
    uint32_t len;  /* flags of the message that HEAD announced */
    uint32_t left; /* bytes of it that have not arrived yet */
};

/*
 * Finds the next event in `data` (borrows). `*ret_used` bytes were used; for BODY these are the
 * message bytes themselves. Call again with the rest until FL_FRAME_MORE.
 */
enum fl_frame_event fl_frame_next(struct fl_frame *frame, const uint8_t *data, size_t len,
                                  size_t *ret_used);

/* True between two messages: the only position where a stream may end. */
bool fl_frame_at_boundary(const struct fl_frame *frame);

void fl_frame_prefix(uint8_t out[FL_FRAME_PREFIX], uint32_t len);

#endif
