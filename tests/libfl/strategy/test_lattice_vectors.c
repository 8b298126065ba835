/*
 * What changed since a model, by the test vectors that clients in other languages have:
 * docs/lattice.json and docs/hashed.json, which tests/interop/vectors.py and hashed_vectors.py make
 * with encoders of their own.
 */
#include "libfl/strategy/broadcast/versions.h"
#include "tests/lib/moves_rig.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/vectors_fixture.h"

static const char *const files[] = {"lattice", "hashed"};

/* A vector: its layout, the held model, and the difference. */
struct vector {
    const char *name;
    struct fl_layout *layout;
    float *model;
    uint8_t *data;
    size_t len;
};

static struct fl_layout *layout_of(const json_t *units)
{
    struct fl_layout *layout = NULL;
    size_t u;
    size_t t;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    for (u = 0; u < json_array_size(units); u++) {
        const json_t *tensors = json_array_get(units, u);

        for (t = 0; t < json_array_size(tensors); t++) {
            const json_t *tensor = json_array_get(tensors, t);
            size_t n = (size_t)json_integer_value(json_array_get(tensor, 0));
            bool buffer = json_is_false(json_array_get(tensor, 1));
            char unit[24];
            char name[48];

            (void)snprintf(unit, sizeof(unit), "u%zu", u);
            (void)snprintf(name, sizeof(name), "u%zu.t%zu", u, t);
            ck_assert_int_eq(fl_layout_add(layout, unit, name, &n, 1, buffer, NULL), FL_OK);
        }
    }
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    return layout;
}

static struct vector vector_of(const json_t *row)
{
    struct vector v = {.name = text_of(row, "name")};
    size_t held;

    v.layout = layout_of(json_object_get(row, "units"));
    v.model = (float *)(void *)bytes_of(row, "held", &held);
    ck_assert_msg(held == fl_layout_count(v.layout) * sizeof(float), "%s", v.name);
    v.data = bytes_of(row, "difference", &v.len);
    return v;
}

static void vector_done(struct vector *v)
{
    fl_layout_free(v->layout);
    free(v->model);
    free(v->data);
}

TEST_EACH(each_difference_gives_the_new_model_and_its_digest_bit_for_bit, 2)
{
    json_t *rows = vectors_of(files[_i], "good");
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        struct vector v = vector_of(row);
        struct fl_err err = {0};
        uint8_t found[FL_DIGEST_SIZE];
        size_t len;
        uint8_t *model = bytes_of(row, "new", &len);
        uint8_t *digest = bytes_of(row, "sha256", &len);
        int rv = fl_difference_apply(v.layout, v.data, v.len, v.model, &err);

        ck_assert_msg(rv == FL_OK, "%s: %s", v.name, err.msg);
        ck_assert_msg(memcmp(v.model, model, fl_layout_count(v.layout) * sizeof(float)) == 0,
                      "%s: another model", v.name);
        ck_assert_int_eq(fl_versions_digest(v.layout, v.model, found), FL_OK);
        ck_assert_msg(len == sizeof(found) && memcmp(found, digest, len) == 0,
                      "%s: another SHA-256", v.name);
        vector_done(&v);
        free(model);
        free(digest);
    }
    json_decref(rows);
}

/* The lists of moves of a unit at data[len] as the server codes them; returns where they end. */
static size_t unit_encode(const uint8_t *data, size_t len, size_t n, struct fl_buf *out)
{
    size_t lists = data[0] | (size_t)data[1] << 8;
    size_t at = 2;

    ck_assert_int_eq(fl_buf_add(out, data, at), FL_OK);
    for (; lists > 0; lists--) {
        int32_t *moves = calloc(n + 1, sizeof(*moves));
        struct fl_err err = {0};
        size_t used = 0;

        ck_assert_ptr_nonnull(moves);
        ck_assert_int_eq(moves_decode(data + at, len - at, n, moves, &used, &err), FL_OK);
        ck_assert_int_eq(moves_encode(moves, n, out), FL_OK);
        at += used;
        free(moves);
    }
    return at;
}

static void vector_encode(const struct vector *v, struct fl_buf *out)
{
    size_t at = 0;
    size_t l;

    for (l = 0; l < fl_layout_units(v->layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(v->layout, l);

        at += unit_encode(v->data + at, v->len - at, unit->n_trainable, out);
        ck_assert_int_eq(fl_buf_add(out, v->data + at, 4 * unit->n_buffers), FL_OK);
        at += 4 * unit->n_buffers;
    }
}

TEST(the_server_codes_moves_as_the_vectors_that_are_the_shortest)
{
    json_t *rows = vectors_of("lattice", "good");
    size_t n = 0;
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        struct vector v = vector_of(row);
        struct fl_buf coded;
        bool same;

        fl_buf_init(&coded, 1u << 20);
        vector_encode(&v, &coded);
        same = coded.len == v.len && memcmp(coded.data, v.data, v.len) == 0;
        ck_assert_msg(same == json_is_true(json_object_get(row, "shortest")), "%s", v.name);
        n += same;
        fl_buf_done(&coded);
        vector_done(&v);
    }
    ck_assert_uint_ge(n, 12);
    json_decref(rows);
}

/* What the messages of the decoder have of the reasons in the file. */
static const struct {
    const char *reason, *text;
} reasons[] = {{"the step is out of range", "the step is out of range"},
               {"a count or a Rice parameter is out of range", "a count or a Rice parameter is"},
               {"a position is out of range", "a position is past the last entry"},
               {"a move is out of range", "a move is too long"},
               {"a bit after the last move is not 0", "a bit after the last move is not 0"},
               {"the step or the count of hashed numbers is out of range",
                "the step or the count of hashed numbers is out of range"},
               {"more than 1024 lists of hashed numbers", "more than 1024 lists of hashed numbers"},
               {"bytes are missing", "bytes are missing"},
               {"bytes are left over", "bytes are left over"},
               {"an entry leaves the range", "an entry becomes"}};

static const char *message_of(const char *reason)
{
    size_t i;

    for (i = 0; i < ARRAY_LEN(reasons); i++) {
        if (strcmp(reasons[i].reason, reason) == 0) {
            return reasons[i].text;
        }
    }
    ck_abort_msg("a reason without a message: '%s'", reason);
    return NULL;
}

TEST_EACH(each_refused_one_is_refused_for_its_reason, 2)
{
    json_t *rows = vectors_of(files[_i], "refused");
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        struct vector v = vector_of(row);
        struct fl_err err = {0};
        int rv = fl_difference_apply(v.layout, v.data, v.len, v.model, &err);

        ck_assert_msg(rv == FL_EFORMAT, "%s: %d", v.name, rv);
        ck_assert_msg(strstr(err.msg, message_of(text_of(row, "reason"))) != NULL, "%s: '%s'",
                      v.name, err.msg);
        vector_done(&v);
    }
    json_decref(rows);
}

TEST_EACH(no_shorter_difference_is_taken_and_none_with_a_byte_more, 2)
{
    json_t *rows = vectors_of(files[_i], "good");
    size_t i;
    size_t n;

    for (i = 0; i < json_array_size(rows); i++) {
        struct vector v = vector_of(json_array_get(rows, i));

        for (n = 0; n <= v.len + 1; n++) {
            /* Of its own memory: a read past its end is one. */
            uint8_t *data = calloc(1, n + (n == 0));
            float *model = malloc(fl_layout_count(v.layout) * sizeof(*model));
            struct fl_err err = {0};

            ck_assert(data != NULL && model != NULL);
            (void)memcpy(data, v.data, n < v.len ? n : v.len);
            (void)memcpy(model, v.model, fl_layout_count(v.layout) * sizeof(*model));
            ck_assert_msg((fl_difference_apply(v.layout, data, n, model, &err) == FL_OK) ==
                              (n == v.len),
                          "%s: %zu of %zu bytes", v.name, n, v.len);
            free(data);
            free(model);
        }
        vector_done(&v);
    }
    json_decref(rows);
}
