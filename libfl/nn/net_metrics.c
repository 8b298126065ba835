/* Metrics of a network's predictions (net_metrics.h). Pure functions. */
#include "libfl/nn/net_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"

const char *const fl_net_metric_names[FL_NET_METRIC_N] = {
    [FL_NET_METRIC_MACRO_F1] = "macro_f1",
    [FL_NET_METRIC_CLASS_ACCURACY] = "class_accuracy",
    [FL_NET_METRIC_WORST_CLASS] = "worst_class",
    [FL_NET_METRIC_AUC] = "auc",
    [FL_NET_METRIC_MAE] = "mae",
    [FL_NET_METRIC_MSE] = "mse"};

#define METRICS_OF_VALUES (1u << FL_NET_METRIC_MAE | 1u << FL_NET_METRIC_MSE)

/* Of one class. */
struct class_count {
    size_t right, labels, predicted;
};

struct class_score {
    float score;
    bool positive;
};

struct fl_net_metrics {
    unsigned which;
    size_t classes; /* or values */
    const float *targets;
    double absolute, squares; /* sums over samples and values */
    size_t n_values;
    struct class_count *counts; /* [classes] */
    struct class_score *scores; /* [cap], for the AUC; else NULL */
    size_t n_scores, cap;
};

static bool metrics_want(unsigned which, enum fl_net_metric metric)
{
    return (which & 1u << metric) != 0;
}

int fl_net_metrics_parse(const char *const *names, size_t n, unsigned *ret, struct fl_err *err)
{
    unsigned which = 0;
    size_t i;
    size_t k;

    for (i = 0; i < n; i++) {
        for (k = 0; k < FL_NET_METRIC_N && strcmp(names[i], fl_net_metric_names[k]) != 0; k++) {
        }
        if (k == FL_NET_METRIC_N) {
            return fl_err_set(err, FL_ECONF,
                              "unknown metric '%.100s'; expected macro_f1, class_accuracy, "
                              "worst_class or auc, of values mae or mse",
                              names[i]);
        }
        if (metrics_want(which, (enum fl_net_metric)k)) {
            return fl_err_set(err, FL_ECONF, "metric '%s' is listed twice", names[i]);
        }
        which |= 1u << k;
    }
    *ret = which;
    return FL_OK;
}

enum fl_net_output fl_net_output_of(const char *const *layers, size_t n_layers)
{
    const char *last = n_layers > 0 ? layers[n_layers - 1] : "";

    if (strcmp(last, "mse") == 0 || strcmp(last, "mae") == 0) {
        return FL_NET_OUTPUT_VALUES;
    }
    return strcmp(last, "bce") == 0 ? FL_NET_OUTPUT_LABELS : FL_NET_OUTPUT_CLASS;
}

/* Metrics of classes for classes, of values for values. */
static int metrics_fit_output(unsigned which, enum fl_net_output output, struct fl_err *err)
{
    bool values = (which & METRICS_OF_VALUES) != 0;
    bool classes = (which & ~METRICS_OF_VALUES) != 0;

    if (output == FL_NET_OUTPUT_LABELS && which != 0) {
        return fl_err_set(err, FL_ECONF,
                          "the network predicts several labels of a sample (loss: bce), and these "
                          "metrics are of one class or of values: expected none");
    }
    if (output == FL_NET_OUTPUT_VALUES && classes) {
        return fl_err_set(err, FL_ECONF,
                          "the network predicts values: expected mae or mse, the other metrics are "
                          "of classes");
    }
    if (output == FL_NET_OUTPUT_CLASS && values) {
        return fl_err_set(err, FL_ECONF,
                          "the network predicts classes: expected macro_f1, class_accuracy, "
                          "worst_class or auc; mae and mse are of values (loss: mse or mae)");
    }
    return FL_OK;
}

/* One number for each metric, and one for each class. */
int fl_net_metrics_check(unsigned which, enum fl_net_output output, size_t classes,
                         struct fl_err *err)
{
    size_t most = FL_EVAL_METRICS_MAX - FL_NET_METRIC_AUC;
    int rv = metrics_fit_output(which, output, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (metrics_want(which, FL_NET_METRIC_CLASS_ACCURACY) && classes > most) {
        return fl_err_set(err, FL_ECONF,
                          "metric 'class_accuracy' has a number for each class, for at most %zu "
                          "classes, and the model has %zu; use 'worst_class' or 'macro_f1'",
                          most, classes);
    }
    if (metrics_want(which, FL_NET_METRIC_AUC) && classes != 2) {
        return fl_err_set(err, FL_ECONF,
                          "metric 'auc' needs a model of 2 classes, and this one has %zu; use "
                          "'macro_f1'",
                          classes);
    }
    return FL_OK;
}

int fl_net_metrics_create(unsigned which, enum fl_net_output output, size_t classes, size_t samples,
                          struct fl_net_metrics **ret, struct fl_err *err)
{
    struct fl_net_metrics *m;
    int rv = fl_net_metrics_check(which, output, classes, err);

    if (rv != FL_OK) {
        return rv;
    }
    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return fl_err_set(err, FL_ENOMEM, "metrics: out of memory");
    }
    m->which = which;
    m->classes = classes;
    m->counts = calloc(classes + 1, sizeof(*m->counts));
    if (metrics_want(which, FL_NET_METRIC_AUC)) {
        m->scores = calloc(samples + 1, sizeof(*m->scores));
        m->cap = samples;
    }
    if (m->counts == NULL || (m->scores == NULL && metrics_want(which, FL_NET_METRIC_AUC))) {
        fl_net_metrics_free(m);
        return fl_err_set(err, FL_ENOMEM, "metrics: out of memory for %zu samples", samples);
    }
    *ret = m;
    return FL_OK;
}

void fl_net_metrics_free(struct fl_net_metrics *m)
{
    if (m == NULL) {
        return;
    }
    free(m->counts);
    free(m->scores);
    free(m);
}

void fl_net_metrics_clear(struct fl_net_metrics *m, const float *targets)
{
    m->targets = targets;
    m->absolute = m->squares = 0.0;
    m->n_values = 0;
    (void)memset(m->counts, 0, m->classes * sizeof(*m->counts));
    m->n_scores = 0;
}

static size_t class_of(const float *logits, size_t classes)
{
    size_t best = 0;
    size_t k;

    for (k = 1; k < classes; k++) {
        best = logits[k] > logits[best] ? k : best;
    }
    return best;
}

static void metrics_add_values(struct fl_net_metrics *m, const float *z, const float *t)
{
    size_t k;

    for (k = 0; k < m->classes; k++) {
        double d = (double)z[k] - (double)t[k];

        m->absolute += d < 0.0 ? -d : d;
        m->squares += d * d;
    }
    m->n_values += m->classes;
}

void fl_net_metrics_add(struct fl_net_metrics *m, const float *logits, size_t ld, const int32_t *y,
                        size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const float *row = logits + i * ld;
        size_t label = (size_t)y[i];
        size_t predicted;

        if ((m->which & METRICS_OF_VALUES) != 0) {
            metrics_add_values(m, row, m->targets + label * m->classes);
            continue;
        }
        predicted = class_of(row, m->classes);
        FL_REQUIRE(y[i] >= 0 && label < m->classes);
        m->counts[label].labels++;
        m->counts[predicted].predicted++;
        m->counts[label].right += predicted == label;
        if (m->scores != NULL) {
            FL_REQUIRE(m->n_scores < m->cap);
            m->scores[m->n_scores++] = (struct class_score){row[1] - row[0], label == 1};
        }
    }
}

/* --- the metrics --- */

/* Numbers of a model that diverged are left out. */
static void metrics_put(char text[FL_EVAL_METRICS_TEXT], const char *name, double value)
{
    struct fl_eval_metric metric = {.value = value};

    if (!isfinite(value)) {
        return;
    }
    FL_REQUIRE(fl_str_copy(metric.name, sizeof(metric.name), name) == FL_OK);
    FL_REQUIRE(fl_eval_metrics_add(text, &metric));
}

static void class_put_f1(const struct fl_net_metrics *m, char text[FL_EVAL_METRICS_TEXT])
{
    double sum = 0.0;
    size_t n = 0;
    size_t k;

    for (k = 0; k < m->classes; k++) {
        const struct class_count *c = &m->counts[k];
        size_t both = c->labels + c->predicted; /* 2 TP + FP + FN */

        if (both > 0) {
            sum += 2.0 * (double)c->right / (double)both;
            n++;
        }
    }
    if (n > 0) {
        metrics_put(text, fl_net_metric_names[FL_NET_METRIC_MACRO_F1], sum / (double)n);
    }
}

static void class_put_accuracies(const struct fl_net_metrics *m, char text[FL_EVAL_METRICS_TEXT])
{
    double worst = 2.0;
    char name[FL_EVAL_METRIC_NAME + 32]; /* Any class number fits. */
    size_t k;

    for (k = 0; k < m->classes; k++) {
        const struct class_count *c = &m->counts[k];
        double accuracy = c->labels > 0 ? (double)c->right / (double)c->labels : 2.0;

        worst = accuracy < worst ? accuracy : worst;
        if (metrics_want(m->which, FL_NET_METRIC_CLASS_ACCURACY) && c->labels > 0) {
            (void)snprintf(name, sizeof(name), "%s/%zu",
                           fl_net_metric_names[FL_NET_METRIC_CLASS_ACCURACY], k);
            metrics_put(text, name, accuracy);
        }
    }
    if (metrics_want(m->which, FL_NET_METRIC_WORST_CLASS) && worst <= 1.0) {
        metrics_put(text, fl_net_metric_names[FL_NET_METRIC_WORST_CLASS], worst);
    }
}

/* NaN, of a model that diverged, is below all numbers: an order is needed. */
static int class_by_score(const void *a, const void *b)
{
    float x = ((const struct class_score *)a)->score;
    float y = ((const struct class_score *)b)->score;
    int nan_x = x != x;
    int nan_y = y != y;

    return nan_x || nan_y ? nan_y - nan_x : (x > y) - (x < y);
}

/* By the rank sum of Mann and Whitney: equal scores share their mean rank. */
static void class_put_auc(struct fl_net_metrics *m, char text[FL_EVAL_METRICS_TEXT])
{
    double rank_sum = 0.0;
    double positives = 0.0;
    double negatives;
    size_t i;
    size_t j;

    qsort(m->scores, m->n_scores, sizeof(*m->scores), class_by_score);
    for (i = 0; i < m->n_scores; i = j) {
        size_t here = 0;

        for (j = i; j < m->n_scores && class_by_score(&m->scores[i], &m->scores[j]) == 0; j++) {
            here += m->scores[j].positive;
        }
        rank_sum += (double)here * ((double)(i + 1) + (double)j) / 2.0;
        positives += (double)here;
    }
    negatives = (double)m->n_scores - positives;
    if (positives > 0.0 && negatives > 0.0) {
        metrics_put(text, fl_net_metric_names[FL_NET_METRIC_AUC],
                    (rank_sum - positives * (positives + 1.0) / 2.0) / (positives * negatives));
    }
}

void fl_net_metrics_put(struct fl_net_metrics *m, char text[FL_EVAL_METRICS_TEXT])
{
    text[0] = '\0';
    if (m->n_values > 0 && metrics_want(m->which, FL_NET_METRIC_MAE)) {
        metrics_put(text, fl_net_metric_names[FL_NET_METRIC_MAE],
                    m->absolute / (double)m->n_values);
    }
    if (m->n_values > 0 && metrics_want(m->which, FL_NET_METRIC_MSE)) {
        metrics_put(text, fl_net_metric_names[FL_NET_METRIC_MSE], m->squares / (double)m->n_values);
    }
    if ((m->which & METRICS_OF_VALUES) != 0) {
        return;
    }
    if (metrics_want(m->which, FL_NET_METRIC_MACRO_F1)) {
        class_put_f1(m, text);
    }
    class_put_accuracies(m, text);
    if (m->scores != NULL) {
        class_put_auc(m, text);
    }
}
