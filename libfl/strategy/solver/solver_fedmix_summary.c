/*
 * Data summaries of FedMix and NaiveMix (solver_fedmix.h): how a client computes one from its
 * samples, how it is checked, and how pairs are read from the union of all clients. Pure
 * functions on the caller's thread; limits of what a client may reveal (least_group) are the
 * client's.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_fedmix.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "data summaries are copied without conversion");

/* Tolerance of the sum of a mean label, which is 1: float32 sums of many classes. */
#define LABEL_TOLERANCE 1e-3

struct header {
    char magic[4];
    uint32_t dim, classes, pairs;
};
_Static_assert(sizeof(struct header) == FL__MIX_HEADER, "no padding");

static const char magic[4] = {'F', 'L', 'M', 'X'};

static uint64_t fedmix_pair_bytes(uint64_t dim, uint64_t classes)
{
    return (dim + classes) * sizeof(float);
}

int fl__mix_check_options(const struct fl_options *o, struct fl_err *err)
{
    const struct fl__mix_options *v = fl_options_values(o);

    if (v->group == 1) {
        return fl_err_set(
            err, FL_ECONF,
            "group is 1: clients would send their samples instead of means; expected 0 (all "
            "samples of a client) or at least 2");
    }
    return FL_OK;
}

uint64_t fl__mix_group(const struct fl_options *o)
{
    const struct fl__mix_options *v = fl_options_values(o);

    return (uint64_t)v->group;
}

/* --- making a data summary --- */

struct sums {
    double *x;     /* [dim], then [classes] */
    float *sample; /* [dim] */
    float *mean;   /* [dim], then [classes] */
};

static int add_group(const struct fl_solver_data *data, const uint32_t *order, size_t n,
                     const struct sums *s, struct fl_buf *out, struct fl_err *err)
{
    size_t width = data->dim + data->classes;
    size_t i, j;
    int rv;

    (void)memset(s->x, 0, width * sizeof(*s->x));
    for (i = 0; i < n; i++) {
        int32_t label = data->sample(data->ctx, order[i], s->sample);

        FL_REQUIRE(label >= 0 && (size_t)label < data->classes);
        for (j = 0; j < data->dim; j++) {
            s->x[j] += (double)s->sample[j];
        }
        s->x[data->dim + (size_t)label] += 1.0;
    }
    for (j = 0; j < width; j++) {
        s->mean[j] = (float)(s->x[j] / (double)n);
    }
    if (!fl_vec_finite(s->mean, width)) {
        return fl_err_set(
            err, FL_ENUMERIC,
            "data summary: the mean of a group of samples is not finite: the training data "
            "contains NaN, infinite or far too large values");
    }
    rv = fl_buf_add(out, s->mean, width * sizeof(float));
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "data summary: %s", fl_strerror(rv));
    }
    return FL_OK;
}

static int add_groups(const struct fl_solver_data *data, size_t group, uint64_t seed,
                      uint32_t *order, const struct sums *s, struct fl_buf *out, struct fl_err *err)
{
    struct fl_rng rng;
    size_t at;
    size_t n;
    int rv;

    for (at = 0; at < data->n; at++) {
        order[at] = (uint32_t)at;
    }
    fl_rng_key(&rng, seed, FL_RNG_SOLVER, 0, 0);
    fl_rng_shuffle(&rng, order, data->n);
    for (at = 0; at < data->n; at += n) {
        /* The last group includes the remainder: no mean is of fewer samples than `group`. */
        n = data->n - at < 2 * group ? data->n - at : group;
        rv = add_group(data, order + at, n, s, out, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl__mix_summary(const struct fl_options *o, const struct fl_solver_data *data, uint64_t seed,
                    struct fl_buf *out, struct fl_err *err)
{
    const struct fl__mix_options *v = fl_options_values(o);
    size_t width = data->dim + data->classes;
    size_t group = (size_t)v->group;
    struct header header = {.dim = (uint32_t)data->dim, .classes = (uint32_t)data->classes};
    struct sums s = {0};
    uint32_t *order;
    uint64_t pairs;
    int rv;

    FL_REQUIRE(data->n > 0 && data->n <= UINT32_MAX && data->dim <= UINT32_MAX);
    group = group == 0 || group > data->n ? data->n : group;
    pairs = data->n / group;
    if (fedmix_pair_bytes(data->dim, data->classes) > (FL_SUMMARY_MAX - FL__MIX_HEADER) / pairs) {
        return fl_err_set(err, FL_ELIMIT,
                          "data summary: %" PRIu64
                          " means of %zu values exceed the limit of %zu MiB: set "
                          "strategy.solver.group on the server to more than %zu",
                          pairs, width, FL_SUMMARY_MAX >> 20, group);
    }
    (void)memcpy(header.magic, magic, sizeof(magic));
    header.pairs = (uint32_t)pairs;
    order = malloc(data->n * sizeof(*order));
    s.x = malloc(width * sizeof(*s.x));
    s.sample = malloc(data->dim * sizeof(*s.sample));
    s.mean = malloc(width * sizeof(*s.mean));
    rv = order == NULL || s.x == NULL || s.sample == NULL || s.mean == NULL
             ? FL_ENOMEM
             : fl_buf_add(out, &header, sizeof(header));
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "data summary: %s", fl_strerror(rv));
    } else {
        rv = add_groups(data, group, seed, order, &s, out, err);
    }
    free(order);
    free(s.x);
    free(s.sample);
    free(s.mean);
    return rv;
}

/* --- checking a data summary --- */

/* Read the header of the data summary at `data` and check that its pairs fit into `len` bytes. */
static int fedmix_read_header(const void *data, size_t len, struct header *ret, uint64_t *ret_len,
                              struct fl_err *err)
{
    uint64_t bytes;

    if (len < sizeof(*ret)) {
        return fl_err_set(err, FL_EFORMAT,
                          "data summary of %zu bytes is shorter than its header "
                          "of %zu bytes",
                          len, sizeof(*ret));
    }
    (void)memcpy(ret, data, sizeof(*ret));
    if (memcmp(ret->magic, magic, sizeof(magic)) != 0) {
        return fl_err_set(err, FL_EFORMAT, "data summary does not begin with 'FLMX'");
    }
    if (ret->dim == 0 || ret->classes == 0 || ret->pairs == 0) {
        return fl_err_set(err, FL_EFORMAT,
                          "data summary has %" PRIu32 " pairs of %" PRIu32 " values and %" PRIu32
                          " classes, expected numbers above 0",
                          ret->pairs, ret->dim, ret->classes);
    }
    bytes = fedmix_pair_bytes(ret->dim, ret->classes);
    if (bytes > (len - sizeof(*ret)) / ret->pairs) {
        return fl_err_set(err, FL_EFORMAT,
                          "data summary of %zu bytes is too short for the %" PRIu32
                          " pairs of %" PRIu32 " values and %" PRIu32 " classes in its header",
                          len, ret->pairs, ret->dim, ret->classes);
    }
    *ret_len = sizeof(*ret) + ret->pairs * bytes;
    return FL_OK;
}

static int check_pairs(const struct header *h, const uint8_t *pairs, struct fl_err *err)
{
    size_t width = (size_t)h->dim + h->classes;
    uint32_t i;
    size_t j;

    for (i = 0; i < h->pairs; i++) {
        const uint8_t *pair = pairs + i * width * sizeof(float);
        double sum = 0.0;
        bool bad = false;

        for (j = 0; j < width; j++) {
            float v;

            (void)memcpy(&v, pair + j * sizeof(v), sizeof(v));
            if (!isfinite(v)) {
                return fl_err_set(err, FL_EFORMAT, "data summary: pair %" PRIu32 " is not finite",
                                  i + 1);
            }
            if (j >= h->dim) {
                bad = bad || v < 0.0f;
                sum += (double)v;
            }
        }
        if (bad || fabs(sum - 1.0) > LABEL_TOLERANCE) {
            return fl_err_set(err, FL_EFORMAT,
                              "data summary: the mean label of pair %" PRIu32
                              " is not a distribution "
                              "(sum %g%s)",
                              i + 1, sum, bad ? ", a negative share" : "");
        }
    }
    return FL_OK;
}

/* Check the data summary at the beginning of `data`; `*ret_len` is its length. */
static int fedmix_check_summary(const void *data, size_t len, size_t dim, size_t classes,
                                struct header *ret, size_t *ret_len, struct fl_err *err)
{
    uint64_t used = 0;
    int rv = fedmix_read_header(data, len, ret, &used, err);

    if (rv != FL_OK) {
        return rv;
    }
    if ((dim != 0 && ret->dim != dim) || (classes != 0 && ret->classes != classes)) {
        return fl_err_set(err, FL_EFORMAT,
                          "data summary has means of %" PRIu32 " values and %" PRIu32
                          " classes, expected the network's %zu inputs and %zu classes",
                          ret->dim, ret->classes, dim, classes);
    }
    *ret_len = (size_t)used;
    return check_pairs(ret, (const uint8_t *)data + sizeof(*ret), err);
}

int fl__mix_check(const struct fl_options *o, const void *data, size_t len, size_t dim,
                  size_t classes, struct fl_err *err)
{
    struct header header;
    size_t used = 0;
    int rv = fedmix_check_summary(data, len, dim, classes, &header, &used, err);

    (void)o;
    if (rv != FL_OK) {
        return rv;
    }
    if (used != len) {
        return fl_err_set(err, FL_EFORMAT,
                          "data summary of %zu bytes is followed by %zu unexpected "
                          "bytes",
                          used, len - used);
    }
    return FL_OK;
}

uint64_t fl__mix_means(const void *data, size_t len)
{
    struct header header = {.pairs = 0};

    if (len >= sizeof(header)) {
        (void)memcpy(&header, data, sizeof(header));
    }
    return header.pairs;
}

double fl__mix_largest(const void *data, size_t len)
{
    const uint8_t *pair = (const uint8_t *)data + sizeof(struct header);
    struct header header;
    double largest = 0.0;
    uint32_t i;
    size_t j;

    FL_REQUIRE(len >= sizeof(header)); /* The data summary was checked. */
    (void)memcpy(&header, data, sizeof(header));
    for (i = 0; i < header.pairs; i++, pair += fedmix_pair_bytes(header.dim, header.classes)) {
        for (j = 0; j < header.dim; j++) {
            float v;

            (void)memcpy(&v, pair + j * sizeof(v), sizeof(v));
            largest = fmax(largest, fabs((double)v));
        }
    }
    return largest;
}

/* --- the union --- */

static int fedmix_union_add(struct fl__mix_union *all, const uint8_t *pairs, uint32_t n)
{
    struct fl__mix_part *more = all->parts;

    /* The capacity is a power of two; it is doubled when the number reaches it. */
    if ((all->n_summaries & (all->n_summaries - 1)) == 0) {
        size_t room = all->n_summaries == 0 ? 1 : 2 * all->n_summaries;

        more = realloc(all->parts, room * sizeof(*more));
        if (more == NULL) {
            return FL_ENOMEM;
        }
    }
    all->parts = more;
    all->n_pairs += n;
    all->parts[all->n_summaries] = (struct fl__mix_part){.pairs = pairs, .end = all->n_pairs};
    all->n_summaries++;
    return FL_OK;
}

int fl__mix_union_open(const struct fl_solver_bytes *bytes, const struct fl_solver_bytes *own,
                       size_t dim, size_t classes, struct fl__mix_union *ret, struct fl_err *err)
{
    const uint8_t *data = bytes != NULL ? bytes->data : NULL;
    struct fl__mix_union all = {.dim = dim, .classes = classes};
    size_t len = data != NULL ? bytes->len : 0;
    bool found = false;
    size_t at = 0;
    int rv;

    while (at < len) {
        struct header header;
        size_t used = 0;

        rv = fedmix_check_summary(data + at, len - at, dim, classes, &header, &used, err);
        if (rv != FL_OK) {
            goto fail;
        }
        if (!found && own->data != NULL && own->len == used &&
            memcmp(own->data, data + at, used) == 0) {
            found = true;
        } else if (fedmix_union_add(&all, data + at + sizeof(header), header.pairs) != FL_OK) {
            rv = fl_err_set(err, FL_ENOMEM, "data summaries of %zu clients: out of memory",
                            all.n_summaries);
            goto fail;
        }
        at += used;
    }
    *ret = all;
    return FL_OK;
fail:
    fl__mix_union_done(&all);
    return fl_err_wrap(err, rv, "data summaries received from the server, byte %zu", at);
}

void fl__mix_union_done(struct fl__mix_union *all)
{
    free(all->parts);
    *all = (struct fl__mix_union){0};
}

void fl__mix_union_pair(const struct fl__mix_union *all, uint64_t i, float *x, float *label)
{
    const uint8_t *pair;
    size_t low = 0;
    size_t high = all->n_summaries;

    FL_REQUIRE(i < all->n_pairs);
    /* Binary search of the first data summary that ends after pair i. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (all->parts[middle].end > i) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    i -= low > 0 ? all->parts[low - 1].end : 0;
    pair = all->parts[low].pairs + i * fedmix_pair_bytes(all->dim, all->classes);
    (void)memcpy(x, pair, all->dim * sizeof(*x));
    (void)memcpy(label, pair + all->dim * sizeof(*x), all->classes * sizeof(*label));
}
