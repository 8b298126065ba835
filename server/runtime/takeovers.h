#ifndef FL_SERVER_RUNTIME_TAKEOVERS_H
#define FL_SERVER_RUNTIME_TAKEOVERS_H

/*
 * Counts how often a new session took over from an existing one of the same client, by client
 * number, since the start. A single takeover is a client that reconnects before the server detects
 * the lost connection; many are two machines with one identity: a copied state folder or disk
 * image. In memory, a few words for each number.
 *
 * Threading: one thread. Times are fl_clock_ms().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/*
 * This many within FL_TAKEOVERS_SPAN_MS mean two machines: each waits 15 minutes at most after it
 * lost its session (client/core/session.c), so two of them cause at least four an hour.
 */
#define FL_TAKEOVERS_MANY    3
#define FL_TAKEOVERS_SPAN_MS UINT64_C(3600000)
/* Minimum interval between recorded errors, however often the sessions change. */
#define FL_TAKEOVERS_TELL_MS UINT64_C(60000)

struct fl_takeover {
    uint64_t n;
    uint64_t at_ms[FL_TAKEOVERS_MANY]; /* ring of the newest ones; 0: none */
    uint64_t recorded_ms;              /* when the error was last recorded; 0: never */
};

struct fl_takeovers {
    struct fl_takeover *list; /* [n] by client number; owned */
    size_t n;
};

/* Count one takeover. FL_ENOMEM: it is not counted. */
FL_MUST_CHECK int fl_takeovers_count(struct fl_takeovers *t, uint32_t client, uint64_t now_ms);
uint64_t fl_takeovers_of(const struct fl_takeovers *t, uint32_t client);
/* True when two machines are likely. */
bool fl_takeovers_many(const struct fl_takeovers *t, uint32_t client, uint64_t now_ms);
/* The same, at most once in FL_TAKEOVERS_TELL_MS. */
bool fl_takeovers_tell(struct fl_takeovers *t, uint32_t client, uint64_t now_ms);
/* The number now belongs to another client. */
void fl_takeovers_drop(struct fl_takeovers *t, uint32_t client);
void fl_takeovers_done(struct fl_takeovers *t);

#endif
