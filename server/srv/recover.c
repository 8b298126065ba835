/* What a starting server finds: its lock, its records, its model. */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "server/srv/driver_state.h"
#include "server/srv/exit_codes.h"
#include "server/srv/preflight.h"

/* The very first model: from the file of the configuration, or drawn from the seed. */
static int initial_model(struct fl_driver *driver, struct fl_err *err)
{
    const struct fl_server_conf *conf = driver->srv->conf;
    float *theta = fl_blob_fill_floats(driver->current.theta);
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

/* Read the records again as they are without the rounds after `round`. */
static int go_back(struct fl_driver *driver, uint64_t round, struct fl_err *err)
{
    const struct fl_strategy *s = driver->srv->conf->strategy;
    int rv = fl_store_rewind(driver->store, round, err);

    if (fl_solver_keeps(s->solver->keeps) > 0 || s->personal->own) {
        fl_log(driver->srv->log, FL_LOG_WARNING, "server",
               "what clients keep for '%s' is of up to %llu rounds later and stays so",
               s->algorithm, (unsigned long long)(driver->resume.committed - round));
    }
    if (rv == FL_OK) {
        fl_store_resume_done(&driver->resume);
        rv = fl_store_load(driver->store, &driver->resume, err);
    }
    return rv == FL_OK ? fl_store_totals(driver->store, &driver->totals, err) : rv;
}

/*
 * The checkpoint of the last committed round; when that is damaged, the newest good one
 * before it: the rounds in between are run again.
 */
static int load_checkpoint(struct fl_driver *driver, struct fl_err *err)
{
    const struct fl_log *log = driver->srv->log;
    uint64_t round = driver->resume.committed;
    float *state[FL_AGG_MAX_STATE] = {NULL};
    size_t i;

    for (i = 0; i < driver->n_state; i++) {
        state[i] = fl_blob_fill_floats(driver->current.state[i]);
    }
    for (;;) {
        int rv = fl_models_load(driver->srv->state_dir, round, driver->srv->conf->layout,
                                fl_blob_fill_floats(driver->current.theta), state,
                                driver->state_names, driver->n_state, err);

        if (rv == FL_OK) {
            break;
        }
        if (round == 0) {
            return driver->resume.committed == 0 && rv == FL_ENOENT
                       ? FL_ENOENT
                       : fl_err_wrap(err, FL_EFORMAT, "no checkpoint in '%s/models' can be read",
                                     driver->srv->state_dir);
        }
        fl_log(log, FL_LOG_WARNING, "server",
               "checkpoint of round %llu cannot be used, going back one: %s",
               (unsigned long long)round, fl_err_text(err, rv));
        round--;
    }
    return round < driver->resume.committed ? go_back(driver, round, err) : FL_OK;
}

static int open_state(struct fl_driver *driver, struct fl_err *err)
{
    struct fl_srv *srv = driver->srv;
    int rv = fl_fs_mkdirs(srv->state_dir, err);

    if (rv == FL_OK) {
        rv = fl_fs_lock_dir(srv->state_dir, &driver->lock_fd, err);
    }
    if (rv == FL_OK) {
        rv = fl_store_open(srv->state_dir, srv->federation, srv->conf->layout,
                           srv->conf->durability, &driver->store, err);
    }
    if (rv == FL_OK) {
        rv = fl_store_load(driver->store, &driver->resume, err);
    }
    if (rv == FL_OK) {
        rv = fl_store_totals(driver->store, &driver->totals, err);
    }
    return rv;
}

static int open_model(struct fl_driver *driver, int *ret_exit, struct fl_err *err)
{
    struct fl_srv *srv = driver->srv;
    size_t i;
    int rv = fl_model_state_new(driver, &driver->current);

    for (i = 0; rv == FL_OK && i < driver->n_state; i++) {
        (void)memset(fl_blob_fill(driver->current.state[i]), 0,
                     fl_blob_len(driver->current.state[i]));
    }

    if (rv == FL_OK) {
        rv = load_checkpoint(driver, err);
    }
    if (rv == FL_ENOENT) {
        *ret_exit = FL_EXIT_DATA;
        rv = initial_model(driver, err);
        if (rv == FL_OK) {
            *ret_exit = FL_EXIT_STATE;
            rv = fl_models_save(srv->state_dir, 0, srv->conf->layout,
                                fl_blob_fill_floats(driver->current.theta), NULL, NULL, 0, true,
                                err);
        }
    }
    if (rv == FL_OK) {
        rv = fl_models_prune(srv->state_dir, driver->resume.committed, UINT32_MAX, 0, err);
    }
    /* Those of a round that was aggregated and not committed never were. */
    if (rv == FL_OK) {
        rv = fl_mixtures_clean(srv->state_dir, driver->resume.committed, err);
    }
    if (rv == FL_OK) {
        fl_driver_load_mixtures(driver, driver->resume.committed);
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
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl_driver_recover(struct fl_driver *driver, int *ret_exit, struct fl_err *err)
{
    const struct fl_strategy *strategy = driver->srv->conf->strategy;
    size_t i;
    int rv;

    driver->n_state = fl_strategy_states(strategy);
    FL_REQUIRE(driver->n_state <= FL_AGG_MAX_STATE);
    for (i = 0; i < driver->n_state; i++) {
        driver->state_names[i] = fl_strategy_state_name(strategy, i);
    }
    *ret_exit = FL_EXIT_DATA;
    rv = fl_preflight_evaluation(driver->srv->conf, &driver->test, &driver->net, err);
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
