#ifndef FL_SIM_FED_H
#define FL_SIM_FED_H

/*
 * A whole federation in a virtual world: one server with the real coordinator, clients, links, and
 * a hand that breaks things.
 *
 * Node 0 is the hand, node 1 the server, node 2 + i client i, named "c00", "c01", …
 *
 * The server has the rooms below a daemon: the real shell of the coordinator, store, opening,
 * payloads, spool, aggregation and commit on a folder (fed_disk.c); clients have theirs
 * (fed_work.c). Both may die at any write.
 *
 * The world knows what must come of it (fed_model.c). What a client makes of a model is a function
 * of that model, the client's name and (round, attempt) (fed_solver.c); so the next model is the
 * mean of exactly the accepted updates of its round, or something is wrong. What algorithms keep on
 * both sides goes along: a control of whole numbers, which on the server is always exactly the sum
 * of the clients', SCAFFOLD's control, made by the real solver's part, or with `own` a personal
 * model on each client, out of which the server mixes the next ones.
 */

#include "client/shell/session_shell.h"
#include "libfl/base/buf.h"
#include "libfl/base/rng.h"
#include "server/shell/coord_messages.h"
#include "server/store/recycled_files.h"
#include "tests/lib/coord_check.h"
#include "tests/lib/sim.h"
#include "tools/fl_sim/engine/member.h"

#define FED_UNITS     3
#define FED_FLOATS    8 /* of the model: each unit is a weight and a bias, the last has two */
#define FED_PATH      512
#define FED_PARTS     (3 * FED_UNITS) /* of a push: the update and what the solver sends */
#define FED_EVALUATED 10              /* samples that a client evaluates with */
#define FED_WIRE      1280            /* of a message without its payloads: one long text */
/* What the server scales an update with, for SCAFFOLD's control. */
#define FED_FACTOR  (1.0 / 65536)
#define FED_HAND    0
#define FED_SERVER  1
#define FED_CLIENT0 2
#define FED_MAX     64
/* The server's numbers of clients are below this, those of forgotten ones included. */
#define FED_NUMBERS (4 * FED_MAX)
/* A timer of the server with a client's index: the operator makes it forget that client. */
#define FED_TAG_FORGET (UINT64_C(11) << 60)
/* And with what the operator wishes of the rounds: an event's type. */
#define FED_TAG_WISH (UINT64_C(12) << 60)

struct fed_plan {
    uint64_t seed;
    unsigned n_clients;
    const char *preset;
    const char *upload; /* another policy in the component, or NULL */
    bool own;           /* personal models */
    /* NULL: float32. Then models have entries below 4 instead of whole numbers. */
    const char *broadcast;
    bool halves;       /* lattice: the step is halved in round 3, and of one round back is known */
    bool draws;        /* lattice, ternary: clients draw the first model */
    bool loses_models; /* lattice: the held model of a client that starts may be missing or unknown
                        */
    bool rebuild;      /* the changes of the float controls are rebuilt, not sent */
    uint32_t population;
    uint32_t start_clients; /* 0: n_clients */
    uint32_t min_clients;   /* 0: 1 */
    uint64_t join_every_ms; /* client i starts after i times this */
    uint64_t rounds;
    uint32_t min_responders;
    double over_selection;
    bool over_grace;
    bool backfill;
    double norm_cap, share_cap;
    uint32_t quarantine_after; /* offences in 10 rounds; 0: never */
    uint64_t quarantine_ms;
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
    uint64_t wish_every;      /* the operator pauses, or ends the open attempt */
    uint64_t forget_after_ms; /* and the server by itself who is away for so long */
    uint64_t restart_ms;      /* every node that dies lives again after so long; 0: see above */
    /* Node `dies` (0: none) does so at its write `dies_at`, as fed_die_at(). */
    uint32_t dies;
    uint64_t dies_at;
    bool tears; /* what the server writes into spool files counts too */
    bool dies_after;
};

/* What goes over a link: a message of fl.v1.Federation, encoded, or one of these. */
enum fed_msg_kind {
    FED_EVENT = 1, /* of a client */
    FED_COMMAND,   /* of the server */
    FED_WELCOME,   /* a Welcome: what it describes all clients know (fed_work_init()) */
    FED_PUSH,
    FED_BYE /* the client closes its connection */
};

/* Of a task, beside it: a simulated client fetches nothing. */
struct fed_payloads {
    float model[FED_FLOATS];
    float control[FED_FLOATS], told[FED_FLOATS];
    bool has_personal_model;
    float personal_model[FED_FLOATS];
};

/* An upload, as it is announced, and its bytes. */
struct fed_push {
    struct fl_round_key key;
    uint8_t units[FED_UNITS];
    struct fl_wire_part parts[FED_PARTS];
    size_t n_parts;
    uint8_t bytes[3 * FED_FLOATS * sizeof(float)];
    size_t n_bytes;
    bool bad;
};

struct fed_msg {
    enum fed_msg_kind kind;
    uint64_t conn; /* of which connection, counted by the client */
    uint8_t wire[FED_WIRE];
    size_t n_wire;
    union {
        struct fed_payloads payloads;
        struct fed_push push;
    } u;
};

/* What a client stores of a task. */
struct fed_task {
    struct fl_task task;
    bool has_plan;
    uint8_t units[FED_UNITS];
    struct fed_payloads payloads;
};

/* What a client put into the controls with the newest upload that is on the server's disk. */
struct fed_upload {
    uint64_t round;
    uint32_t attempt;
    uint8_t units[FED_UNITS];
};

/* What the world knows of a committed round. */
struct fed_model {
    float theta[FED_FLOATS];
    bool sent[FED_MAX]; /* by client index: its update is in it */
    float personal_model[FED_MAX][FED_FLOATS];
    /* The personal models as they must be by now: what stands for each. No server knows them. */
    bool has_own[FED_MAX];
    uint64_t own[FED_MAX];
    uint64_t counted[FED_MAX]; /* the newest round with it in */
};

/* What a client keeps once it has settled. */
struct fed_kept {
    float control[FED_FLOATS], scaffold[FED_FLOATS];
    float own[FED_FLOATS];
};

/* Its writes so far, the one that it dies at (0: none), and whether that is carried out. */
struct fed_writer {
    uint64_t n_writes, die_at;
    bool die_after, dead;
};

/* What clients may fetch now: as the network side of a daemon has it. */
struct fed_payload {
    char name[FL_NAME_MAX];
    uint32_t client; /* index; FED_MAX: everybody */
    float data[FED_FLOATS];
};

struct fed_job;
struct fed;

struct fed_server {
    struct fl_coord *coord;
    struct fl_coord_shell shell; /* the daemon's own, with operations of this world */
    struct fl_coord_conf conf;
    struct fl_strategy *strategy; /* the coordinator's */
    struct fl_strategy *work;     /* what clients and server compute */
    struct fl_strategy
        drawn; /* the coordinator's of a drawn configuration, with the solver of `work` */
    struct fl_layout *layout;
    char dir[FED_PATH];
    /* While it lives. */
    struct fl_federation federation;
    struct fl_recycled *recycled;
    struct fl_progress progress;
    struct fl_coord_resume resume;
    struct fed_payload payloads[2 * FED_MAX];
    size_t n_payloads;
    struct fed_job **jobs; /* [n_jobs], NULL when done */
    size_t n_jobs;
    struct fed_writer writer;
    /* The attempt whose tasks were sent last, in whatever life, and its size. */
    uint64_t sized_round;
    uint32_t sized_attempt;
    struct fl_round_size size;
    uint64_t committed;
    struct fed_model model;   /* of the last committed round */
    struct fed_model next;    /* aggregated, not committed */
    uint64_t joining;         /* client index + 1 while its JOINED is stepped */
    uint32_t number[FED_MAX]; /* of client index, UINT32_MAX: not connected */
    uint64_t conn[FED_MAX];
    uint32_t forgetting[FED_NUMBERS]; /* client index by number, while FORGOTTEN is awaited */
    struct fed_upload uploads[FED_MAX];
};

struct fed_client {
    struct fed *fed;
    unsigned index;
    char name[16];
    uint64_t samples;
    struct fl_rng rng;
    bool drained;
    /* The newest task. */
    struct fed_task task;
    bool has_task;
    uint64_t training; /* generation of the training that runs, 0: none */
    uint64_t generation;
    struct fl_member member; /* a process, while it lives */
    bool durable;            /* what it holds was told to be on disk */
    uint64_t granting;       /* generation of the grant that is being written down, 0: none */
    struct fed_push push;    /* what then goes out */
    struct fed_writer writer;
    uint64_t conn; /* of its newest connection */
    bool linked;
    /* With real_sessions: */
    struct fl_session_shell *shell;
    uint64_t tick_ms; /* when its timer fires; timers with another time are stale */
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
    unsigned n_wishes;      /* that were answered with yes */
    unsigned n_changed;     /* downloads of what changed since the model that a client held */
    unsigned n_quarantined; /* records of quarantined clients that were written */
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
/* The encoded message of `wire`, which is freed. */
void fed_set_wire(struct fed_msg *msg, struct fl_buf *wire);
/* The server ends the connection of client `i`, which may come back at once. */
void fed_hang_up(struct fed *fed, uint32_t i);
/* The client of a name; FED_MAX: none. */
uint32_t fed_named(const struct fed *fed, const char *name);
/* A node died. */
void fed_died(struct fed *fed, uint32_t node);
/* A node dies of what it just did. */
void fed_dies(struct fed *fed, uint32_t node);
/* The model that `number` stands for: small whole numbers, or as many sixteen-thousandths. */
void fed_floats(uint64_t number, float ret[FED_FLOATS]);
/* The components of both that the plan names. */
void fed_set_broadcast(const struct fed_plan *plan, struct fl_strategy *strategy);
/* What stands for the model that a client trains from `model`. */
uint64_t fed_update(const char *name, uint64_t round, uint32_t attempt,
                    const float model[FED_FLOATS]);
uint64_t fed_hash(uint64_t a, uint64_t b);

/* --- death at a write --- */

/* Node `node` dies at its write `n` (0: no longer), before it is carried out or after. */
void fed_die_at(struct fed *fed, uint32_t node, uint64_t n, bool after);
/* Whose writes follow; NULL: nobody's. */
void fed_writes(struct fed_writer *writer);
/* One of them: is it carried out? */
bool fed_write(void);
/* From here on, or not, what is written into files counts too, and may be half there. */
void fed_tears(bool on);

/* --- the solver --- */

extern const struct fl_solver_ops fed_solver, fed_solver_own;
/* The first model as clients draw it. */
void fed_draw(const struct fed *fed, float ret[FED_FLOATS]);
/* The number of the server's state vector of that name. */
size_t fed_state(const struct fed *fed, const char *name);
/* What clients and server compute in this plan, whatever the coordinator believes. */
struct fl_strategy *fed_strategy(const struct fed_plan *plan);
/* The change of SCAFFOLD's control by an update. */
float fed_scaffold(float told, float update);

/* --- what clients of both kinds do --- */

bool fed_client_chance(struct fed_client *c, double rate);
uint64_t fed_client_train_ms(struct fed_client *c);
/* A Hello lacks what describes the client, a Report is that of the held result; both are filled in.
 */
void fed_client_send(struct fed_client *c, struct fl_wire_event *event);
/* `c->push`, now or never. */
void fed_client_push(struct fed_client *c);
void fed_client_bye(struct fed_client *c);
/* The evaluation of a round, or none when it fails. */
struct fl_wire_event fed_client_evaluation(uint64_t round, bool failed);
/* The command in a message, which the caller owns. */
struct fl_wire_command fed_client_command(const struct fed_msg *msg);
/* Store a task. */
void fed_client_take(struct fed_client *c, const struct fl_wire_task *task,
                     const struct fed_payloads *payloads);

/* --- what clients do with a task: false when it was not done, as the client died of it --- */

void fed_work_init(struct fed *fed);
void fed_work_done(struct fed *fed);
/* The model of all, which the caller owns. */
struct fl_layout *fed_work_layout(void);
/* The client that is at work. */
const struct fed_client *fed_working(void);
/* The unit of an entry. */
static inline unsigned fed_unit(unsigned at)
{
    return at / 2 < FED_UNITS ? at / 2 : FED_UNITS - 1;
}
/* A process begins with what is on its disk, or ends. */
void fed_work_open(struct fed_client *c);
void fed_work_close(struct fed_client *c);
/* Settle by `c->task` and get its payloads; then the training for it; its result is held. */
bool fed_work_fetch(struct fed_client *c);
bool fed_work_train(struct fed_client *c);
/* What it holds as `c->push`, with these units. */
bool fed_work_code(struct fed_client *c, const uint8_t *units);
/* Nothing is held any more. */
void fed_work_drop(struct fed_client *c);
/* What is kept of all on the disk of client `i` when `counted` is its newest counted round, in this
   epoch. */
void fed_work_settled(struct fed *fed, uint32_t i, struct fl_round_key counted, uint64_t epoch,
                      struct fed_kept *ret);

extern const struct fl_sim_node_cbs fed_server_cbs;
extern const struct fl_sim_node_cbs fed_client_cbs;
extern const struct fl_sim_node_cbs fed_session_cbs;

void fed_server_init(struct fed *fed);
void fed_server_done(struct fed *fed);

/* --- what must come of it --- */

/* Index of the client with this number in the server's table; UINT32_MAX: none. */
uint32_t fed_index(const struct fed *fed, uint32_t number);

/* A task, a selection or an aggregation: of an attempt all have the same size, which counts every
   client whose control is in the sum. */
void fed_model_size(struct fed *fed, const struct fl_effect *e);
/* An upload of client `i` is on disk. */
void fed_model_stored(struct fed *fed, uint32_t i, const struct fed_push *push);
/* `next` was made of exactly these parts; each must be on disk, and made of the right model. */
void fed_model_aggregated(struct fed *fed, const struct fl_aggregation *a);
/* Whom a commit counts has another personal model. */
void fed_model_count(struct fed *fed, const struct fl_effect *e);
/* The record of client `i` is off the disk. */
void fed_model_forget(struct fed *fed, uint32_t i);
/* `round` is committed, on the disk. */
void fed_model_committed(struct fed *fed, uint64_t round);
/* Both sides agree on what is kept. */
void fed_model_check(struct fed *fed);

/* --- the server's folder --- */

/* A process begins with what is on its disk; false: it died of that. */
bool fed_disk_open(struct fed *fed);
void fed_disk_close(struct fed *fed);
/* A job of the coordinator, to be done when its time has come; takes it. */
uint64_t fed_disk_job(struct fed *fed, struct fl_coord_job *job);
/* The same job back, which is not done. */
struct fl_coord_job *fed_disk_take(struct fed *fed, uint64_t job);
/* The upload of client `i`. */
uint64_t fed_disk_upload(struct fed *fed, uint32_t i, const struct fed_push *push);
/* Do it, and step what came of it unless the server died. */
void fed_disk_run(struct fed *fed, uint64_t job);
/* What is offered in a round, from now on. */
void fed_disk_payloads(struct fed *fed, const struct fl_effect *e);
/* Its value; NULL: there is none for client `i`. */
const float *fed_disk_payload(const struct fed *fed, const char *name, uint32_t i);
/* The clients that are on disk. */
struct fl_coord_resume fed_disk_read(struct fed *fed);
/* fl_coord_shell_step(). */
void fed_server_step(struct fed *fed, struct fl_event *ev);

#endif
