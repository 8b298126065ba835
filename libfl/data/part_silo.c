/*
 * Cross-silo federation of IGFL (section 5.1): sort by label, cut into shards, and deal
 * them so that no client has a label in two of its shards.
 *
 * A shard holds the labels lo … hi (hi > lo where it straddles classes); shards of equal lo and
 * hi are a kind, and two shards go together when their ranges do not meet. Clients come in
 * random order and draw one shard after the other among those that go with what they have. A
 * label of which as many shards are left as clients must be drawn first, otherwise the last
 * clients could only get it twice: without straddling shards such a deal always ends well. With
 * them it can run into a dead end and is then begun anew.
 */
#include "libfl/data/partition_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 10000
/* Shards times labels: bounds the time of a try. */
#define CELLS ((size_t)1 << 28)

struct kind {
    int32_t lo, hi;
    size_t first; /* place of its first shard in `shards` */
    size_t left;
};

struct silo {
    const int32_t *y;
    const uint32_t *sorted;
    size_t n, classes;
    size_t n_clients, per_client;
    size_t n_shards; /* that the samples are cut into; at least those dealt */
    uint64_t size;   /* samples of a shard; 0: n / n_shards, to within one */
    struct fl_rng rng;
    uint32_t *pool;     /* [n_shards]: a random choice comes to the front */
    uint32_t *shards;   /* [dealt], kind by kind */
    struct kind *kinds; /* [dealt] */
    size_t n_kinds;
    size_t *held;      /* [classes]: shards left that hold the label */
    uint32_t *clients; /* [n_clients] in random order */
    uint32_t *deal;    /* [n_clients][per_client]: shards */
    size_t *taken;     /* [per_client]: kinds of the client at hand */
};

static size_t begins(const struct silo *s, size_t shard)
{
    return s->size > 0 ? shard * (size_t)s->size : (size_t)((uint64_t)shard * s->n / s->n_shards);
}

static int32_t lowest(const struct silo *s, size_t shard)
{
    return s->y[s->sorted[begins(s, shard)]];
}

static int32_t highest(const struct silo *s, size_t shard)
{
    return s->y[s->sorted[begins(s, shard + 1) - 1]];
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Choose the shards to be dealt and group them. */
static void gather_kinds(struct silo *s)
{
    size_t dealt = s->n_clients * s->per_client;
    size_t i;
    int32_t c;

    fl_rng_shuffle(&s->rng, s->pool, s->n_shards);
    (void)memcpy(s->shards, s->pool, dealt * sizeof(*s->shards));
    qsort(s->shards, dealt, sizeof(*s->shards), by_number);
    (void)memset(s->held, 0, s->classes * sizeof(*s->held));
    s->n_kinds = 0;
    for (i = 0; i < dealt; i++) {
        int32_t lo = lowest(s, s->shards[i]);
        int32_t hi = highest(s, s->shards[i]);
        struct kind *kind = &s->kinds[s->n_kinds];

        if (s->n_kinds > 0 && kind[-1].lo == lo && kind[-1].hi == hi) {
            kind[-1].left++;
        } else {
            *kind = (struct kind){.lo = lo, .hi = hi, .first = i, .left = 1};
            s->n_kinds++;
        }
        for (c = lo; c <= hi; c++) {
            s->held[c]++;
        }
    }
    for (i = 0; i < s->n_kinds; i++) {
        fl_rng_shuffle(&s->rng, s->shards + s->kinds[i].first, s->kinds[i].left);
    }
}

static bool covers(const struct kind *kind, int32_t label)
{
    return kind->lo <= label && label <= kind->hi;
}

/* Whether a shard of this kind can join the `n` that the client has. */
static bool goes_with(const struct silo *s, const struct kind *kind, size_t n)
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

/* A label that the client lacks and that every client still to come, this one too, must take;
 * -1 when there is none. */
static int32_t forced(const struct silo *s, size_t n, size_t clients_left)
{
    int32_t c;
    size_t i;

    for (c = 0; c < (int32_t)s->classes; c++) {
        for (i = 0; i < n && !covers(&s->kinds[s->taken[i]], c); i++) {
        }
        if (s->held[c] >= clients_left && i == n) {
            return c;
        }
    }
    return -1;
}

/* Draw the client's next shard after `n`. False when none goes with those. */
static bool draw_shard(struct silo *s, size_t n, size_t clients_left, uint32_t *ret)
{
    int32_t must = forced(s, n, clients_left);
    size_t total = 0;
    uint64_t nth;
    size_t i;
    int32_t c;

    for (i = 0; i < s->n_kinds; i++) {
        if ((must < 0 || covers(&s->kinds[i], must)) && goes_with(s, &s->kinds[i], n)) {
            total += s->kinds[i].left;
        }
    }
    if (total == 0) {
        return false;
    }
    nth = fl_rng_below(&s->rng, total);
    for (i = 0;; i++) {
        struct kind *kind = &s->kinds[i];

        if ((must >= 0 && !covers(kind, must)) || !goes_with(s, kind, n)) {
            continue;
        }
        if (nth < kind->left) {
            *ret = s->shards[kind->first + --kind->left];
            for (c = kind->lo; c <= kind->hi; c++) {
                s->held[c]--;
            }
            s->taken[n] = i;
            return true;
        }
        nth -= kind->left;
    }
}

static bool try_deal(struct silo *s)
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
 * Shards with the same lowest label never go together, so a client takes at most one of them:
 * what each label lends to the clients in this way must be enough.
 */
static int check_possible(const struct silo *s, struct fl_err *err)
{
    size_t usable = 0;
    size_t most = 0;
    int32_t label = 0;
    size_t i = 0;

    while (i < s->n_shards) {
        int32_t lo = lowest(s, i);
        size_t count = 0;

        for (; i < s->n_shards && lowest(s, i) == lo; i++) {
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

static int deal_until_it_holds(struct silo *s, struct fl_err *err)
{
    int tries;
    int rv = check_possible(s, err);

    for (tries = 0; rv == FL_OK && !try_deal(s); tries++) {
        if (tries == TRIES) {
            rv = fl_err_set(err, FL_ERANGE,
                            "no draw gave every one of %zu clients %zu shards of different labels "
                            "in %d tries; shards that hold two labels are in the way: another "
                            "shard size or fewer shards per client helps",
                            s->n_clients, s->per_client, TRIES);
        }
    }
    return rv;
}

static void collect(const struct silo *s, struct fl_partition *ret)
{
    size_t used = 0;
    size_t i;

    for (i = 0; i < s->n_clients * s->per_client; i++) {
        size_t from = begins(s, s->deal[i]);
        size_t to = begins(s, (size_t)s->deal[i] + 1);

        if (i % s->per_client == 0) {
            ret->start[i / s->per_client] = used;
        }
        (void)memcpy(ret->items + used, s->sorted + from, (to - from) * sizeof(*s->sorted));
        used += to - from;
    }
    ret->start[s->n_clients] = used;
}

/* How many shards there are, and whether that is enough. */
static int size_up(struct silo *s, struct fl_err *err)
{
    size_t dealt;

    if (s->size > 0 && s->per_client > s->n / s->size / s->n_clients) {
        return fl_err_set(err, FL_ERANGE,
                          "%zu clients with %zu shards of %" PRIu64 " samples each need more than "
                          "the %zu samples there are",
                          s->n_clients, s->per_client, s->size, s->n);
    }
    dealt = s->n_clients * s->per_client;
    s->n_shards = s->size > 0 ? (size_t)(s->n / s->size) : dealt;
    if (s->classes > CELLS / s->n_shards) {
        return fl_err_set(err, FL_ELIMIT, "%zu shards times %zu labels are too many", s->n_shards,
                          s->classes);
    }
    return FL_OK;
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

    if (rv == FL_OK) {
        rv = size_up(&s, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    dealt = s.n_clients * s.per_client;
    ret->items = malloc(n * sizeof(*ret->items));
    s.pool = fl__partition_count_up(s.n_shards);
    s.clients = fl__partition_count_up(s.n_clients);
    s.shards = calloc(dealt, sizeof(*s.shards));
    s.deal = calloc(dealt, sizeof(*s.deal));
    s.kinds = calloc(dealt, sizeof(*s.kinds));
    s.held = calloc(classes, sizeof(*s.held));
    s.taken = calloc(s.per_client, sizeof(*s.taken));
    if (ret->items == NULL || s.pool == NULL || s.clients == NULL || s.shards == NULL ||
        s.deal == NULL || s.kinds == NULL || s.held == NULL || s.taken == NULL ||
        fl__partition_sort(y, n, classes, &sorted, &first) != FL_OK)
    {
        rv = fl__partition_no_memory(err);
        goto out;
    }
    s.sorted = sorted;
    fl__partition_key(&s.rng, conf);
    rv = deal_until_it_holds(&s, err);
    if (rv == FL_OK) {
        collect(&s, ret);
    }
out:
    free(s.pool);
    free(s.clients);
    free(s.shards);
    free(s.deal);
    free(s.kinds);
    free(s.held);
    free(s.taken);
    free(sorted);
    free(first);
    return rv;
}
