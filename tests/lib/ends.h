#ifndef FL_TESTS_ENDS_H
#define FL_TESTS_ENDS_H

/*
 * Connections for tests: up to four ends on one loop that record their callbacks, check the rules
 * of tls_stream.h at every callback, and stop the loop when a test's condition holds.
 */

#include <check.h>
#include <netdb.h>

#include "libfl/net/net_impl.h"

#define ENDS 4

struct world;

struct end {
    struct world *world;
    struct fl_stream *stream;
    struct fl_conn *socket; /* below it, or the same */
    const uint8_t *out;
    size_t out_len;
    size_t sent;
    size_t run; /* Length of one chunk that `output` offers. */
    uint8_t *in;
    size_t in_len;
    size_t in_cap;
    bool echo; /* Echoes received data. */
    bool endless;
    int output_code; /* Negative: `output` returns it. */
    unsigned woken;
    unsigned rewakes; /* Number of times that on_wake wakes its own connection. */
    unsigned opened;
    unsigned closed;
    int code;
    char text[400];
    const char *close_in; /* Name of the callback that closes. */
    bool flush;           /* ... with fl_stream_close_flushed() */
};

struct world {
    struct fl_loop *loop;
    struct fl_listener *listener;
    char address[64];
    struct end end[ENDS]; /* 0: the first that was accepted. */
    unsigned accepted;
    bool (*done)(struct world *world);
    bool inside; /* A call of ours is on the stack: no callback may run. */
    int small_buffers;
};

/* End CLIENT is always the one that connects. */
#define CLIENT 3

extern const struct fl_stream_cbs ends_cbs;
/* Over every connection that is accepted, and that is made; NULL: nothing. */
extern const struct fl_stream_filter *ends_filter;
extern const struct fl_stream_filter *ends_dial_filter;

/* For fl_listen(): the connection becomes the next end, from 0 on. */
void ends_accept(void *world, struct fl_stream *stream);
/* Make the loop and listen on `listen_on` (unless NULL). */
void ends_begin(struct world *world, const char *listen_on);
/* Close all, free the loop (which finds what was left open), check that each end closed once. */
void ends_end(struct world *world);
struct end *ends_dial(struct world *world, unsigned which, const char *address,
                      uint32_t timeout_ms);
/* A plain blocking socket, connected to world->address. */
int ends_raw_client(const struct world *world);
char *ends_unix_address(char *out, size_t size);
/* Owned: free(). */
uint8_t *ends_random_bytes(size_t len);

/* Conditions. */
bool ends_client_closed(struct world *world);
bool ends_both_closed(struct world *world);
bool ends_client_has_all(struct world *world);

#endif
