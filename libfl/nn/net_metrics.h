#ifndef FL_NN_NET_METRICS_H
#define FL_NN_NET_METRICS_H

/*
 * Metrics of a network beside its loss and accuracy, of the predictions of one evaluation. Of
 * classes, where the class of a sample is its largest logit, of equal ones the first, as in the
 * accuracy:
 *
 *   macro_f1        mean over classes of 2 TP / (2 TP + FP + FN) (Sokolova and Lapalme 2009,
 *                   table 3); classes that are neither in the labels nor predicted are left out
 *   class_accuracy  of each class, as class_accuracy/0 …: TP / (TP + FN); without samples: none
 *   worst_class     the smallest of them
 *   auc             of two classes: the probability that a sample of class 1 has a larger
 *                   z_1 - z_0 than one of class 0, ties count half (Hanley and McNeil 1982);
 *                   none unless both have samples
 *
 * and of values (loss mse or mae), z with targets t, over samples and the values of each:
 *
 *   mae             mean of |z - t|
 *   mse             mean of (z - t)^2
 *
 * Threading: pure functions on one object; adding does not allocate.
 */

#include "libfl/base/err.h"
#include "libfl/figures/eval_metrics.h"

/* What a network predicts. */
enum fl_net_output {
    FL_NET_OUTPUT_CLASS,
    FL_NET_OUTPUT_VALUES, /* loss mse or mae: none is right or wrong, there is no accuracy */
    FL_NET_OUTPUT_LABELS  /* loss bce: several labels, each with a probability */
};
/* By the last text of its description (libfl/nn/net.h); n_layers 0: FL_NET_OUTPUT_CLASS. */
enum fl_net_output fl_net_output_of(const char *const *layers, size_t n_layers);

enum fl_net_metric {
    FL_NET_METRIC_MACRO_F1,
    FL_NET_METRIC_CLASS_ACCURACY,
    FL_NET_METRIC_WORST_CLASS,
    FL_NET_METRIC_AUC,
    FL_NET_METRIC_MAE,
    FL_NET_METRIC_MSE,
    FL_NET_METRIC_N
};
/* "macro_f1" …, by metric. */
extern const char *const fl_net_metric_names[FL_NET_METRIC_N];

/* The set of 1u << enum fl_net_metric of a list of names. FL_ECONF: one is unknown, or twice. */
FL_MUST_CHECK int fl_net_metrics_parse(const char *const *names, size_t n, unsigned *ret,
                                       struct fl_err *err);

/* FL_ECONF: with this output, and so many classes, one of `which` is not possible. */
FL_MUST_CHECK int fl_net_metrics_check(unsigned which, enum fl_net_output output, size_t classes,
                                       struct fl_err *err);

struct fl_net_metrics;

/* Of at most `samples` samples with so many classes, or values. FL_ECONF: fl_net_metrics_check()
   does not accept them; FL_ENOMEM. */
FL_MUST_CHECK int fl_net_metrics_create(unsigned which, enum fl_net_output output, size_t classes,
                                        size_t samples, struct fl_net_metrics **ret,
                                        struct fl_err *err);
void fl_net_metrics_free(struct fl_net_metrics *metrics); /* NULL is allowed. */
/* Begin the next evaluation; `targets` as in fl_net_set_targets(), borrowed until the next call,
   NULL for classes. */
void fl_net_metrics_clear(struct fl_net_metrics *metrics, const float *targets);
/* Add `n` samples: logits [n][ld], of which a row has the classes or values first, and labels, or
   rows of the targets. */
void fl_net_metrics_add(struct fl_net_metrics *metrics, const float *logits, size_t ld,
                        const int32_t *y, size_t n);
/* The metrics of the samples that were added; replaces `text`. */
void fl_net_metrics_put(struct fl_net_metrics *metrics, char text[FL_EVAL_METRICS_TEXT]);

#endif
