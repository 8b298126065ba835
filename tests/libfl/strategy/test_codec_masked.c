#include "tests/lib/suites.h"
#include "tests/libfl/strategy/masked_fixture.h"

/* Units of which some neurons are sent, in every codec. */

static const struct fl_codec_ops *const codecs[] = {
    &fl_codec_float32, &fl_codec_float16, &fl_codec_bfloat16, &fl_codec_int8,
    &fl_codec_ternary, &fl_codec_steps,   &fl_codec_topk,     &fl_codec_qsgd};
#define N_CODECS 8

struct sample {
    struct fl_layout *layout;
    size_t l, count, rows, kept;
    float *x, *out;
    uint8_t *keep;
    struct fl_options *o;
    struct fl_buf coded;
};

static void sample_init(struct sample *s, const struct fl_codec_ops *ops, size_t l)
{
    struct fl_rng rng;
    size_t i;

    *s = (struct sample){.layout = masked_layout(), .l = l};
    s->count = fl_layout_unit(s->layout, l)->count;
    s->rows = fl_neurons(s->layout, l);
    s->x = calloc(s->count, sizeof(float));
    s->out = calloc(s->count, sizeof(float));
    s->keep = calloc(s->rows, 1);
    s->o = options_of(&ops->policy, NULL);
    fl_buf_init(&s->coded, 1u << 20);
    fl_rng_seed(&rng, 7 + l);
    for (i = 0; i < s->count; i++) {
        s->x[i] = (float)fl_rng_normal(&rng);
    }
    /* Alone, in pairs, in long runs, the first and not the last. */
    for (i = 0; i < s->rows; i++) {
        s->keep[i] = i == 0 || i % 5 == 1 || (i > 2000 && i < 3500) || l == OUTPUT;
        s->kept += s->keep[i];
    }
}

static void sample_done(struct sample *s)
{
    free(s->x);
    free(s->out);
    free(s->keep);
    fl_options_free(s->o);
    fl_buf_done(&s->coded);
    fl_layout_free(s->layout);
}

static int encode(struct sample *s, const struct fl_codec_ops *ops)
{
    struct fl_unit_update in = {.delta = s->x, .keep = s->keep};

    fl_buf_clear(&s->coded);
    return fl_unit_encode(ops, s->o, s->layout, s->l, &in, &s->coded);
}

/* The kept entries as a unit of their own, made without the code under test. */
static struct fl_layout *cut(const struct sample *s, float *part)
{
    const struct fl_unit *unit = fl_layout_unit(s->layout, s->l);
    struct fl_layout *layout = NULL;
    size_t i;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    for (i = 0; i < unit->n_tensors; i++) {
        const struct fl_tensor *t = fl_layout_tensor(s->layout, unit->first_tensor + i);

        masked_add(layout, "u", t->name, s->kept, t->n_dims == 2 ? t->dims[1] : 0, t->buffer);
    }
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    for (i = 0; i < s->count; i++) {
        if (s->keep[neuron_of(s->layout, s->l, i)] != 0) {
            *part++ = s->x[i];
        }
    }
    return layout;
}

TEST_EACH(kept_neurons_are_coded_as_a_unit_of_their_own_and_others_come_back_as_nan, 2 * N_CODECS)
{
    static const size_t pieces[] = {1, 7, 2048, 1u << 20};
    const struct fl_codec_ops *ops = codecs[_i % N_CODECS];
    struct fl_layout *part;
    struct fl_buf alone;
    struct sample s;
    float *x;
    float *y;
    size_t mask;
    size_t at;
    size_t i;
    size_t p;

    sample_init(&s, ops, _i < N_CODECS ? SMALL : WIDE);
    x = calloc(s.count, sizeof(float));
    y = calloc(s.count, sizeof(float));
    fl_buf_init(&alone, 1u << 20);
    part = cut(&s, x);
    ck_assert_int_eq(ops->encode(s.o, part, 0, x, 0, &alone), FL_OK);
    ck_assert_int_eq(decode(ops, part, alone.data, alone.len, s.count, y), FL_OK);
    ck_assert_int_eq(encode(&s, ops), FL_OK);
    mask = fl_mask_bytes(s.layout, s.l);
    ck_assert_uint_eq(s.coded.len, mask + alone.len);
    ck_assert_mem_eq(s.coded.data + mask, alone.data, alone.len);
    for (i = 0; i < s.rows; i++) {
        ck_assert_uint_eq(s.coded.data[i / 8] >> i % 8 & 1, s.keep[i]);
    }
    for (p = 0; p < 4; p++) {
        (void)memset(s.out, 0, s.count * sizeof(float));
        ck_assert_int_eq(
            masked_decode(ops, s.layout, s.l, s.coded.data, s.coded.len, pieces[p], s.out), FL_OK);
        for (i = 0, at = 0; i < s.count; i++) {
            if (s.keep[neuron_of(s.layout, s.l, i)] != 0) {
                ck_assert_uint_eq(bits_of(s.out[i]), bits_of(y[at++]));
            } else {
                ck_assert(isnan(s.out[i]));
            }
        }
    }
    free(x);
    free(y);
    fl_buf_done(&alone);
    fl_layout_free(part);
    sample_done(&s);
}

/* docs/algorithms.md#uploads-by-divergence: 4 kept f + ceil(O / 8). */
TEST_EACH(a_masked_unit_in_float32_has_the_bytes_of_the_formula, MASKED_UNITS)
{
    struct sample s;

    sample_init(&s, &fl_codec_float32, (size_t)_i);
    ck_assert_int_eq(encode(&s, &fl_codec_float32), FL_OK);
    ck_assert_uint_eq(s.coded.len, 4 * s.kept * (s.count / s.rows) + (s.rows + 7) / 8);
    sample_done(&s);
}

TEST_EACH(a_full_mask_is_the_whole_unit_bit_for_bit, N_CODECS)
{
    const struct fl_codec_ops *ops = codecs[_i];
    struct fl_codec_decoder d;
    struct fl_codec_memory memory;
    struct fl_codec_reader reader;
    struct fl_buf whole;
    struct sample s;
    size_t l;

    for (l = 0; l < MASKED_UNITS; l++) {
        sample_init(&s, ops, l);
        (void)memset(s.keep, 1, s.rows);
        fl_buf_init(&whole, 1u << 20);
        ck_assert_int_eq(ops->encode(s.o, s.layout, l, s.x, 0, &whole), FL_OK);
        ck_assert_int_eq(encode(&s, ops), FL_OK);
        ck_assert_uint_eq(s.coded.len, fl_mask_bytes(s.layout, l) + whole.len);
        ck_assert_mem_eq(s.coded.data + fl_mask_bytes(s.layout, l), whole.data, whole.len);
        memory = (struct fl_codec_memory){s.coded.data, s.coded.len};
        reader = fl_codec_memory_reader(&memory);
        ck_assert_int_eq(fl_masked_open(&d, ops, s.layout, l, &reader), FL_OK);
        ck_assert(!fl_masked_decoder(&d));
        fl_buf_done(&whole);
        sample_done(&s);
    }
}

/* float32 entries, of SMALL 7 a neuron; the mask as given. */
static int open_mask(size_t l, const uint8_t *mask, size_t len, size_t entries)
{
    struct fl_layout *layout = masked_layout();
    uint8_t *bytes = calloc(1, len + 4 * entries + 1);
    float *out = calloc(fl_layout_unit(layout, l)->count, sizeof(float));
    int rv;

    (void)memcpy(bytes, mask, len);
    rv = masked_decode(&fl_codec_float32, layout, l, bytes, len + 4 * entries, 5, out);
    free(bytes);
    free(out);
    fl_layout_free(layout);
    return rv;
}

TEST(malformed_masks_are_refused)
{
    static const struct {
        size_t l;
        uint8_t mask[2];
        size_t len, entries;
        int rv;
    } rows[] = {
        {SMALL, {0x01, 0x02}, 2, 14, FL_OK},
        {SMALL, {0xff, 0x03}, 2, 70, FL_OK},
        {SMALL, {0x00, 0x00}, 2, 0, FL_EFORMAT}, /* nobody */
        {SMALL, {0x01, 0x04}, 2, 7, FL_EFORMAT}, /* bits past the last */
        {SMALL, {0x01, 0x80}, 2, 7, FL_EFORMAT},
        {SMALL, {0x01, 0x04}, 2, 14, FL_EFORMAT}, /* the same, and bytes for it */
        {SMALL, {0x01, 0x00}, 0, 0, FL_EFORMAT},  /* shorter than a mask */
        {SMALL, {0x01, 0x00}, 1, 0, FL_EFORMAT},
        {SMALL, {0x01, 0x00}, 2, 6, FL_EFORMAT}, /* entries for less, and for more */
        {SMALL, {0x01, 0x00}, 2, 8, FL_EFORMAT},
        {SMALL, {0x03, 0x00}, 2, 7, FL_EFORMAT},
        {SMALL, {0xff, 0x03}, 2, 71, FL_EFORMAT},
        {FLAT, {0x01, 0x00}, 1, 17, FL_OK},
        {FLAT, {0x03, 0x00}, 1, 17, FL_EFORMAT}, /* not cut: one neuron */
        {FLAT, {0x00, 0x00}, 1, 17, FL_EFORMAT},
        {OUTPUT, {0x0f, 0x00}, 1, 12, FL_OK},
        {OUTPUT, {0x0e, 0x00}, 1, 9, FL_EFORMAT}, /* the output layer is whole */
        {OUTPUT, {0x1f, 0x00}, 1, 12, FL_EFORMAT},
    };
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_msg(open_mask(rows[i].l, rows[i].mask, rows[i].len, rows[i].entries) ==
                          rows[i].rv,
                      "row %zu", i);
    }
}

TEST_EACH(a_masked_unit_that_is_cut_short_or_goes_on_is_refused, N_CODECS)
{
    const struct fl_codec_ops *ops = codecs[_i];
    struct sample s;
    uint8_t *longer;
    size_t len;
    int rv;

    sample_init(&s, ops, SMALL);
    ck_assert_int_eq(encode(&s, ops), FL_OK);
    for (len = 0; len < s.coded.len; len++) {
        rv = masked_decode(ops, s.layout, SMALL, s.coded.data, len, 3, s.out);
        ck_assert(rv == FL_EFORMAT || rv == FL_ENUMERIC);
    }
    longer = calloc(1, s.coded.len + 1);
    (void)memcpy(longer, s.coded.data, s.coded.len);
    ck_assert_int_eq(
        masked_decode(ops, s.layout, SMALL, longer, s.coded.len + 1, 3, s.out) != FL_OK, 1);
    free(longer);
    sample_done(&s);
}

TEST_EACH(a_masked_unit_over_its_limit_is_refused_before_it_is_read, N_CODECS)
{
    const struct fl_codec_ops *ops = codecs[_i];
    struct fl_layout *layout = masked_layout();
    struct fl_codec_decoder d;
    size_t l;

    for (l = 0; l < MASKED_UNITS; l++) {
        uint64_t most = fl_masked_max_size(ops, layout, l);
        struct fl_codec_reader reader = {.read = NULL, .size = most + 1};

        ck_assert_uint_eq(most, fl_mask_bytes(layout, l) + ops->max_size(layout, l));
        ck_assert_int_eq(fl_masked_open(&d, ops, layout, l, &reader), FL_EFORMAT);
        reader.size = fl_mask_bytes(layout, l) - 1;
        ck_assert_int_eq(fl_masked_open(&d, ops, layout, l, &reader), FL_EFORMAT);
    }
    fl_layout_free(layout);
}

/* 19 entries of 38 bits each are fewer bytes than a whole unit may have, and more than the 20
   entries of four neurons. */
TEST(a_ternary_unit_is_no_longer_than_its_kept_neurons_allow)
{
    static const uint8_t head[12] = {0x0f, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0x40, 36};
    struct fl_layout *layout = masked_layout();
    uint8_t bytes[12 + 91 + 4 * 8] = {0};
    float out[70];

    (void)memcpy(bytes, head, sizeof(head));
    ck_assert_uint_le(sizeof(bytes), fl_masked_max_size(&fl_codec_ternary, layout, SMALL));
    ck_assert_int_eq(masked_decode(&fl_codec_ternary, layout, SMALL, bytes, sizeof(bytes), 7, out),
                     FL_EFORMAT);
    /* Two of them are as good as any. */
    bytes[3] = 2;
    ck_assert_int_eq(
        masked_decode(&fl_codec_ternary, layout, SMALL, bytes, 12 + 10 + 4 * 8, 7, out), FL_OK);
    fl_layout_free(layout);
}

static int validate(struct sample *s, const struct fl_codec_ops *ops, double *norm_sq)
{
    struct fl_codec_memory memory = {s->coded.data, s->coded.len};
    struct fl_codec_reader reader = fl_codec_memory_reader(&memory);
    struct fl_codec_decoder d;
    struct fl_codec_size got;
    int rv = fl_masked_open(&d, ops, s->layout, s->l, &reader);

    if (rv != FL_OK) {
        return rv;
    }
    ck_assert(fl_masked_decoder(&d));
    rv = fl_codec_measure(&d, &got);
    if (rv != FL_OK) {
        return rv;
    }
    *norm_sq = got.norm_sq;
    return FL_OK;
}

TEST(validation_takes_absent_entries_and_refuses_non_finite_ones_that_are_there)
{
    static const uint8_t nan[4] = {0, 0, 0xc0, 0x7f};
    double expected = 0;
    double norm_sq = -1;
    struct sample s;
    size_t entries;
    size_t i;

    sample_init(&s, &fl_codec_float32, SMALL);
    ck_assert_int_eq(encode(&s, &fl_codec_float32), FL_OK);
    for (i = 0; i < s.count; i++) {
        size_t t = i < 40 ? 0 : i < 50 ? 1 : i < 60 ? 0 : 1; /* tensors of 30 10 10 10 10 */

        if (t == 0 && s.keep[neuron_of(s.layout, SMALL, i)] != 0) {
            expected += (double)s.x[i] * (double)s.x[i];
        }
    }
    ck_assert_int_eq(validate(&s, &fl_codec_float32, &norm_sq), FL_OK);
    ck_assert_double_eq_tol(norm_sq, expected, 1e-9);
    entries = (s.coded.len - 2) / 4;
    for (i = 0; i < entries; i++) {
        uint8_t saved[4];

        (void)memcpy(saved, s.coded.data + 2 + 4 * i, 4);
        (void)memcpy(s.coded.data + 2 + 4 * i, nan, 4);
        ck_assert_int_eq(validate(&s, &fl_codec_float32, &norm_sq), FL_ENUMERIC);
        (void)memcpy(s.coded.data + 2 + 4 * i, saved, 4);
    }
    sample_done(&s);
}

TEST(neurons_that_are_not_kept_are_not_looked_at)
{
    struct fl_buf first;
    struct sample s;
    size_t i;

    sample_init(&s, &fl_codec_int8, SMALL);
    ck_assert_int_eq(encode(&s, &fl_codec_int8), FL_OK);
    fl_buf_init(&first, 1u << 20);
    ck_assert_int_eq(fl_buf_add(&first, s.coded.data, s.coded.len), FL_OK);
    for (i = 0; i < s.count; i++) {
        s.x[i] = s.keep[neuron_of(s.layout, SMALL, i)] != 0 ? s.x[i] : NAN;
    }
    ck_assert_int_eq(encode(&s, &fl_codec_int8), FL_OK);
    ck_assert_uint_eq(s.coded.len, first.len);
    ck_assert_mem_eq(s.coded.data, first.data, first.len);
    s.x[0] = INFINITY;
    ck_assert_int_eq(encode(&s, &fl_codec_int8), FL_ENUMERIC);
    ck_assert_uint_eq(s.coded.len, 0);
    fl_buf_done(&first);
    sample_done(&s);
}

TEST_EACH(what_does_not_fit_leaves_the_buffer_as_it_was, N_CODECS)
{
    const struct fl_codec_ops *ops = codecs[_i];
    struct fl_unit_update in;
    struct fl_buf out;
    struct sample s;
    size_t most;

    sample_init(&s, ops, SMALL);
    ck_assert_int_eq(encode(&s, ops), FL_OK);
    in = (struct fl_unit_update){.delta = s.x, .keep = s.keep};
    for (most = 1; most < s.coded.len; most++) {
        fl_buf_init(&out, most);
        ck_assert_int_eq(fl_buf_add(&out, "x", 1), FL_OK);
        ck_assert_int_eq(fl_unit_encode(ops, s.o, s.layout, SMALL, &in, &out), FL_ELIMIT);
        ck_assert_uint_eq(out.len, 1);
        fl_buf_done(&out);
    }
    sample_done(&s);
}

/* Reads until it is used up. */
struct budget {
    struct fl_codec_memory memory;
    int left;
};

static int failing_read(void *ctx, uint64_t offset, void *out, size_t len)
{
    struct budget *b = ctx;

    return b->left-- > 0 ? strict_read(&b->memory, offset, out, len) : FL_EIO;
}

TEST_EACH(a_reader_that_fails_at_any_time_is_passed_on, N_CODECS)
{
    const struct fl_codec_ops *ops = codecs[_i];
    struct fl_codec_decoder d;
    struct fl_codec_size got;
    struct sample s;
    int rv = FL_EIO;
    int reads;

    sample_init(&s, ops, WIDE);
    ck_assert_int_eq(encode(&s, ops), FL_OK);
    for (reads = 0; rv != FL_OK; reads += 1 + reads / 4) { /* there are thousands */
        struct budget b = {{s.coded.data, s.coded.len}, reads};
        struct fl_codec_reader reader = {failing_read, &b, s.coded.len};

        rv = fl_masked_open(&d, ops, s.layout, WIDE, &reader);
        rv = rv == FL_OK ? fl_codec_measure(&d, &got) : rv;
        ck_assert(rv == FL_OK || rv == FL_EIO);
    }
    ck_assert_int_gt(reads, 6); /* the mask has three windows, and is read twice */
    sample_done(&s);
}

TEST(a_unit_is_cut_where_all_its_tensors_share_the_first_dimension)
{
    struct fl_layout *layout = masked_layout();

    ck_assert_uint_eq(fl_neurons(layout, SMALL), SMALL_ROWS);
    ck_assert_uint_eq(fl_neurons(layout, WIDE), WIDE_ROWS);
    ck_assert_uint_eq(fl_neurons(layout, FLAT), 1);
    ck_assert_uint_eq(fl_neurons(layout, OUTPUT), OUT_ROWS);
    ck_assert_uint_eq(fl_neurons_total(layout), SMALL_ROWS + WIDE_ROWS + 1 + OUT_ROWS);
    ck_assert_uint_eq(fl_mask_bytes(layout, SMALL), 2);
    ck_assert_uint_eq(fl_mask_bytes(layout, FLAT), 1);
    fl_layout_free(layout);
    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "u", "u.scale", NULL, 0, false, NULL), FL_OK);
    masked_add(layout, "v", "v.weight", 3, 2, false);
    ck_assert_int_eq(fl_layout_add(layout, "v", "v.scale", NULL, 0, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    ck_assert_uint_eq(fl_neurons(layout, 0), 1);
    ck_assert_uint_eq(fl_neurons(layout, 1), 1);
    fl_layout_free(layout);
}
