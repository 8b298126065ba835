#ifndef FL_GRPC_KEEPALIVE_IMPL_H
#define FL_GRPC_KEEPALIVE_IMPL_H

/*
 * When a silent connection needs a PING, and when one without an answer has failed. Private to
 * libfl/grpc, pure. Any byte that arrives counts as an answer.
 */

#include <stdint.h>

struct fl__keepalive {
    uint32_t after_ms;  /* of silence, then a PING; 0: never */
    uint32_t limit_ms;  /* after it, of further silence: the connection has failed */
    uint64_t received;  /* bytes at the last check, */
    uint64_t heard_ms;  /* and when they were found; 0: no check yet */
    uint64_t pinged_ms; /* a PING waits for an answer since then; 0: none does */
};

enum fl__keepalive_due { FL__KEEPALIVE_NOTHING, FL__KEEPALIVE_PING, FL__KEEPALIVE_FAILED };

/* `received`: bytes so far. `*ret_at`: when to check again, UINT64_MAX: with the next bytes. */
enum fl__keepalive_due fl__keepalive_check(struct fl__keepalive *k, uint64_t received,
                                           uint64_t now_ms, uint64_t *ret_at);

#endif
