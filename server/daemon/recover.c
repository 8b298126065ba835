/* What a starting server finds: its lock, its records, its model. */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "server/daemon/driver_impl.h"
#include "server/daemon/exit_codes.h"
#include "server/daemon/preflight.h"
#include "server/daemon/rollback.h"
#include "server/work/checkpoints.h"

/* The very first model: from the file of the configuration, or drawn from the seed. */
static int initial_model(struct fl_driver *driver, struct fl_err *err)
{
    const struct fl_server_conf *conf = driver->srv->conf;
    float *theta = fl_blob_fill_floats(driver->progress.committed.model.theta);
    struct fl_net *net = NULL;
    struct fl_rng rng;
    int rv;

    if (fl_options_is_set(conf->model, "file")) {
        return fl_preflight_model(conf, theta, err);
    }
    rv = fl_net_create(&conf->net, 1, &net, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_rng_key(&rng, driver->coord_conf.seed, FL_RNG_INIT, 0, 0);
    fl_net_init(net, &rng);
    fl_net_get(net, theta);
    fl_net_free(net);
    return FL_OK;
}

/*
 * Behind an older round. A solver whose part on the server says something of all clients' parts
 * (SCAFFOLD: s = sum c_k) begins anew on both sides, for theirs are of rounds that do not count any
 * more. Whatever else a client kept of such a round it drops by itself, when its next task does not
 * name it as counted.
 */
static bool begins_anew(const struct fl_strategy *s)
{
    return s->solver->server != NULL && fl_solver_keeps(s->solver->keeps) > 0;
}

/* Read the records again as they are without the rounds after `round`. */
static int go_back(struct fl_driver *driver, uint64_t round, struct fl_err *err)
{
    const struct fl_strategy *s = driver->srv->conf->strategy;
    const struct fl_rewind why = {.reason = "newer checkpoints cannot be used",
                                  .keep_anew = begins_anew(s),
                                  .wall_ms = fl_clock_wall_ms()};
    int rv = fl_store_rewind(driver->federation.store, round, &why, err);

    if (rv == FL_OK && why.keep_anew) {
        fl_log(driver->srv->log, FL_LOG_WARNING, "server",
               "what solver '%s' keeps on the server and on clients begins anew: theirs is of up "
               "to %llu rounds later",
               s->solver->policy.name, (unsigned long long)(driver->resume.committed - round));
    }
    if (rv == FL_OK) {
        rv = fl_store_line(driver->federation.store, &driver->federation.line, err);
    }
    if (rv == FL_OK) {
        fl_store_resume_done(&driver->resume);
        rv = fl_store_load(driver->federation.store, &driver->resume, err);
    }
    return rv == FL_OK ? fl_store_totals(driver->federation.store, &driver->progress.totals, err)
                       : rv;
}

/* Where checkpoints are looked for, and what was found on the way. */
struct search {
    struct fl_driver *driver;
    struct fl_models_tag tag;
    uint64_t *rounds; /* newest first */
    size_t n;
};

static int load_round(const struct search *s, uint64_t round, struct fl_err *err)
{
    struct fl_driver *driver = s->driver;
    float *state[FL_AGG_MAX_STATE] = {NULL};
    struct fl_models_found found;
    bool anew = round < driver->resume.committed && begins_anew(driver->srv->conf->strategy);
    size_t i;
    int rv;

    for (i = 0; i < driver->federation.n_state; i++) {
        state[i] = fl_blob_fill_floats(driver->progress.committed.model.state[i]);
    }
    rv = fl_models_load(driver->srv->state_dir, round, &s->tag, driver->srv->conf->layout,
                        fl_blob_fill_floats(driver->progress.committed.model.theta), state,
                        driver->federation.state_names, driver->federation.n_state, &found, err);
    if (rv == FL_OK && !found.checked) {
        fl_log(driver->srv->log, FL_LOG_NOTICE, "server",
               "the checkpoint of round %llu is of an earlier version and carries no checksum",
               (unsigned long long)round);
    }
    rv = rv == FL_OK ? fl_driver_judge(driver, round, &found, anew, err) : rv;
    return rv == FL_OK ? fl_driver_join_mixtures(driver, round, &found, err) : rv;
}

/*
 * The newest round that has both a record and a checkpoint, and the mixtures that this names.
 * Passed over is only what is gone or provably bad; an error of reading says nothing about the
 * file, and ends the start; so does one that an earlier version wrote without what is needed now.
 */
static int find_pair(const struct search *s, uint64_t *ret, struct fl_err *err)
{
    struct fl_driver *driver = s->driver;
    uint64_t last = driver->resume.committed;
    size_t i;

    for (i = 0; i < s->n; i++) {
        bool known = false;
        int rv = FL_OK;

        if (s->rounds[i] <= last) {
            rv = fl_store_has_round(driver->federation.store, s->rounds[i], &known, err);
        }
        rv = rv == FL_OK && known ? load_round(s, s->rounds[i], err) : rv;
        if (rv == FL_OK && known) {
            *ret = s->rounds[i];
            return FL_OK;
        }
        if (rv == FL_EVERSION) {
            return rv;
        }
        if (rv != FL_OK && rv != FL_ENOENT && !fl_models_is_bad(rv)) {
            return fl_err_wrap(err, rv,
                               "the checkpoint of round %llu was not read, and is left alone",
                               (unsigned long long)s->rounds[i]);
        }
        if (rv != FL_OK) {
            fl_log(driver->srv->log, FL_LOG_WARNING, "server",
                   "checkpoint of round %llu cannot be used: %s", (unsigned long long)s->rounds[i],
                   fl_err_text(err, rv));
        }
    }
    return FL_ENOENT;
}

/* Bad ones would be written over when their rounds are run again. */
static int set_aside(const struct search *s, uint64_t after, struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < s->n; i++) {
        if (s->rounds[i] > after && s->rounds[i] <= s->driver->resume.committed) {
            rv = fl_models_set_aside(s->driver->srv->state_dir, s->rounds[i], err);
            if (rv == FL_OK) {
                rv = fl_mixtures_set_aside(s->driver->srv->state_dir, s->rounds[i], err);
            }
        }
    }
    return rv;
}

static int no_pair(const struct search *s, struct fl_err *err)
{
    const char *dir = s->driver->srv->state_dir;
    unsigned long long newest = s->n > 0 ? s->rounds[0] : 0;

    if (s->n == 0) {
        return fl_err_set(err, FL_ESTATE, "no checkpoint in '%s/models' can be read: it holds none",
                          dir);
    }
    return fl_err_set(
        err, FL_ESTATE,
        "no checkpoint in '%s/models' can be read that goes with a round of the state "
        "database, which ends at round %llu; the newest file is of round %llu. "
        "'fl-serverd --recover CONFIG' goes on from the newest good one, whatever the "
        "database says",
        dir, (unsigned long long)s->driver->resume.committed, newest);
}

/* FL_ENOENT: there is none yet, and none is needed. */
static int use_pair(const struct search *s, struct fl_err *err)
{
    struct fl_driver *driver = s->driver;
    uint64_t last = driver->resume.committed;
    uint64_t round = 0;
    int rv = find_pair(s, &round, err);

    if (rv == FL_ENOENT && (last > 0 || (s->n > 0 && s->rounds[0] > 1))) {
        return no_pair(s, err);
    }
    if (rv == FL_ENOENT) { /* The first model can be made again; what was begun with it cannot. */
        int code = s->n > 0 ? fl_models_set_aside(driver->srv->state_dir, 0, err) : FL_OK;

        code = code == FL_OK && s->n > 0 ? go_back(driver, 0, err) : code;
        return code == FL_OK ? FL_ENOENT : code;
    }
    if (rv == FL_OK && s->rounds[0] > last + 1) {
        fl_log(driver->srv->log, FL_LOG_WARNING, "server",
               "there are checkpoints up to round %llu, but the state database ends at round %llu: "
               "was an older one put in its place? The rounds are run again; 'fl-serverd "
               "--recover CONFIG' goes on from the newest checkpoint instead",
               (unsigned long long)s->rounds[0], (unsigned long long)last);
    }
    if (rv != FL_OK || round == last) {
        return rv;
    }
    fl_log(driver->srv->log, FL_LOG_WARNING, "server",
           "going back to round %llu, the newest with a record and a good checkpoint: rounds up to "
           "%llu are run again",
           (unsigned long long)round, (unsigned long long)last);
    rv = set_aside(s, round, err);
    return rv == FL_OK ? go_back(driver, round, err) : rv;
}

static int load_checkpoint(struct fl_driver *driver, struct fl_err *err)
{
    struct search s = {.driver = driver, .tag = fl_federation_tag(&driver->federation)};
    int rv = fl_models_list(driver->srv->state_dir, &s.rounds, &s.n, err);

    rv = rv == FL_OK ? use_pair(&s, err) : rv;
    free(s.rounds);
    return rv;
}

static void tell_entered(struct fl_driver *driver, const struct fl_store_entered *e)
{
    const struct fl_log *log = driver->srv->log;
    unsigned long long next = e->committed + 1;
    size_t i;

    for (i = 0; i < e->verdict.n; i++) {
        const struct fl_settings_difference *d = &e->verdict.list[i];

        fl_log(log, FL_LOG_NOTICE, "server",
               "configuration changed: %s '%s' -> '%s', from round %llu on", d->name, d->before,
               d->after, next);
        if (strcmp(d->name, "model.file") == 0 && d->after[0] != '\0') {
            fl_log(log, FL_LOG_WARNING, "server",
                   "model.file '%s' is ignored: the state folder has a model already, of round "
                   "%llu; use another state_dir to begin from the file",
                   d->after, (unsigned long long)e->committed);
        }
    }
    if (e->unknown) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the state folder is of an older version, which did not write down under which "
               "settings it was made");
    }
    if (e->dropped_round != 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "round %llu: attempt %u is dropped with %llu accepted updates, which were made "
               "under other settings; attempt %u is the next",
               (unsigned long long)e->dropped_round, e->dropped_attempt,
               (unsigned long long)e->dropped_updates, e->dropped_attempt + 1);
    }
    if (e->held != 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the checkpoint of round %llu, from before the change, stays until 'flctl release "
               "--round %llu'",
               (unsigned long long)e->held, (unsigned long long)e->held);
    }
    if (e->kept_anew) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "what the solver keeps on the server and what clients keep between rounds begins "
               "anew");
    }
    if (e->verdict.offer) {
        fl_log(log, FL_LOG_NOTICE, "server", "what clients told of their data is removed");
    }
}

/* Under what the folder was left, and under what it goes on. */
static int enter(struct fl_driver *driver, struct fl_err *err)
{
    struct fl_settings now = {.n = 0};
    struct fl_store_entered entered;
    int rv = fl_server_conf_settings(driver->srv->conf, &now);

    rv = rv == FL_OK
             ? fl_store_enter(driver->federation.store, &now, fl_clock_wall_ms(), &entered, err)
             : rv;
    if (rv == FL_OK) {
        driver->federation.line = entered.line;
        tell_entered(driver, &entered);
        fl_store_entered_done(&entered);
    }
    fl_settings_done(&now);
    return rv;
}

static int open_state(struct fl_driver *driver, struct fl_err *err)
{
    struct fl_serverd *srv = driver->srv;
    int rv = fl_fs_mkdirs(srv->state_dir, err);

    if (rv == FL_OK) {
        rv = fl_fs_lock_dir(srv->state_dir, &driver->lock_fd, err);
    }
    if (rv == FL_OK) {
        rv = fl_store_open(srv->state_dir, srv->federation, srv->conf->layout,
                           srv->conf->durability, &driver->federation.store, err);
    }
    if (rv == FL_OK) {
        rv = fl_rollback_carry_out(driver, err);
    }
    if (rv == FL_OK) {
        rv = enter(driver, err);
    }
    if (rv == FL_OK) {
        rv = fl_store_load(driver->federation.store, &driver->resume, err);
    }
    if (rv == FL_OK) {
        rv = fl_store_clean_spool(srv->state_dir, &driver->resume, err);
    }
    if (rv == FL_OK) {
        rv = fl_store_totals(driver->federation.store, &driver->progress.totals, err);
    }
    return rv == FL_OK ? fl_driver_load_errors(driver, err) : rv;
}

static int open_model(struct fl_driver *driver, int *ret_exit, struct fl_err *err)
{
    struct fl_serverd *srv = driver->srv;
    size_t i;
    int rv = fl_model_state_new(&driver->federation, &driver->progress.committed.model);

    for (i = 0; rv == FL_OK && i < driver->federation.n_state; i++) {
        (void)memset(fl_blob_fill(driver->progress.committed.model.state[i]), 0,
                     fl_blob_len(driver->progress.committed.model.state[i]));
    }

    if (rv == FL_OK) {
        rv = load_checkpoint(driver, err);
    }
    if (rv == FL_ENOENT) {
        *ret_exit = FL_EXIT_DATA;
        rv = initial_model(driver, err);
        if (rv == FL_OK) {
            struct fl_models_tag tag = fl_federation_tag(&driver->federation);

            *ret_exit = FL_EXIT_STATE;
            rv = fl_models_save(srv->state_dir, 0, &tag, srv->conf->layout,
                                fl_blob_fill_floats(driver->progress.committed.model.theta), NULL,
                                NULL, 0, true, err);
        }
    }
    if (rv == FL_OK) {
        struct fl_models_tag tag = fl_federation_tag(&driver->federation);

        fl_driver_begin_anew(driver);
        rv = fl_models_prune(srv->state_dir, &tag, driver->resume.committed, UINT32_MAX, 0, err);
    }
    /* Those of a round that was aggregated and not committed never were. */
    if (rv == FL_OK) {
        rv = fl_checkpoints_prune_mixtures(&driver->federation, driver->resume.committed, err);
    }
    if (rv == FL_OK) {
        rv = fl_driver_load_mixtures(driver, driver->resume.committed, err);
    }
    return rv;
}

/* What clients told of their data, when a round has begun before. */
static int open_offers(struct fl_driver *driver, struct fl_err *err)
{
    int rv;

    if (!fl_driver_wants_offers(driver)) {
        return FL_OK;
    }
    rv = fl_offers_open(driver->srv->state_dir, &driver->offered, driver->offered_digest, err);
    if (rv == FL_EFORMAT) {
        fl_log(driver->srv->log, FL_LOG_WARNING, "server",
               "what clients offered is put together again before the next round: %s",
               fl_err_text(err, rv));
        rv = fl_offers_set_aside(driver->srv->state_dir, err);
    }
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl_driver_recover(struct fl_driver *driver, int *ret_exit, struct fl_err *err)
{
    const struct fl_serverd *srv = driver->srv;
    const struct fl_options *o = srv->conf->checkpoints;
    int rv;

    driver->federation = (struct fl_federation){
        .layout = srv->conf->layout,
        .strategy = srv->conf->strategy,
        .state_dir = srv->state_dir,
        .log = srv->log,
        .momentum = fl_options_float(srv->conf->training, "momentum"),
        .retention = {.keep = (uint32_t)fl_options_int(o, "keep"),
                      .best = (uint32_t)fl_options_int(o, "keep_best"),
                      .every = (uint32_t)fl_options_int(o, "every"),
                      .span_ms = fl_options_ms(o, "keep_for"),
                      .parts = (uint32_t)fl_options_int(o, "keep_parts")},
    };
    fl_federation_name_states(&driver->federation);
    *ret_exit = FL_EXIT_DATA;
    rv = fl_preflight_evaluation(srv->conf, &driver->test, &driver->net, err);
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_STATE;
        rv = open_state(driver, err);
    }
    if (rv == FL_OK) {
        rv = open_model(driver, ret_exit, err);
    }
    if (rv == FL_OK) {
        rv = open_offers(driver, err);
    }
    return rv;
}
