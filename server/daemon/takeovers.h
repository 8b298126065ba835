#ifndef FL_SERVERD_TAKEOVERS_H
#define FL_SERVERD_TAKEOVERS_H

/*
 * How often a session took over the name of one that still stood, by client number, since the
 * start. Once is a client that reconnects before the server knows that its connection is gone;
 * often is two machines with one identity: a copied state folder or disk image. In memory, a few
 * words for each number.
 *
 * Threading: one thread. Times are fl_clock_ms().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* So many within FL_TAKEOVERS_SPAN_MS are of two machines: each waits 15 minutes at most after it
   lost its session (client/core/session.c), so two of them make at least four an hour. */
#define FL_TAKEOVERS_MANY    3
#define FL_TAKEOVERS_SPAN_MS UINT64_C(3600000)
/* An error is recorded this often, however often the sessions change. */
#define FL_TAKEOVERS_TELL_MS UINT64_C(60000)

struct fl_takeover {
    uint64_t n;
    uint64_t at_ms[FL_TAKEOVERS_MANY]; /* the newest ones, in turn; 0: none */
    uint64_t told_ms;                  /* when that was recorded last; 0: never */
};

struct fl_takeovers {
    struct fl_takeover *list; /* [n] by client number; owned */
    size_t n;
};

/* One more. FL_ENOMEM: it is not counted. */
FL_MUST_CHECK int fl_takeovers_count(struct fl_takeovers *t, uint32_t client, uint64_t now_ms);
uint64_t fl_takeovers_of(const struct fl_takeovers *t, uint32_t client);
/* Are two machines likely? */
bool fl_takeovers_many(const struct fl_takeovers *t, uint32_t client, uint64_t now_ms);
/* The same, once in FL_TAKEOVERS_TELL_MS. */
bool fl_takeovers_tell(struct fl_takeovers *t, uint32_t client, uint64_t now_ms);
/* The number is another client's. */
void fl_takeovers_drop(struct fl_takeovers *t, uint32_t client);
void fl_takeovers_done(struct fl_takeovers *t);

#endif
