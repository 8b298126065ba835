#include "server/work/differences.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"

/* Bytes of a cached difference beside its own: its place in the list, which doubles, and blocks. */
#define CACHED_BYTES (2 * sizeof(struct cached) + 128)
/* Of the rest: the objects, and where the list begins. */
#define OWN_BYTES 8192
/* malloc() takes whole pages for so many bytes, also when there are fewer later. */
#define PAGED_BYTES 131072
#define PAGE_BYTES  4096

struct cached {
    uint8_t held[FL_DIGEST_SIZE];
    struct fl_difference made; /* bytes NULL: the whole model is as short */
    size_t bytes;              /* with its place in the list */
    bool shared;               /* others continue it */
};

struct fl_differences {
    atomic_uint refs;
    const struct fl_layout *layout;
    struct fl_versions *versions;
    struct fl_blob *model;
    struct fl_merger *merger;
    struct cached *cached; /* [n], most recently used first */
    size_t n, cap;
};

int fl_differences_create(const struct fl_layout *layout, struct fl_versions *versions,
                          struct fl_blob *model, struct fl_differences **ret)
{
    struct fl_differences *d = calloc(1, sizeof(*d));

    if (d == NULL || fl_merger_create(layout, &d->merger) != FL_OK) {
        free(d);
        fl_versions_unref(versions);
        return FL_ENOMEM;
    }
    atomic_init(&d->refs, 1);
    d->layout = layout;
    d->versions = versions;
    d->model = fl_blob_ref(model);
    *ret = d;
    return FL_OK;
}

struct fl_differences *fl_differences_ref(struct fl_differences *d)
{
    if (d != NULL) {
        (void)atomic_fetch_add(&d->refs, 1);
    }
    return d;
}

void fl_differences_unref(struct fl_differences *d)
{
    size_t i;

    if (d == NULL || atomic_fetch_sub(&d->refs, 1) != 1) {
        return;
    }
    for (i = 0; i < d->n; i++) {
        fl_difference_done(&d->cached[i].made);
    }
    free(d->cached);
    fl_merger_free(d->merger);
    fl_blob_unref(d->model);
    fl_versions_unref(d->versions);
    free(d);
}

const struct fl_versions *fl_differences_versions(const struct fl_differences *d)
{
    return d->versions;
}

const uint8_t *fl_differences_digest(const struct fl_differences *d)
{
    return d != NULL ? fl_versions_newest(d->versions) : NULL;
}

uint64_t fl_differences_oldest(const struct fl_differences *d)
{
    return fl_versions_steps(d->versions) > 0 ? fl_versions_step(d->versions, 0)->round : 0;
}

size_t fl_differences_budget(const struct fl_differences *d)
{
    size_t bytes = 2 * fl_blob_len(d->model);

    return bytes > FL_DIFFERENCES_LEAST ? bytes : FL_DIFFERENCES_LEAST;
}

/* Without it there would be no less memory. */
static bool cached_is_sent(const struct cached *c)
{
    return c->made.bytes != NULL && fl_blob_is_shared(c->made.bytes);
}

size_t fl_differences_kept(const struct fl_differences *d)
{
    size_t bytes = OWN_BYTES + fl_merger_bytes(d->merger);
    size_t i;

    for (i = 0; i < d->n; i++) {
        bytes += cached_is_sent(&d->cached[i]) ? 0 : d->cached[i].bytes;
    }
    return bytes;
}

static void differences_drop(struct fl_differences *d, size_t i)
{
    fl_difference_done(&d->cached[i].made);
    d->n--;
    (void)memmove(d->cached + i, d->cached + i + 1, (d->n - i) * sizeof(*d->cached));
}

/* Drop the least recently used ones, first of those that no others continue, down to `limit`. */
static void differences_make_room(struct fl_differences *d, size_t limit)
{
    size_t kept = fl_differences_kept(d);
    int shared;

    for (shared = 0; shared < 2; shared++) {
        size_t i;

        for (i = d->n; i-- > 0 && kept > limit;) {
            struct cached *c = &d->cached[i];

            if (c->shared == (shared != 0) && !cached_is_sent(c)) {
                kept -= c->bytes;
                differences_drop(d, i);
            }
        }
    }
}

/* Put it first. */
static void differences_put(struct fl_differences *d, struct cached c)
{
    (void)memmove(d->cached + 1, d->cached, d->n * sizeof(*d->cached));
    d->cached[0] = c;
    d->n++;
}

/* The cached one is first then. */
static bool differences_find(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE])
{
    size_t i;

    for (i = 0; i < d->n; i++) {
        struct cached found = d->cached[i];

        if (memcmp(found.held, held, FL_DIGEST_SIZE) == 0) {
            (void)memmove(d->cached + 1, d->cached, i * sizeof(*d->cached));
            d->cached[0] = found;
            return true;
        }
    }
    return false;
}

/* Bytes of a cached difference beside its own, which took `room` while it was made. */
static size_t bytes_beside(const struct fl_differences *d, size_t room)
{
    return CACHED_BYTES + (room < PAGED_BYTES ? 0 : PAGE_BYTES) +
           (fl_layout_units(d->layout) + 1) * sizeof(struct fl_difference_unit);
}

/* The difference to `held`, which `rest` is the end of, is first then. */
static int differences_make(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE],
                            const struct cached *rest)
{
    const float *model = (const float *)(const void *)fl_blob_data(d->model);
    const struct fl_difference *end = rest != NULL ? &rest->made : NULL;
    size_t room = fl_versions_room(d->versions, d->layout, model, held, end);
    size_t making = room + bytes_beside(d, room) + (rest != NULL ? rest->bytes : 0);
    size_t budget = fl_differences_budget(d);
    struct cached c = {.shared = false};
    int rv = fl_grow(&d->cached, &d->cap, d->n, sizeof(*d->cached));

    if (rv != FL_OK) {
        return rv;
    }
    differences_make_room(d, making < budget ? budget - making : 0);
    rv = fl_versions_difference(d->versions, d->merger, model, held, end, &c.made);
    if (rv != FL_OK && rv != FL_ELIMIT) {
        return rv;
    }
    /* "Too long" is cached, too: finding it out takes as much time. */
    (void)memcpy(c.held, held, FL_DIGEST_SIZE);
    c.bytes =
        c.made.bytes != NULL ? bytes_beside(d, room) + fl_blob_len(c.made.bytes) : CACHED_BYTES;
    differences_put(d, c);
    return FL_OK;
}

/* The first one, which takes room once it was sent. FL_ENOENT: it is as long as the model. */
static int differences_give(struct fl_differences *d, struct fl_blob **ret)
{
    const struct cached first = d->cached[0];
    size_t budget = fl_differences_budget(d);

    if (first.made.bytes == NULL) {
        return FL_ENOENT;
    }
    *ret = fl_blob_ref(first.made.bytes);
    differences_make_room(d, first.bytes < budget ? budget - first.bytes : 0);
    return FL_OK;
}

/* As differences_make(), after the one that it is divided into. */
static int differences_make_divided(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE])
{
    const uint8_t *divided = fl_versions_divide(d->versions, held);
    struct cached rest;
    int rv;

    if (divided == NULL) {
        return differences_make(d, held, NULL);
    }
    if (!differences_find(d, divided)) {
        rv = differences_make(d, divided, NULL);
        if (rv != FL_OK) {
            return rv;
        }
    }
    d->cached[0].shared = true;
    rest = d->cached[0];
    if (rest.made.bytes == NULL) {
        return FL_ENOENT;
    }
    (void)fl_blob_ref(rest.made.bytes); /* So that it is not dropped. */
    rv = differences_make(d, held, &rest);
    fl_blob_unref(rest.made.bytes);
    return rv;
}

int fl_differences_get(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE],
                       struct fl_blob **ret)
{
    int rv;

    if (!differences_find(d, held)) {
        rv = differences_make_divided(d, held);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return differences_give(d, ret);
}
