#include "tools/fl_sim/engine/shelf.h"

#include <stdlib.h>
#include <string.h>

static int by_client(const void *a, const void *b)
{
    const struct fl_shelf_item *x = a;
    const struct fl_shelf_item *y = b;

    return strcmp(x->client, y->client);
}

/* Room for one more. */
static struct fl_shelf_item *more(struct fl_shelf_item **list, size_t *n, size_t *cap)
{
    size_t larger = *cap == 0 ? 8 : *cap * 2;
    struct fl_shelf_item *grown;

    if (*n == *cap) {
        grown = realloc(*list, larger * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        *list = grown;
        *cap = larger;
    }
    return &(*list)[(*n)++];
}

struct filling {
    struct fl_shelf *shelf;
    int code;
};

static void put(void *ctx, const struct fl_bundle *bundle)
{
    struct filling *f = ctx;
    struct fl_shelf *s = f->shelf;
    struct fl_shelf_item *item = bundle->client == NULL
                                     ? more(&s->common, &s->n_common, &s->cap_common)
                                     : more(&s->own, &s->n_own, &s->cap_own);

    if (item == NULL) {
        f->code = FL_ENOMEM;
        return;
    }
    *item = (struct fl_shelf_item){.has_digest = bundle->digest != NULL,
                                   .bytes = fl_bytes_ref(&bundle->bytes)};
    if (bundle->digest != NULL) {
        (void)memcpy(item->digest, bundle->digest, sizeof(item->digest));
    }
    if (fl_str_copy(item->name, sizeof(item->name), bundle->name) != FL_OK ||
        (bundle->client != NULL &&
         fl_str_copy(item->client, sizeof(item->client), bundle->client) != FL_OK))
    {
        f->code = FL_ELIMIT;
    }
}

int fl_shelf_open(const struct fl_federation *federation, struct fl_progress *progress,
                  uint64_t round, const struct fl_round_size *size, struct fl_shelf **ret)
{
    struct fl_shelf *shelf = calloc(1, sizeof(*shelf));
    struct filling f = {shelf, FL_OK};
    int rv;

    if (shelf == NULL) {
        return FL_ENOMEM;
    }
    atomic_init(&shelf->refs, 1);
    rv = fl_bundles_open(federation, progress, round, size, put, &f);
    rv = rv == FL_OK ? f.code : rv;
    if (rv != FL_OK) {
        fl_shelf_unref(shelf);
        return rv;
    }
    if (shelf->n_own > 1) {
        qsort(shelf->own, shelf->n_own, sizeof(*shelf->own), by_client);
    }
    *ret = shelf;
    return FL_OK;
}

int fl_shelf_make(const struct fl_shelf_item *common, size_t n_common,
                  const struct fl_shelf_item *own, struct fl_shelf **ret)
{
    struct fl_shelf *shelf = calloc(1, sizeof(*shelf));
    size_t i;

    if (shelf == NULL) {
        return FL_ENOMEM;
    }
    atomic_init(&shelf->refs, 1);
    shelf->common = calloc(n_common + 1, sizeof(*shelf->common));
    shelf->own = calloc(1, sizeof(*shelf->own));
    if (shelf->common == NULL || shelf->own == NULL) {
        fl_shelf_unref(shelf);
        return FL_ENOMEM;
    }
    for (i = 0; i < n_common; i++) {
        shelf->common[i] = common[i];
        shelf->common[i].bytes = fl_bytes_ref(&common[i].bytes);
    }
    shelf->n_common = n_common;
    if (own != NULL) {
        shelf->own[0] = *own;
        shelf->own[0].bytes = fl_bytes_ref(&own->bytes);
        shelf->n_own = 1;
    }
    *ret = shelf;
    return FL_OK;
}

struct fl_shelf *fl_shelf_ref(struct fl_shelf *shelf)
{
    (void)atomic_fetch_add(&shelf->refs, 1);
    return shelf;
}

static void items_done(struct fl_shelf_item *list, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        fl_bytes_done(&list[i].bytes);
    }
    free(list);
}

void fl_shelf_unref(struct fl_shelf *shelf)
{
    if (shelf != NULL && atomic_fetch_sub(&shelf->refs, 1) == 1) {
        items_done(shelf->common, shelf->n_common);
        items_done(shelf->own, shelf->n_own);
        free(shelf);
    }
}

size_t fl_shelf_list(const struct fl_shelf *shelf, const char *client,
                     const struct fl_shelf_item *list[FL_BUNDLES_MAX])
{
    struct fl_shelf_item key;
    const struct fl_shelf_item *own;
    size_t n = 0;
    size_t i;

    for (i = 0; i < shelf->n_common && n < FL_BUNDLES_MAX - 1; i++) {
        list[n++] = &shelf->common[i];
    }
    if (shelf->n_own > 0 && fl_str_copy(key.client, sizeof(key.client), client) == FL_OK) {
        own = bsearch(&key, shelf->own, shelf->n_own, sizeof(*shelf->own), by_client);
        if (own != NULL) {
            list[n++] = own;
        }
    }
    return n;
}
