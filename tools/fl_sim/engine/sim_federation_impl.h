#ifndef FL_SIM_FEDERATION_IMPL_H
#define FL_SIM_FEDERATION_IMPL_H

/*
 * Inside of a federation in virtual time. federation.c has its life and the clock, server.c what
 * the coordinator asks for, sim_log_decisions.c what it tells clients, clients.c who is there,
 * session.c a client's conversation, training.c what it computes, transfer.c what goes over the
 * links.
 */

#include "client/core/session.h"
#include "libfl/sim/agenda.h"
#include "libfl/sim/flow.h"
#include "server/work/commit.h"
#include "tools/fl_sim/engine/journal.h"
#include "tools/fl_sim/engine/sim_federation.h"
#include "tools/fl_sim/engine/worker_pool.h"

/* What the agenda holds, in the order in which things of one instant happen. */
enum fl__fed_kind {
    FL__AT_MACHINE,   /* the client's machine may come or go */
    FL__AT_BACK,      /* it went by itself, and comes back */
    FL__AT_LINK,      /* its link may have other rates */
    FL__AT_CONNECTED, /* the session may say hello */
    FL__AT_MESSAGE,   /* data: a struct fl__message */
    FL__AT_FETCH,     /* the request for bundles is at the server */
    FL__AT_LOADED,    /* bundles that take no time have left the server */
    FL__AT_FETCHED,   /* the last of them are at the client */
    FL__AT_TRAINED,
    FL__AT_PUSH,   /* the server has said from where on */
    FL__AT_SENT,   /* an upload that takes no time is sent; so the two below */
    FL__AT_PUSHED, /* the last byte is at the server */
    FL__AT_MODEL,  /* the request for the model of an evaluation is at the server */
    FL__AT_MODEL_LOADED,
    FL__AT_HAVE_MODEL,
    FL__AT_EVALUATED,
    FL__AT_TICK /* of the session */
};

/* What a message says: the core's own events and effects. */
enum fl__message_type {
    FL__SAYS_HELLO = 1, /* client to server, as the next four */
    FL__SAYS_REPORT,
    FL__SAYS_FAILED,
    FL__SAYS_EVALUATION,
    FL__SAYS_LOST, /* nothing any more: the connection is gone */
    FL__SAYS_WELCOME,
    FL__SAYS_TASK,
    FL__SAYS_PLAN,
    FL__SAYS_ACCEPTED,
    FL__SAYS_REJECTED,
    FL__SAYS_DISMISSED,
    FL__SAYS_EVALUATE
};

struct fl__message {
    enum fl__message_type type;
    uint32_t client, connection;
    struct fl_round_key key;
    uint64_t bytes;
    struct fl_task task;         /* TASK */
    bool mixture;                /* TASK: there is one for it */
    uint8_t *units;              /* TASK, PLAN: owned; NULL: none */
    struct fl_job_answer answer; /* REPORT, EVALUATION: its divergence is owned */
    bool diverged;               /* FAILED */
    char reason[96];             /* FAILED */
    struct fl_blob *model;       /* EVALUATE: a reference */
    double rate;                 /* EVALUATE */
};

/* A transfer under way. */
struct fl__transfer {
    bool on;
    bool at_once;  /* no link limits it: it is no flow */
    uint64_t flow; /* of fl_flows */
    uint64_t bytes;
};

/* What a client fetches for a task. */
struct fl__fetch {
    uint32_t n; /* bundles */
    uint64_t model, state, mixture, offers;
};

/* A client with something to do. */
struct fl__active {
    uint32_t client;
    struct fl_session *session;
    bool resumes;     /* the connection stands: it is not made again */
    uint64_t tick_us; /* the session is woken then; 0: it is not */
    struct fl_task task;
    bool mixture;
    struct fl_model_cache *model_cache; /* of the task; NULL: run again from the journal */
    struct fl__fetch fetch;
    struct fl__transfer down, up;
    struct fl_round_key training_key;
    struct fl_job *training; /* NULL: none, or from the journal */
    bool lacks_memory;       /* the training does not fit into its machine */
    uint32_t stamp;          /* what was begun last; what is older comes to nothing */
    uint32_t awaits_fetch, awaits_training, awaits_push, awaits_evaluation;
    /* What it holds of a training, on its disk. */
    struct fl_round_key held;
    struct fl_job_answer result; /* its divergence is owned */
    struct fl_round_key pushing;
    struct fl_job *coding;
    bool coded;
    struct fl_job_answer code;
    uint8_t *units;      /* granted; owned, NULL: all */
    uint64_t received;   /* bytes of this upload that the server has */
    uint64_t away_us;    /* it goes away when what is under way is sent; 0: it does not */
    uint64_t evaluating; /* round; 0: none */
    struct fl_blob *model;
    double rate;
    struct fl_job *evaluation;
    struct fl__transfer model_down;
};

struct fl__fed_client {
    uint32_t number;     /* of the coordinator; UINT32_MAX: none */
    uint32_t connection; /* how many there were */
    uint32_t joined;     /* the one that the server knows; 0: none */
    uint32_t stamp;      /* of the last `active`: the next one goes on from it */
    uint64_t link_us;    /* its rates are asked for again then */
    uint64_t latency_us; /* of a message, one way */
    bool up;             /* it is there, and its process runs */
    bool away;           /* it went in the middle of something */
    bool has_offers;     /* those of all clients are on its disk */
    bool offered;        /* what it tells of its data was told */
    struct fl__active *active;
};

/* An answer to the coordinator, with what it points to. */
struct fl__fed_answer {
    struct fl_event event;
    double *distance; /* owned */
    struct fl_err err;
};

struct fl_fed {
    struct fl_fed_conf conf;
    char server_dir[512], clients_dir[512];
    int lock_fd;
    struct fl_federation federation;
    struct fl_uploads *uploads; /* in memory: a run that is begun again has them again */
    struct fl_progress progress;
    struct fl_coord_resume resume;
    struct fl_coord *coord;
    struct fl_setup *setup; /* what all members are told */
    struct fl_worker_pool *pool;
    struct fl_journal *journal;         /* NULL: none */
    struct fl_net *net;                 /* of the server's evaluation; NULL: none */
    struct fl_model_cache *model_cache; /* of the open round */
    uint64_t now_us;
    struct fl_agenda agenda;
    struct fl_flows *up, *down;
    bool unlimited_up, unlimited_down; /* the server's link */
    struct fl__fed_client *clients;    /* [people->n] */
    uint32_t *by_number;               /* [cap_numbers] place of the client with that number */
    size_t cap_numbers;
    uint32_t joining;             /* whose hello is being taken; UINT32_MAX: nobody's */
    struct fl__fed_answer *queue; /* [n_queue], from `first` on under way */
    size_t first, n_queue, cap_queue;
    struct fl_account account;
    uint64_t offered_bytes;     /* of the bundle of all offers */
    uint64_t dry_offered_bytes; /* dry: of the offers before the first selection */
    bool offers_fixed;          /* there was a first selection */
    struct fl_buf scratch;      /* of a message that is measured */
    uint64_t welcome_bytes;
    uint64_t training_bytes; /* of memory that a client needs */
    size_t classes;          /* of the network */
    bool begun, finished;
    enum fl_fed_end end;
    char why[FL_PAUSE_SIZE];
    struct fl_err err; /* of what no event can tell */
    int code;
};

/* The run ends with this error of ours. */
void fl__fed_fail(struct fl_fed *fed, int code, const struct fl_err *err, const char *what);
/* One event of the coordinator, and all that comes of it now. */
void fl__fed_step(struct fl_fed *fed, struct fl_event *event);
/* An answer that the coordinator gets when this step is over; NULL: no memory, which ends the
   run. */
struct fl__fed_answer *fl__fed_answer(struct fl_fed *fed, enum fl_event_type type);
/* It happens at `at_us`, which may be now. */
void fl__fed_at(struct fl_fed *fed, uint64_t at_us, enum fl__fed_kind kind, uint32_t client,
                uint32_t stamp, void *data);
/* Numbers that the journal knows come from there. */
static inline bool fl__fed_replays(const struct fl_fed *fed)
{
    return fed->journal != NULL && fl_journal_replays(fed->journal);
}
const char *fl__fed_name(const struct fl_fed *fed, uint32_t client);
/* How long a message takes from the client or to it. */
static inline uint64_t fl__fed_latency(const struct fl_fed *fed, uint32_t client)
{
    return fed->clients[client].latency_us;
}

/* What came of a piece of work: of the journal while that is run again, else of `job`, which may
   be NULL. The answer is the caller's. An error ends the run. */
FL_MUST_CHECK int fl__fed_take(struct fl_fed *fed, struct fl_job *job, enum fl_job_kind kind,
                               uint32_t client, struct fl_round_key key, struct fl_job_answer *ret);

/* --- server.c --- */

void fl__fed_effect(struct fl_fed *fed, const struct fl_effect *e);
/* A message of a client is there. */
void fl__fed_receive(struct fl_fed *fed, struct fl__message *m);

/* --- sim_log_decisions.c --- */

/* The place of the client with that number; UINT32_MAX: nobody has it. */
uint32_t fl__fed_client_of(const struct fl_fed *fed, uint32_t number);
/* Effects that are for one client: a message to it, its number, or that it has none any more. */
void fl__fed_log_decision(struct fl_fed *fed, const struct fl_effect *e);

/* --- clients.c --- */

/* All of them begin: those that are up say hello. */
void fl__fed_begin_clients(struct fl_fed *fed);
/* AT_MACHINE: ask the world. */
void fl__fed_machine(struct fl_fed *fed, uint32_t client);
/* AT_BACK. */
void fl__fed_back(struct fl_fed *fed, uint32_t client);
/* It goes away in the middle of something, and is back after so long. */
void fl__fed_drop(struct fl_fed *fed, uint32_t client, uint64_t away_us);
/* A message between the client and the server, a latency later; takes `m`. */
void fl__fed_send(struct fl_fed *fed, struct fl__message *m);
struct fl__message *fl__fed_message(struct fl_fed *fed, enum fl__message_type type,
                                    uint32_t client);
void fl__message_free(struct fl__message *m);
/* As long as the contract makes it. */
uint64_t fl__message_bytes(struct fl_fed *fed, const struct fl__message *m);
/* What it has to do, made where there is nothing; NULL: no memory, which ends the run. */
struct fl__active *fl__fed_active(struct fl_fed *fed, uint32_t client);
void fl__active_free(struct fl_fed *fed, struct fl__active *a);

/* --- session.c --- */

/* A process begins; it finds what it holds. */
void fl__session_start(struct fl_fed *fed, struct fl__active *a);
/* A session that stands, for a client that has been idle. */
void fl__session_resume(struct fl_fed *fed, struct fl__active *a);
void fl__session_happens(struct fl_fed *fed, uint32_t client, enum fl__fed_kind kind,
                         uint32_t stamp);
/* A message of the server is there. */
void fl__sim_session_receive(struct fl_fed *fed, struct fl__message *m);
void fl__session_key(struct fl_fed *fed, struct fl__active *a, enum fl_session_event_type type,
                     struct fl_round_key key);
void fl__session_failed(struct fl_fed *fed, struct fl__active *a, enum fl_session_event_type type,
                        struct fl_round_key key, int code, const char *reason);
void fl__session_say_evaluation(struct fl_fed *fed, const struct fl__active *a, uint64_t round,
                                const struct fl_job_answer *found);
/* It has nothing to do any more: back to being only known. */
void fl__session_settle(struct fl_fed *fed, uint32_t client);

/* --- training.c --- */

void fl__train_begin(struct fl_fed *fed, struct fl__active *a, struct fl_round_key key);
void fl__train_cancel(struct fl__active *a);
/* AT_TRAINED, AT_HAVE_MODEL, AT_EVALUATED. */
void fl__train_happens(struct fl_fed *fed, struct fl__active *a, enum fl__fed_kind kind,
                       uint32_t stamp);

/* --- transfer.c --- */

void fl__fetch_begin(struct fl_fed *fed, struct fl__active *a);
void fl__fetch_cancel(struct fl_fed *fed, struct fl__active *a);
void fl__push_begin(struct fl_fed *fed, struct fl__active *a, struct fl_round_key key,
                    const uint8_t *units, size_t n_units);
/* Tell the coordinator of the uploads that move, as heartbeats have a daemon do. */
void fl__push_progress(struct fl_fed *fed);
void fl__push_cancel(struct fl_fed *fed, struct fl__active *a);
/* The round ends while it sends: what went so far is of that round. */
void fl__push_cut(struct fl_fed *fed, struct fl__active *a);
void fl__model_begin(struct fl_fed *fed, struct fl__active *a);
void fl__model_cancel(struct fl_fed *fed, struct fl__active *a);
/* AT_LINK. */
void fl__transfer_link(struct fl_fed *fed, uint32_t client);
/* AT_FETCH, AT_PUSH, AT_MODEL, AT_PUSHED. */
void fl__transfer_happens(struct fl_fed *fed, struct fl__active *a, enum fl__fed_kind kind,
                          uint32_t stamp);
/* The next flow that is done, at `fed->now_us`. */
void fl__transfer_done(struct fl_fed *fed, bool up);

#endif
