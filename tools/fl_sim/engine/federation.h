#ifndef FL_SIM_FEDERATION_H
#define FL_SIM_FEDERATION_H

/*
 * A whole federation in this process: the coordinator and server/work as the server, a member
 * (member.h) as each client, files in a folder as theirs. Nothing is between them: an effect is
 * carried out at once, and what comes of it is the next event. Every message that the wire would
 * carry arrives, in the order in which it was sent; a deadline passes when nothing else is left.
 *
 * A folder that holds a federation goes on from it, as the daemons do.
 *
 * Threading: one thread.
 */

#include "libfl/nn/net.h"
#include "server/core/coord.h"
#include "tools/fl_sim/engine/member.h"

/* What happens, for whoever measures; each may be NULL. `client`: in the order of fl_fed_add(). */
struct fl_fed_watch {
    void (*reported)(void *ctx, size_t client, const struct fl_result *result);
    void (*evaluated)(void *ctx, size_t client, const struct fl_eval_rec *received,
                      const struct fl_eval_rec *adapted);
    void (*committed)(void *ctx, const struct fl_round_rec *record);
    void *ctx;
};

struct fl_fed_conf {
    const char *dir;  /* "server" and "clients" are made in it */
    const char *name; /* of the federation */
    /* Strategy and layout with it; evaluate_server is not set, as there is no test set. */
    struct fl_coord_conf coord;
    struct fl_net_spec net;
    struct fl_wire_training training;
    size_t inputs, classes, offer_max; /* as fl_federation */
    const struct fl_log *log;          /* may be NULL */
    struct fl_fed_watch watch;
};

struct fl_fed;

/* `conf` is copied, what it points to is borrowed. Errors of fl_opening_run(). */
FL_MUST_CHECK int fl_fed_create(const struct fl_fed_conf *conf, struct fl_fed **ret,
                                struct fl_err *err);
void fl_fed_free(struct fl_fed *fed); /* NULL is allowed. */
/*
 * A client, before the run. Takes `trainer`, on error too; `seed` as fl_worker.seed. FL_EINVAL: no
 * name that one can have.
 */
FL_MUST_CHECK int fl_fed_add(struct fl_fed *fed, const char *name, struct fl_trainer *trainer,
                             uint64_t samples, uint64_t evaluation_samples, uint64_t seed,
                             struct fl_err *err);
/*
 * Until all rounds are done. FL_ESTATE: it waits for what does not come, and says for what; an
 * error of a client ends it, with its name.
 */
FL_MUST_CHECK int fl_fed_run(struct fl_fed *fed, struct fl_err *err);

#endif
