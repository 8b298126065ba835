#include "libfl/strategy/codec/dense_code.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/masked_fixture.h"

/* Every upload policy in every codec has the
   bytes of the formulas, which are written down here once more. */

enum { CLIENTS = 4, N_CODECS = 8, N_UPLOADS = 6 };

static const struct fl_codec_ops *const codecs[N_CODECS] = {
    &fl_codec_float32, &fl_codec_float16, &fl_codec_bfloat16, &fl_codec_int8,
    &fl_codec_ternary, &fl_codec_steps,   &fl_codec_topk,     &fl_codec_qsgd};
static const struct fl_upload_ops *const uploads[N_UPLOADS] = {
    &fl_upload_full, &fl_upload_none,         &fl_upload_ldf,
    &fl_upload_hdfl, &fl_upload_random_layer, &fl_upload_fedadp};
/* Uploads of each unit. */
static const size_t senders[N_UPLOADS] = {CLIENTS, 0, 2, 2, 2, CLIENTS};

static int descending(const void *a, const void *b)
{
    float x = fabsf(*(const float *)a);
    float y = fabsf(*(const float *)b);

    return (x < y) - (x > y);
}

/* 5 % of d entries, each with its gap in Rice code and `own` bits. */
static uint64_t sparse_bits(const float *x, size_t d, unsigned own)
{
    float *sorted = malloc(d * sizeof(*sorted));
    size_t c = (d * 5 + 99) / 100;
    size_t last = 0;
    size_t kept = 0;
    uint64_t least = UINT64_MAX;
    unsigned b = 0;
    unsigned try;
    float tau;
    size_t i;

    (void)memcpy(sorted, x, d * sizeof(*sorted));
    qsort(sorted, d, sizeof(*sorted), descending);
    tau = fabsf(sorted[c - 1]);
    free(sorted);
    for (i = 0; i < d; i++) {
        if (fabsf(x[i]) >= tau) {
            kept++;
            last = i + 1;
        }
    }
    while (pow(2, b + 1) <= .69 * (double)(last - kept) / (double)kept) {
        b++;
    }
    for (try = b; try <= b + 1; try++) {
        uint64_t bits = 0;
        size_t gap = 0;

        for (i = 0; i < d; i++) {
            if (fabsf(x[i]) >= tau) {
                bits += (gap >> try) + 1 + try + own;
                gap = 0;
            } else {
                gap++;
            }
        }
        least = bits < least ? bits : least;
    }
    return least;
}

/* The code of codec_ternary.c, of d trainable entries and s buffers. */
static uint64_t ternary_bytes(const float *x, size_t d, size_t s)
{
    uint64_t least = 10 + (sparse_bits(x, d, 1) + 7) / 8;

    return (least < 5 + d ? least : 5 + d) + 4 * s;
}

/* The code of codec_topk.c with values of 32 bits. */
static uint64_t topk_bytes(const float *x, size_t d, size_t s)
{
    uint64_t least = 6 + (sparse_bits(x, d, 32) + 7) / 8;

    return (least < 1 + 4 * d ? least : 1 + 4 * d) + 4 * s;
}

/* 16 levels of the norm of 512 entries, rounded at random with the seed 0. */
static uint64_t qsgd_bytes(const float *x, size_t d, size_t s)
{
    int32_t *q = malloc((d + 1) * sizeof(*q));
    size_t n = d;
    struct fl_buf out;
    struct fl_rng rng;
    uint64_t bytes;
    size_t i;
    size_t j;

    fl_rng_seed(&rng, 0);
    fl_buf_init(&out, 1u << 22);
    for (i = 0; i < d; i += 512) {
        size_t end = i + 512 < d ? i + 512 : d;
        double sum = 0;
        double norm;

        for (j = i; j < end; j++) {
            sum += (double)x[j] * (double)x[j];
        }
        norm = (double)(float)sqrt(sum);
        norm = norm < sqrt(sum) ? (double)nextafterf((float)norm, INFINITY) : norm;
        for (j = i; j < end; j++) {
            double a = 16 * fabs((double)x[j]) / norm;

            q[j] = (int32_t)a + (fl_rng_unit(&rng) < a - floor(a));
            q[j] = x[j] < 0 ? -q[j] : q[j];
        }
    }
    while (n > 0 && q[n - 1] == 0) {
        n--;
    }
    ck_assert_int_eq(fl_dense_encode(q, n, &out), FL_OK);
    bytes = 13 + 4 * ((d + 511) / 512) + out.len + 4 * s;
    fl_buf_done(&out);
    free(q);
    return bytes;
}

/* Rounded at random with the seed 0, to steps of 1/8. */
static uint64_t steps_bytes(const float *x, size_t d, size_t s)
{
    int32_t *q = malloc((d + 1) * sizeof(*q));
    struct fl_buf out;
    struct fl_rng rng;
    uint64_t bytes;
    size_t i;

    fl_rng_seed(&rng, 0);
    fl_buf_init(&out, 1u << 22);
    for (i = 0; i < d; i++) {
        int32_t low = (int32_t)floor((double)x[i] * 8);

        q[i] = low + (fl_rng_unit(&rng) < (double)x[i] * 8 - low);
    }
    while (d > 0 && q[d - 1] == 0) {
        d--;
    }
    ck_assert_int_eq(fl_dense_encode(q, d, &out), FL_OK);
    bytes = 8 + out.len + 4 * s;
    fl_buf_done(&out);
    free(q);
    return bytes;
}

/* `x`: the d trainable entries that are sent; with them go s buffers. */
static uint64_t unit_bytes(const struct fl_codec_ops *ops, const float *x, size_t d, size_t s)
{
    switch (ops->id) {
    case FL_CODEC_FLOAT32:
        return 4 * (d + s);
    case FL_CODEC_FLOAT16:
    case FL_CODEC_BFLOAT16:
        return 2 * d + 4 * s;
    case FL_CODEC_INT8:
        return 4 + d + 4 * s;
    case FL_CODEC_STEPS:
        return steps_bytes(x, d, s);
    case FL_CODEC_TOPK:
        return topk_bytes(x, d, s);
    case FL_CODEC_QSGD:
        return qsgd_bytes(x, d, s);
    default:
        return ternary_bytes(x, d, s);
    }
}

/* The formula for one client's unit; keep NULL: all of it. */
static uint64_t expected(const struct fl_codec_ops *ops, const struct fl_layout *layout, size_t l,
                         const float *delta, const uint8_t *keep)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    float *x = malloc(unit->count * sizeof(*x));
    uint64_t bytes;
    size_t d = 0;
    size_t s = 0;
    size_t i;

    for (i = 0; i < unit->count; i++) {
        bool buffer = l == SMALL && ((i >= 40 && i < 50) || i >= 60);

        if (keep != NULL && keep[neuron_of(layout, l, i)] == 0) {
            continue;
        }
        if (buffer) {
            s++;
        } else {
            x[d++] = delta[i];
        }
    }
    bytes = unit_bytes(ops, x, d, s);
    free(x);
    return bytes + (keep != NULL ? (fl_neurons(layout, l) + 7) / 8 : 0);
}

static void make_plan(const struct fl_upload_ops *ops, size_t n, uint8_t *grant)
{
    static const float divergence[CLIENTS * MASKED_UNITS] = {1, 2, 3, 4, 5, 6, 7, 8,
                                                             9, 8, 7, 6, 5, 4, 3, 2};
    struct fl_upload_input in = {.n_clients = CLIENTS,
                                 .n_selected = CLIENTS,
                                 .n_units = MASKED_UNITS,
                                 .divergence = divergence};
    struct fl_options *o = options_of(&ops->policy, NULL);
    struct fl_rng rng;

    if (n < CLIENTS && n > 0) {
        ck_assert_int_eq(fl_options_set(o, "n", "2", NULL), FL_OK);
    }
    fl_rng_seed(&rng, 3);
    ck_assert_int_eq(ops->plan(o, &in, &rng, grant), FL_OK);
    fl_options_free(o);
}

TEST_EACH(every_upload_has_the_bytes_of_its_formula_in_every_codec, (N_UPLOADS * N_CODECS))
{
    const struct fl_upload_ops *upload = uploads[_i / N_CODECS];
    const struct fl_codec_ops *codec = codecs[_i % N_CODECS];
    struct fl_layout *layout = masked_layout();
    struct fl_options *mask = options_of(&upload->policy, NULL);
    struct fl_options *o = options_of(&codec->policy, NULL);
    size_t count = fl_layout_count(layout);
    float *theta = calloc(2 * count, sizeof(float));
    float *delta = theta + count;
    uint8_t *keep = calloc(fl_neurons_total(layout), 1);
    uint8_t grant[CLIENTS * MASKED_UNITS];
    uint64_t formula = 0;
    struct fl_buf out;
    struct fl_rng rng;
    size_t i;
    size_t k;
    size_t l;

    make_plan(upload, senders[_i / N_CODECS], grant);
    fl_buf_init(&out, 1u << 22);
    fl_rng_seed(&rng, 11);
    for (k = 0; k < CLIENTS; k++) {
        const uint8_t *of_unit = keep;

        for (i = 0; i < count; i++) {
            theta[i] = (float)fl_rng_normal(&rng);
            delta[i] = (float)fl_rng_normal(&rng);
        }
        if (upload->mask != NULL) {
            ck_assert_int_eq(upload->mask(mask, layout, theta, delta, keep), FL_OK);
        }
        for (l = 0; l < MASKED_UNITS; l++) {
            struct fl_unit_update in = {.delta = delta + fl_layout_unit(layout, l)->offset,
                                        .keep = upload->mask != NULL ? of_unit : NULL};

            of_unit += fl_neurons(layout, l);
            if (grant[k * MASKED_UNITS + l] == 0) {
                continue;
            }
            ck_assert_int_eq(fl_unit_encode(codec, o, layout, l, &in, &out), FL_OK);
            formula += expected(codec, layout, l, in.delta, in.keep);
        }
    }
    ck_assert_uint_eq(out.len, formula);
    /* n uploads of each unit: n * 4 (d + s), the closed form of FedLDF and two of its baselines. */
    if (codec == &fl_codec_float32 && upload->mask == NULL) {
        ck_assert_uint_eq(out.len, senders[_i / N_CODECS] * 4 * count);
    }
    free(theta);
    free(keep);
    fl_buf_done(&out);
    fl_options_free(mask);
    fl_options_free(o);
    fl_layout_free(layout);
}
