/* Metrics of predictions against plain definitions: one-against-rest counts, all pairs, and sums.
 */

#include <check.h>
#include <math.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/nn/net_metrics.h"
#include "tests/lib/suites.h"

#define N  97
#define LD 5

struct drawn {
    float logits[N][LD];
    int32_t y[N];
};

/* Logits on a coarse grid, so that there are ties. */
static void draw(struct drawn *d, size_t classes, uint64_t seed)
{
    struct fl_rng rng;
    size_t i;
    size_t k;

    fl_rng_key(&rng, seed, FL_RNG_TEST, 0, 0);
    for (i = 0; i < N; i++) {
        d->y[i] = (int32_t)(fl_rng_unit(&rng) * (double)classes);
        for (k = 0; k < LD; k++) {
            d->logits[i][k] = (float)(int)(fl_rng_unit(&rng) * 6.0);
        }
    }
}

/* The text of the metrics of all samples, added in two pieces. */
static void put(unsigned which, const struct drawn *d, size_t classes,
                char text[FL_EVAL_METRICS_TEXT])
{
    struct fl_net_metrics *m = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_net_metrics_create(which, FL_NET_OUTPUT_CLASS, classes, N, &m, &err) == FL_OK,
                  "%s", err.msg);
    fl_net_metrics_add(m, d->logits[0], LD, d->y, 40);
    fl_net_metrics_add(m, d->logits[40], LD, d->y + 40, N - 40);
    fl_net_metrics_put(m, text);
    fl_net_metrics_free(m);
}

static double value_of(const char *text, const char *name)
{
    double value = -1.0;

    ck_assert_msg(fl_eval_metrics_find(text, name, &value), "%s is not in '%s'", name, text);
    return value;
}

static size_t predicted(const struct drawn *d, size_t i, size_t classes)
{
    size_t best = 0;
    size_t k;

    for (k = 0; k < classes; k++) {
        if (d->logits[i][k] > d->logits[i][best]) {
            best = k;
        }
    }
    return best;
}

TEST_EACH(macro_f1_is_the_mean_of_precision_and_recall_of_each_class, 8)
{
    char text[FL_EVAL_METRICS_TEXT];
    struct drawn d;
    double sum = 0.0;
    size_t k;
    size_t i;

    draw(&d, 4, (uint64_t)_i);
    put(1u << FL_NET_METRIC_MACRO_F1, &d, 4, text);
    for (k = 0; k < 4; k++) {
        double tp = 0.0;
        double fp = 0.0;
        double fn = 0.0;

        for (i = 0; i < N; i++) {
            bool said = predicted(&d, i, 4) == k;
            bool is = d.y[i] == (int32_t)k;

            tp += said && is;
            fp += said && !is;
            fn += !said && is;
        }
        if (tp > 0.0) {
            double precision = tp / (tp + fp);
            double recall = tp / (tp + fn);

            sum += 2.0 * precision * recall / (precision + recall);
        }
    }
    ck_assert_double_eq_tol(value_of(text, "macro_f1"), sum / 4.0, 1e-11);
}

TEST_EACH(auc_is_the_share_of_pairs_in_the_right_order, 8)
{
    char text[FL_EVAL_METRICS_TEXT];
    struct drawn d;
    double right = 0.0;
    double pairs = 0.0;
    size_t i;
    size_t j;

    draw(&d, 2, (uint64_t)_i);
    put(1u << FL_NET_METRIC_AUC, &d, 2, text);
    for (i = 0; i < N; i++) {
        for (j = 0; j < N; j++) {
            float x = d.logits[i][1] - d.logits[i][0];
            float z = d.logits[j][1] - d.logits[j][0];

            if (d.y[i] == 1 && d.y[j] == 0) {
                pairs += 1.0;
                right += x > z ? 1.0 : x < z ? 0.0 : 0.5;
            }
        }
    }
    ck_assert_double_eq_tol(value_of(text, "auc"), right / pairs, 1e-11);
}

TEST(a_class_without_samples_has_no_accuracy_and_is_not_the_worst)
{
    static const struct drawn d = {.logits = {{1, 0, 0}, {0, 0, 3}, {0, 1, 0}, {2, 1, 0}},
                                   .y = {0, 2, 2, 2}};
    const unsigned which = 1u << FL_NET_METRIC_CLASS_ACCURACY | 1u << FL_NET_METRIC_WORST_CLASS |
                           1u << FL_NET_METRIC_MACRO_F1;
    char text[FL_EVAL_METRICS_TEXT];
    struct fl_net_metrics *m = NULL;

    ck_assert_int_eq(fl_net_metrics_create(which, FL_NET_OUTPUT_CLASS, 3, 4, &m, NULL), FL_OK);
    fl_net_metrics_add(m, d.logits[0], LD, d.y, 4);
    fl_net_metrics_put(m, text);
    /* F1: 2/3 of class 0; 0 of class 1, which is only predicted; 1/2 of class 2. */
    ck_assert_str_eq(text, "macro_f1=0.388888888889 class_accuracy/0=1 "
                           "class_accuracy/2=0.333333333333 worst_class=0.333333333333");
    fl_net_metrics_clear(m, NULL);
    fl_net_metrics_put(m, text);
    ck_assert_str_eq(text, "");
    fl_net_metrics_free(m);
}

TEST(an_auc_of_one_class_is_not_known)
{
    static const struct drawn d = {.logits = {{1, 0}, {0, 1}}, .y = {1, 1}};
    char text[FL_EVAL_METRICS_TEXT];
    struct fl_net_metrics *m = NULL;

    ck_assert_int_eq(
        fl_net_metrics_create(1u << FL_NET_METRIC_AUC, FL_NET_OUTPUT_CLASS, 2, 2, &m, NULL), FL_OK);
    fl_net_metrics_add(m, d.logits[0], LD, d.y, 2);
    fl_net_metrics_put(m, text);
    ck_assert_str_eq(text, "");
    fl_net_metrics_free(m);
}

TEST(a_list_of_metrics_is_checked_with_the_classes_of_the_model)
{
    const char *const all[] = {"auc", "macro_f1", "worst_class", "class_accuracy"};
    const char *const wrong[] = {"f1"};
    const char *const twice[] = {"auc", "auc"};
    struct fl_err err = {0};
    unsigned which = 0;

    ck_assert_int_eq(fl_net_metrics_parse(all, 4, &which, &err), FL_OK);
    ck_assert_uint_eq(which, (1u << FL_NET_METRIC_MAE) - 1);
    ck_assert_int_eq(fl_net_metrics_check(which, FL_NET_OUTPUT_CLASS, 2, &err), FL_OK);
    ck_assert_int_eq(fl_net_metrics_check(which, FL_NET_OUTPUT_CLASS, 3, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "'auc' needs a model of 2 classes"));
    which = 1u << FL_NET_METRIC_CLASS_ACCURACY;
    ck_assert_int_eq(fl_net_metrics_check(which, FL_NET_OUTPUT_CLASS, 29, &err), FL_OK);
    ck_assert_int_eq(fl_net_metrics_check(which, FL_NET_OUTPUT_CLASS, 30, &err), FL_ECONF);
    ck_assert_int_eq(fl_net_metrics_parse(wrong, 1, &which, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "unknown metric 'f1'; expected macro_f1"));
    ck_assert_int_eq(fl_net_metrics_parse(twice, 2, &which, &err), FL_ECONF);
}

/* --- values --- */

TEST_EACH(mae_and_mse_are_means_over_samples_and_values, 3)
{
    const size_t values = (size_t)_i + 1;
    const unsigned both = 1u << FL_NET_METRIC_MAE | 1u << FL_NET_METRIC_MSE;
    char text[FL_EVAL_METRICS_TEXT];
    struct fl_net_metrics *m = NULL;
    struct drawn d, targets;
    float table[N * LD];
    double absolute = 0;
    double squares = 0;
    size_t i;
    size_t k;

    draw(&d, 2, 5);
    draw(&targets, 2, 6);
    for (i = 0; i < N; i++) {
        d.y[i] = (int32_t)((i * 7) % N); /* the row of its targets */
        for (k = 0; k < values; k++) {
            table[i * values + k] = targets.logits[i][k] * 1.5f;
        }
    }
    for (i = 0; i < N; i++) {
        for (k = 0; k < values; k++) {
            double e = (double)d.logits[i][k] - (double)targets.logits[d.y[i]][k] * 1.5;

            absolute += fabs(e);
            squares += e * e;
        }
    }
    ck_assert_int_eq(fl_net_metrics_create(both, FL_NET_OUTPUT_VALUES, values, N, &m, NULL), FL_OK);
    fl_net_metrics_clear(m, table);
    fl_net_metrics_add(m, d.logits[0], LD, d.y, 40);
    fl_net_metrics_add(m, d.logits[40], LD, d.y + 40, N - 40);
    fl_net_metrics_put(m, text);
    ck_assert_double_eq_tol(value_of(text, "mae"), absolute / (double)(N * values), 1e-9);
    ck_assert_double_eq_tol(value_of(text, "mse"), squares / (double)(N * values), 1e-9);
    d.logits[3][0] = (float)INFINITY;
    fl_net_metrics_clear(m, table);
    fl_net_metrics_add(m, d.logits[0], LD, d.y, N);
    fl_net_metrics_put(m, text);
    ck_assert_str_eq(text, "");
    fl_net_metrics_free(m);
}

TEST(metrics_of_classes_and_of_values_are_for_such_networks)
{
    static const char *const mse[] = {"dense 2", "mse"};
    static const char *const bce[] = {"dense 2", "bce"};
    const unsigned mae = 1u << FL_NET_METRIC_MAE;
    const unsigned f1 = 1u << FL_NET_METRIC_MACRO_F1;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_net_output_of(mse, 2), FL_NET_OUTPUT_VALUES);
    ck_assert_int_eq(fl_net_output_of(bce, 2), FL_NET_OUTPUT_LABELS);
    ck_assert_int_eq(fl_net_output_of(mse, 1), FL_NET_OUTPUT_CLASS);
    ck_assert_int_eq(fl_net_metrics_check(mae, FL_NET_OUTPUT_VALUES, 2, &err), FL_OK);
    ck_assert_int_eq(fl_net_metrics_check(f1, FL_NET_OUTPUT_CLASS, 2, &err), FL_OK);
    ck_assert_int_eq(fl_net_metrics_check(mae | f1, FL_NET_OUTPUT_VALUES, 2, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "expected mae or mse"));
    ck_assert_int_eq(fl_net_metrics_check(mae, FL_NET_OUTPUT_CLASS, 2, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "loss: mse or mae"));
    ck_assert_int_eq(fl_net_metrics_check(f1, FL_NET_OUTPUT_LABELS, 2, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "loss: bce"));
}
