/* Objects of figures: every row has its key, and what is not known is null. */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/figures/client_figures.h"
#include "libfl/figures/round_figures.h"
#include "libfl/json/json.h"
#include "tests/lib/suites.h"

/* Each key of "key=value key=value" has that value in `object`, which is taken. */
static void expect(json_t *object, const char *pairs)
{
    char text[512];
    char *rest = text;
    char *pair;

    (void)snprintf(text, sizeof(text), "%s", pairs);
    while ((pair = strtok_r(rest, " ", &rest)) != NULL) {
        char *want = strchr(pair, '=');
        char *got;

        *want++ = '\0';
        got = json_dumps(json_object_get(object, pair), JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
        ck_assert_msg(got != NULL && strcmp(got, want) == 0, "%s is %s, not %s", pair,
                      got != NULL ? got : "not there", want);
        free(got);
    }
    json_decref(object);
}

static json_t *round_json(const struct fl_round_rec *r, bool totals)
{
    json_t *o = json_object();

    fl_json_figures(o, &fl_round_rows, r, totals);
    return o;
}

TEST(what_is_not_known_is_null)
{
    struct fl_round_rec r;

    fl_figures_init(&fl_round_rows, &r);
    r.train_loss = (double)INFINITY; /* JSON has no number for it. */
    expect(round_json(&r, false),
           "round=0 attempt=0 selected=0 responders=0 accuracy=null loss=null train_loss=null "
           "uplink_bytes=0 started_ms=0 personal_accuracy=null personal_mean=null "
           "personal_clients=0 received_accuracy=null effective_clients=null self_weight=null");
}

TEST_EACH(every_figure_has_its_key, 2)
{
    const struct fl_figures *tables[] = {&fl_round_rows, &fl_client_rows};
    const union {
        struct fl_round_rec round;
        struct fl_client_figures client;
    } record = {.round = {.round = 1}};
    json_t *o = json_object();
    size_t i;

    fl_json_figures(o, tables[_i], &record, false);
    ck_assert_uint_eq(json_object_size(o), tables[_i]->n);
    for (i = 0; i < tables[_i]->n; i++) {
        ck_assert_ptr_nonnull(json_object_get(o, fl_figure_key(&tables[_i]->rows[i])));
    }
    json_decref(o);
}

TEST(totals_are_those_that_are_told)
{
    const struct fl_round_rec r = {.round = 9,
                                   .accuracy = 0.5,
                                   .loss = (double)NAN,
                                   .uplink_bytes = UINT64_C(1) << 40,
                                   .personal_accuracy = -1.0,
                                   .effective = 2.5};
    json_t *o = round_json(&r, true);

    ck_assert_ptr_null(json_object_get(o, "round"));
    ck_assert_ptr_null(json_object_get(o, "selected"));
    ck_assert_ptr_null(json_object_get(o, "started_ms"));
    expect(o, "accuracy=0.5 loss=null uplink_bytes=1099511627776 personal_accuracy=null "
              "received_accuracy=0.0 effective_clients=2.5 self_weight=0.0");
}

TEST(the_figures_of_a_client_are_whole_and_real_numbers)
{
    const struct fl_client_figures c = {.samples = 7, .score = 0.25, .last_loss = (double)NAN};
    json_t *o = json_object();

    fl_json_figures(o, &fl_client_rows, &c, false);
    expect(o, "samples=7 score=0.25 selected=0 accepted=0 rejected=0 lost=0 last_loss=null "
              "last_seen_ms=0");
}

/* Decimals that are short, long, at the ends of the range, and none. */
TEST(a_number_is_read_back_as_it_was)
{
    static const double values[] = {0.1,       1.0,       -0.0,        1.0 / 3.0,
                                    2.0 / 3.0, 1e22,      5e-324,      1e300,
                                    -2.5e-7,   0.1 + 0.2, 123456789.0, 1.7976931348623157e308};
    char text[FL_JSON_EXACT];
    struct fl_buf out;
    json_t *back;
    double got;
    size_t i;

    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        fl_buf_init(&out, 1000);
        json_t *array = json_pack("[f]", values[i]);

        ck_assert_int_eq(fl_json_add(&out, array), FL_OK);
        json_decref(array);
        back = json_loadb((const char *)out.data, out.len, 0, NULL);
        got = json_real_value(json_array_get(back, 0));
        ck_assert_int_eq(memcmp(&got, &values[i], sizeof(got)), 0);
        json_decref(back);
        fl_buf_done(&out);
    }
    ck_assert_str_eq(fl_json_exact(0.1, text), "0.1");
    ck_assert_str_eq(fl_json_exact(1.0, text), "1.0");
    ck_assert_str_eq(fl_json_exact(0.1 + 0.2, text), "0.30000000000000004");
    ck_assert_str_eq(fl_json_exact((double)NAN, text), "null");
}

TEST(a_page_has_its_members_in_order)
{
    json_t *page = json_pack("{s:[i,b,n], s:{}, s:s}", "b", 7, 1, "a", "c", "\"\n\xc3\xa9");
    struct fl_buf out;

    fl_buf_init(&out, 1000);
    ck_assert_int_eq(fl_json_add(&out, page), FL_OK);
    ck_assert_int_eq(fl_buf_add(&out, "", 1), FL_OK);
    ck_assert_str_eq((const char *)out.data,
                     "{\n  \"b\": [\n    7,\n    true,\n    null\n  ],\n  \"a\": {},\n"
                     "  \"c\": \"\\\"\\n\\u00E9\"\n}\n");
    json_decref(page);
    fl_buf_done(&out);
}

TEST(figures_are_read_back_where_they_are_known)
{
    struct fl_round_rec r = {.round = 3,
                             .accuracy = -1.0,
                             .train_loss = (double)NAN,
                             .uplink_bytes = UINT64_C(1) << 60,
                             .personal_accuracy = 1.0 / 3.0};
    struct fl_round_rec back;
    json_t *o = round_json(&r, false);

    (void)json_object_set_new(o, "selected", json_string("many"));
    (void)json_object_set_new(o, "responders", json_integer(-1));
    fl_figures_init(&fl_round_rows, &back);
    fl_json_read_figures(o, &fl_round_rows, &back);
    json_decref(o);
    ck_assert_uint_eq(back.round, 3);
    ck_assert_uint_eq(back.uplink_bytes, UINT64_C(1) << 60);
    ck_assert_double_eq(back.accuracy, -1.0);
    ck_assert_double_eq(back.personal_accuracy, 1.0 / 3.0);
    ck_assert(isnan(back.train_loss));
    ck_assert_uint_eq(back.n_selected, 0);
    ck_assert_uint_eq(back.n_responders, 0);
}
