#ifndef FL_TESTS_CALLPAIR_H
#define FL_TESTS_CALLPAIR_H

/*
 * A client and a server over mempipe, a service of small test methods, and logs of the handlers'
 * events.
 *
 *   /t.T/Echo    every message comes back; the end is answered with OK
 *   /t.T/Sum     the end is answered with the number of bytes received (eight bytes, big-endian)
 *   /t.T/Give    the message asks for n messages of len bytes: two uint32, big-endian
 *   /t.T/Fail    the message's first byte is the status, the rest its text
 *   /t.T/Refuse  ends with NOT_FOUND inside its start
 *   /t.T/Greet   sends ten bytes, none, and its status inside its start
 *   /t.T/Drop    cancels inside its start
 *   /t.T/Cancel  cancels when a message comes
 *   /t.T/Silent  takes everything and never answers
 *   /t.T/Hold    keeps the credit of every message
 */

#include "tests/lib/mempipe.h"

#define CALLPAIR_CALLS 32

struct call_log {
    struct fl_call *call; /* NULL when closed */
    unsigned messages;
    size_t bytes;
    size_t last_len;
    unsigned wrong; /* messages whose bytes are not callpair_byte() */
    bool hold;      /* keep the credit of messages */
    bool cancel;    /* cancel in on_message */
    bool take;      /* take the message's memory */
    unsigned ends;
    unsigned writables;
    unsigned closes;
    unsigned after_close; /* events after on_closed: must stay 0 */
    enum fl_grpc_status status;
    char text[2048];
    uint64_t reply;   /* of Sum */
    uint32_t to_give; /* messages that Give has not sent yet */
    uint32_t give_len;
    size_t at_first; /* bytes received at this side when its first message arrived */
    struct callpair *pair;
    int side; /* 0 client, 1 server */
};

struct callpair {
    struct mempipe pipe;
    struct fl_h2 *client;
    struct fl_h2 *server;
    struct fl_rpc_limits limits; /* of both sides, unless changed before callpair_open() */
    struct fl_rpc_limits client_limits;
    struct fl_rpc_method methods[16];
    struct call_log calls[CALLPAIR_CALLS];  /* the client's, in order */
    struct call_log served[CALLPAIR_CALLS]; /* the server's, in order */
    unsigned n_calls;
    unsigned n_served;
    unsigned wakes[2];
    uint64_t now_ms;
};

extern const struct fl_call_handler callpair_client_handler;

/* Defaults for limits; callpair_open() creates the sessions and lets them shake hands. */
void callpair_init(struct callpair *pair);
void callpair_open(struct callpair *pair);
/* The same without test assertions, for failing allocations. */
int callpair_try_open(struct callpair *pair);
void callpair_close(struct callpair *pair);

/* Start a call; ends the test when that fails. */
struct call_log *callpair_call(struct callpair *pair, const char *method, uint64_t timeout_ms);
int callpair_try_call(struct callpair *pair, const char *path, uint64_t timeout_ms,
                      struct call_log **ret);
/* Queue a message of `len` bytes of the pattern in three pieces, one of them a blob. */
int callpair_send(struct call_log *log, size_t len);
int callpair_send_text(struct call_log *log, const void *data, size_t len);
/* The pattern: byte `i` of a message of `len` bytes. */
uint8_t callpair_byte(size_t len, size_t i);
void callpair_run(struct callpair *pair);
/* Advance the time of both sides. */
void callpair_tick(struct callpair *pair, uint64_t ms);

#endif
