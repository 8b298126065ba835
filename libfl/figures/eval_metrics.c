/* Metrics as text, and their mean or sum over clients (eval_metrics.h). Pure functions. */
#include "libfl/figures/eval_metrics.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"
#include "libfl/base/str.h"

static bool metric_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-';
}

static bool metric_begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

const char *fl_eval_metric_name_bad(const char *name)
{
    static const char *const taken[] = {"accuracy", "loss", "loss_sum", "correct", "samples"};
    size_t len = strlen(name);
    size_t i;

    for (i = 0; i < len && metric_char(name[i]); i++) {
    }
    if (len == 0 || len >= FL_EVAL_METRIC_NAME || i < len) {
        return "is no name of a metric; expected 1 to 31 of the characters A-Z a-z 0-9 _ / . -";
    }
    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcmp(name, taken[i]) == 0) {
            return "is the name of a number that every evaluation has; expected another name";
        }
    }
    return metric_begins(name, FL_EVAL_METRICS_RECEIVED) ||
                   metric_begins(name, FL_EVAL_METRICS_PERSONAL)
               ? "begins with received/ or personal/, which are those of a round; expected another "
                 "name"
               : NULL;
}

/* Append with a prefix to the name. */
static bool metrics_append(char text[FL_EVAL_METRICS_TEXT], const char *prefix,
                           const struct fl_eval_metric *m)
{
    char one[FL_EVAL_METRIC_KEY + 64];
    char samples[32] = "";
    size_t len = strlen(text);
    int n;

    if (m->samples > 0) {
        (void)snprintf(samples, sizeof(samples), ":%" PRIu64, m->samples);
    }
    n = snprintf(one, sizeof(one), "%s%s%s%s=%.12g%s", len > 0 ? " " : "", prefix, m->name,
                 m->sum ? "+" : "", m->value, samples);
    if (n < 0 || (size_t)n >= sizeof(one) || len + (size_t)n >= FL_EVAL_METRICS_TEXT) {
        return false;
    }
    (void)memcpy(text + len, one, (size_t)n + 1);
    return true;
}

bool fl_eval_metrics_add(char text[FL_EVAL_METRICS_TEXT], const struct fl_eval_metric *metric)
{
    return metrics_append(text, "", metric);
}

/* Split "name+=value:samples" of `len` bytes; `key` has FL_EVAL_METRIC_KEY bytes. */
static bool metrics_split(const char *text, size_t len, char *key, struct fl_eval_metric *ret)
{
    char one[FL_EVAL_METRIC_KEY + 64];
    char *value;
    char *samples;
    size_t n;

    if (len >= sizeof(one)) {
        return false;
    }
    (void)memcpy(one, text, len);
    one[len] = '\0';
    value = strchr(one, '=');
    if (value == NULL || value == one) {
        return false;
    }
    n = (size_t)(value - one);
    ret->sum = one[n - 1] == '+';
    n -= ret->sum;
    *value++ = '\0';
    samples = strchr(value, ':');
    ret->samples = 0;
    if (samples != NULL) {
        *samples++ = '\0';
        if (fl_str_to_u64(samples, &ret->samples) != FL_OK || ret->samples == 0) {
            return false;
        }
    }
    if (n == 0 || n >= FL_EVAL_METRIC_KEY || fl_str_to_double(value, &ret->value) != FL_OK) {
        return false;
    }
    (void)memcpy(key, one, n);
    key[n] = '\0';
    return true;
}

/* The length of the first word. */
static size_t metrics_word(const char *text)
{
    return strcspn(text, " ");
}

static const char *metrics_behind(const char *text, size_t len)
{
    return text[len] == ' ' ? text + len + 1 : text + len;
}

bool fl_eval_metrics_next(const char **text, struct fl_eval_metric *ret)
{
    size_t len = metrics_word(*text);
    struct fl_eval_metric metric;
    char key[FL_EVAL_METRIC_KEY];

    if (!metrics_split(*text, len, key, &metric) ||
        fl_str_copy(metric.name, sizeof(metric.name), key) != FL_OK)
    {
        return false;
    }
    *text = metrics_behind(*text, len);
    *ret = metric;
    return true;
}

const char *fl_eval_metrics_bad(const char *text, uint64_t samples, char out[FL_EVAL_METRICS_ERROR])
{
    char names[FL_EVAL_METRICS_MAX][FL_EVAL_METRIC_NAME];
    const char *bad;
    struct fl_eval_metric m;
    size_t n;
    size_t i;

    for (n = 0; text != NULL && *text != '\0'; n++) {
        if (n == FL_EVAL_METRICS_MAX) {
            (void)snprintf(out, FL_EVAL_METRICS_ERROR, "more than %d metrics", FL_EVAL_METRICS_MAX);
            return out;
        }
        if (!fl_eval_metrics_next(&text, &m)) {
            (void)snprintf(out, FL_EVAL_METRICS_ERROR,
                           "metric %zu is not NAME=NUMBER or NAME+=NUMBER with a finite number",
                           n + 1);
            return out;
        }
        bad = fl_eval_metric_name_bad(m.name);
        if (bad == NULL && m.samples > samples) {
            bad = "has more samples than the evaluation";
        }
        for (i = 0; bad == NULL && i < n; i++) {
            bad = strcmp(names[i], m.name) == 0 ? "is there twice" : NULL;
        }
        if (bad != NULL) {
            (void)snprintf(out, FL_EVAL_METRICS_ERROR, "metric '%.31s' %s", fl_str_clean(m.name),
                           bad);
            return out;
        }
        (void)memcpy(names[n], m.name, sizeof(names[n]));
    }
    return NULL;
}

bool fl_eval_metrics_next_key(const char **text, char key[FL_EVAL_METRIC_KEY], double *ret)
{
    size_t len = metrics_word(*text);
    struct fl_eval_metric m;

    if (!metrics_split(*text, len, key, &m)) {
        return false;
    }
    *text = metrics_behind(*text, len);
    *ret = m.value;
    return true;
}

bool fl_eval_metrics_add_key(char text[FL_EVAL_METRICS_TEXT], const char *key, double value)
{
    const char *prefix = metric_begins(key, FL_EVAL_METRICS_RECEIVED)   ? FL_EVAL_METRICS_RECEIVED
                         : metric_begins(key, FL_EVAL_METRICS_PERSONAL) ? FL_EVAL_METRICS_PERSONAL
                                                                        : "";
    struct fl_eval_metric m = {.value = value};

    key += strlen(prefix);
    return fl_eval_metric_name_bad(key) == NULL &&
           fl_str_copy(m.name, sizeof(m.name), key) == FL_OK && metrics_append(text, prefix, &m);
}

bool fl_eval_metrics_find(const char *text, const char *key, double *ret)
{
    char here[FL_EVAL_METRIC_KEY];
    double value;

    while (fl_eval_metrics_next_key(&text, here, &value)) {
        if (strcmp(here, key) == 0) {
            *ret = value;
            return true;
        }
    }
    return false;
}

/* --- over clients --- */

struct fl_eval_metrics_entry {
    char name[FL_EVAL_METRIC_NAME];
    bool sum;
    double value; /* of a mean: times its weight */
    double weight;
    size_t clients; /* that are in it */
    size_t order;   /* in which it was added: sums do not depend on the sorting */
};

/* Finite, whatever finite numbers clients send. */
static double metrics_bounded(double x)
{
    return x > DBL_MAX ? DBL_MAX : x < -DBL_MAX ? -DBL_MAX : x;
}

int fl_eval_metrics_tally_add(struct fl_eval_metrics_tally *tally, const char *text,
                              uint64_t samples, double share)
{
    size_t before = tally->n;
    struct fl_eval_metric m;

    while (text != NULL && fl_eval_metrics_next(&text, &m)) {
        double weight = (double)(m.samples > 0 ? m.samples : samples) * share;

        if (tally->n == tally->cap) {
            int rv = fl_grow(&tally->list, &tally->cap, tally->n + 1, sizeof(*tally->list));

            if (rv != FL_OK) {
                tally->n = before;
                return rv;
            }
        }
        tally->list[tally->n] =
            (struct fl_eval_metrics_entry){.sum = m.sum,
                                           .value = m.sum ? m.value * share : m.value,
                                           .weight = weight,
                                           .clients = 1,
                                           .order = tally->n};
        (void)memcpy(tally->list[tally->n++].name, m.name, sizeof(m.name));
    }
    return FL_OK;
}

static int metrics_by_name(const void *a, const void *b)
{
    const struct fl_eval_metrics_entry *x = a;
    const struct fl_eval_metrics_entry *y = b;
    int rv = strcmp(x->name, y->name);

    return rv != 0            ? rv
           : x->sum != y->sum ? (x->sum ? 1 : -1)
                              : (x->order > y->order) - (x->order < y->order);
}

static int metrics_by_clients(const void *a, const void *b)
{
    const struct fl_eval_metrics_entry *x = a;
    const struct fl_eval_metrics_entry *y = b;

    return x->clients != y->clients ? (x->clients < y->clients ? 1 : -1) : metrics_by_name(a, b);
}

/* Each name and kind once. The mean moves to each number by its share of the weight so far, so that
   it stays between the numbers, however large they are. Returns how many are left. */
static size_t metrics_unite(struct fl_eval_metrics_entry *list, size_t n)
{
    size_t left = 0;
    size_t i;

    qsort(list, n, sizeof(*list), metrics_by_name);
    for (i = 0; i < n; i++) {
        struct fl_eval_metrics_entry *into = left > 0 ? &list[left - 1] : NULL;
        const struct fl_eval_metrics_entry *e = &list[i];

        if (into == NULL || strcmp(into->name, e->name) != 0 || into->sum != e->sum) {
            list[left++] = *e;
            continue;
        }
        into->clients++;
        into->weight += e->weight;
        if (into->sum) {
            into->value = metrics_bounded(into->value + e->value);
        } else if (into->weight > 0.0) {
            double part = e->weight / into->weight;

            into->value = into->value * (1.0 - part) + e->value * part;
        }
    }
    return left;
}

/* Of each name the kind of most clients, of the names those of most clients, in front. Returns how
   many are left. */
static size_t metrics_choose(struct fl_eval_metrics_entry *list, size_t n)
{
    size_t left = 0;
    size_t i;
    size_t j;

    qsort(list, n, sizeof(*list), metrics_by_clients);
    for (i = 0; i < n && left < FL_EVAL_METRICS_MAX; i++) {
        for (j = 0; j < left && strcmp(list[j].name, list[i].name) != 0; j++) {
        }
        if (j == left) {
            list[left++] = list[i];
        }
    }
    return left;
}

size_t fl_eval_metrics_tally_put(struct fl_eval_metrics_tally *tally, const char *prefix,
                                 char text[FL_EVAL_METRICS_TEXT])
{
    size_t missing = 0;
    size_t n;
    size_t i;

    if (tally->n == 0) {
        return 0;
    }
    n = metrics_choose(tally->list, metrics_unite(tally->list, tally->n));
    qsort(tally->list, n, sizeof(*tally->list), metrics_by_name);
    for (i = 0; i < n; i++) {
        struct fl_eval_metric m = {.value = tally->list[i].value};

        (void)memcpy(m.name, tally->list[i].name, sizeof(m.name));
        missing += !metrics_append(text, prefix, &m);
    }
    tally->n = 0;
    return missing;
}

void fl_eval_metrics_tally_done(struct fl_eval_metrics_tally *tally)
{
    free(tally->list);
    *tally = (struct fl_eval_metrics_tally){.n = 0};
}
