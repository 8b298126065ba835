/* Metrics of a classifier (class_metrics.h). Pure functions. */
#include "libfl/nn/class_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"

const char *const fl_class_metric_names[FL_CLASS_METRIC_N] = {
    [FL_CLASS_METRIC_MACRO_F1] = "macro_f1",
    [FL_CLASS_METRIC_CLASS_ACCURACY] = "class_accuracy",
    [FL_CLASS_METRIC_WORST_CLASS] = "worst_class",
    [FL_CLASS_METRIC_AUC] = "auc"};

/* Of one class. */
struct class_count {
    size_t right, labels, predicted;
};

struct class_score {
    float score;
    bool positive;
};

struct fl_class_metrics {
    unsigned which;
    size_t classes;
    struct class_count *counts; /* [classes] */
    struct class_score *scores; /* [cap], for the AUC; else NULL */
    size_t n_scores, cap;
};

static bool class_wants(unsigned which, enum fl_class_metric metric)
{
    return (which & 1u << metric) != 0;
}

int fl_class_metrics_parse(const char *const *names, size_t n, unsigned *ret, struct fl_err *err)
{
    unsigned which = 0;
    size_t i;
    size_t k;

    for (i = 0; i < n; i++) {
        for (k = 0; k < FL_CLASS_METRIC_N && strcmp(names[i], fl_class_metric_names[k]) != 0; k++) {
        }
        if (k == FL_CLASS_METRIC_N) {
            return fl_err_set(err, FL_ECONF,
                              "unknown metric '%.100s'; expected macro_f1, class_accuracy, "
                              "worst_class or auc",
                              names[i]);
        }
        if (class_wants(which, (enum fl_class_metric)k)) {
            return fl_err_set(err, FL_ECONF, "metric '%s' is listed twice", names[i]);
        }
        which |= 1u << k;
    }
    *ret = which;
    return FL_OK;
}

/* One number for each metric, and one for each class. */
int fl_class_metrics_check(unsigned which, size_t classes, struct fl_err *err)
{
    size_t most = FL_EVAL_METRICS_MAX - (FL_CLASS_METRIC_N - 1);

    if (class_wants(which, FL_CLASS_METRIC_CLASS_ACCURACY) && classes > most) {
        return fl_err_set(err, FL_ECONF,
                          "metric 'class_accuracy' has a number for each class, for at most %zu "
                          "classes, and the model has %zu; use 'worst_class' or 'macro_f1'",
                          most, classes);
    }
    if (class_wants(which, FL_CLASS_METRIC_AUC) && classes != 2) {
        return fl_err_set(err, FL_ECONF,
                          "metric 'auc' needs a model of 2 classes, and this one has %zu; use "
                          "'macro_f1'",
                          classes);
    }
    return FL_OK;
}

int fl_class_metrics_create(unsigned which, size_t classes, size_t samples,
                            struct fl_class_metrics **ret, struct fl_err *err)
{
    struct fl_class_metrics *m;
    int rv = fl_class_metrics_check(which, classes, err);

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
    if (class_wants(which, FL_CLASS_METRIC_AUC)) {
        m->scores = calloc(samples + 1, sizeof(*m->scores));
        m->cap = samples;
    }
    if (m->counts == NULL || (m->scores == NULL && class_wants(which, FL_CLASS_METRIC_AUC))) {
        fl_class_metrics_free(m);
        return fl_err_set(err, FL_ENOMEM, "metrics: out of memory for %zu samples", samples);
    }
    *ret = m;
    return FL_OK;
}

void fl_class_metrics_free(struct fl_class_metrics *m)
{
    if (m == NULL) {
        return;
    }
    free(m->counts);
    free(m->scores);
    free(m);
}

void fl_class_metrics_clear(struct fl_class_metrics *m)
{
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

void fl_class_metrics_add(struct fl_class_metrics *m, const float *logits, size_t ld,
                          const int32_t *y, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        const float *row = logits + i * ld;
        size_t predicted = class_of(row, m->classes);
        size_t label = (size_t)y[i];

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

static void class_put(char text[FL_EVAL_METRICS_TEXT], const char *name, double value)
{
    struct fl_eval_metric metric = {.value = value};

    FL_REQUIRE(fl_str_copy(metric.name, sizeof(metric.name), name) == FL_OK);
    FL_REQUIRE(fl_eval_metrics_add(text, &metric));
}

static void class_put_f1(const struct fl_class_metrics *m, char text[FL_EVAL_METRICS_TEXT])
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
        class_put(text, fl_class_metric_names[FL_CLASS_METRIC_MACRO_F1], sum / (double)n);
    }
}

static void class_put_accuracies(const struct fl_class_metrics *m, char text[FL_EVAL_METRICS_TEXT])
{
    double worst = 2.0;
    char name[FL_EVAL_METRIC_NAME + 32]; /* Any class number fits. */
    size_t k;

    for (k = 0; k < m->classes; k++) {
        const struct class_count *c = &m->counts[k];
        double accuracy = c->labels > 0 ? (double)c->right / (double)c->labels : 2.0;

        worst = accuracy < worst ? accuracy : worst;
        if (class_wants(m->which, FL_CLASS_METRIC_CLASS_ACCURACY) && c->labels > 0) {
            (void)snprintf(name, sizeof(name), "%s/%zu",
                           fl_class_metric_names[FL_CLASS_METRIC_CLASS_ACCURACY], k);
            class_put(text, name, accuracy);
        }
    }
    if (class_wants(m->which, FL_CLASS_METRIC_WORST_CLASS) && worst <= 1.0) {
        class_put(text, fl_class_metric_names[FL_CLASS_METRIC_WORST_CLASS], worst);
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
static void class_put_auc(struct fl_class_metrics *m, char text[FL_EVAL_METRICS_TEXT])
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
        class_put(text, fl_class_metric_names[FL_CLASS_METRIC_AUC],
                  (rank_sum - positives * (positives + 1.0) / 2.0) / (positives * negatives));
    }
}

void fl_class_metrics_put(struct fl_class_metrics *m, char text[FL_EVAL_METRICS_TEXT])
{
    text[0] = '\0';
    if (class_wants(m->which, FL_CLASS_METRIC_MACRO_F1)) {
        class_put_f1(m, text);
    }
    class_put_accuracies(m, text);
    if (m->scores != NULL) {
        class_put_auc(m, text);
    }
}
