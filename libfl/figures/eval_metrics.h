#ifndef FL_FIGURES_EVAL_METRICS_H
#define FL_FIGURES_EVAL_METRICS_H

/*
 * Metrics: named numbers of an evaluation beside loss and accuracy, as one text of bounded length:
 * "macro_f1=0.75 auc=0.9:120 errors+=3". A name, "=" for a mean or "+=" for a sum over clients, the
 * number, and ":" with the samples behind it where these are not all of the evaluation. The text is
 * what a client sends, what the database has, and a member of the record of a round; JSON has it as
 * an object (libfl/json). In the record of a round every metric is a number: those of the
 * evaluation by the server have their own names, those of clients begin with "received/" and
 * "personal/", as the accuracies of round_figures.h.
 *
 * Threading: pure functions. Only a tally allocates.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* Of one evaluation, and of each of the three kinds in a round. */
#define FL_EVAL_METRICS_MAX 32
/* Size of a name, with the NUL. */
#define FL_EVAL_METRIC_NAME 32
/* The same with the longest of the two below before it. */
#define FL_EVAL_METRIC_KEY (FL_EVAL_METRIC_NAME + 9)
/* Size of a text: FL_EVAL_METRICS_MAX longest names with their numbers (12 digits) fit. */
#define FL_EVAL_METRICS_TEXT 2048
/* Size of a message of fl_eval_metrics_bad(). */
#define FL_EVAL_METRICS_ERROR 200

#define FL_EVAL_METRICS_RECEIVED "received/"
#define FL_EVAL_METRICS_PERSONAL "personal/"

struct fl_eval_metric {
    char name[FL_EVAL_METRIC_NAME];
    double value;
    uint64_t samples; /* behind it; 0: those of the evaluation */
    bool sum;         /* over clients its values are added; else their mean, weighted by samples */
};

/* What is wrong with a name, as "is …; expected …"; NULL: nothing. */
const char *fl_eval_metric_name_bad(const char *name);
/* Append a metric; false: there is no place for it, or its name has no place in a round's text. */
bool fl_eval_metrics_add(char text[FL_EVAL_METRICS_TEXT], const struct fl_eval_metric *metric);
/* Take the first metric of *text and move *text behind it; false: there is none, or it is not of
   the form above. */
bool fl_eval_metrics_next(const char **text, struct fl_eval_metric *ret);
/*
 * Of the text of a round, whose keys are names with what may be before them: take the first number
 * of *text, and append one. False: there is none; there is no place for it, or `key` is not such a
 * key.
 */
bool fl_eval_metrics_next_key(const char **text, char key[FL_EVAL_METRIC_KEY], double *ret);
bool fl_eval_metrics_add_key(char text[FL_EVAL_METRICS_TEXT], const char *key, double value);
/* The number of a key in a text; false: it is not in it. */
bool fl_eval_metrics_find(const char *text, const char *key, double *ret);
/*
 * What is wrong with the metrics of one evaluation of `samples` samples: their form, a name, a name
 * that comes twice, a number that is not finite, more samples than the evaluation has, or more than
 * FL_EVAL_METRICS_MAX. NULL: nothing; else `out`. NULL is allowed as `text`.
 */
const char *fl_eval_metrics_bad(const char *text, uint64_t samples,
                                char out[FL_EVAL_METRICS_ERROR]);

/* --- over clients --- */

struct fl_eval_metrics_entry;
struct fl_eval_metrics_tally { /* zeroed: empty */
    struct fl_eval_metrics_entry *list;
    size_t n, cap;
};

/*
 * Add the metrics of one client, which fl_eval_metrics_bad() accepts, of an evaluation of `samples`
 * samples of which the share `share` (0 to 1) counts; NULL: none. FL_ENOMEM: nothing was added.
 */
FL_MUST_CHECK int fl_eval_metrics_tally_add(struct fl_eval_metrics_tally *tally, const char *text,
                                            uint64_t samples, double share);
/*
 * Append the means and sums to `text`, in the order of their names and with `prefix` before them.
 * A name that some clients send as a mean and others as a sum is what most of them send (equally
 * many: a mean); of more than FL_EVAL_METRICS_MAX names those of most clients stay, so that a few
 * clients cannot displace the names of the others. Finite, whatever finite numbers clients send.
 * Returns how many are missing for lack of place.
 */
size_t fl_eval_metrics_tally_put(struct fl_eval_metrics_tally *tally, const char *prefix,
                                 char text[FL_EVAL_METRICS_TEXT]);
void fl_eval_metrics_tally_done(struct fl_eval_metrics_tally *tally);

#endif
