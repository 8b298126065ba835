#ifndef FL_SIM_FEDERATION_H
#define FL_SIM_FEDERATION_H

/*
 * A whole federation in this process, in virtual time: the coordinator and server/work as the
 * server, a session (client/core) and client/work for each client that has something to do, files
 * in a folder as theirs. Between them lies a world (tools/fl_sim/world): how long a message, a
 * transfer and a training take, and who is away when.
 *
 * What is simulated is when; what is said, decided and computed is done by the daemons' own code.
 * Messages arrive in the order in which they were sent; a transfer shares the server's link with
 * all others of the moment; a deadline of the coordinator passes when the clock reaches it. The
 * server's own work takes no time.
 *
 * With a journal a run that was killed goes on from the last committed round: the virtual world is
 * run again from its start, with what the journal knows in place of arithmetic. Without one a
 * folder that holds a federation goes on from it as a server does that was started again.
 *
 * Threading: one thread; the clients' work on as many as `threads` says, with the same results.
 */

#include "libfl/nn/net.h"
#include "libfl/wire/messages.h"
#include "server/core/coord.h"
#include "tools/fl_sim/engine/account.h"
#include "tools/fl_sim/engine/worker_pool.h"
#include "tools/fl_sim/world/world.h"

/* What happens, for whoever measures; each may be NULL. */
struct fl_fed_watch {
    /* A part of an attempt that is over, committed or not. */
    void (*part)(void *ctx, const struct fl_fed_part *part);
    /* False: it is enough, the run ends. */
    bool (*committed)(void *ctx, const struct fl_round_rec *record, const struct fl_sim_round *sim);
    void *ctx;
};

struct fl_fed_conf {
    const char *dir;  /* "server" and "clients" are made in it */
    const char *name; /* of the federation */
    /* Strategy and layout with it; evaluate_server goes with `test`. */
    struct fl_coord_conf coord;
    struct fl_net_spec net;
    struct fl_wire_training training;
    size_t inputs, classes, offer_max; /* as fl_federation */
    double offer_range;
    double norm_bound;                  /* of an update; 0: none */
    struct fl_retention retention;      /* all zero: the newest checkpoint */
    const struct fl_settings *settings; /* that the folder remembers; NULL: those of the strategy */
    const struct fl_sim_clients *sim_clients;
    const struct fl_dataset *test; /* the server's; NULL: none */
    const struct fl_world *world;  /* NULL: nothing takes time */
    /* Each client limits its own payload to these, bytes/s; 0: no limit. */
    double upload_rate, download_rate;
    const float *first_model; /* [layout], read by fl_fed_create(); NULL: drawn from the seed */
    const char *journal;      /* path; NULL: none */
    bool dry;                 /* no arithmetic: what depends on it is drawn or left out */
    bool keep_records;        /* selections, plans and updates go to the database too */
    unsigned threads;
    const struct fl_ranks *ranks; /* others who do clients' work too; NULL: none */
    const struct fl_log *log;     /* may be NULL */
    struct fl_fed_watch watch;
};

enum fl_fed_end {
    FL_FED_DONE,     /* all rounds */
    FL_FED_ENOUGH,   /* the watch said so */
    FL_FED_DIVERGED, /* the coordinator paused the federation; fl_fed_why() */
    FL_FED_STUCK     /* it waits for what does not come; fl_fed_why() */
};

struct fl_fed;

/* `conf` is copied, what it points to is borrowed. Errors of fl_opening_run(), and of a journal
   that does not go with the folder. */
FL_MUST_CHECK int fl_fed_create(const struct fl_fed_conf *conf, struct fl_fed **ret,
                                struct fl_err *err);
void fl_fed_free(struct fl_fed *fed); /* NULL is allowed. */
/* Until it ends, once. An error is ours or the disk's: of a client with its name. */
FL_MUST_CHECK int fl_fed_run(struct fl_fed *fed, enum fl_fed_end *ret, struct fl_err *err);
/* Why it ended as it did. */
const char *fl_fed_why(const struct fl_fed *fed);
uint64_t fl_fed_now_us(const struct fl_fed *fed);
/* The last committed model, exported order; as long as the federation. */
const float *fl_fed_model(const struct fl_fed *fed);

#endif
