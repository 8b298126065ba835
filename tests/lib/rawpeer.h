#ifndef FL_TESTS_RAWPEER_H
#define FL_TESTS_RAWPEER_H

/*
 * A foreign HTTP/2 peer, client or server, scripted by a test: plain nghttp2. Received frames are
 * logged as text, one word for each frame:
 *
 *   H200 (headers with their :status)  D12 (data)  T (trailers)  E (end of stream)
 *   R8 (reset, with its code)  G0 (GOAWAY)  and  key=value for grpc-status, grpc-message
 */

#include <nghttp2/nghttp2.h>

#include "libfl/h2/h2.h"

#define RAWPEER_TRACE 4096

struct rawpeer {
    nghttp2_session *session;
    struct fl_h2 *other;
    bool server;
    char trace[RAWPEER_TRACE];
    char request[RAWPEER_TRACE]; /* a server's: the last request's headers, "name: value\n" */
    int32_t last_stream;
    size_t received;     /* message bytes */
    bool mute;           /* leave data out of the trace */
    struct fl_buf *sink; /* where message bytes go; NULL: they are counted only */
    int code;            /* first error of `other` */
    const uint8_t *body;
    size_t body_len;
    size_t body_at;
    bool body_ends; /* END_STREAM after the body, else it stays open */
};

struct rawpeer_header {
    const char *name;
    const char *value;
};

/* `window`: initial window of streams; 0 is allowed. */
void rawpeer_open(struct rawpeer *raw, struct fl_h2 *other, bool server, uint32_t window);
void rawpeer_close(struct rawpeer *raw);
/* Exchange bytes until nothing moves. */
void rawpeer_run(struct rawpeer *raw);
/* Send raw bytes to the other side, bypassing nghttp2. */
int rawpeer_bytes(struct rawpeer *raw, const void *data, size_t len);

/* A client's request, gRPC's usual headers with those of `extra` in place of or beside them
   (a NULL value leaves one out); `extra` ends with a NULL name. Returns the stream. */
int32_t rawpeer_request(struct rawpeer *raw, const char *path, const struct rawpeer_header *extra,
                        const void *body, size_t len, bool ends);
/* A server's headers; `ends` makes them the last frame. */
void rawpeer_headers(struct rawpeer *raw, int32_t id, const struct rawpeer_header *headers,
                     bool ends);
/* A server's response headers with a body after them. */
void rawpeer_reply(struct rawpeer *raw, int32_t id, const struct rawpeer_header *headers,
                   const void *body, size_t len, bool ends);

#endif
