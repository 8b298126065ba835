#ifndef FL_SERVER_IDENTITY_TRIES_IMPL_H
#define FL_SERVER_IDENTITY_TRIES_IMPL_H

/*
 * Wrong tokens, counted by address. They never cause the refusal of a valid token, so that peers
 * which share an address cannot lock each other out; 144 random bits need no protection against
 * guessing. The limit saves work, audit entries and log lines. Pure.
 *
 * An address is one of IPv4, or a /64 of IPv6, since a host there usually has all of it. Limits:
 * FL__JOIN_ATTEMPTS addresses; the least recently used one is replaced.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL__JOIN_ATTEMPTS        1024
#define FL__JOIN_ATTEMPTS_BURST  20
#define FL__JOIN_ATTEMPTS_ONE_MS 6000 /* one attempt is regained per this time: ten in a minute */
#define FL__JOIN_ATTEMPTS_HOUR   (INT64_C(3600) * 1000)
/* Size of an address as text: without its port, a /64 with its length. */
#define FL__ADDRESS_TEXT 64

struct fl__join_attempt {
    char address[FL__ADDRESS_TEXT]; /* "": free */
    int64_t heard_ms;
    int64_t full_ms;   /* when the full burst is available again */
    int64_t logged_ms; /* time of its last audit entry */
    uint32_t unlogged; /* refusals since then */
};

struct fl__join_attempts {
    struct fl__join_attempt list[FL__JOIN_ATTEMPTS];
    int64_t hour_ms; /* start of the hour in which audit entries are counted */
    uint32_t lines;
    uint32_t unlogged,
        unlogged_addresses; /* of replaced addresses, and of those without an entry */
};

/* Writes the address: 10.0.0.5, 2001:db8::/64; other texts are copied, truncated. */
void fl__address(const char *peer, char out[FL__ADDRESS_TEXT]);
/* A wrong token of `peer`. False: it has no attempts left; `*ret_wait_ms` until the next. */
bool fl__join_attempts_wrong(struct fl__join_attempts *attempts, const char *peer, int64_t now_ms,
                             int64_t *ret_wait_ms);
/*
 * A refusal of `peer` for any reason. True: write an audit entry; then `*ret_before` refusals of it
 * were counted since its last one.
 */
bool fl__join_attempts_log(struct fl__join_attempts *attempts, const char *peer, int64_t now_ms,
                           uint32_t *ret_before);
/*
 * Take a count that is older than an hour, with `all` any: true, and its count is reset. `address`
 * "": `*ret_n` refusals of several addresses.
 */
bool fl__join_attempts_unlogged(struct fl__join_attempts *attempts, int64_t now_ms, bool all,
                                char address[FL__ADDRESS_TEXT], uint32_t *ret_n);

#endif
