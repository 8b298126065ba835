/* The payloads of an open round in memory (model_cache.h). Filled by one thread, then read-only. */
#include "tools/fl_sim/engine/model_cache.h"

#include <stdlib.h>
#include <string.h>

static int model_cache_by_client(const void *a, const void *b)
{
    const struct fl_model_cache_item *x = a;
    const struct fl_model_cache_item *y = b;

    return strcmp(x->client, y->client);
}

/* Appends an empty item. */
static struct fl_model_cache_item *model_cache_append(struct fl_model_cache_item **list, size_t *n,
                                                      size_t *cap)
{
    size_t larger = *cap == 0 ? 8 : *cap * 2;
    struct fl_model_cache_item *grown;

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
    struct fl_model_cache *model_cache;
    int code;
};

static void model_cache_put(void *ctx, const struct fl_payload *payload)
{
    struct filling *f = ctx;
    struct fl_model_cache *s = f->model_cache;
    struct fl_model_cache_item *item =
        payload->client == NULL ? model_cache_append(&s->common, &s->n_common, &s->cap_common)
                                : model_cache_append(&s->own, &s->n_own, &s->cap_own);

    if (item == NULL) {
        f->code = FL_ENOMEM;
        return;
    }
    *item = (struct fl_model_cache_item){.bytes = fl_bytes_ref(&payload->bytes)};
    if (fl_str_copy(item->name, sizeof(item->name), payload->name) != FL_OK ||
        (payload->client != NULL &&
         fl_str_copy(item->client, sizeof(item->client), payload->client) != FL_OK))
    {
        f->code = FL_ELIMIT;
    }
}

int fl_model_cache_open(const struct fl_federation *federation, struct fl_progress *progress,
                        uint64_t round, const struct fl_round_size *size,
                        struct fl_model_cache **ret)
{
    struct fl_model_cache *model_cache = calloc(1, sizeof(*model_cache));
    struct filling f = {model_cache, FL_OK};
    int rv;

    if (model_cache == NULL) {
        return FL_ENOMEM;
    }
    atomic_init(&model_cache->refs, 1);
    rv = fl_payloads_open(federation, progress, round, size, model_cache_put, &f);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = f.code;
    if (rv != FL_OK) {
        goto fail;
    }
    if (model_cache->n_own > 1) {
        qsort(model_cache->own, model_cache->n_own, sizeof(*model_cache->own),
              model_cache_by_client);
    }
    *ret = model_cache;
    return FL_OK;
fail:
    fl_model_cache_unref(model_cache);
    return rv;
}

int fl_model_cache_make(const struct fl_model_cache_item *common, size_t n_common,
                        const struct fl_model_cache_item *own, struct fl_model_cache **ret)
{
    struct fl_model_cache *model_cache = calloc(1, sizeof(*model_cache));
    size_t i;

    if (model_cache == NULL) {
        return FL_ENOMEM;
    }
    atomic_init(&model_cache->refs, 1);
    model_cache->common = calloc(n_common + 1, sizeof(*model_cache->common));
    model_cache->own = calloc(1, sizeof(*model_cache->own));
    if (model_cache->common == NULL || model_cache->own == NULL) {
        fl_model_cache_unref(model_cache);
        return FL_ENOMEM;
    }
    for (i = 0; i < n_common; i++) {
        model_cache->common[i] = common[i];
        model_cache->common[i].bytes = fl_bytes_ref(&common[i].bytes);
    }
    model_cache->n_common = n_common;
    if (own != NULL) {
        model_cache->own[0] = *own;
        model_cache->own[0].bytes = fl_bytes_ref(&own->bytes);
        model_cache->n_own = 1;
    }
    *ret = model_cache;
    return FL_OK;
}

struct fl_model_cache *fl_model_cache_ref(struct fl_model_cache *model_cache)
{
    (void)atomic_fetch_add(&model_cache->refs, 1);
    return model_cache;
}

static void model_cache_items_done(struct fl_model_cache_item *list, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        fl_bytes_done(&list[i].bytes);
    }
    free(list);
}

void fl_model_cache_unref(struct fl_model_cache *model_cache)
{
    if (model_cache != NULL && atomic_fetch_sub(&model_cache->refs, 1) == 1) {
        model_cache_items_done(model_cache->common, model_cache->n_common);
        model_cache_items_done(model_cache->own, model_cache->n_own);
        free(model_cache);
    }
}

size_t fl_model_cache_list(const struct fl_model_cache *model_cache, const char *client,
                           const struct fl_model_cache_item *list[FL_PAYLOADS_MAX])
{
    struct fl_model_cache_item key;
    const struct fl_model_cache_item *own;
    size_t n = 0;
    size_t i;

    for (i = 0; i < model_cache->n_common && n < FL_PAYLOADS_MAX - 1; i++) {
        list[n++] = &model_cache->common[i];
    }
    if (model_cache->n_own > 0 && fl_str_copy(key.client, sizeof(key.client), client) == FL_OK) {
        own = bsearch(&key, model_cache->own, model_cache->n_own, sizeof(*model_cache->own),
                      model_cache_by_client);
        if (own != NULL) {
            list[n++] = own;
        }
    }
    return n;
}
