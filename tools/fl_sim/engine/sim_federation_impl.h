#ifndef FL_SIM_FEDERATION_IMPL_H
#define FL_SIM_FEDERATION_IMPL_H

/*
 * Shared by the files of a simulated federation, from the top: sim_federation.c has creation and
 * the clock, sim_server.c the coordinator's server work, sim_commands.c its messages to clients,
 * clients.c availability, sim_session.c the sessions of clients, sim_training.c training and
 * evaluation, transfer.c transfers, sim_process.c the state of active clients, transfer_links.c the
 * links, messages.c messages, sim_events.c events and results.
 */

#include "client/shell/session_shell.h"
#include "libfl/sim/agenda.h"
#include "libfl/sim/flow.h"
#include "server/shell/coord_messages.h"
#include "tools/fl_sim/engine/journal.h"
#include "tools/fl_sim/engine/sim_federation.h"
#include "tools/fl_sim/engine/worker_pool.h"

/* Kinds of events on the agenda, in the order in which events of one instant happen. */
enum fl__fed_kind {
    FL__AT_MACHINE,   /* the client's machine may come up or go down */
    FL__AT_BACK,      /* a client that disconnected by itself reconnects */
    FL__AT_LINK,      /* rates of its link may change */
    FL__AT_CONNECTED, /* the session may send its hello */
    FL__AT_MESSAGE,   /* data: a struct fl__message */
    FL__AT_FETCH,     /* the request for payloads is at the server */
    FL__AT_LOADED,    /* payloads that take no time have left the server */
    FL__AT_FETCHED,   /* the last of them are at the client */
    FL__AT_TRAINED,
    FL__AT_PUSH,   /* the server has answered with the offset to resume from */
    FL__AT_SENT,   /* an upload that takes no time is sent */
    FL__AT_PUSHED, /* the last byte is at the server */
    FL__AT_MODEL,  /* the request for the model of an evaluation is at the server */
    FL__AT_MODEL_LOADED,
    FL__AT_HAVE_MODEL,
    FL__AT_EVALUATED,
    FL__AT_TICK /* a deadline of the session */
};

/*
 * Events of so many clients in one instant are processed before the next ones, so that their data
 * stays in the CPU caches and is freed before that of the next is allocated; enough for any number
 * of threads.
 */
#define FL__FED_GROUP 128

enum fl__message_kind {
    FL__MSG_LOST,   /* to the server: the client's connection is lost */
    FL__MSG_EVENT,  /* to the server */
    FL__MSG_COMMAND /* to the client */
};

/* A message on its way. It is not encoded, except to measure its length. */
struct fl__message {
    enum fl__message_kind kind;
    uint32_t client, connection;
    union {
        struct fl_wire_event event;
        struct fl_wire_command command; /* a Task without payloads, a Welcome without contents */
    } u;
    /* What event or command borrow. */
    void *list;       /* upload mask, or divergences of a Report; owned */
    char *metrics[2]; /* of the evaluations of an event; owned; NULL: none */
    char text[96];    /* reason of Failed and of a verdict */
    /* Beside the command. */
    bool personal_model;   /* Task: there is a personalized model for this client */
    struct fl_blob *model; /* Evaluate: a reference; NULL: replayed from the journal */
};

/* A running transfer. */
struct fl__transfer {
    bool on;
    bool at_once;  /* no link limits it, so it is not a flow */
    uint64_t flow; /* id in fl_flows */
    uint64_t bytes;
};

/* Payloads that a client fetches for a task. */
struct fl__fetch {
    uint32_t n; /* number of payloads */
    uint64_t model, state, personal_model, summaries;
    bool moves; /* the model may be fetched as what changed since the one that the client holds */
};

/* A client with work in progress. */
struct fl__active {
    struct fl_fed *fed;
    uint32_t client;
    struct fl_session_shell *shell; /* its context is this struct; NULL: no process */
    bool resumes;                   /* the connection exists and is not made again */
    uint64_t tick_us;               /* next wake-up of the session; 0: none */
    struct fl_task task;
    bool personal_model;
    struct fl_model_cache *model_cache; /* of the task; NULL: replayed from the journal */
    struct fl__fetch fetch;
    struct fl__transfer down, up;
    struct fl_round_key training_key;
    struct fl_pool_job *training; /* NULL: none, or from the journal */
    bool waits;                   /* its training has ended, but not those that it needs */
    bool submitted;               /* its arithmetic has begun, or is replayed */
    bool lacks_memory;            /* the training does not fit into the memory of its machine */
    /* of the last started activity; events with an older stamp are ignored */
    uint32_t stamp;
    uint32_t awaits_fetch, awaits_training, awaits_push, awaits_evaluation;
    /* The pending result of a training, on the client's disk. */
    struct fl_round_key pending;
    struct fl_job_answer result; /* its list is owned */
    struct fl_round_key pushing;
    struct fl_pool_job *coding;
    bool coded;
    struct fl_job_answer code;
    uint8_t *units;    /* upload mask; owned, NULL: all */
    uint64_t received; /* bytes of this upload that the server has */
    /* down time of a client that drops after the transfer in progress; 0: it does not */
    uint64_t down_us;
    uint64_t evaluating; /* round; 0: none */
    struct fl_blob *model;
    double rate;
    struct fl_pool_job *evaluation;
    struct fl__transfer model_down;
};

struct fl__fed_client {
    uint32_t number;     /* client number in the coordinator; UINT32_MAX: none */
    uint32_t connection; /* number of its latest connection */
    uint32_t joined;     /* connection that the server knows; 0: none */
    uint32_t stamp;      /* last stamp of `active`, where the next one continues */
    uint64_t link_us;    /* when its rates are queried again */
    uint64_t latency_us; /* of a message, one way */
    bool up;             /* its machine is up, and its process runs */
    bool dropped;        /* it disconnected during its work */
    bool has_summaries;  /* the data summaries of all clients are on its disk */
    bool collection;     /* its own data summary was sent */
    /* It holds the model that this round starts with; 0: none. With a broadcast that sends moves.
     */
    uint64_t holds;
    struct fl__active *active;
};

/* What the coordinator gets after this step: the result of a job, or an event. */
struct fl__fed_answer {
    struct fl_coord_job *job; /* owned; NULL: the event */
    struct fl_event event;
};

/* What attackers know of the honest clients of an attempt (sim_collusion.c). */
struct fl__collusion {
    struct fl_round_key key;        /* of the attempt */
    const struct fl_attack *attack; /* NULL: none of its participants colludes */
    size_t n_attackers;
    struct fl__shared_update *shared; /* [n_shared] honest updates */
    size_t n_shared, cap_shared;
    bool ready;                /* all honest trainings have ended */
    struct fl_blob *malicious; /* ready: what attackers send; NULL: their own update */
};

struct fl_fed {
    struct fl_fed_conf conf;
    char server_dir[512], clients_dir[512];
    int lock_fd;
    struct fl_federation federation;
    struct fl_uploads *uploads; /* in memory: a restarted run replays them */
    struct fl_progress progress;
    struct fl_coord_resume resume;
    struct fl_coord *coord;
    struct fl_coord_shell shell;
    enum fl_phase phase;    /* after the last step */
    struct fl_setup *setup; /* the setup of all members */
    struct fl_worker_pool *pool;
    struct fl_journal *journal;     /* NULL: none */
    struct fl_net *net;             /* of the server's evaluation; NULL: none */
    struct fl_net_metrics *metrics; /* of the same; NULL: none */
    struct fl_evaluator *evaluator; /* the same by a program; NULL: none */
    struct fl_dataset *triggered;   /* for the success rate of a backdoor; NULL: there is none */
    struct fl_model_cache *model_cache; /* of the open round */
    uint64_t now_us;
    uint64_t committed_us; /* when the last round was committed, or this run began */
    struct fl_agenda agenda;
    struct fl_flows *up, *down;
    bool unlimited_up, unlimited_down; /* the server's link */
    struct fl__fed_client *clients;    /* [sim_clients->n] */
    uint32_t *by_number;               /* [cap_numbers] index of the client with that number */
    size_t cap_numbers;
    uint32_t joining;             /* client whose hello is being handled; UINT32_MAX: none */
    struct fl__fed_answer *queue; /* [n_queue], pending from `first` on */
    size_t first, n_queue, cap_queue;
    struct fl_sim_account account;
    struct fl__collusion collusion;
    uint64_t collection_bytes;     /* of the payload with all data summaries */
    uint64_t dry_collection_bytes; /* dry: of the data summaries before the first selection */
    bool summaries_fixed;          /* the first selection has happened */
    struct fl_buf scratch;         /* for messages whose length is measured */
    uint64_t welcome_bytes;
    uint64_t training_bytes; /* memory that a client needs */
    size_t classes;          /* of the network */
    bool begun, finished;
    enum fl_fed_end end;
    char why[FL_PAUSE_SIZE];
    struct fl_err err; /* an error that no event can carry */
    int code;
};

/* End the run with an error of this process. */
void fl__fed_fail(struct fl_fed *fed, int code, const struct fl_err *err, const char *what);
/* Step the coordinator with one event, and carry out its effects. */
void fl__fed_step(struct fl_fed *fed, struct fl_event *event);
/* Queue an answer that the coordinator gets after this step; NULL: out of memory, which ends the
   run. */
struct fl__fed_answer *fl__fed_answer(struct fl_fed *fed, enum fl_event_type type);
/* Schedule an event at `at_us`, which may be now. */
void fl__fed_at(struct fl_fed *fed, uint64_t at_us, enum fl__fed_kind kind, uint32_t client,
                uint32_t stamp, void *data);
/* Are results read from the journal? */
bool fl__fed_replays(const struct fl_fed *fed);
const char *fl__fed_name(const struct fl_fed *fed, uint32_t client);
/* Latency of a message between client and server. */
static inline uint64_t fl__fed_latency(const struct fl_fed *fed, uint32_t client)
{
    return fed->clients[client].latency_us;
}

void fl__message_free(struct fl__message *m);
/* The result of a job: from the journal during a replay, else of `job`, which may be NULL. Owned by
   the caller. An error ends the run. */
FL_MUST_CHECK int fl__fed_take(struct fl_fed *fed, struct fl_pool_job *job, enum fl_job_kind kind,
                               uint32_t client, struct fl_round_key key, struct fl_job_answer *ret);

/* --- sim_server.c --- */

/* The operations of the coordinator's shell; their `ctx` is the federation. */
extern const struct fl_coord_ops fl__fed_ops;

/* --- sim_commands.c --- */

/* The index of the client with that number; UINT32_MAX: none has it. */
uint32_t fl__fed_client_of(const struct fl_fed *fed, uint32_t number);
/* Operations of the shell: messages to a client, the assignment of its number, or its release. */
void fl__fed_send_command(void *ctx, const struct fl_effect *e);
void fl__fed_admit(void *ctx, const struct fl_effect *e);
void fl__fed_release(void *ctx, const struct fl_effect *e);

/* --- clients.c --- */

/* Start all clients: those that are up send a hello. */
void fl__fed_begin_clients(struct fl_fed *fed);
/* AT_MACHINE: query the availability. */
void fl__fed_machine(struct fl_fed *fed, uint32_t client);
/* AT_BACK. */
void fl__fed_back(struct fl_fed *fed, uint32_t client);

/* --- sim_process.c --- */

/* The active state of a client, created if needed; NULL: out of memory, which ends the run. */
struct fl__active *fl__fed_active(struct fl_fed *fed, uint32_t client);
void fl__active_free(struct fl_fed *fed, struct fl__active *a);
/* The process ends and loses its connection; its client state stays on disk. */
void fl__process_kill(struct fl_fed *fed, uint32_t client);
/* Disconnect in the middle of work, and reconnect after so long. */
void fl__fed_drop(struct fl_fed *fed, uint32_t client, uint64_t down_us);

/* --- messages.c --- */

/* Send a message between client and server, which arrives after the latency; takes `m`. */
void fl__fed_send(struct fl_fed *fed, struct fl__message *m);
/* New messages of and to a client over its latest connection, with copies of what event and
   command borrow, except texts of a Hello; NULL: out of memory, which ends the run. */
struct fl__message *fl__message_lost(struct fl_fed *fed, uint32_t client);
struct fl__message *fl__message_event(struct fl_fed *fed, uint32_t client,
                                      const struct fl_wire_event *event);
struct fl__message *fl__message_command(struct fl_fed *fed, uint32_t client,
                                        const struct fl_wire_command *command);
/* Set what describes the client. */
void fl__message_describe(const struct fl_fed *fed, uint32_t client, struct fl_wire_hello *hello);
/* The encoded length of the message. */
uint64_t fl__message_bytes(struct fl_fed *fed, const struct fl__message *m);
/* Handle a message of a client. */
void fl__fed_receive(struct fl_fed *fed, const struct fl__message *m);

/* --- sim_session.c --- */

/* Start a process, with the pending result on its disk. */
void fl__session_start(struct fl_fed *fed, struct fl__active *a);
/* Establish a session for a client that was idle. */
void fl__session_resume(struct fl_fed *fed, struct fl__active *a);
void fl__session_happens(struct fl_fed *fed, uint32_t client, enum fl__fed_kind kind,
                         uint32_t stamp);
/* Handle a message of the server. */
void fl__sim_session_receive(struct fl_fed *fed, struct fl__message *m);
/* Free the active state of an idle client; only its record stays. */
void fl__session_settle(struct fl_fed *fed, uint32_t client);

/* --- sim_training.c --- */

void fl__train_begin(struct fl_fed *fed, struct fl__active *a, struct fl_round_key key);
void fl__train_cancel(struct fl__active *a);
/* AT_TRAINED, AT_HAVE_MODEL, AT_EVALUATED. */
void fl__train_happens(struct fl_fed *fed, struct fl__active *a, enum fl__fed_kind kind,
                       uint32_t stamp);

/* Start the training of a task whose time runs; unless it is replayed. */
void fl__train_submit(struct fl_fed *fed, struct fl__active *a);

/* --- sim_collusion.c --- */

/* Does the training of this client wait for honest ones of its attempt? */
bool fl__collusion_waits(struct fl_fed *fed, uint32_t client, struct fl_round_key key);
/* What its training shares or sends; borrowed. */
struct fl_pool_collusion fl__collusion_part(struct fl_fed *fed, uint32_t client,
                                            struct fl_round_key key);
/* A training has ended, with the update that it shared; NULL: none. */
void fl__collusion_trained(struct fl_fed *fed, uint32_t client, struct fl_round_key key,
                           struct fl_blob *update);
/* A client disconnected, so attackers no longer wait for it. */
void fl__collusion_dropped(struct fl_fed *fed);
/* The attempt has ended. */
void fl__collusion_end(struct fl_fed *fed);

/* --- transfer.c --- */

void fl__fetch_begin(struct fl_fed *fed, struct fl__active *a);
/*
 * Bytes of the model that `round` starts with (`candidate`: of the one it ends with) for this
 * client, which downloads what changed since the model that it holds. 0: it holds this one.
 */
uint64_t fl__fetch_model_bytes(struct fl_fed *fed, uint32_t client, uint64_t round, bool candidate);
void fl__push_begin(struct fl_fed *fed, struct fl__active *a, struct fl_round_key key,
                    const uint8_t *units, size_t n_units);
/* Report moving uploads to the coordinator, as heartbeats of a daemon do. */
void fl__push_progress(struct fl_fed *fed);
void fl__model_begin(struct fl_fed *fed, struct fl__active *a);
/* AT_FETCH, AT_PUSH, AT_MODEL, AT_PUSHED. */
void fl__transfer_happens(struct fl_fed *fed, struct fl__active *a, enum fl__fed_kind kind,
                          uint32_t stamp);
/* Complete the next flow, at `fed->now_us`. */
void fl__transfer_done(struct fl_fed *fed, bool up);

/* --- transfer_links.c --- */

/* Begin to transfer; at its end, event `done` (AT_SENT and the like) or fl__transfer_next(). */
void fl__transfer_begin(struct fl_fed *fed, struct fl__active *a, struct fl__transfer *t,
                        uint64_t bytes, enum fl__fed_kind done);
/* Remove the next completed flow, at `fed->now_us`; NULL: there is none. `ret_model`: it was the
   model of an evaluation. */
struct fl__active *fl__transfer_next(struct fl_fed *fed, bool up, bool *ret_model);
/* The client's participant in the open attempt, if that is the attempt of `key`; else NULL. */
struct fl_fed_part *fl__transfer_participant(struct fl_fed *fed, const struct fl__active *a,
                                             struct fl_round_key key);
/* Count uploaded bytes: for the participant of the open attempt, or as wasted. */
void fl__transfer_count_up(struct fl_fed *fed, struct fl__active *a, uint64_t bytes);
void fl__fetch_cancel(struct fl_fed *fed, struct fl__active *a);
void fl__push_cancel(struct fl_fed *fed, struct fl__active *a);
/* The round ends during an upload: the bytes so far belong to that round. */
void fl__push_cut(struct fl_fed *fed, struct fl__active *a);
void fl__model_cancel(struct fl_fed *fed, struct fl__active *a);
/* AT_LINK. */
void fl__transfer_link(struct fl_fed *fed, uint32_t client);

#endif
