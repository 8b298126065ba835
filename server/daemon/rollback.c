#include "server/daemon/rollback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/store/rollback.h"

/* Kept rounds that a refusal names, newest first; the rest is counted. */
#define NAMED 16

/* Clients keep what says something of rounds that would not count any more. */
static bool keeps(const struct fl_strategy *s)
{
    return fl_solver_keeps(s->solver->keeps) > 0 || s->personal->own;
}

static int refuse_round(struct fl_driver *driver, uint64_t round, const char *why,
                        struct fl_err *err)
{
    char text[256] = "";
    uint64_t *rounds = NULL;
    size_t used = 0;
    size_t n = 0;
    size_t i;
    int rv = fl_models_list(driver->srv->state_dir, &rounds, &n, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n && i < NAMED; i++) {
        int len = snprintf(text + used, sizeof(text) - used, "%s%llu", i > 0 ? ", " : "",
                           (unsigned long long)rounds[i]);

        used += len > 0 && (size_t)len < sizeof(text) - used ? (size_t)len : 0;
    }
    free(rounds);
    if (n > NAMED) {
        (void)snprintf(text + used, sizeof(text) - used, " and %zu more", n - NAMED);
    }
    return fl_err_set(err, FL_ENOENT, "cannot go back to round %llu: %.180s; kept are rounds %s",
                      (unsigned long long)round, why, n > 0 ? text : "(none)");
}

/* Reads all of a checkpoint, with its checksums. */
static int check(struct fl_driver *driver, uint64_t round, struct fl_models_found *ret,
                 struct fl_err *err)
{
    const struct fl_models_tag tag = fl_federation_tag(&driver->federation);
    float *vectors[1 + FL_AGG_MAX_STATE] = {NULL};
    size_t i;
    int rv = FL_OK;

    for (i = 0; i <= driver->federation.n_state && rv == FL_OK; i++) {
        vectors[i] = calloc(fl_federation_floats(&driver->federation) + 1, sizeof(*vectors[i]));
        rv = vectors[i] != NULL ? FL_OK : fl_err_set(err, FL_ENOMEM, "out of memory");
    }
    if (rv == FL_OK) {
        rv = fl_models_load(driver->srv->state_dir, round, &tag, driver->srv->conf->layout,
                            vectors[0], vectors + 1, driver->federation.state_names,
                            driver->federation.n_state, ret, err);
    }
    for (i = 0; i <= driver->federation.n_state; i++) {
        free(vectors[i]);
    }
    return rv;
}

/* FL_ENOENT: it is none to go back to, with the reason and those that are. */
static int check_round(struct fl_driver *driver, uint64_t round, struct fl_models_found *ret,
                       struct fl_err *err)
{
    struct fl_round_rec totals;
    struct fl_err why = {0};
    bool known = false;
    int rv = fl_store_totals(driver->federation.store, &totals, err);

    rv = rv == FL_OK ? fl_store_has_round(driver->federation.store, round, &known, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    if (!known) {
        return refuse_round(driver, round, "no such round is committed", err);
    }
    if (round >= totals.round) {
        return refuse_round(driver, round, "it is the last one, there is nothing behind it", err);
    }
    rv = check(driver, round, ret, &why);
    if (rv == FL_ENOENT) {
        return refuse_round(driver, round, "its checkpoint is not kept", err);
    }
    if (fl_models_is_bad(rv)) {
        return refuse_round(driver, round, fl_err_text(&why, rv), err);
    }
    return rv == FL_OK ? rv : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
}

/* FL_ENOENT: the start would not go on from it. */
static int check_vectors(struct fl_driver *driver, uint64_t round,
                         const struct fl_models_found *found, struct fl_err *err)
{
    const struct fl_federation *f = &driver->federation;
    size_t i = fl_driver_misses(driver, round, found, keeps(f->strategy));
    char why[FL_NAME_MAX + 96];

    if (i == f->n_state) {
        return FL_OK;
    }
    (void)snprintf(why, sizeof(why), "its checkpoint holds no '%.32s', which '%s' goes on from",
                   f->state_names[i], f->strategy->algorithm);
    return refuse_round(driver, round, why, err);
}

int fl_rollback_ask(struct fl_driver *driver, uint64_t round, bool force, struct fl_err *err)
{
    const struct fl_strategy *s = driver->srv->conf->strategy;
    struct fl_models_found found;
    int rv = check_round(driver, round, &found, err);

    rv = rv == FL_OK ? check_vectors(driver, round, &found, err) : rv;
    if (rv == FL_OK && keeps(s) && !force) {
        return fl_err_set(
            err, FL_ESTATE,
            "with '%s', clients%s keep state between rounds, which is of rounds after "
            "%llu and cannot go back with the model; with --force it begins anew "
            "on both sides",
            s->algorithm, s->solver->server != NULL ? " and the server" : "",
            (unsigned long long)round);
    }
    rv = rv == FL_OK
             ? fl_store_ask_rollback(driver->federation.store, round, fl_clock_wall_ms(), err)
             : rv;
    if (rv == FL_OK) {
        fl_log(driver->srv->log, FL_LOG_NOTICE, "server",
               "the operator wants the federation to go back to round %llu: starting again",
               (unsigned long long)round);
    }
    return rv;
}

static void tell(struct fl_driver *driver, const struct fl_rolled_back *r, bool anew)
{
    const struct fl_log *log = driver->srv->log;

    fl_log(log, FL_LOG_WARNING, "server",
           "rolled back to round %llu: rounds %llu to %llu are abandoned; the checkpoint of round "
           "%llu stays beside the others until 'flctl release --round %llu'",
           (unsigned long long)r->round, (unsigned long long)r->round + 1,
           (unsigned long long)r->last, (unsigned long long)r->last, (unsigned long long)r->last);
    if (r->dropped_round != 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "round %llu: attempt %u is dropped with %llu accepted updates, which were made for "
               "an abandoned model",
               (unsigned long long)r->dropped_round, r->dropped_attempt,
               (unsigned long long)r->dropped_updates);
    }
    if (anew) {
        fl_log(log, FL_LOG_WARNING, "server",
               "what the solver keeps on the server and what clients keep between rounds begins "
               "anew");
    }
}

int fl_rollback_carry_out(struct fl_driver *driver, struct fl_err *err)
{
    bool anew = keeps(driver->srv->conf->strategy);
    struct fl_models_found found; /* Judged when it was asked for. */
    struct fl_rolled_back r;
    uint64_t round = 0;
    int rv = fl_store_asked_rollback(driver->federation.store, &round, err);

    if (rv == FL_OK) {
        rv = check_round(driver, round, &found, err);
        if (rv == FL_ENOENT) { /* It was there when it was asked for. */
            fl_log(driver->srv->log, FL_LOG_ERROR, "server", "%s; the federation goes on as it was",
                   fl_err_text(err, rv));
            return fl_store_drop_rollback(driver->federation.store, err);
        }
        rv = rv == FL_OK
                 ? fl_store_roll_back(driver->federation.store, anew, fl_clock_wall_ms(), &r, err)
                 : rv;
        if (rv == FL_OK) {
            tell(driver, &r, anew);
        }
    }
    return rv == FL_OK || rv == FL_ENOENT ? fl_store_finish_rollback(driver->federation.store, err)
                                          : rv;
}
