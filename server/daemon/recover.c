/*
 * Opens the state folder at a start, checks that it belongs to the configured federation, and
 * recovers its state; fl-serverd --recover. Runs before the coordinator thread starts.
 */

#include <stdio.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "server/daemon/runtime_impl.h"
#include "server/daemon/serverd_exit.h"
#include "server/daemon/serverd_preflight.h"
#include "server/store/moved.h"
#include "server/work/opening.h"

static struct fl_federation federation_of(const struct fl_serverd_conf *own,
                                          const struct fl_log *log)
{
    const struct fl_server_conf *conf = own->conf;
    const struct fl_server_checkpoints *c = conf->checkpoints;

    return (struct fl_federation){
        .layout = conf->layout,
        .strategy = conf->strategy,
        .state_dir = own->state_dir,
        .log = log,
        .momentum = conf->training->momentum,
        .retention = {.keep = (uint32_t)c->keep,
                      .best = (uint32_t)c->keep_best,
                      .every = (uint32_t)c->every,
                      .span_ms = c->keep_for_ms,
                      .parts = FL_RETENTION_PARTS},
        .offer_max = fl_addressable(conf->limits->offer),
        .offer_range = conf->limits->offer_range,
        .inputs = conf->inputs,
        .classes = conf->classes,
    };
}

/* The first model of a new federation, and the exit code of a start without one. */
struct first {
    const struct fl_server_conf *conf;
    uint64_t seed;
    int *exit;
};

static int recover_first_model(void *ctx, float *theta, struct fl_err *err)
{
    const struct first *first = ctx;
    const struct fl_server_conf *conf = first->conf;
    int rv = conf->model->file[0] != '\0' ? fl_server_conf_model(conf, theta, err)
                                          : fl_opening_draw(&conf->net, first->seed, theta, err);

    *first->exit = rv == FL_OK ? FL_EXIT_STATE : FL_EXIT_DATA;
    return rv;
}

static int recover_open_folder(struct fl_runtime *runtime, int *ret_exit, struct fl_err *err)
{
    const struct fl_server_conf *conf = runtime->srv->conf;
    struct fl_settings settings = {.n = 0};
    struct first first = {conf, runtime->coord_conf.seed, ret_exit};
    const struct fl_opening opening = {.name = runtime->srv->federation,
                                       .durability = conf->main->durability,
                                       .settings = &settings,
                                       .wall_ms = fl_clock_wall_ms(),
                                       .first_model = recover_first_model,
                                       .ctx = &first};
    int rv = fl_fs_mkdirs(runtime->srv->state_dir, err);

    rv = rv == FL_OK ? fl_fs_lock_dir(runtime->srv->state_dir, &runtime->lock_fd, err) : rv;
    rv = rv == FL_OK ? fl_moved_check(runtime->srv->state_dir, err)
                     : rv; /* after locking the folder */
    rv = rv == FL_OK ? fl_server_conf_settings(conf, &settings) : rv;
    if (rv == FL_OK) {
        rv = fl_opening_run(&runtime->federation, &opening, &runtime->progress, &runtime->resume,
                            err);
    }
    fl_settings_done(&settings);
    return rv == FL_OK ? fl_runtime_load_errors(runtime, err) : rv;
}

int fl_runtime_recover(struct fl_runtime *runtime, int *ret_exit, struct fl_err *err)
{
    const struct fl_server_conf *conf = runtime->srv->conf;
    int rv;

    runtime->federation = federation_of(runtime->srv->own, runtime->srv->log);
    *ret_exit = FL_EXIT_DATA;
    rv = fl_preflight_evaluation(conf, runtime->srv->log, &runtime->evaluator, err);
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_STATE;
        rv = recover_open_folder(runtime, ret_exit, err);
    }
    return rv;
}

/* --- --recover: a database that is lost, or does not match its checkpoints --- */

static void recover_print_lost(const struct fl_store_rebuild *r,
                               const struct fl_federation *federation)
{
    if (r->fresh) {
        (void)printf("lost: the records of clients (they are created again as they join), the "
                     "records of earlier rounds, the open round and its uploads\n");
    } else {
        (void)printf("lost: the open round and its uploads%s\n",
                     r->round < r->had ? ", and the rounds after this one" : "");
    }
    if (fl_federation_clients_keep(federation)) {
        (void)printf("the clients' state for '%s' belongs to rounds that the server no longer has: "
                     "clients reset it\n",
                     federation->strategy->algorithm);
    }
}

static int recover_rebuild(const struct fl_serverd_conf *own, const struct fl_log *log,
                           struct fl_err *err)
{
    struct fl_federation federation = federation_of(own, log);
    struct fl_store_rebuild r;
    int rv = fl_opening_rebuild(&federation, own->conf->main->federation, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (r.unchanged) {
        (void)printf("%s: nothing to recover: round %llu has its record and its checkpoint\n",
                     r.dir, (unsigned long long)r.round);
        return FL_OK;
    }
    (void)printf("%s: federation '%s' continues after round %llu%s\n", r.dir, r.federation,
                 (unsigned long long)r.round,
                 r.fresh ? ", with a new state database (an old one is kept as federation.db.bad-N)"
                         : "");
    recover_print_lost(&r, &federation);
    return FL_OK;
}

int fl_server_recover(const struct fl_serverd_conf *own, const struct fl_log *log)
{
    const char *dir = own->state_dir;
    struct fl_err err = {0};
    int lock = -1;
    int rv = fl_fs_exists(dir)
                 ? fl_fs_lock_dir(dir, &lock, &err)
                 : fl_err_set(&err, FL_ENOENT, "the state folder '%s' does not exist", dir);

    rv = rv == FL_OK ? fl_preflight_federation(own, &err) : rv;
    rv = rv == FL_OK ? recover_rebuild(own, log, &err) : rv;
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-serverd: cannot recover: %s\n", fl_err_text(&err, rv));
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    return rv == FL_OK ? FL_EXIT_OK : FL_EXIT_STATE;
}
