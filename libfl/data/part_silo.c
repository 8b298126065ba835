/*
 * Partition method "silo", the cross-silo federation of IGFL (section 5.1): sort by label, cut into
 * shards, and deal them so that no client has a label in two of its shards. Pure computation on the
 * caller's thread.
 *
 * A shard contains the labels lo … hi (hi > lo when it spans several classes); shards of equal lo
 * and hi are a kind, and two shards are compatible when their ranges are disjoint. Clients, in
 * random order, draw one shard after the other among those compatible with their shards. A label
 * with as many remaining shards as remaining clients must be drawn first, otherwise the last
 * clients would get it twice. Without shards of several classes this always succeeds; with them it
 * can reach a dead end and is then repeated.
 */
#include "libfl/data/partition_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 10000
/* Limit of shards times labels: bounds the time of an attempt. */
#define CELLS ((size_t)1 << 28)

struct kind {
    int32_t lo, hi;
    size_t first; /* index of its first shard in `shards` */
    size_t left;
};

struct silo {
    const int32_t *y;
    const uint32_t *sorted;
    size_t n, classes;
    size_t n_clients, per_client;
    size_t n_shards; /* shards that the samples are cut into; at least those dealt */
    uint64_t size;   /* samples per shard; 0: n / n_shards, to within one */
    struct fl_rng rng;
    uint32_t *pool;     /* [n_shards]: shuffled; the first ones are dealt */
    uint32_t *shards;   /* [dealt], kind by kind */
    struct kind *kinds; /* [dealt] */
    size_t n_kinds;
    size_t *remaining; /* [classes]: remaining shards that contain the label */
    uint32_t *clients; /* [n_clients] in random order */
    uint32_t *deal;    /* [n_clients][per_client]: shards */
    size_t *taken;     /* [per_client]: kinds of the current client */
};

static size_t silo_shard_begin(const struct silo *s, size_t shard)
{
    return s->size > 0 ? shard * (size_t)s->size : (size_t)((uint64_t)shard * s->n / s->n_shards);
}

static int32_t silo_lowest_label(const struct silo *s, size_t shard)
{
    return s->y[s->sorted[silo_shard_begin(s, shard)]];
}

static int silo_by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Choose the shards to deal and group them by kind. */
static void gather_kinds(struct silo *s)
{
    size_t dealt = s->n_clients * s->per_client;
    size_t i;
    int32_t c;

    fl_rng_shuffle(&s->rng, s->pool, s->n_shards);
    (void)memcpy(s->shards, s->pool, dealt * sizeof(*s->shards));
    qsort(s->shards, dealt, sizeof(*s->shards), silo_by_number);
    (void)memset(s->remaining, 0, s->classes * sizeof(*s->remaining));
    s->n_kinds = 0;
    for (i = 0; i < dealt; i++) {
        int32_t lo = silo_lowest_label(s, s->shards[i]);
        int32_t hi = s->y[s->sorted[silo_shard_begin(s, s->shards[i] + 1) - 1]];
        struct kind *kind = &s->kinds[s->n_kinds];

        if (s->n_kinds > 0 && kind[-1].lo == lo && kind[-1].hi == hi) {
            kind[-1].left++;
        } else {
            *kind = (struct kind){.lo = lo, .hi = hi, .first = i, .left = 1};
            s->n_kinds++;
        }
        for (c = lo; c <= hi; c++) {
            s->remaining[c]++;
        }
    }
    for (i = 0; i < s->n_kinds; i++) {
        fl_rng_shuffle(&s->rng, s->shards + s->kinds[i].first, s->kinds[i].left);
    }
}

static bool silo_kind_covers(const struct kind *kind, int32_t label)
{
    return kind->lo <= label && label <= kind->hi;
}

/* True when a shard of this kind is left and compatible with the `n` shards of the client. */
static bool silo_kind_fits(const struct silo *s, const struct kind *kind, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const struct kind *other = &s->kinds[s->taken[i]];

        if (kind->lo <= other->hi && other->lo <= kind->hi) {
            return false;
        }
    }
    return kind->left > 0;
}

/*
 * A label that the client lacks and that every remaining client, this one included, must get;
 * -1: none.
 */
static int32_t silo_forced_label(const struct silo *s, size_t n, size_t clients_left)
{
    int32_t c;
    size_t i;

    for (c = 0; c < (int32_t)s->classes; c++) {
        for (i = 0; i < n && !silo_kind_covers(&s->kinds[s->taken[i]], c); i++) {
        }
        if (s->remaining[c] >= clients_left && i == n) {
            return c;
        }
    }
    return -1;
}

/* Draw the client's next shard after `n`. False when no shard is compatible. */
static bool draw_shard(struct silo *s, size_t n, size_t clients_left, uint32_t *ret)
{
    int32_t must = silo_forced_label(s, n, clients_left);
    size_t total = 0;
    uint64_t nth;
    size_t i;
    int32_t c;

    for (i = 0; i < s->n_kinds; i++) {
        if ((must < 0 || silo_kind_covers(&s->kinds[i], must)) &&
            silo_kind_fits(s, &s->kinds[i], n)) {
            total += s->kinds[i].left;
        }
    }
    if (total == 0) {
        return false;
    }
    nth = fl_rng_below(&s->rng, total);
    for (i = 0;; i++) {
        struct kind *kind = &s->kinds[i];

        if ((must >= 0 && !silo_kind_covers(kind, must)) || !silo_kind_fits(s, kind, n)) {
            continue;
        }
        if (nth < kind->left) {
            *ret = s->shards[kind->first + --kind->left];
            for (c = kind->lo; c <= kind->hi; c++) {
                s->remaining[c]--;
            }
            s->taken[n] = i;
            return true;
        }
        nth -= kind->left;
    }
}

static bool silo_try_deal(struct silo *s)
{
    size_t k;
    size_t i;

    gather_kinds(s);
    fl_rng_shuffle(&s->rng, s->clients, s->n_clients);
    for (k = 0; k < s->n_clients; k++) {
        for (i = 0; i < s->per_client; i++) {
            if (!draw_shard(s, i, s->n_clients - k, &s->deal[s->clients[k] * s->per_client + i])) {
                return false;
            }
        }
    }
    return true;
}

/*
 * Shards with the same lowest label are never compatible, so a client gets at most one of them:
 * check that the shards are enough under this bound.
 */
static int check_possible(const struct silo *s, struct fl_err *err)
{
    size_t usable = 0;
    size_t most = 0;
    int32_t label = 0;
    size_t i = 0;

    while (i < s->n_shards) {
        int32_t lo = silo_lowest_label(s, i);
        size_t count = 0;

        for (; i < s->n_shards && silo_lowest_label(s, i) == lo; i++) {
            count++;
        }
        usable += count < s->n_clients ? count : s->n_clients;
        if (count > most) {
            most = count;
            label = lo;
        }
    }
    if (usable < s->n_clients * s->per_client) {
        return fl_err_set(err, FL_ERANGE,
                          "%zu clients cannot get %zu shards of different labels each: %zu of the "
                          "%zu shards begin with label %" PRId32 "; take fewer shards per client "
                          "or fewer clients",
                          s->n_clients, s->per_client, most, s->n_shards, label);
    }
    return FL_OK;
}

static int silo_deal(struct silo *s, struct fl_err *err)
{
    int tries;
    int rv = check_possible(s, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (tries = 0; !silo_try_deal(s); tries++) {
        if (tries == TRIES) {
            return fl_err_set(err, FL_ERANGE,
                              "no draw gave each of %zu clients %zu shards of different labels in "
                              "%d tries, because some shards contain two labels; change "
                              "shard-size or use fewer shards per client",
                              s->n_clients, s->per_client, TRIES);
        }
    }
    return FL_OK;
}

static void silo_collect(const struct silo *s, struct fl_partition *ret)
{
    size_t used = 0;
    size_t i;

    for (i = 0; i < s->n_clients * s->per_client; i++) {
        size_t from = silo_shard_begin(s, s->deal[i]);
        size_t to = silo_shard_begin(s, (size_t)s->deal[i] + 1);

        if (i % s->per_client == 0) {
            ret->start[i / s->per_client] = used;
        }
        (void)memcpy(ret->items + used, s->sorted + from, (to - from) * sizeof(*s->sorted));
        used += to - from;
    }
    ret->start[s->n_clients] = used;
}

int fl__partition_silo(const struct fl_partition_conf *conf, const int32_t *y, size_t n,
                       size_t classes, struct fl_partition *ret, struct fl_err *err)
{
    struct silo s = {
        .y = y,
        .n = n,
        .classes = classes,
        .n_clients = conf->n_clients,
        .per_client = (size_t)conf->shards_per_client,
        .size = conf->shard_size,
    };
    uint32_t *sorted = NULL;
    size_t *first = NULL;
    size_t dealt;
    int rv = fl__partition_enough(conf, conf->shards_per_client, "shards", n, err);

    if (rv != FL_OK) {
        return rv;
    }
    /* Compute the number of shards and check that it is sufficient. */
    if (s.size > 0 && s.per_client > s.n / s.size / s.n_clients) {
        return fl_err_set(err, FL_ERANGE,
                          "%zu clients with %zu shards of %" PRIu64
                          " samples each need more than the %zu samples there are",
                          s.n_clients, s.per_client, s.size, s.n);
    }
    dealt = s.n_clients * s.per_client;
    s.n_shards = s.size > 0 ? (size_t)(s.n / s.size) : dealt;
    if (s.classes > CELLS / s.n_shards) {
        return fl_err_set(err, FL_ELIMIT, "%zu shards times %zu labels exceed the limit",
                          s.n_shards, s.classes);
    }
    dealt = s.n_clients * s.per_client;
    ret->items = malloc(n * sizeof(*ret->items));
    s.pool = fl__partition_count_up(s.n_shards);
    s.clients = fl__partition_count_up(s.n_clients);
    s.shards = calloc(dealt, sizeof(*s.shards));
    s.deal = calloc(dealt, sizeof(*s.deal));
    s.kinds = calloc(dealt, sizeof(*s.kinds));
    s.remaining = calloc(classes, sizeof(*s.remaining));
    s.taken = calloc(s.per_client, sizeof(*s.taken));
    if (ret->items == NULL || s.pool == NULL || s.clients == NULL || s.shards == NULL ||
        s.deal == NULL || s.kinds == NULL || s.remaining == NULL || s.taken == NULL ||
        fl__partition_sort(y, n, classes, &sorted, &first) != FL_OK)
    {
        rv = fl__partition_no_memory(err);
        goto done;
    }
    s.sorted = sorted;
    fl__partition_key(&s.rng, conf);
    rv = silo_deal(&s, err);
    if (rv != FL_OK) {
        goto done;
    }
    silo_collect(&s, ret);
done:
    free(s.pool);
    free(s.clients);
    free(s.shards);
    free(s.deal);
    free(s.kinds);
    free(s.remaining);
    free(s.taken);
    free(sorted);
    free(first);
    return rv;
}
