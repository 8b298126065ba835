/* `flctl rollback`: checks and stores the request while the server runs, and carries it out at
   the next start. On the store's thread. Restarting the server is up to the daemon. */
#include "server/work/rollback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/store/store_rollback.h"
#include "server/work/checkpoint_choice.h"

/* Rounds with a checkpoint that a refusal lists, newest first; the rest is counted. */
#define NAMED 16

static int refuse_round(const struct fl_federation *federation, uint64_t round, const char *why,
                        struct fl_err *err)
{
    char text[256] = "";
    uint64_t *rounds = NULL;
    size_t used = 0;
    size_t n = 0;
    size_t i;
    int rv = fl_models_list(federation->state_dir, &rounds, &n, err);

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
    return fl_err_set(err, FL_ENOENT,
                      "rollback to round %llu refused: %.180s; rounds with a checkpoint: %s",
                      (unsigned long long)round, why, n > 0 ? text : "(none)");
}

/* Reads a whole checkpoint, with its checksums. */
static int rollback_check_checkpoint(const struct fl_federation *federation, uint64_t round,
                                     struct fl_models_found *ret, struct fl_err *err)
{
    const struct fl_models_tag tag = fl_federation_tag(federation);
    const struct fl_models_checkpoint c = {
        federation->state_dir, round, &tag, federation->layout, federation->state_names,
        federation->n_state};
    float *vectors[1 + FL_AGG_MAX_STATE] = {NULL};
    struct fl_blob *kept = NULL;
    size_t i;
    int rv;

    for (i = 0; i <= federation->n_state; i++) {
        vectors[i] = calloc(fl_federation_floats(federation) + 1, sizeof(*vectors[i]));
        if (vectors[i] == NULL) {
            rv = fl_err_set(err, FL_ENOMEM, "out of memory");
            goto done;
        }
    }
    rv = fl_models_load(&c, vectors[0], vectors + 1, ret, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_models_load_kept(&c, SIZE_MAX, &kept, err);
done:
    for (i = 0; i <= federation->n_state; i++) {
        free(vectors[i]);
    }
    fl_blob_unref(kept);
    return rv;
}

/* FL_ENOENT: no rollback to it is possible; the message has the reason and the possible rounds. */
static int check_round(const struct fl_federation *federation, uint64_t round,
                       struct fl_models_found *ret, struct fl_err *err)
{
    struct fl_round_rec totals;
    struct fl_err why = {0};
    bool known = false;
    int rv = fl_store_totals(federation->store, &totals, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_has_round(federation->store, round, &known, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!known) {
        return refuse_round(federation, round, "no such round is committed", err);
    }
    if (round >= totals.round) {
        return refuse_round(federation, round, "it is the last committed round", err);
    }
    rv = rollback_check_checkpoint(federation, round, ret, &why);
    if (rv == FL_ENOENT) {
        return refuse_round(federation, round, "its checkpoint was removed by retention", err);
    }
    if (fl_models_is_bad(rv)) {
        return refuse_round(federation, round, fl_err_text(&why, rv), err);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
    }
    return FL_OK;
}

int fl_rollback_ask(const struct fl_federation *federation, uint64_t round, bool force,
                    uint64_t wall_ms, struct fl_err *err)
{
    const struct fl_strategy *s = federation->strategy;
    struct fl_models_found found;
    char why[FL_NAME_MAX + 96];
    size_t missing;
    int rv = check_round(federation, round, &found, err);

    if (rv != FL_OK) {
        return rv;
    }
    missing = fl_judge_misses(federation, round, &found, fl_federation_clients_keep(federation));
    if (missing < federation->n_state) { /* The next start could not resume from it. */
        (void)snprintf(why, sizeof(why), "its checkpoint lacks '%.32s', which '%s' resumes from",
                       federation->state_names[missing], s->algorithm);
        return refuse_round(federation, round, why, err);
    }
    if (fl_federation_clients_keep(federation) && !force) {
        return fl_err_set(
            err, FL_ESTATE,
            "rollback refused: with '%s', clients%s keep state between rounds, which belongs to "
            "rounds after %llu and cannot be rolled back; use --force to reset it on both sides",
            s->algorithm, s->solver->server != NULL ? " and the server" : "",
            (unsigned long long)round);
    }
    rv = fl_store_ask_rollback(federation->store, round, wall_ms, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_log(federation->log, FL_LOG_NOTICE, "server",
           "rollback to round %llu requested by the operator: restarting",
           (unsigned long long)round);
    return FL_OK;
}

int fl_rollback_carry_out(const struct fl_federation *federation, uint64_t wall_ms,
                          struct fl_err *err)
{
    const struct fl_log *log = federation->log;
    bool restart = fl_federation_clients_keep(federation);
    struct fl_models_found found; /* Checked when it was requested. */
    struct fl_rolled_back r;
    uint64_t round = 0;
    int rv = fl_store_asked_rollback(federation->store, &round, err);

    if (rv == FL_ENOENT) {
        return fl_store_finish_rollback(federation->store, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_round(federation, round, &found, err);
    if (rv == FL_ENOENT) { /* It existed when it was requested. */
        fl_log(log, FL_LOG_ERROR, "server", "%s; rollback cancelled, the federation is unchanged",
               fl_err_text(err, rv));
        return fl_store_drop_rollback(federation->store, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_store_roll_back(federation->store, restart, wall_ms, &r, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_log(log, FL_LOG_WARNING, "server",
           "rolled back to round %llu: rounds %llu to %llu are abandoned; the checkpoint of round "
           "%llu is kept until 'flctl unpin --round %llu'",
           (unsigned long long)r.round, (unsigned long long)r.round + 1, (unsigned long long)r.last,
           (unsigned long long)r.last, (unsigned long long)r.last);
    if (r.dropped_round != 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "round %llu: attempt %u discarded with %llu accepted updates, which were made for "
               "an abandoned model",
               (unsigned long long)r.dropped_round, r.dropped_attempt,
               (unsigned long long)r.dropped_updates);
    }
    if (restart) {
        fl_log(log, FL_LOG_WARNING, "server",
               "state of the solver on the server and on clients is reset");
    }
    return fl_store_finish_rollback(federation->store, err);
}
