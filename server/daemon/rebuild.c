/* --recover: a state folder whose database is lost or does not go with its checkpoints. */

#include <stdio.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/daemon/exit_codes.h"
#include "server/daemon/server.h"
#include "server/store/store.h"

static void say_lost(const struct fl_store_rebuild *r, const struct fl_strategy *strategy)
{
    if (r->fresh) {
        (void)printf("lost: what was known of clients (they are known again as they join), the "
                     "records of rounds before, the open round with what was uploaded for it\n");
    } else {
        (void)printf("lost: the open round with what was uploaded for it%s\n",
                     r->round < r->had ? ", and the rounds after this one" : "");
    }
    if (fl_solver_keeps(strategy->solver->keeps) > 0 || strategy->personal->own) {
        (void)printf("what clients keep for '%s' is of other rounds than the server now counts: "
                     "they begin it anew\n",
                     strategy->algorithm);
    }
}

static int rebuild(const struct fl_server_conf *conf, const struct fl_log *log, struct fl_err *err)
{
    const struct fl_strategy *strategy = conf->strategy;
    const char *names[FL_AGG_MAX_STATE] = {NULL};
    struct fl_store_rebuild r = {.dir = conf->state_dir,
                                 .federation = fl_options_str(conf->main, "federation"),
                                 .layout = conf->layout,
                                 .state_names = names,
                                 .n_state = fl_strategy_states(strategy),
                                 .n_own = strategy->aggregate->n_state,
                                 .mixes = strategy->aggregate->mixes,
                                 .log = log};
    size_t i;
    int rv;

    for (i = 0; i < r.n_state && i < FL_AGG_MAX_STATE; i++) {
        names[i] = fl_strategy_state_name(strategy, i);
    }
    rv = fl_store_rebuild(&r, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (r.unchanged) {
        (void)printf("%s: nothing to recover: round %llu has its record and its checkpoint\n",
                     r.dir, (unsigned long long)r.round);
        return FL_OK;
    }
    (void)printf("%s: federation '%s' goes on after round %llu%s\n", r.dir, r.federation,
                 (unsigned long long)r.round,
                 r.fresh ? ", with a new state database (an old one is kept as federation.db.bad-N)"
                         : "");
    say_lost(&r, strategy);
    return FL_OK;
}

int fl_server_recover(const struct fl_server_conf *conf, const struct fl_log *log)
{
    const char *dir = conf->state_dir;
    struct fl_err err = {0};
    int lock = -1;
    int rv = fl_fs_exists(dir) ? fl_fs_lock_dir(dir, &lock, &err)
                               : fl_err_set(&err, FL_ENOENT, "there is no state folder '%s'", dir);

    rv = rv == FL_OK ? rebuild(conf, log, &err) : rv;
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-serverd: cannot recover: %s\n", fl_err_text(&err, rv));
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    return rv == FL_OK ? FL_EXIT_OK : FL_EXIT_STATE;
}
