#include "server/runtime/takeovers.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"

int fl_takeovers_count(struct fl_takeovers *t, uint32_t client, uint64_t now_ms)
{
    int rv = fl_grow_zeroed(&t->list, &t->n, client, sizeof(*t->list));
    struct fl_takeover *one;

    if (rv != FL_OK) {
        return rv;
    }
    one = &t->list[client];
    one->at_ms[one->n % FL_TAKEOVERS_MANY] = now_ms;
    one->n++;
    return FL_OK;
}

uint64_t fl_takeovers_of(const struct fl_takeovers *t, uint32_t client)
{
    return client < t->n ? t->list[client].n : 0;
}

bool fl_takeovers_many(const struct fl_takeovers *t, uint32_t client, uint64_t now_ms)
{
    const struct fl_takeover *one = client < t->n ? &t->list[client] : NULL;
    uint64_t oldest; /* time of the oldest of the last FL_TAKEOVERS_MANY */

    if (one == NULL || one->n < FL_TAKEOVERS_MANY) {
        return false;
    }
    oldest = one->at_ms[one->n % FL_TAKEOVERS_MANY];
    return now_ms - oldest < FL_TAKEOVERS_SPAN_MS;
}

bool fl_takeovers_tell(struct fl_takeovers *t, uint32_t client, uint64_t now_ms)
{
    if (!fl_takeovers_many(t, client, now_ms) ||
        (t->list[client].recorded_ms != 0 &&
         now_ms - t->list[client].recorded_ms < FL_TAKEOVERS_TELL_MS))
    {
        return false;
    }
    t->list[client].recorded_ms = now_ms;
    return true;
}

void fl_takeovers_drop(struct fl_takeovers *t, uint32_t client)
{
    if (client < t->n) {
        t->list[client] = (struct fl_takeover){0};
    }
}

void fl_takeovers_done(struct fl_takeovers *t)
{
    free(t->list);
    *t = (struct fl_takeovers){0};
}
