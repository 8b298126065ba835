/* What a starting server finds: its lock, its records, its model. */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "server/srv/driver_state.h"
#include "server/srv/exit_codes.h"

static int new_model(struct fl_driver *driver, struct fl_model_state *model)
{
    size_t n = fl_driver_floats(driver);
    size_t i;
    int rv = fl_blob_create(n * sizeof(float), &model->theta);

    for (i = 0; rv == FL_OK && i < driver->n_state; i++) {
        model->state[i] = calloc(n, sizeof(float));
        rv = model->state[i] != NULL ? FL_OK : FL_ENOMEM;
    }
    return rv;
}

static float *floats_of(struct fl_blob *blob)
{
    return (float *)(void *)fl_blob_fill(blob);
}

/* The very first model: from the file of the configuration, or drawn from the seed. */
static int initial_model(struct fl_driver *driver, struct fl_err *err)
{
    const struct fl_server_conf *conf = driver->srv->conf;
    float *theta = floats_of(driver->current.theta);
    struct fl_net *net = NULL;
    struct fl_rng rng;
    int rv;

    if (fl_options_is_set(conf->model, "file")) {
        return fl_st_load(fl_options_str(conf->model, "file"), conf->layout, theta, err);
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
    int rv = fl_store_rewind(driver->store, round, err);

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

    for (;;) {
        int rv = fl_models_load(driver->srv->state_dir, round, driver->srv->conf->layout,
                                floats_of(driver->current.theta), driver->current.state,
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

static int open_model(struct fl_driver *driver, struct fl_err *err)
{
    struct fl_srv *srv = driver->srv;
    int rv = new_model(driver, &driver->current);

    if (rv == FL_OK) {
        rv = load_checkpoint(driver, err);
    }
    if (rv == FL_ENOENT) {
        rv = initial_model(driver, err);
        if (rv == FL_OK) {
            rv = fl_models_save(srv->state_dir, 0, srv->conf->layout,
                                floats_of(driver->current.theta), NULL, NULL, 0, true, err);
        }
    }
    if (rv == FL_OK) {
        rv = fl_models_prune(srv->state_dir, driver->resume.committed, UINT32_MAX, 0, err);
    }
    return rv;
}

static int open_evaluation(struct fl_driver *driver, struct fl_err *err)
{
    const struct fl_server_conf *conf = driver->srv->conf;
    const char *folder = fl_options_str(conf->evaluation, "data");
    int rv;

    if (folder[0] == '\0') {
        return FL_OK;
    }
    rv = fl_dataset_open(folder, "test", &driver->test, err);
    if (rv == FL_OK) {
        rv = fl_net_create_evaluator(&conf->net, &driver->net, err);
    }
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "evaluation.data");
    }
    if (driver->test->dim != fl_net_inputs(driver->net) ||
        driver->test->classes > fl_net_classes(driver->net))
    {
        return fl_err_set(err, FL_ESHAPE,
                          "evaluation.data: '%s' has %zu values and %zu classes, the network takes "
                          "%zu values and has %zu classes",
                          folder, driver->test->dim, driver->test->classes,
                          fl_net_inputs(driver->net), fl_net_classes(driver->net));
    }
    return FL_OK;
}

int fl_driver_recover(struct fl_driver *driver, int *ret_exit, struct fl_err *err)
{
    const struct fl_aggregate_ops *aggregate = driver->srv->conf->strategy->aggregate;
    int rv;

    driver->state_names = aggregate->state_names;
    driver->n_state = aggregate->n_state;
    FL_REQUIRE(driver->n_state <= FL_AGG_MAX_STATE);
    *ret_exit = FL_EXIT_DATA;
    rv = open_evaluation(driver, err);
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_STATE;
        rv = open_state(driver, err);
    }
    if (rv == FL_OK) {
        rv = open_model(driver, err);
    }
    return rv;
}
