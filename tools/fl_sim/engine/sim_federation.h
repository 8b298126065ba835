#ifndef FL_SIM_FEDERATION_H
#define FL_SIM_FEDERATION_H

/*
 * A whole federation in this process, in virtual time: the coordinator and server/work as the
 * server, a session (client/core, client/shell) and client/work for each active client, and files
 * in a folder as the daemons' files. Between them is the network and device model
 * (tools/fl_sim/world): durations of messages, transfers and trainings, and availability of
 * clients.
 *
 * Only time is simulated; all messages, decisions and computations come from the daemons' own code.
 * Messages arrive in the order in which they were sent; a transfer shares the server's link with
 * all concurrent ones; a deadline of the coordinator passes when the clock reaches it. The server's
 * own work takes no time.
 *
 * With a journal, a killed run continues after the last committed round: the simulation is replayed
 * from its start, with results of the journal in place of arithmetic. Without a journal, a folder
 * that holds a federation continues as a restarted server does.
 *
 * Threading: one thread; the clients' work on `threads` threads, with the same results.
 */

#include "libfl/nn/net.h"
#include "libfl/wire/messages.h"
#include "server/core/coord.h"
#include "tools/fl_sim/engine/account.h"
#include "tools/fl_sim/engine/worker_pool.h"
#include "tools/fl_sim/world/world.h"

/* Callbacks for measurement; each may be NULL. */
struct fl_fed_watch {
    /* A participant of an ended attempt, committed or not; and in a committed one, each client that
       was not selected and evaluated its model. */
    void (*part)(void *ctx, const struct fl_fed_part *part);
    /* False: stop the run. */
    bool (*committed)(void *ctx, const struct fl_round_rec *record, const struct fl_sim_round *sim);
    void *ctx;
};

struct fl_fed_conf {
    const char *dir;  /* the folders "server" and "clients" are created in it */
    const char *name; /* of the federation */
    /* Includes strategy and layout; evaluate_server needs `test`. */
    struct fl_coord_conf coord;
    const struct fl_space *space; /* of updates; NULL: they have the layout of the model */
    struct fl_net_spec net;
    struct fl_wire_training training;
    size_t inputs, classes, summary_max; /* as fl_federation */
    double summary_range;
    double norm_bound;                  /* of an update; 0: no limit */
    double norm_clip, share_cap;        /* as fl_federation */
    struct fl_retention retention;      /* all zero: the newest checkpoint */
    const struct fl_settings *settings; /* that the folder stores; NULL: those of the strategy */
    const struct fl_sim_clients *sim_clients;
    const struct fl_dataset *test; /* of the server; NULL: none */
    unsigned metrics;              /* of its evaluations: set of 1u << enum fl_net_metric */
    /* Of a program (sim_clients->program), which evaluates for the server too; "": it has them. */
    const char *test_folder;
    bool test_whole;              /* all of the folder */
    const struct fl_world *world; /* network and device model; NULL: nothing takes time */
    /* Own limits of each client's payload traffic, bytes/s; 0: no limit. */
    double upload_rate, download_rate;
    const float *first_model; /* [layout], read by fl_fed_create(); NULL: drawn from the seed */
    const char *journal;      /* path; NULL: none */
    bool dry;                 /* no arithmetic: results that depend on it are drawn or omitted */
    bool keep_records;        /* write selections, plans and updates to the database too */
    unsigned threads;
    const struct fl_ranks *ranks; /* other processes that share the clients' work; NULL: none */
    const struct fl_log *log;     /* may be NULL */
    struct fl_fed_watch watch;
};

enum fl_fed_end {
    FL_FED_DONE,     /* all rounds */
    FL_FED_ENOUGH,   /* the watch returned false */
    FL_FED_DIVERGED, /* the coordinator paused the federation; fl_fed_why() */
    FL_FED_STUCK     /* it waits for what does not happen; fl_fed_why() */
};

struct fl_fed;

/* `conf` is copied, its pointers are borrowed. Errors of fl_opening_run(), and of a journal that
   does not match the folder. */
FL_MUST_CHECK int fl_fed_create(const struct fl_fed_conf *conf, struct fl_fed **ret,
                                struct fl_err *err);
void fl_fed_free(struct fl_fed *fed); /* NULL is allowed. */
/* Run until the end, once. An error is one of this process or of the disk; it names the client, if
   any. */
FL_MUST_CHECK int fl_fed_run(struct fl_fed *fed, enum fl_fed_end *ret, struct fl_err *err);
/* Why the run ended. */
const char *fl_fed_why(const struct fl_fed *fed);

#endif
