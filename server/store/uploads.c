/*
 * Uploads in memory, for simulations: a hash table by client name, with a lock. Any thread. Writes
 * nothing to disk.
 */

#include "server/store/uploads.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "server/store/spool_impl.h"

struct fl_upload {
    struct fl__spool_head head; /* `start` is 0: the bytes have no header */
    struct fl_blob *bytes;
    struct fl_norms norms;
    /* In a collection: */
    char client[FL_NAME_MAX];
    uint64_t round;
    uint32_t attempt;
    struct fl_upload *next; /* of the same bucket */
};

/* A hash table over names. */
struct fl_uploads {
    struct fl_upload **buckets; /* [cap], a power of two, or 0 */
    size_t cap, n;
    uint64_t bytes;
    pthread_mutex_t lock;
};

/* --- one upload --- */

int fl_upload_make(const struct fl_spool_part *parts, size_t n_parts, struct fl_blob *bytes,
                   const struct fl_layout *layout, double norm_bound, struct fl_upload **ret,
                   struct fl_err *err)
{
    struct fl_upload *u = calloc(1, sizeof(*u));
    struct fl__ahead ahead;
    uint64_t len = fl_blob_len(bytes);
    int rv;

    if (u == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    rv = fl__spool_head_make(parts, n_parts, &u->head, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (len > u->head.bytes) {
        rv =
            fl_err_set(err, FL_ELIMIT, "upload has more than the %" PRIu64 " bytes of its manifest",
                       u->head.bytes);
        goto fail;
    }
    if (len < u->head.bytes) {
        rv = fl_err_set(err, FL_ESTATE, "upload is not complete: %" PRIu64 " of %" PRIu64 " bytes",
                        len, u->head.bytes);
        goto fail;
    }
    ahead = fl__ahead_memory(fl_blob_data(bytes), len);
    rv = fl__spool_validate(&u->head, &ahead, layout, norm_bound, &u->norms, err);
    if (rv != FL_OK) {
        goto fail;
    }
    u->bytes = fl_blob_ref(bytes);
    *ret = u;
    return FL_OK;
fail:
    fl_upload_free(u);
    return rv;
}

void fl_upload_free(struct fl_upload *upload)
{
    if (upload != NULL) {
        fl__spool_head_done(&upload->head);
        fl__norms_done(&upload->norms);
        fl_blob_unref(upload->bytes);
        free(upload);
    }
}

struct fl_norms fl_upload_take_norms(struct fl_upload *upload)
{
    struct fl_norms norms = upload->norms;

    upload->norms = (struct fl_norms){.unit = NULL};
    return norms;
}

/* --- the collection --- */

int fl_uploads_create(struct fl_uploads **ret)
{
    struct fl_uploads *u = calloc(1, sizeof(*u));

    if (u == NULL) {
        return FL_ENOMEM;
    }
    if (pthread_mutex_init(&u->lock, NULL) != 0) {
        free(u);
        return FL_ENOMEM;
    }
    *ret = u;
    return FL_OK;
}

void fl_uploads_free(struct fl_uploads *uploads)
{
    if (uploads != NULL) {
        fl_uploads_clean(uploads, 0, 0);
        (void)pthread_mutex_destroy(&uploads->lock);
        free(uploads->buckets);
        free(uploads);
    }
}

static struct fl_upload **bucket_of(struct fl_upload **buckets, size_t cap, const char *client)
{
    return &buckets[(size_t)fl_hash64(client, strlen(client)) & (cap - 1)];
}

/* The link that points to the upload; the link is NULL when there is none. */
static struct fl_upload **find_upload(const struct fl_uploads *u, uint64_t round, uint32_t attempt,
                                      const char *client)
{
    struct fl_upload **at = bucket_of(u->buckets, u->cap, client);

    while (*at != NULL && ((*at)->round != round || (*at)->attempt != attempt ||
                           strcmp((*at)->client, client) != 0))
    {
        at = &(*at)->next;
    }
    return at;
}

static int grow_buckets(struct fl_uploads *u)
{
    size_t cap = u->cap == 0 ? 64 : 2 * u->cap;
    struct fl_upload **buckets = calloc(cap, sizeof(struct fl_upload *));
    size_t i;

    if (buckets == NULL) {
        return u->cap == 0 ? FL_ENOMEM : FL_OK; /* Without memory the buckets only get longer. */
    }
    for (i = 0; i < u->cap; i++) {
        while (u->buckets[i] != NULL) {
            struct fl_upload *one = u->buckets[i];
            struct fl_upload **to = bucket_of(buckets, cap, one->client);

            u->buckets[i] = one->next;
            one->next = *to;
            *to = one;
        }
    }
    free(u->buckets);
    u->buckets = buckets;
    u->cap = cap;
    return FL_OK;
}

static void take_out(struct fl_uploads *u, struct fl_upload **at)
{
    struct fl_upload *one = *at;

    *at = one->next;
    u->n--;
    u->bytes -= one->head.bytes;
    fl_upload_free(one);
}

int fl_uploads_put(struct fl_uploads *u, uint64_t round, uint32_t attempt, const char *client,
                   struct fl_upload *upload)
{
    struct fl_upload **at;
    int rv = fl_name_valid(client) ? fl_str_copy(upload->client, sizeof(upload->client), client)
                                   : FL_EINVAL;

    if (rv != FL_OK) {
        return rv;
    }
    upload->round = round;
    upload->attempt = attempt;
    (void)pthread_mutex_lock(&u->lock);
    rv = u->n == u->cap ? grow_buckets(u) : FL_OK;
    if (rv != FL_OK) {
        goto done;
    }
    at = find_upload(u, round, attempt, client);
    if (*at != NULL) {
        take_out(u, at);
        at = find_upload(u, round, attempt, client);
    }
    upload->next = NULL;
    *at = upload;
    u->n++;
    u->bytes += upload->head.bytes;
done:
    (void)pthread_mutex_unlock(&u->lock);
    return rv;
}

uint64_t fl_uploads_bytes(struct fl_uploads *u)
{
    uint64_t bytes;

    (void)pthread_mutex_lock(&u->lock);
    bytes = u->bytes;
    (void)pthread_mutex_unlock(&u->lock);
    return bytes;
}

void fl_uploads_clean(struct fl_uploads *u, uint64_t round, uint32_t attempt)
{
    size_t i;

    (void)pthread_mutex_lock(&u->lock);
    for (i = 0; i < u->cap; i++) {
        struct fl_upload **at = &u->buckets[i];

        while (*at != NULL) {
            if (round == 0 || (*at)->round != round || (*at)->attempt != attempt) {
                take_out(u, at);
            } else {
                at = &(*at)->next;
            }
        }
    }
    (void)pthread_mutex_unlock(&u->lock);
}

int fl_uploads_open(struct fl_uploads *u, uint64_t round, uint32_t attempt, const char *client,
                    const struct fl_layout *layout, struct fl_spool_reader **ret,
                    struct fl_err *err)
{
    const struct fl_upload *one;

    (void)pthread_mutex_lock(&u->lock);
    one = u->cap > 0 ? *find_upload(u, round, attempt, client) : NULL;
    (void)pthread_mutex_unlock(&u->lock);
    if (one == NULL) {
        return fl_err_set(err, FL_ENOENT, "'%s' has no upload of round %" PRIu64 "/%" PRIu32,
                          client, round, attempt);
    }
    return fl__spool_reader_memory(client, &one->head, fl_blob_data(one->bytes), layout, ret, err);
}
