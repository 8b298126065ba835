#include "server/runtime/client_errors.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"

/* Index of `name`, or where to insert it. */
static size_t errors_position(const struct fl_errors *e, const char *name)
{
    size_t low = 0;
    size_t high = e->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (strcmp(e->list[mid].name, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

const struct fl_client_error *fl_errors_find(const struct fl_errors *e, const char *name)
{
    size_t at = errors_position(e, name);

    return at < e->n && strcmp(e->list[at].name, name) == 0 ? &e->list[at] : NULL;
}

static void drop_at(struct fl_errors *e, size_t at)
{
    e->n--;
    (void)memmove(&e->list[at], &e->list[at + 1], (e->n - at) * sizeof(*e->list));
}

int fl_errors_set(struct fl_errors *e, const struct fl_client_error *error)
{
    size_t at = errors_position(e, error->name);
    size_t oldest = 0;
    size_t i;
    int rv;

    if (at < e->n && strcmp(e->list[at].name, error->name) == 0) {
        e->list[at] = *error;
        return FL_OK;
    }
    if (e->n >= FL_ERRORS_MAX) {
        for (i = 1; i < e->n; i++) {
            oldest = e->list[i].up_ms < e->list[oldest].up_ms ? i : oldest;
        }
        drop_at(e, oldest);
    }
    rv = fl_grow(&e->list, &e->cap, e->n, sizeof(*e->list));
    if (rv != FL_OK) {
        return rv;
    }
    at = errors_position(e, error->name);
    (void)memmove(&e->list[at + 1], &e->list[at], (e->n - at) * sizeof(*e->list));
    e->list[at] = *error;
    e->n++;
    return FL_OK;
}

void fl_errors_drop(struct fl_errors *e, const char *name)
{
    size_t at = errors_position(e, name);

    if (at < e->n && strcmp(e->list[at].name, name) == 0) {
        drop_at(e, at);
    }
}

size_t fl_errors_old(const struct fl_errors *e, uint64_t up_ms, uint64_t limit_ms,
                     bool (*known)(void *ctx, const char *name), void *ctx,
                     struct fl_client_error *old)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < e->n; i++) {
        const struct fl_client_error *error = &e->list[i];

        if (up_ms > error->up_ms && up_ms - error->up_ms >= limit_ms && !known(ctx, error->name)) {
            old[n++] = *error;
        }
    }
    return n;
}

void fl_errors_done(struct fl_errors *e)
{
    free(e->list);
    *e = (struct fl_errors){0};
}
