#ifndef FL_SERVER_IDENTITY_TRIES_IMPL_H
#define FL_SERVER_IDENTITY_TRIES_IMPL_H

/*
 * Wrong tokens, counted for each address. A right token is never refused for them, so that nobody
 * locks others out who share his address; 144 random bits need no protection against guessing. What
 * the budget saves is work, lines and log. Pure.
 *
 * An address is one of IPv4, or a /64 of IPv6, as whoever has one address there has all of them.
 * Limits: FL__JOIN_ATTEMPTS addresses; the one that was heard of longest ago makes room.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL__JOIN_ATTEMPTS        1024
#define FL__JOIN_ATTEMPTS_BURST  20
#define FL__JOIN_ATTEMPTS_ONE_MS 6000 /* one comes back: ten in a minute */
#define FL__JOIN_ATTEMPTS_HOUR   (INT64_C(3600) * 1000)
/* Room for an address as text: without its port, a /64 with its length. */
#define FL__ADDRESS_TEXT 64

struct fl__join_attempt {
    char address[FL__ADDRESS_TEXT]; /* "": free */
    int64_t heard_ms;
    int64_t full_ms; /* when all of the burst is there again */
    int64_t told_ms; /* when its last line was written */
    uint32_t untold; /* refusals since */
};

struct fl__join_attempts {
    struct fl__join_attempt list[FL__JOIN_ATTEMPTS];
    int64_t hour_ms; /* lines of refusals are counted from here on */
    uint32_t lines;
    uint32_t untold, untold_addresses; /* of addresses that made room, or got no line */
};

/* "10.0.0.5", "2001:db8::/64"; what is no address stays as it is, cut. */
void fl__address(const char *peer, char out[FL__ADDRESS_TEXT]);
/* A wrong token of `peer`. False: it has no more of them; `*ret_wait_ms` until the next. */
bool fl__join_attempts_wrong(struct fl__join_attempts *tries, const char *peer, int64_t now_ms,
                             int64_t *ret_wait_ms);
/*
 * A refusal of `peer` for whatever reason. True: it is worth a line; then `*ret_before` refusals of
 * it were counted since its last line.
 */
bool fl__join_attempts_tell(struct fl__join_attempts *tries, const char *peer, int64_t now_ms,
                            uint32_t *ret_before);
/*
 * One that was counted for more than an hour and has no line, or with `all` any: true, and it is
 * counted no more. `address` "": `*ret_n` refusals of several.
 */
bool fl__join_attempts_untold(struct fl__join_attempts *tries, int64_t now_ms, bool all,
                              char address[FL__ADDRESS_TEXT], uint32_t *ret_n);

#endif
