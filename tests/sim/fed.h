#ifndef FL_SIM_FED_H
#define FL_SIM_FED_H

/*
 * A whole federation in a virtual world: one server with the real coordinator and a
 * simulated disk, clients, links, and a hand that breaks things.
 *
 * Node 0 is the hand, node 1 the server, node 2 + i client i, named "c00", "c01", …
 *
 * The model is one number, theta, which stands for the floats that clients get (fed_floats). What
 * is trained is a function of these, the client's name and (round, attempt), and the next theta one
 * of theta and the updates in client order: so a model that is not the aggregate of exactly the
 * accepted updates of its round is found.
 *
 * Beside it goes what algorithms keep on both sides (SCAFFOLD, FedMCSA), as whole numbers:
 * a control for each unit, which on the server is always the sum of the clients', and
 * with `own` a personal model on each client, out of which the server makes mixtures. Clients
 * settle, train, keep and code by the rooms of the real one, on files (fed_work.c).
 *
 * SCAFFOLD's control goes along a second time as the floats that it is, one a unit, made on the
 * server by the solver's own part: its sum, what clients are told of it, and the members that it
 * is the mean of, however many of them come and go in the course of it.
 */

#include "client/core/session.h"
#include "libfl/base/buf.h"
#include "libfl/base/rng.h"
#include "libfl/sim/sim.h"
#include "tests/lib/coord_check.h"
#include "tools/fl_sim/member.h"

#define FED_UNITS   3
#define FED_FLOATS  8 /* of the model: each unit is a weight and a bias, the last has two */
#define FED_PATH    512
#define FED_HAND    0
#define FED_SERVER  1
#define FED_CLIENT0 2
#define FED_MAX     64
/* The server's numbers of clients are below this, those of forgotten ones included. */
#define FED_NUMBERS (4 * FED_MAX)
/* A timer of the server with a client's index: the operator makes it forget that client. */
#define FED_TAG_FORGET (UINT64_C(11) << 60)

struct fed_plan {
    uint64_t seed;
    unsigned n_clients;
    const char *preset;
    const char *upload; /* another policy in the slot, or NULL */
    bool own;           /* personal models */
    bool rebuild;       /* the changes of the float controls are rebuilt, not sent */
    uint32_t population;
    uint32_t start_clients; /* 0: n_clients */
    uint32_t min_clients;   /* 0: 1 */
    uint64_t join_every_ms; /* client i starts after i times this */
    uint64_t rounds;
    uint32_t min_responders;
    double over_selection;
    bool backfill;
    bool evaluate;
    bool real_sessions; /* fl_session instead of the scripted client */
    bool stay;          /* which stays when all rounds are done */
    /* NULL, or all that the coordinator is told, but for its layout; borrowed. What is here beside
       it (rounds, population, own) has to be the same. */
    const struct fl_coord_conf *conf;
    struct fl_sim_link link;
    uint64_t disk_ms;
    uint64_t train_ms_max; /* how long a client trains at most; the deadline is 1000 */
    /* Trouble, until `calm_ms`; then everything lives and the federation must end. */
    uint64_t calm_ms;
    uint64_t server_crash_every; /* mean, 0: never */
    uint64_t client_crash_every;
    uint64_t cut_every;
    double bad_report_rate; /* NaN in a divergence or the loss */
    double bad_upload_rate;
    double failed_training_rate;
    double failed_evaluation_rate;
    double failed_disk_rate; /* a write of the server fails and says so */
    double failed_aggregate_rate;
    uint64_t forget_every;    /* the operator makes the server forget one of the clients */
    uint64_t forget_after_ms; /* and the server by itself who is away for so long */
    uint64_t restart_ms;      /* every node that dies lives again after so long; 0: see above */
};

enum fed_msg_type {
    FED_HELLO = 1,
    FED_REPORT,
    FED_FAILED,
    FED_PUSH,
    FED_EVALUATION,
    FED_HEARTBEAT,
    FED_BYE, /* the client closes its connection */
    FED_WELCOME,
    FED_TASK,
    FED_PLAN,
    FED_ACCEPTED,
    FED_REJECTED,
    FED_DISMISSED,
    FED_EVALUATE,
    FED_DRAIN
};

struct fed_msg {
    enum fed_msg_type type;
    uint32_t attempt;
    uint64_t conn; /* of which connection, counted by the client */
    uint64_t round;
    uint64_t samples;
    uint64_t theta;           /* task, evaluate: the model */
    float update[FED_FLOATS]; /* push; only of the units that are sent */
    /* Task: the server's; push: the change of the client's. */
    uint64_t control[FED_UNITS];
    float told[FED_UNITS];   /* task: c */
    float pull[FED_UNITS];   /* push: mean gradient of the steps */
    float change[FED_UNITS]; /* push: dc_k */
    uint64_t counted_round;  /* task */
    uint32_t counted_attempt;
    bool has_mixture;
    uint64_t mixture;
    uint64_t wait_ms;
    double loss;
    float divergence[FED_UNITS];
    uint8_t units[FED_UNITS];
    bool has_units;
    bool bad;
};

struct fed_upload {
    uint64_t round;
    uint32_t attempt;
    uint32_t client; /* index, not number */
    float update[FED_FLOATS];
    uint64_t change[FED_UNITS]; /* of the client's control */
    float pull[FED_UNITS];
    float float_change[FED_UNITS];
    uint8_t units[FED_UNITS];
};

/* The server's side of a committed round. */
struct fed_model {
    uint64_t theta;
    uint64_t control[FED_UNITS];
    float sum[FED_UNITS]; /* of the float controls */
    bool sent[FED_MAX];   /* by client index: its update is in it, there is a mixture for it */
    uint64_t mixture[FED_MAX];
    /* The personal models as they must be by now; no server knows them, but the world does. */
    bool has_own[FED_MAX];
    uint64_t own[FED_MAX];
    /* What each client has put into `control` since it is known. */
    uint64_t share[FED_MAX][FED_UNITS];
    double float_share[FED_MAX][FED_UNITS];
    /* And what those put into it that are forgotten; how many of them. */
    uint64_t ghost[FED_UNITS];
    double float_ghost[FED_UNITS];
    uint32_t n_ghosts;
};

/* What a client keeps once it has settled. */
struct fed_kept {
    float control[FED_FLOATS], scaffold[FED_FLOATS];
    float own[FED_FLOATS];
};

/* What a server has read back from its disk. */
struct fed_store {
    struct fl_client_rec clients[FED_MAX];
    size_t n_clients;
    uint64_t expected, departed;
    uint64_t committed;
    struct fed_model model;
    uint64_t open_round;
    uint32_t open_attempt;
    bool planned;
    struct fl_round_size size;
    struct fl_part_rec parts[FED_MAX];
    float divergence[FED_MAX][FED_UNITS];
    uint8_t units[FED_MAX][FED_UNITS];
    size_t n_parts;
    struct fed_upload uploads[FED_MAX]; /* of the open round and attempt */
    size_t n_uploads;
};

struct fed;

struct fed_server {
    struct fl_coord *coord;
    struct fl_coord_conf conf;
    struct fl_strategy *strategy;
    struct fl_options *scaffold; /* of the solver whose part makes the float controls */
    struct fl_layout *layout;
    /* The attempt whose tasks were sent last, in whatever life, and its size. */
    uint64_t sized_round;
    uint32_t sized_attempt;
    struct fl_round_size size;
    struct fed_model model;   /* of the last committed round */
    struct fed_model next;    /* aggregated, not committed */
    uint64_t joining;         /* client index + 1 while its JOINED is stepped */
    uint32_t number[FED_MAX]; /* of client index, UINT32_MAX: not connected */
    uint64_t conn[FED_MAX];
    uint32_t forgetting[FED_NUMBERS]; /* client index by number, while FORGOTTEN is awaited */
    uint32_t burying[FED_MAX];        /* client indices of the FORGET_CLIENTS under way */
    size_t n_burying;
    bool burying_now; /* and it does not fail */
    struct fed_upload uploads[FED_MAX];
    struct fed_upload coming[4096]; /* being written to the spool */
    size_t n_coming;
};

struct fed_client {
    struct fed *fed;
    unsigned index;
    char name[16];
    uint64_t samples;
    struct fl_rng rng;
    bool drained;
    /* The newest task. */
    struct fed_msg task;
    bool has_task;
    uint64_t training; /* generation of the training that runs, 0: none */
    uint64_t generation;
    struct fl_member member; /* a process, while it lives */
    bool durable;            /* what it holds was told to be on disk */
    uint64_t granting;       /* generation of the grant that is being written down, 0: none */
    struct fed_msg push;     /* what then goes out */
    /* Its writes so far, the one that it dies at (0: none), and whether that is carried out. */
    uint64_t n_writes, die_at;
    bool die_after, dead;
    uint64_t conn; /* of its newest connection */
    bool linked;
    /* With real_sessions: */
    struct fl_session *session;
    bool connected;
};

struct fed {
    struct fed_plan plan;
    struct fl_sim *sim;
    struct fl_rng rng; /* of the hand and of faults */
    struct fed_server server;
    struct fed_client clients[FED_MAX];
    bool calm;
    bool finished;
    unsigned n_deaths, n_server_deaths;
    unsigned n_forgotten;
    bool forgotten[FED_MAX]; /* once or more: what it keeps may be of a life before */
    bool promised[FED_MAX];  /* FORGOTTEN was answered, and it has not come back since */
    unsigned n_promised;
    struct coord_check check;
    struct fl_buf log;
    char broken[256];
    char why[512];
    /* Of all clients: their folders, what the server described, a sample of data. */
    char dir[64];
    struct fl_setup *setup;
    struct fl_dataset *data;
    struct fl_log work_log;
};

/* A plan of five rounds without trouble. */
struct fed_plan fed_plan_of(uint64_t seed, const char *preset, unsigned n_clients);
/* Make the world and start everything; run until it is finished or `until_ms`. */
struct fed *fed_new(const struct fed_plan *plan);
void fed_run(struct fed *fed, uint64_t until_ms);
void fed_free(struct fed *fed);
/* The same until it is finished: it must be in time, with nothing broken; else the test fails. */
void fed_finish(struct fed *fed);
/* The operator starts the server again, with so many rounds in all; clients are left alone. */
void fed_restart(struct fed *fed, uint64_t rounds);
/* What the coordinator says it waits for; of a server that lives, until the next call. */
const char *fed_why(struct fed *fed);
/* What is wrong, or NULL. */
const char *fed_broken(const struct fed *fed);
FL_PRINTF(2, 3) void fed_fail(struct fed *fed, const char *fmt, ...);
FL_PRINTF(2, 3) void fed_log(struct fed *fed, const char *fmt, ...);
bool fed_chance(struct fed *fed, double rate);
void fed_send(struct fed *fed, uint32_t from, uint32_t to, const struct fed_msg *msg);
/* The server ends the connection of client `i`, which may come back at once. */
void fed_hang_up(struct fed *fed, uint32_t i);
/* The client of a name; FED_MAX: none. */
uint32_t fed_named(const struct fed *fed, const char *name);
/* A node died. */
void fed_died(struct fed *fed, uint32_t node);
/* A node dies of what it just did. */
void fed_dies(struct fed *fed, uint32_t node);
/* The model that `theta` stands for: small whole numbers. */
void fed_floats(uint64_t theta, float ret[FED_FLOATS]);
/* What stands for the model that a client trains from theta, or from the model itself. */
uint64_t fed_update(const char *name, uint64_t round, uint32_t attempt, uint64_t theta);
uint64_t fed_update_of(const char *name, uint64_t round, uint32_t attempt,
                       const float model[FED_FLOATS]);
uint64_t fed_hash(uint64_t a, uint64_t b);
/* Put one update into the next theta. */
uint64_t fed_mix(uint64_t theta, const char *name, const float update[FED_FLOATS],
                 const uint8_t *units);

/* --- what clients of both kinds do --- */

bool fed_client_chance(struct fed_client *c, double rate);
uint64_t fed_client_train_ms(struct fed_client *c);
void fed_client_hello(struct fed_client *c);
void fed_client_report(struct fed_client *c, uint64_t round, uint32_t attempt);
/* `c->push`, now or never. */
void fed_client_push(struct fed_client *c);
void fed_client_send(struct fed_client *c, struct fed_msg *msg);

/* --- what clients do with a task: false when it was not done, as the client died of it --- */

void fed_work_init(struct fed *fed);
void fed_work_done(struct fed *fed);
/* The model of all, which the caller owns. */
struct fl_layout *fed_work_layout(void);
/* The entry of the model that stands for unit `l`, its first one; and the unit of an entry. */
static inline unsigned fed_at(unsigned l)
{
    return 2 * l;
}
static inline unsigned fed_unit(unsigned at)
{
    return at / 2 < FED_UNITS ? at / 2 : FED_UNITS - 1;
}
/* A process begins with what is on its disk, or ends. */
void fed_work_open(struct fed_client *c);
void fed_work_close(struct fed_client *c);
/* Of which (round, attempt) it holds a result; round 0: none. */
struct fl_round_key fed_work_held(const struct fed_client *c);
/* Settle by `c->task` and get its bundles; then the training for it; its result is held. */
bool fed_work_fetch(struct fed_client *c);
bool fed_work_train(struct fed_client *c);
/* What it holds as `c->push`, with these units. */
bool fed_work_code(struct fed_client *c, const uint8_t *units);
/* Nothing is held any more. */
void fed_work_drop(struct fed_client *c);
/* What is kept of all on the disk of client `i` when `counted` is its newest counted round. */
void fed_work_settled(struct fed *fed, uint32_t i, struct fl_round_key counted,
                      struct fed_kept *ret);

extern const struct fl_sim_node_cbs fed_server_cbs;
extern const struct fl_sim_node_cbs fed_client_cbs;
extern const struct fl_sim_node_cbs fed_session_cbs;

void fed_server_init(struct fed *fed);
void fed_server_done(struct fed *fed);

/* --- what the server makes of updates --- */

/* Index of the client with this number in the server's table; UINT32_MAX: none. */
uint32_t fed_index(const struct fed *fed, uint32_t number);

/* The model that client `i` starts from. */
uint64_t fed_model_start(const struct fed *fed, const struct fed_model *model, uint32_t i);
/* A task, a selection or an aggregation: of an attempt all have the same size, which counts every
   client whose control is in the sum. */
void fed_model_size(struct fed *fed, const struct fl_effect *e);
/* The next model of exactly these parts; each must be on disk and made of this one. */
void fed_model_aggregate(struct fed *fed, const struct fl_effect *e);
/* Whom a COMMIT counts has another personal model. */
void fed_model_commit(struct fed *fed, const struct fl_effect *e);
/* The record of client `i` is off the disk. */
void fed_model_forget(struct fed_model *model, uint32_t i);
/* A round was committed: both sides agree on what is kept. */
void fed_model_check(struct fed *fed);

/* --- the server's disk --- */

void fed_store_read(const struct fl_sim *sim, struct fed *fed, struct fed_store *ret);
struct fl_coord_resume fed_store_resume(const struct fed_store *store);
/* Write what the effect asks for. */
void fed_store_write(struct fed *fed, const struct fl_effect *e, uint64_t tag);
/* A client of the effect has another number on disk: the real one refuses. */
bool fed_store_conflict(struct fed *fed, const struct fl_effect *e);
/* The spool files of (round, attempt) are removed. */
void fed_store_drop(struct fed *fed, uint64_t tag, uint64_t round, uint32_t attempt);
void fed_store_spool(struct fed *fed, uint64_t tag, const struct fed_upload *upload);

#endif
