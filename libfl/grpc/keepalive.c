#include "libfl/grpc/keepalive_impl.h"

enum fl__keepalive_due fl__keepalive_check(struct fl__keepalive *k, uint64_t received,
                                           uint64_t now_ms, uint64_t *ret_at)
{
    enum fl__keepalive_due due = FL__KEEPALIVE_NOTHING;

    *ret_at = UINT64_MAX;
    if (k->after_ms == 0) {
        return due;
    }
    if (received != k->received || k->heard_ms == 0) {
        k->received = received;
        k->heard_ms = now_ms;
        k->pinged_ms = 0;
    }
    if (k->pinged_ms == 0 && now_ms >= k->heard_ms + k->after_ms) {
        k->pinged_ms = now_ms;
        due = FL__KEEPALIVE_PING;
    }
    *ret_at = k->pinged_ms == 0 ? k->heard_ms + k->after_ms : k->pinged_ms + k->limit_ms;
    return now_ms >= *ret_at ? FL__KEEPALIVE_FAILED : due;
}
