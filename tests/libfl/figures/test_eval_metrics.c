/* Metrics as text, what is refused, and their mean and sum over clients. */

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/figures/eval_metrics.h"
#include "tests/lib/suites.h"

TEST(a_metric_is_read_back_as_it_was_added)
{
    char text[FL_EVAL_METRICS_TEXT] = "";
    const char *at = text;
    struct fl_eval_metric m = {.name = "macro_f1", .value = 0.75};
    struct fl_eval_metric sum = {.name = "a/b.c-D", .value = -1e300, .samples = 90, .sum = true};

    ck_assert(fl_eval_metrics_add(text, &m));
    ck_assert(fl_eval_metrics_add(text, &sum));
    ck_assert_str_eq(text, "macro_f1=0.75 a/b.c-D+=-1e+300:90");
    ck_assert(fl_eval_metrics_next(&at, &m));
    ck_assert_str_eq(m.name, "macro_f1");
    ck_assert_double_eq(m.value, 0.75);
    ck_assert(!m.sum);
    ck_assert_uint_eq(m.samples, 0);
    ck_assert(fl_eval_metrics_next(&at, &m));
    ck_assert_str_eq(m.name, "a/b.c-D");
    ck_assert_double_eq(m.value, -1e300);
    ck_assert(m.sum);
    ck_assert_uint_eq(m.samples, 90);
    ck_assert(!fl_eval_metrics_next(&at, &m));
}

TEST(as_many_metrics_as_are_allowed_fit_the_text_with_the_longest_names)
{
    char text[FL_EVAL_METRICS_TEXT] = "";
    char why[FL_EVAL_METRICS_ERROR];
    size_t i;

    for (i = 0; i < FL_EVAL_METRICS_MAX; i++) {
        struct fl_eval_metric m = {.value = -1.23456789012e-300};

        (void)snprintf(m.name, sizeof(m.name), "%031zu", i);
        ck_assert(fl_eval_metrics_add(text, &m));
    }
    ck_assert_ptr_null(fl_eval_metrics_bad(text, 1, why));
    (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " one=1");
    ck_assert_str_eq(fl_eval_metrics_bad(text, 1, why), "more than 32 metrics");
}

static const struct {
    const char *text, *says; /* NULL: nothing is wrong */
} judged[] = {
    {"", NULL},
    {NULL, NULL},
    {"f1=0.5 g+=1:10", NULL},
    {"f1", "metric 1 is not NAME=NUMBER"},
    {"f1=", "is not NAME=NUMBER"},
    {"=1", "is not NAME=NUMBER"},
    {"+=1", "is not NAME=NUMBER"},
    {"a=1 f1=nan", "metric 2 is not NAME=NUMBER or NAME+=NUMBER with a finite number"},
    {"f1=inf", "with a finite number"},
    {"f1=1:0", "is not NAME=NUMBER"},
    {"f1=1:x", "is not NAME=NUMBER"},
    {"a=1  b=2", "metric 2 is not NAME=NUMBER"},
    {"\x1b=1", "metric '?' is no name"},
    {"01234567890123456789012345678901=1", "is not NAME=NUMBER"},
    {"loss=1", "metric 'loss' is the name of a number that every evaluation has"},
    {"accuracy+=1", "metric 'accuracy' is the name"},
    {"received/a=1", "begins with received/ or personal/"},
    {"a=1 b=1 a=2", "metric 'a' is there twice"},
    {"f1=1:11", "metric 'f1' has more samples than the evaluation"},
};

TEST_EACH(bad_metrics_are_named_with_what_was_expected, sizeof(judged) / sizeof(judged[0]))
{
    char out[FL_EVAL_METRICS_ERROR];
    const char *bad = fl_eval_metrics_bad(judged[_i].text, 10, out);

    if (judged[_i].says == NULL) {
        ck_assert_ptr_null(bad);
        return;
    }
    ck_assert_ptr_nonnull(bad);
    ck_assert_msg(strstr(bad, judged[_i].says) != NULL, "'%s': %s", judged[_i].text, bad);
}

/* Adds texts of clients with 10, 20, 30 … samples. */
static void tally(const char *const *texts, size_t n, char out[FL_EVAL_METRICS_TEXT])
{
    struct fl_eval_metrics_tally t = {.n = 0};
    size_t i;

    out[0] = '\0';
    for (i = 0; i < n; i++) {
        ck_assert_int_eq(fl_eval_metrics_tally_add(&t, texts[i], 10 * (i + 1), 1.0), FL_OK);
    }
    ck_assert_uint_eq(fl_eval_metrics_tally_put(&t, "", out), 0);
    fl_eval_metrics_tally_done(&t);
}

TEST(a_mean_is_weighted_by_samples_and_a_sum_adds_up)
{
    const char *const texts[] = {"f1=0.5 errors+=3", NULL, "errors+=4 f1=1 g=2:15"};
    char out[FL_EVAL_METRICS_TEXT];

    tally(texts, 3, out);
    ck_assert_str_eq(out, "errors=7 f1=0.875 g=2");
}

TEST(a_share_of_a_client_counts_as_that_share)
{
    struct fl_eval_metrics_tally t = {.n = 0};
    char out[FL_EVAL_METRICS_TEXT] = "before=1";

    ck_assert_int_eq(fl_eval_metrics_tally_add(&t, "a=1 b+=8", 400, 0.25), FL_OK);
    ck_assert_int_eq(fl_eval_metrics_tally_add(&t, "a=0 b+=1", 100, 1.0), FL_OK);
    ck_assert_uint_eq(fl_eval_metrics_tally_put(&t, FL_EVAL_METRICS_RECEIVED, out), 0);
    ck_assert_str_eq(out, "before=1 received/a=0.5 received/b=3");
    fl_eval_metrics_tally_done(&t);
}

TEST(a_name_is_what_most_clients_send_it_as)
{
    const char *const sums[] = {"a+=1", "a=5", "a+=2"};
    const char *const equal[] = {"a+=1", "a=5"};
    char out[FL_EVAL_METRICS_TEXT];

    tally(sums, 3, out);
    ck_assert_str_eq(out, "a=3");
    tally(equal, 2, out);
    ck_assert_str_eq(out, "a=5");
}

TEST(one_client_cannot_displace_the_names_of_two)
{
    char many[FL_EVAL_METRICS_TEXT] = "";
    const char *const texts[] = {many, "zz=1", "zz=3"};
    char out[FL_EVAL_METRICS_TEXT];
    double value = 0;
    size_t i;

    for (i = 0; i < FL_EVAL_METRICS_MAX; i++) {
        struct fl_eval_metric m = {.value = 1};

        (void)snprintf(m.name, sizeof(m.name), "a%02zu", i);
        ck_assert(fl_eval_metrics_add(many, &m));
    }
    tally(texts, 3, out);
    ck_assert(fl_eval_metrics_find(out, "zz", &value));
    ck_assert_double_eq_tol(value, 2.2, 1e-12);
    ck_assert(fl_eval_metrics_find(out, "a30", &value));
    ck_assert(!fl_eval_metrics_find(out, "a31", &value));
}

TEST(finite_numbers_of_clients_give_finite_ones)
{
    const char *const texts[] = {"a+=1.7e308 b=1.7e308", "a+=1.7e308 b=1.7e308", "b=-1.7e308"};
    char out[FL_EVAL_METRICS_TEXT];
    double value = (double)NAN;

    tally(texts, 3, out);
    ck_assert(fl_eval_metrics_find(out, "a", &value));
    ck_assert_double_eq_tol(value / DBL_MAX, 1.0, 1e-9);
    ck_assert(fl_eval_metrics_find(out, "b", &value));
    ck_assert(isfinite(value));
}

TEST(the_text_of_a_round_takes_whole_metrics_and_says_how_many_are_missing)
{
    char many[FL_EVAL_METRICS_TEXT] = "";
    char out[FL_EVAL_METRICS_TEXT] = "";
    char key[FL_EVAL_METRIC_KEY];
    const char *at = out;
    double value;
    size_t missing = 0;
    size_t n = 0;
    size_t i;

    for (i = 0; i < FL_EVAL_METRICS_MAX; i++) {
        struct fl_eval_metric m = {.value = 1.0 / 3.0};

        (void)snprintf(m.name, sizeof(m.name), "%031zu", i);
        ck_assert(fl_eval_metrics_add(many, &m));
    }
    for (i = 0; i < 2; i++) {
        struct fl_eval_metrics_tally t = {.n = 0};

        ck_assert_int_eq(fl_eval_metrics_tally_add(&t, many, 1, 1.0), FL_OK);
        missing += fl_eval_metrics_tally_put(
            &t, i == 0 ? FL_EVAL_METRICS_RECEIVED : FL_EVAL_METRICS_PERSONAL, out);
        fl_eval_metrics_tally_done(&t);
    }
    while (fl_eval_metrics_next_key(&at, key, &value)) {
        n++;
    }
    ck_assert_uint_eq(n + missing, 2 * FL_EVAL_METRICS_MAX);
    ck_assert_uint_gt(missing, 0);
}
