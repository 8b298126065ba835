/*
 * Extends a finished or interrupted run (extend.h): compares the experiment that the folder was
 * written for with the one of this command, and prepares the folder for a later end, more trials or
 * points. One thread. It runs no trial and does not lock the folder: the caller holds the lock.
 */
#include "tools/fl_sim/extend.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/conf/differ.h"

/* The stop rules of an experiment. */
#define EXTEND_RULES 5
static const char *const extend_rules[EXTEND_RULES] = {"rounds", "accuracy", "uplink", "bytes",
                                                       "time"};

struct extend {
    char *dir; /* owned */
    const struct fl_experiment *now;
    struct fl_results_past *past;
    struct fl_experiment *before;
    size_t *point_of; /* [points of `before`]: index of the same point in `now` */
    uint8_t *later;   /* [points of `before`]: bit k: extend_rules[k] ends this point later now */
};

/* Keys without the built-in training, or with other output rows, give other results. */
const char *extend_fingerprint(const struct fl_experiment *experiment, uint64_t kind,
                               char out[FL_CHECKSUM_TEXT])
{
    return fl_checksum_text(
        fl_experiment_fingerprint(experiment) ^ (kind * UINT64_C(0x9e3779b97f4a7c15)), out);
}

const char *extend_from(const struct extend *extend)
{
    return fl_results_past_fingerprint(extend->past);
}

void extend_free(struct extend *x)
{
    if (x != NULL) {
        fl_experiment_free(x->before);
        fl_results_past_free(x->past);
        free(x->point_of);
        free(x->later);
        free(x->dir);
        free(x);
    }
}

/* --- what changed --- */

struct difference {
    size_t n;
    char keys[256];
};

/* The keys that differ between point `i` before and point `k` now, except its end. */
static int extend_differing_keys(const struct extend *x, size_t i, size_t k, struct difference *ret,
                                 struct fl_err *err)
{
    static const char *const except[] = {"stop.rounds", "stop.accuracy", "stop.uplink",
                                         "stop.bytes",  "stop.time",     "server.rounds",
                                         "server.seed", "trials",        NULL};
    struct fl_experiment_point *a = NULL;
    struct fl_experiment_point *b = NULL;
    int rv = fl_experiment_open(x->before, i, 0, &a, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_experiment_open(x->now, k, 0, &b, err);
    if (rv != FL_OK) {
        goto done;
    }
    ret->n = fl_conf_differ(fl_conf_root(a->doc), fl_conf_root(b->doc), except, ret->keys,
                            sizeof(ret->keys));
done:
    fl_experiment_close(a);
    fl_experiment_close(b);
    return rv;
}

/* Where each rule ends a point; a rule that is not used never does. */
static int extend_ends(const struct fl_experiment *e, size_t i, double ret[EXTEND_RULES],
                       struct fl_err *err)
{
    struct fl_experiment_point *p = NULL;
    size_t k;
    int rv = fl_experiment_open(e, i, 0, &p, err);

    if (rv != FL_OK) {
        return rv;
    }
    ret[0] = (double)p->stop.rounds;
    ret[1] = p->stop.accuracy;
    ret[2] = (double)p->stop.uplink;
    ret[3] = (double)p->stop.bytes;
    ret[4] = (double)p->stop.time_ms;
    for (k = 0; k < EXTEND_RULES; k++) {
        ret[k] = ret[k] > 0 ? ret[k] : (double)INFINITY;
    }
    fl_experiment_close(p);
    return FL_OK;
}

static int extend_refuse(const struct extend *x, struct fl_err *err, const char *what)
{
    return fl_err_set(err, FL_EEXIST,
                      "'%s' holds the results of experiment '%s', this is '%s', and %s: a folder "
                      "can only be extended "
                      "with a later end, more trials or more points and no other change; choose "
                      "another folder with --out, or remove it",
                      x->dir, fl_experiment_name(x->before), fl_experiment_name(x->now), what);
}

static int extend_check_end(struct extend *x, size_t i, struct fl_err *err)
{
    char what[FL_EXPERIMENT_LABEL + 128];
    double then[EXTEND_RULES];
    double now[EXTEND_RULES];
    size_t k;
    int rv = extend_ends(x->before, i, then, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = extend_ends(x->now, x->point_of[i], now, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (k = 0; k < EXTEND_RULES; k++) {
        if (now[k] < then[k]) {
            (void)snprintf(what, sizeof(what), "stop.%s ends '%s' earlier now", extend_rules[k],
                           fl_experiment_label(x->before, i));
            return extend_refuse(x, err, what);
        }
        x->later[i] |= (uint8_t)(now[k] > then[k] ? 1U << k : 0);
    }
    return FL_OK;
}

/*
 * Finds the point of `now` that equals point `i` of `before`. The search starts behind the match of
 * the previous point, so that a long sweep does not take quadratic time.
 */
static int extend_find_point(struct extend *x, size_t i, struct fl_err *err)
{
    size_t n = fl_experiment_points(x->now);
    struct difference fewest = {.n = SIZE_MAX};
    char what[FL_EXPERIMENT_LABEL + 320];
    size_t first = i > 0 ? x->point_of[i - 1] + 1 : 0;
    size_t j;

    for (j = 0; j < n; j++) {
        size_t k = (first + j) % n;
        struct difference d = {.n = 0};
        int rv = extend_differing_keys(x, i, k, &d, err);

        if (rv != FL_OK) {
            return rv;
        }
        if (d.n == 0) {
            x->point_of[i] = k;
            return extend_check_end(x, i, err);
        }
        if (d.n < fewest.n) {
            fewest = d;
        }
    }
    (void)snprintf(what, sizeof(what), "its point '%s' has changed (%s changed)",
                   fl_experiment_label(x->before, i), fewest.keys);
    return extend_refuse(x, err, what);
}

/* --- from the folder --- */

/* FL_ENOENT: the folder holds nothing that can be extended. */
static int extend_open_past(struct extend *x, uint64_t kind, struct fl_err *err)
{
    uint64_t other = kind == EXTEND_DRY ? EXTEND_TRAINED : EXTEND_DRY;
    char fingerprint[FL_CHECKSUM_TEXT];
    const char *const *sets;
    const char *file;
    const char *text;
    size_t n_sets;
    int rv = fl_results_past_read(x->dir, &x->past, NULL);

    if (rv != FL_OK) {
        return rv == FL_ENOMEM ? rv : FL_ENOENT;
    }
    if (strcmp(extend_from(x), extend_fingerprint(x->now, kind, fingerprint)) == 0) {
        return FL_ENOENT; /* The experiment is the same: nothing to extend. */
    }
    text = fl_results_past_text(x->past, &file, &sets, &n_sets);
    rv = fl_experiment_parse(file, text, strlen(text), sets, n_sets, &x->before, NULL);
    if (rv != FL_OK) {
        /* The folder was written by a version of fl-sim that read other files. */
        return rv == FL_ENOMEM ? rv : FL_ENOENT;
    }
    if (strcmp(extend_from(x), extend_fingerprint(x->before, other, fingerprint)) == 0) {
        return extend_refuse(x, err,
                             other == EXTEND_TRAINED ? "that run trained in a simulation"
                                                     : "that run had --no-training");
    }
    return strcmp(extend_from(x), extend_fingerprint(x->before, kind, fingerprint)) == 0
               ? FL_OK
               : FL_ENOENT;
}

int extend_plan(const char *dir, const struct fl_experiment *now, uint64_t kind,
                struct extend **ret, struct fl_err *err)
{
    char what[96];
    struct extend *x = calloc(1, sizeof(*x));
    size_t k;
    size_t n;
    size_t i;
    int rv;

    *ret = NULL;
    if (x == NULL) {
        return FL_ENOMEM;
    }
    x->now = now;
    x->dir = fl_str_dup(dir);
    rv = x->dir != NULL ? extend_open_past(x, kind, err) : FL_ENOMEM;
    if (rv != FL_OK) {
        goto fail;
    }
    n = fl_experiment_points(x->before);
    rv = FL_OK;
    x->point_of = calloc(n + 1, sizeof(*x->point_of));
    x->later = calloc(n + 1, sizeof(*x->later));
    if (x->point_of == NULL || x->later == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    for (i = 0; i < n; i++) {
        rv = extend_find_point(x, i, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    for (i = 0; i < fl_experiment_trials(x->before); i++) {
        uint64_t seed = fl_experiment_seed(x->before, i);

        for (k = 0; k < fl_experiment_trials(x->now) && fl_experiment_seed(x->now, k) != seed; k++)
        {
        }
        if (k == fl_experiment_trials(x->now)) {
            (void)snprintf(what, sizeof(what), "its trial with seed %" PRIu64 " is not in trials",
                           seed);
            rv = extend_refuse(x, err, what);
            goto fail;
        }
    }
    *ret = x;
    return FL_OK;
fail:
    extend_free(x);
    return rv == FL_ENOENT ? FL_OK : rv;
}

/* --- after the check --- */

static int extend_move_point(const struct extend *x, size_t i, struct fl_err *err)
{
    const struct fl_run_point to = {fl_experiment_slug(x->now, x->point_of[i]),
                                    fl_experiment_label(x->now, x->point_of[i])};
    const char *from = fl_experiment_slug(x->before, i);
    size_t t;
    int rv;

    if (strcmp(from, to.slug) != 0) {
        rv = fl_results_rename_point(x->dir, from, to.slug, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (t = 0; t < fl_experiment_trials(x->before); t++) {
        rv = fl_results_rename_trial(x->dir, &to, fl_experiment_seed(x->before, t), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int extend_reopen_trials(const struct extend *x, size_t i, struct fl_err *err)
{
    const char *slug = fl_experiment_slug(x->now, x->point_of[i]);
    const char *rules[EXTEND_RULES + 1] = {NULL};
    size_t n = 0;
    size_t k;
    size_t t;
    int rv;

    for (k = 0; k < EXTEND_RULES; k++) {
        if ((x->later[i] >> k & 1) != 0) {
            rules[n++] = extend_rules[k];
        }
    }
    for (t = 0; n > 0 && t < fl_experiment_trials(x->before); t++) {
        uint64_t seed = fl_experiment_seed(x->before, t);
        bool reopened = false;
        bool kept = false;

        rv = fl_results_reopen_trial(x->dir, slug, seed, rules, &reopened, &kept, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (reopened) {
            (void)fprintf(stderr, "fl-sim run: a later end: %s/seed-%" PRIu64 " %s\n", slug, seed,
                          kept ? "continues after its last round"
                               : "runs again from its first round, its state was not kept "
                                 "(--keep-state)");
        }
    }
    return FL_OK;
}

int extend_apply(void *extend, struct fl_err *err)
{
    const struct extend *x = extend;
    size_t n = fl_experiment_points(x->before);
    size_t i;
    int rv;

    for (i = 0; i < n; i++) {
        rv = extend_move_point(x, i, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (i = 0; i < n; i++) {
        rv = extend_reopen_trials(x, i, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}
