/*
 * codec: qsgd, levels of a norm, rounded at random (docs/algorithms.md#quantisation-to-levels)
 *
 * Alistarh et al. 2017, section 3.1: the trainable entries of a unit are divided into buckets of
 * `bucket` entries, in order, the last one shorter; with s levels and N the norm of an entry's
 * bucket
 *
 *     a = s |Delta_i| / N,  |q_i| = floor(a) + [u < a - floor(a)],  u uniform in (0, 1)
 *
 * with the sign of Delta_i, so that q_i N / s is Delta_i in the mean. N is the Euclidean norm, or
 * the largest magnitude, as in the paper's experiments.
 *
 *     1 byte        norm: 0 Euclidean, 1 largest magnitude
 *     4 bytes       s, 1 to 2^20
 *     4 bytes       b, entries of a bucket: 16 or more and at most d_l, or d_l (1 when d_l is 0)
 *     4 bytes       c, up to d_l: q_c is the last that is not 0
 *     4 ceil(d_l/b) N of each bucket, binary32, finite, not negative
 *     at most       q_1 … q_c as whole numbers (dense_code.h), each at most s in magnitude and
 *      1 + 4 d_l    0 where N is
 *     4 s_l bytes   buffers as binary32
 *
 *     decoded: float(q_i N / s); numbers little-endian
 *
 * N is rounded up to binary32, at most the largest finite one, so that no a is above s and the mean
 * is exact for the N that is sent. s |Delta_i| and q_i N are exact in double, the quotients are
 * rounded once. One random number is drawn for each entry from the seed of the unit.
 *
 * Options: levels, bucket, norm, residual, decay. Cost: the entropy of q and 32 bits a bucket. Runs
 * on the caller's thread.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/vec.h"
#include "libfl/strategy/codec/codec_impl.h"
#include "libfl/strategy/codec/dense_code.h"

enum qsgd_norm { QSGD_L2, QSGD_MAX };

struct options {
    struct fl_codec_loss loss;
    int64_t levels, bucket;
    enum qsgd_norm norm;
};

#define QSGD_LEVELS_MOST (INT32_C(1) << 20)
#define QSGD_BUCKET      16 /* shorter buckets would cost more than they save */
#define QSGD_HEAD        13
#define QSGD_CHUNK       1024

/* How a unit is divided. */
struct qsgd_plan {
    uint32_t levels, bucket;
    enum qsgd_norm norm;
};

static size_t qsgd_buckets(size_t n, uint32_t bucket)
{
    return n / bucket + (n % bucket > 0);
}

static struct qsgd_plan qsgd_plan_of(const struct fl_options *o, size_t n)
{
    const struct options *v = fl_options_values(o);
    size_t bucket = v->bucket > 0 && (uint64_t)v->bucket < n ? (size_t)v->bucket : n;

    return (struct qsgd_plan){.levels = (uint32_t)v->levels,
                              .bucket = bucket > 0 ? (uint32_t)bucket : 1,
                              .norm = v->norm};
}

/* Rounded up, so at least the largest magnitude. */
static float qsgd_norm_of(const float *x, size_t n, enum qsgd_norm norm)
{
    float most = 0;
    double exact;
    size_t i;

    for (i = 0; norm == QSGD_MAX && i < n; i++) {
        most = fmaxf(most, fabsf(x[i]));
    }
    if (norm == QSGD_MAX) {
        return most;
    }
    exact = sqrt(fl_vec_dot(x, x, n));
    if (!(exact < (double)FLT_MAX)) {
        return FLT_MAX;
    }
    most = (float)exact;
    return (double)most < exact ? nextafterf(most, INFINITY) : most;
}

static void qsgd_round(const float *x, size_t n, uint32_t levels, float norm, struct fl_rng *rng,
                       int32_t *q)
{
    size_t i;

    for (i = 0; i < n; i++) {
        double a = norm > 0 ? (double)levels * fabs((double)x[i]) / (double)norm : 0;
        double low = floor(a);
        int32_t level = (int32_t)low + (fl_rng_unit(rng) < a - low);

        q[i] = x[i] < 0 ? -level : level;
    }
}

static int qsgd_encode_body(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                            struct fl_buf *out)
{
    struct qsgd_plan plan;
    struct fl_rng rng;
    uint8_t *head;
    size_t size;
    size_t at;
    int32_t *q;
    int rv;

    if (n > UINT32_MAX) {
        return FL_ELIMIT;
    }
    plan = qsgd_plan_of(o, n);
    size = QSGD_HEAD + 4 * qsgd_buckets(n, plan.bucket);
    rv = fl_buf_reserve(out, size);
    if (rv != FL_OK) {
        return rv;
    }
    q = malloc((n + 1) * sizeof(*q));
    if (q == NULL) {
        return FL_ENOMEM;
    }
    head = out->data + out->len;
    fl_rng_seed(&rng, seed);
    for (at = 0; at < n; at += plan.bucket) {
        size_t part = n - at < plan.bucket ? n - at : plan.bucket;
        float norm = qsgd_norm_of(x + at, part, plan.norm);

        fl__codec_put32(head + QSGD_HEAD + 4 * (at / plan.bucket), fl__float_bits(norm));
        qsgd_round(x + at, part, plan.levels, norm, &rng, q + at);
    }
    while (n > 0 && q[n - 1] == 0) {
        n--;
    }
    head[0] = (uint8_t)plan.norm;
    fl__codec_put32(head + 1, plan.levels);
    fl__codec_put32(head + 5, plan.bucket);
    fl__codec_put32(head + 9, (uint32_t)n);
    out->len += size;
    rv = fl_dense_encode(q, n, out);
    free(q);
    return rv;
}

static int qsgd_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                       const float *delta, uint64_t seed, struct fl_buf *out)
{
    return fl__codec_encode(o, layout, l, delta, seed, qsgd_encode_body, out);
}

static uint64_t qsgd_max_size(const struct fl_layout *layout, size_t l)
{
    size_t n = fl_layout_unit(layout, l)->n_trainable;

    return QSGD_HEAD + 4 * (uint64_t)qsgd_buckets(n, QSGD_BUCKET) + fl_dense_max_size(n) +
           fl__codec_buffer_bytes(layout, l);
}

/* --- decoding --- */

/* In the state of the decoder. */
struct qsgd_state {
    struct fl_dense_decoder dense;
    struct qsgd_plan plan;
    uint32_t coded; /* numbers that were not read yet; 0 follow them */
    uint32_t at;    /* entry that is next */
    float norm;     /* of its bucket, unless it is the first of one */
    bool capped;    /* a norm may have been larger */
    double sum_sq;  /* of the squared norms, each times 1, or its entries with QSGD_MAX */
};

_Static_assert(sizeof(struct qsgd_state) <= sizeof(((struct fl_codec_decoder *)0)->state),
               "the state fits into a decoder");

static void qsgd_load(const struct fl_codec_decoder *d, struct qsgd_state *s)
{
    (void)memcpy(s, d->state, sizeof(*s));
}

static void qsgd_store(struct fl_codec_decoder *d, const struct qsgd_state *s)
{
    (void)memcpy(d->state, s, sizeof(*s));
}

static int qsgd_source(void *ctx, uint8_t *out, size_t len)
{
    struct fl_codec_decoder *d = ctx;
    int rv = fl__codec_bytes(d, d->offset, out, len);

    d->offset += len;
    return rv;
}

static int qsgd_check_norm(float norm)
{
    if (!isfinite(norm)) {
        return FL_ENUMERIC;
    }
    return signbit(norm) == 0 ? FL_OK : FL_EFORMAT;
}

/* Reads and checks the norms of all buckets of n entries. */
static int qsgd_read_norms(struct fl_codec_decoder *d, struct qsgd_state *s, size_t n)
{
    size_t left = qsgd_buckets(n, s->plan.bucket);
    uint8_t bytes[4 * QSGD_CHUNK];

    while (left > 0) {
        size_t part = left < QSGD_CHUNK ? left : QSGD_CHUNK;
        size_t i;
        int rv = qsgd_source(d, bytes, 4 * part);

        if (rv != FL_OK) {
            return rv;
        }
        for (i = 0; i < part; i++) {
            float norm = fl__float_of(fl__codec_get32(bytes + 4 * i));
            size_t entries = n < s->plan.bucket ? n : s->plan.bucket;

            rv = qsgd_check_norm(norm);
            if (rv != FL_OK) {
                return rv;
            }
            s->capped |= !(norm < FLT_MAX);
            s->sum_sq +=
                (s->plan.norm == QSGD_MAX ? (double)entries : 1) * (double)norm * (double)norm;
            n -= entries;
        }
        left -= part;
    }
    return FL_OK;
}

static int qsgd_read_head(struct fl_codec_decoder *d, struct qsgd_state *s)
{
    size_t n = fl__coded_trainable(d);
    size_t most = n > 0 ? n : 1;
    uint8_t head[QSGD_HEAD];
    int rv = qsgd_source(d, head, sizeof(head));

    if (rv != FL_OK) {
        return rv;
    }
    s->plan = (struct qsgd_plan){.norm = head[0] == 0 ? QSGD_L2 : QSGD_MAX,
                                 .levels = fl__codec_get32(head + 1),
                                 .bucket = fl__codec_get32(head + 5)};
    s->coded = fl__codec_get32(head + 9);
    if (head[0] > QSGD_MAX || s->plan.levels == 0 || s->plan.levels > (uint32_t)QSGD_LEVELS_MOST ||
        s->plan.bucket > most || (s->plan.bucket < QSGD_BUCKET && s->plan.bucket != most) ||
        s->coded > n)
    {
        return FL_EFORMAT;
    }
    return FL_OK;
}

static int qsgd_open(struct fl_codec_decoder *d)
{
    struct fl_dense_source source = {.read = qsgd_source, .ctx = d};
    size_t n = fl__coded_trainable(d);
    uint64_t end = fl__codec_body_end(d);
    struct qsgd_state s = {.at = 0};
    int rv;

    if (end < QSGD_HEAD) {
        return FL_EFORMAT;
    }
    rv = qsgd_read_head(d, &s);
    if (rv != FL_OK) {
        return rv;
    }
    if (end < QSGD_HEAD + 4 * (uint64_t)qsgd_buckets(n, s.plan.bucket)) {
        return FL_EFORMAT;
    }
    rv = qsgd_read_norms(d, &s, n);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_dense_start(&s.dense, &source, end - d->offset, s.coded, NULL);
    if (rv != FL_OK) {
        return rv;
    }
    qsgd_store(d, &s);
    return FL_OK;
}

/* The norm of the bucket that begins with entry s->at; it was checked when the unit was opened. */
static int qsgd_next_bucket(struct fl_codec_decoder *d, struct qsgd_state *s)
{
    uint8_t bytes[4];
    int rv = fl__codec_bytes(d, QSGD_HEAD + 4 * (uint64_t)(s->at / s->plan.bucket), bytes,
                             sizeof(bytes));

    if (rv != FL_OK) {
        return rv;
    }
    s->norm = fl__float_of(fl__codec_get32(bytes));
    return qsgd_check_norm(s->norm);
}

/* The next `n` numbers, which are of one bucket. */
static int qsgd_take(struct fl_codec_decoder *d, struct qsgd_state *s, float *out, size_t n)
{
    struct fl_dense_source source = {.read = qsgd_source, .ctx = d};
    const int32_t most = s->norm > 0 ? (int32_t)s->plan.levels : 0;
    int32_t q[QSGD_CHUNK];
    size_t i;
    int rv = fl_dense_next(&s->dense, &source, q, n, NULL);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        if (q[i] > most || q[i] < -most) {
            return FL_EFORMAT;
        }
        out[i] = (float)((double)q[i] * (double)s->norm / s->plan.levels);
    }
    s->coded -= (uint32_t)n;
    s->at += (uint32_t)n;
    return s->coded == 0 && q[n - 1] == 0 ? FL_EFORMAT : FL_OK;
}

static int qsgd_read_body(struct fl_codec_decoder *d, float *out, size_t n)
{
    struct qsgd_state s;

    qsgd_load(d, &s);
    while (n > 0 && s.coded > 0) {
        size_t part = s.plan.bucket - s.at % s.plan.bucket;
        int rv = s.at % s.plan.bucket == 0 ? qsgd_next_bucket(d, &s) : FL_OK;

        if (rv != FL_OK) {
            return rv;
        }
        part = part < s.coded ? part : s.coded;
        part = part < n ? part : n;
        part = part < QSGD_CHUNK ? part : QSGD_CHUNK;
        rv = qsgd_take(d, &s, out, part);
        if (rv != FL_OK) {
            return rv;
        }
        out += part;
        n -= part;
    }
    if (n > 0) {
        (void)memset(out, 0, n * sizeof(*out));
    }
    qsgd_store(d, &s);
    return FL_OK;
}

static int qsgd_read(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__codec_read(d, out, n, qsgd_read_body);
}

static int qsgd_close(struct fl_codec_decoder *d)
{
    struct qsgd_state s;
    int rv;

    qsgd_load(d, &s);
    rv = fl_dense_end(&s.dense, NULL);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__codec_close(d);
}

/*
 * The error of an entry is less than a level. With Euclidean norms the norm of the unit is that of
 * the norms sent, each of which was rounded up by less than 2^-23 of itself.
 */
static void qsgd_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                        double *ret_high)
{
    struct qsgd_state s;
    double sent;
    double off;

    qsgd_load(d, &s);
    sent = sqrt(s.sum_sq);
    if (s.plan.norm == QSGD_MAX) {
        off = sent / s.plan.levels;
        *ret_low = norm - off;
        *ret_high = fmin(norm + off, sent);
        return;
    }
    off = sent * sqrt((double)s.plan.bucket) / s.plan.levels;
    *ret_low = fmax(norm - off, sent * (1 - 0x1p-23));
    *ret_high = s.capped ? (double)INFINITY : fmin(norm + off, sent);
}

static int qsgd_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);

    if (v->bucket == 0 || v->bucket >= QSGD_BUCKET) {
        return FL_OK;
    }
    return fl_err_set(err, FL_ECONF,
                      "'bucket': expected 0, for one norm a layer, or %d or more entries, found "
                      "%lld",
                      QSGD_BUCKET, (long long)v->bucket);
}

static const char *const qsgd_norms[] = {"l2", "max", NULL};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, INT, levels), .def = "16", .min = 1, .max = QSGD_LEVELS_MOST,
     .help = "Levels s between 0 and the norm: entries are rounded to multiples of norm / s, at "
             "random so that the mean is exact."},
    {FL_OPT(struct options, INT, bucket), .def = "512", .min = 0, .max = INT32_MAX,
     .help = "Entries that share a norm, 16 or more; 0: all of a layer."},
    {FL_OPT(struct options, ENUM, norm), .def = "l2", .choices = qsgd_norms,
     .help = "Euclidean norm, or the largest magnitude, which has a smaller error and costs more "
             "bits."},
    FL__CODEC_RESIDUAL_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

const struct fl_codec_ops fl_codec_qsgd = {
    .policy =
        {
            .name = "qsgd",
            .help = "levels of a norm, rounded at random",
            .source = "QSGD",
            .options = options,
            .check = qsgd_check,
        },
    .id = FL_CODEC_QSGD,
    .lossy = true,
    .sparse = true,
    .encode = qsgd_encode,
    .max_size = qsgd_max_size,
    .open = qsgd_open,
    .read = qsgd_read,
    .close = qsgd_close,
    .bounds = qsgd_bounds,
};
