#include "server/work/differences.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"

struct difference {
    uint8_t held[FL_DIGEST_SIZE];
    struct fl_blob *bytes; /* NULL: the whole model is as short */
};

struct fl_differences {
    atomic_uint refs;
    const struct fl_layout *layout;
    struct fl_versions *versions;
    struct fl_blob *model;
    struct difference *made; /* [n], most recently used first */
    size_t n, cap;
    size_t bytes; /* of all of them */
};

int fl_differences_create(const struct fl_layout *layout, struct fl_versions *versions,
                          struct fl_blob *model, struct fl_differences **ret)
{
    struct fl_differences *d = calloc(1, sizeof(*d));

    if (d == NULL) {
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
        fl_blob_unref(d->made[i].bytes);
    }
    free(d->made);
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

static size_t differences_limit(const struct fl_differences *d)
{
    size_t bytes = fl_blob_len(d->model);

    return bytes > FL_DIFFERENCES_LEAST ? bytes : FL_DIFFERENCES_LEAST;
}

static size_t difference_len(const struct difference *made)
{
    return made->bytes != NULL ? fl_blob_len(made->bytes) : 0;
}

/* Drop the least recently used ones until there is room for `bytes` more. */
static void differences_make_room(struct fl_differences *d, size_t bytes)
{
    while (d->n > 0 && bytes > differences_limit(d) - d->bytes) {
        d->n--;
        d->bytes -= difference_len(&d->made[d->n]);
        fl_blob_unref(d->made[d->n].bytes);
    }
}

/* Put it first. */
static void differences_put(struct fl_differences *d, struct difference made)
{
    (void)memmove(d->made + 1, d->made, d->n * sizeof(*d->made));
    d->made[0] = made;
    d->n++;
}

/* FL_ENOENT: it is as long as the model. */
static int difference_give(const struct difference *made, struct fl_blob **ret)
{
    if (made->bytes == NULL) {
        return FL_ENOENT;
    }
    *ret = fl_blob_ref(made->bytes);
    return FL_OK;
}

static int differences_make(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE],
                            struct fl_blob **ret)
{
    struct difference made = {.bytes = NULL};
    int rv = fl_grow(&d->made, &d->cap, d->n, sizeof(*d->made));

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_versions_difference(d->versions, d->layout,
                                (const float *)(const void *)fl_blob_data(d->model), held,
                                &made.bytes);
    if (rv != FL_OK && rv != FL_ELIMIT) {
        return rv;
    }
    /* "Too long" is cached, too: finding it out takes as much time. */
    (void)memcpy(made.held, held, FL_DIGEST_SIZE);
    differences_make_room(d, difference_len(&made));
    d->bytes += difference_len(&made);
    differences_put(d, made);
    return difference_give(&made, ret);
}

int fl_differences_get(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE],
                       struct fl_blob **ret)
{
    size_t i;

    for (i = 0; i < d->n; i++) {
        struct difference found = d->made[i];

        if (memcmp(found.held, held, FL_DIGEST_SIZE) == 0) {
            d->n--;
            (void)memmove(d->made + i, d->made + i + 1, (d->n - i) * sizeof(*d->made));
            differences_put(d, found);
            return difference_give(&found, ret);
        }
    }
    return differences_make(d, held, ret);
}
