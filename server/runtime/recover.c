/*
 * Opens the state folder at a start, checks that it belongs to the configured federation, and
 * recovers its state, or rebuilds it (fl-serverd --recover). Runs before the coordinator thread
 * starts.
 */

#include <stdio.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "server/runtime/runtime_impl.h"
#include "server/store/moved.h"
#include "server/work/opening.h"

static struct fl_federation federation_of(const struct fl_server_conf *conf, const char *state_dir,
                                          const struct fl_log *log)
{
    const struct fl_server_checkpoints *c = conf->checkpoints;

    return (struct fl_federation){
        .layout = conf->layout,
        .space = conf->space,
        .strategy = conf->strategy,
        .state_dir = state_dir,
        .log = log,
        .momentum = conf->training->momentum,
        .seed = (uint64_t)conf->main->seed,
        .norm_clip = conf->round->norm_clip,
        .share_cap = conf->round->share_cap,
        .retention = {.keep = (uint32_t)c->keep,
                      .best = (uint32_t)c->keep_best,
                      .every = (uint32_t)c->every,
                      .span_ms = c->keep_for_ms,
                      .parts = FL_RETENTION_PARTS},
        .summary_max = fl_addressable(conf->limits->summary),
        .summary_range = conf->limits->summary_range,
        .inputs = conf->inputs,
        .classes = conf->classes,
    };
}

/* The first model of a new federation, and whether it could not be made. */
struct first {
    const struct fl_server_conf *conf;
    uint64_t seed;
    bool *failed;
};

static int recover_first_model(void *ctx, float *theta, struct fl_err *err)
{
    const struct first *first = ctx;
    const struct fl_server_conf *conf = first->conf;
    int rv = conf->model->file[0] != '\0'
                 ? fl_server_conf_model(conf, theta, err)
                 : fl_net_draw(&conf->net, fl_opening_seed(conf->strategy, first->seed), theta,
                               fl_layout_count(conf->layout), err);

    *first->failed = rv != FL_OK;
    return rv;
}

int fl_runtime_recover(struct fl_runtime *runtime, bool *ret_no_model, struct fl_err *err)
{
    const char *dir = runtime->setup.state_dir;
    const struct fl_server_conf *conf = runtime->setup.conf;
    struct fl_settings settings = {.n = 0};
    struct first first = {conf, runtime->coord_conf.seed, ret_no_model};
    const struct fl_opening opening = {.name = conf->main->federation,
                                       .durability = conf->main->durability,
                                       .settings = &settings,
                                       .wall_ms = fl_clock_wall_ms(),
                                       .first_model = recover_first_model,
                                       .ctx = &first};
    int rv = fl_fs_mkdirs(dir, err);

    *ret_no_model = false;
    runtime->federation = federation_of(conf, dir, runtime->setup.log);
    runtime->federation.root = runtime->setup.root;
    runtime->federation.program = runtime->setup.program;
    runtime->federation.cancel = &runtime->cancel;
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_lock_dir(dir, &runtime->lock_fd, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_moved_check(dir, err); /* after locking the folder */
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_server_conf_settings(conf, &settings);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_opening_run(&runtime->federation, &opening, &runtime->progress, &runtime->resume, err);
    fl_settings_done(&settings);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_runtime_load_errors(runtime, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_runtime_load_central(runtime, err);
}

/* --- --recover: a database that is lost, or does not match its checkpoints --- */

int fl_runtime_rebuild(const struct fl_server_conf *conf, const char *state_dir,
                       const struct fl_log *log, struct fl_err *err)
{
    struct fl_federation federation = federation_of(conf, state_dir, log);
    struct fl_store_rebuild r;
    int rv = fl_opening_rebuild(&federation, conf->main->federation, &r, err);

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
    if (r.fresh) {
        (void)printf("lost: the records of clients (they are created again as they join), the "
                     "records of earlier rounds, the open round and its uploads\n");
    } else {
        (void)printf("lost: the open round and its uploads%s\n",
                     r.round < r.had ? ", and the rounds after this one" : "");
    }
    if (fl_federation_clients_keep(&federation)) {
        (void)printf("the clients' state for '%s' belongs to rounds that the server no longer has: "
                     "clients reset it\n",
                     federation.strategy->algorithm);
    }
    return FL_OK;
}
