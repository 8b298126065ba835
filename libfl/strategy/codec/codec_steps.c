/*
 * codec: steps, whole numbers of steps (docs/algorithms.md#steps)
 *
 *     v = Delta_i / step,  q_i = floor(v) + [u < v - floor(v)],  u uniform in (0, 1)
 *
 * so that q_i step is Delta_i in the mean; or with a threshold h from 1/2 to 1
 *
 *     q_i = sign(v) floor(|v| + 1 - h)
 *
 * Both are at most one step away from Delta_i.
 *
 *     4 bytes       m, 1 to 2^20, little-endian: step = m 2^-20
 *     4 bytes       c, up to d_l, little-endian: q_c is the last that is not 0
 *     at most       q_1 … q_c as whole numbers (dense_code.h), each below 2^20 in magnitude
 *      1 + 4 d_l
 *     4 s_l bytes   buffers as binary32, little-endian
 *
 *     decoded: float(q_i m 2^-20)
 *
 * v is exact but for one rounding in double, the product is exact in double. Without a threshold
 * one random number is drawn for each entry from the seed of the unit. An entry of 2^20 - 1 steps
 * or more is FL_ENUMERIC.
 *
 * Options: step, threshold, residual, decay. Cost: the entropy of q, see docs/algorithms.md. Runs
 * on the caller's thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "libfl/num/vec.h"
#include "libfl/strategy/codec/codec_impl.h"
#include "libfl/strategy/codec/dense_code.h"
#include "libfl/strategy/grid.h"

struct options {
    struct fl_codec_loss loss;
    const char *step;
    double threshold; /* 0: at random */
};

#define STEPS_MOST            (INT32_C(1) << 20) /* no magnitude reaches it; also the largest m */
#define STEPS_HEAD            8
#define STEPS_AUTO            3
#define STEPS_LEAST_THRESHOLD 0.5
#define STEPS_CHUNK           1024

/* In the state of the decoder. */
struct steps_state {
    struct fl_dense_decoder dense;
    uint32_t m;
    uint32_t coded; /* numbers that were not read yet; 0 follow them */
};

_Static_assert(sizeof(struct steps_state) <= sizeof(((struct fl_codec_decoder *)0)->state),
               "the state fits into a decoder");

/* `auto`: STEPS_AUTO times the quadratic mean of the entries up to the last that is not 0. */
static uint32_t steps_multiple(const struct fl_options *o, const float *x, size_t n)
{
    const struct options *v = fl_options_values(o);
    double step = 0;

    if (strcmp(v->step, "auto") != 0) {
        FL_REQUIRE(fl_str_to_double(v->step, &step) == FL_OK); /* steps_check() */
    } else {
        while (n > 0 && x[n - 1] == 0) {
            n--;
        }
        step = n > 0 ? STEPS_AUTO * sqrt(fl_vec_dot(x, x, n) / (double)n) : 0;
        step = step < FL_GRID ? FL_GRID : step < 1 ? step : 1;
    }
    return (uint32_t)(step / FL_GRID);
}

/* Is every magnitude below STEPS_MOST - 1 steps? */
static int steps_range(const float *x, size_t n, double step)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (!(fabs((double)x[i] / step) < STEPS_MOST - 1)) {
            return FL_ENUMERIC;
        }
    }
    return FL_OK;
}

static void steps_round_at_random(const float *x, size_t n, double step, uint64_t seed, int32_t *q)
{
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, seed);
    for (i = 0; i < n; i++) {
        double v = (double)x[i] / step;
        double low = floor(v);
        bool up = fl_rng_unit(&rng) < v - low;

        q[i] = (int32_t)low + up;
    }
}

static void steps_round_from(const float *x, size_t n, double step, double threshold, int32_t *q)
{
    size_t i;

    for (i = 0; i < n; i++) {
        double v = (double)x[i] / step;

        q[i] = (int32_t)copysign(floor(fabs(v) + 1 - threshold), v);
    }
}

static int steps_encode_body(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                             struct fl_buf *out)
{
    const struct options *v = fl_options_values(o);
    uint32_t m = steps_multiple(o, x, n);
    uint8_t head[STEPS_HEAD];
    int32_t *q = malloc((n + 1) * sizeof(*q));
    int rv;

    if (q == NULL) {
        return FL_ENOMEM;
    }
    rv = steps_range(x, n, m * FL_GRID);
    if (rv != FL_OK) {
        goto done;
    }
    if (v->threshold > 0) {
        steps_round_from(x, n, m * FL_GRID, v->threshold, q);
    } else {
        steps_round_at_random(x, n, m * FL_GRID, seed, q);
    }
    while (n > 0 && q[n - 1] == 0) {
        n--;
    }
    fl__codec_put32(head, m);
    fl__codec_put32(head + 4, (uint32_t)n);
    rv = fl_buf_add(out, head, sizeof(head));
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_dense_encode(q, n, out);
done:
    free(q);
    return rv;
}

static int steps_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                        const float *delta, uint64_t seed, struct fl_buf *out)
{
    return fl__codec_encode(o, layout, l, delta, seed, steps_encode_body, out);
}

static uint64_t steps_max_size(const struct fl_layout *layout, size_t l)
{
    return STEPS_HEAD + fl_dense_max_size(fl_layout_unit(layout, l)->n_trainable) +
           fl__codec_buffer_bytes(layout, l);
}

/* --- decoding --- */

static void steps_load(const struct fl_codec_decoder *d, struct steps_state *s)
{
    (void)memcpy(s, d->state, sizeof(*s));
}

static void steps_store(struct fl_codec_decoder *d, const struct steps_state *s)
{
    (void)memcpy(d->state, s, sizeof(*s));
}

static int steps_source(void *ctx, uint8_t *out, size_t len)
{
    struct fl_codec_decoder *d = ctx;
    int rv = fl__codec_bytes(d, d->offset, out, len);

    d->offset += len;
    return rv;
}

static int steps_open(struct fl_codec_decoder *d)
{
    struct fl_dense_source source = {.read = steps_source, .ctx = d};
    uint64_t end = fl__codec_body_end(d);
    uint8_t head[STEPS_HEAD];
    struct steps_state s;
    int rv;

    if (end < STEPS_HEAD) {
        return FL_EFORMAT;
    }
    rv = steps_source(d, head, sizeof(head));
    if (rv != FL_OK) {
        return rv;
    }
    s.m = fl__codec_get32(head);
    s.coded = fl__codec_get32(head + 4);
    if (s.m == 0 || s.m > (uint32_t)STEPS_MOST || s.coded > fl__coded_trainable(d)) {
        return FL_EFORMAT;
    }
    rv = fl_dense_start(&s.dense, &source, end - STEPS_HEAD, s.coded, NULL);
    if (rv != FL_OK) {
        return rv;
    }
    steps_store(d, &s);
    return FL_OK;
}

static int steps_read(struct fl_codec_decoder *d, float *out, size_t n)
{
    struct fl_dense_source source = {.read = steps_source, .ctx = d};
    struct steps_state s;
    int32_t q[STEPS_CHUNK];

    steps_load(d, &s);
    while (n > 0 && s.coded > 0) {
        size_t part = n < STEPS_CHUNK ? n : STEPS_CHUNK;
        size_t i;
        int rv;

        part = part < s.coded ? part : s.coded;
        rv = fl_dense_next(&s.dense, &source, q, part, NULL);
        if (rv != FL_OK) {
            return rv;
        }
        s.coded -= (uint32_t)part;
        if (s.coded == 0 && q[part - 1] == 0) {
            return FL_EFORMAT;
        }
        for (i = 0; i < part; i++) {
            if (q[i] >= STEPS_MOST || q[i] <= -STEPS_MOST) {
                return FL_EFORMAT;
            }
            out[i] = (float)((double)q[i] * s.m * FL_GRID);
        }
        out += part;
        n -= part;
    }
    if (n > 0) {
        (void)memset(out, 0, n * sizeof(*out));
    }
    steps_store(d, &s);
    return FL_OK;
}

static int steps_read_entries(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__codec_read(d, out, n, steps_read);
}

static int steps_close(struct fl_codec_decoder *d)
{
    struct steps_state s;
    int rv;

    steps_load(d, &s);
    rv = fl_dense_end(&s.dense, NULL);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__codec_close(d);
}

/* The error of an entry is less than a step. */
static void steps_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                         double *ret_high)
{
    struct steps_state s;
    double off;

    steps_load(d, &s);
    off = s.m * FL_GRID * sqrt((double)fl__coded_trainable(d));
    *ret_low = norm - off;
    *ret_high = norm + off;
}

static int steps_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    double step = 0;

    if (v->threshold > 0 && v->threshold < STEPS_LEAST_THRESHOLD) {
        return fl_err_set(err, FL_ECONF, "'threshold': expected 0, or %g to 1, found %.12g",
                          STEPS_LEAST_THRESHOLD, v->threshold);
    }
    if (strcmp(v->step, "auto") == 0) {
        return FL_OK;
    }
    if (fl_str_to_double(v->step, &step) != FL_OK || !(step >= FL_GRID && step <= 1)) {
        return fl_err_set(err, FL_ECONF,
                          "'step': expected 'auto' or a number from 2^-20 to 1, found '%s'",
                          v->step);
    }
    return fl_grid_check(step, 1, "", err);
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, STRING, step), .def = "0.125",
     .help = "Entries are rounded to multiples of it, at random so that the mean is exact, or from "
             "`threshold` on. A "
             "multiple of 2^-20, or `auto`: in each layer three times the quadratic mean of the "
             "entries."},
    {FL_OPT(struct options, FLOAT, threshold), .def = "0", .min = 0, .max = 1,
     .help = "From how many steps on an entry is sent, 0.5 to 1, without chance: fewer bytes and "
             "less noise, smaller entries not at all; 0: rounded at random."},
    FL__CODEC_RESIDUAL_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

const struct fl_codec_ops fl_codec_steps = {
    .policy =
        {
            .name = "steps",
            .help = "whole numbers of steps",
            .source = "ours",
            .options = options,
            .check = steps_check,
        },
    .id = FL_CODEC_STEPS,
    .lossy = true,
    .sparse = true,
    .encode = steps_encode,
    .max_size = steps_max_size,
    .open = steps_open,
    .read = steps_read_entries,
    .close = steps_close,
    .bounds = steps_bounds,
};
