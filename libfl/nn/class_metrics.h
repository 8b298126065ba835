#ifndef FL_NN_CLASS_METRICS_H
#define FL_NN_CLASS_METRICS_H

/*
 * Metrics of a classifier beside loss and accuracy, of the predictions of one evaluation: the class
 * of a sample is its largest logit, of equal ones the first, as in the accuracy.
 *
 *   macro_f1        mean over classes of 2 TP / (2 TP + FP + FN) (Sokolova and Lapalme 2009,
 *                   table 3); classes that are neither in the labels nor predicted are left out
 *   class_accuracy  of each class, as class_accuracy/0 …: TP / (TP + FN); without samples: none
 *   worst_class     the smallest of them
 *   auc             of two classes: the probability that a sample of class 1 has a larger
 *                   z_1 - z_0 than one of class 0, ties count half (Hanley and McNeil 1982);
 *                   none unless both have samples
 *
 * Threading: pure functions on one object; adding does not allocate.
 */

#include "libfl/base/err.h"
#include "libfl/figures/eval_metrics.h"

enum fl_class_metric {
    FL_CLASS_METRIC_MACRO_F1,
    FL_CLASS_METRIC_CLASS_ACCURACY,
    FL_CLASS_METRIC_WORST_CLASS,
    FL_CLASS_METRIC_AUC,
    FL_CLASS_METRIC_N
};
/* "macro_f1" …, by metric. */
extern const char *const fl_class_metric_names[FL_CLASS_METRIC_N];

/* The set of 1u << enum fl_class_metric of a list of names. FL_ECONF: one is unknown, or twice. */
FL_MUST_CHECK int fl_class_metrics_parse(const char *const *names, size_t n, unsigned *ret,
                                         struct fl_err *err);

/* FL_ECONF: with so many classes one of `which` is not possible. */
FL_MUST_CHECK int fl_class_metrics_check(unsigned which, size_t classes, struct fl_err *err);

struct fl_class_metrics;

/* Of at most `samples` samples, which have the classes of fl_class_metrics_check(). FL_ECONF: it
   does not accept them; FL_ENOMEM. */
FL_MUST_CHECK int fl_class_metrics_create(unsigned which, size_t classes, size_t samples,
                                          struct fl_class_metrics **ret, struct fl_err *err);
void fl_class_metrics_free(struct fl_class_metrics *metrics); /* NULL is allowed. */
/* Begin the next evaluation. */
void fl_class_metrics_clear(struct fl_class_metrics *metrics);
/* Add `n` samples: logits [n][ld], of which a row has the classes first, and labels. */
void fl_class_metrics_add(struct fl_class_metrics *metrics, const float *logits, size_t ld,
                          const int32_t *y, size_t n);
/* The metrics of the samples that were added; replaces `text`. */
void fl_class_metrics_put(struct fl_class_metrics *metrics, char text[FL_EVAL_METRICS_TEXT]);

#endif
