/* Objects of figures: every row has its key, and what is not known is null. */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/figures/client.h"
#include "libfl/figures/round.h"
#include "libfl/json/json.h"

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

START_TEST(what_is_not_known_is_null)
{
    struct fl_round_rec r;

    fl_figures_init(&fl_round_rows, &r);
    r.train_loss = (double)INFINITY; /* JSON has no number for it. */
    expect(round_json(&r, false),
           "round=0 attempt=0 selected=0 responders=0 accuracy=null loss=null train_loss=null "
           "uplink_bytes=0 started_ms=0 personal_accuracy=null personal_mean=null "
           "personal_clients=0 received_accuracy=null effective_clients=null self_weight=null");
}
END_TEST

START_TEST(every_figure_has_its_key)
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
END_TEST

START_TEST(totals_are_those_that_are_told)
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
END_TEST

START_TEST(the_figures_of_a_client_are_whole_and_real_numbers)
{
    const struct fl_client_figures c = {.samples = 7, .score = 0.25, .last_loss = (double)NAN};
    json_t *o = json_object();

    fl_json_figures(o, &fl_client_rows, &c, false);
    expect(o, "samples=7 score=0.25 selected=0 accepted=0 rejected=0 lost=0 last_loss=null "
              "last_seen_ms=0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, what_is_not_known_is_null);
    tcase_add_test(tc, totals_are_those_that_are_told);
    tcase_add_loop_test(tc, every_figure_has_its_key, 0, 2);
    tcase_add_test(tc, the_figures_of_a_client_are_whole_and_real_numbers);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
