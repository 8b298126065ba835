#ifndef FL_SERVERD_SERVER_H
#define FL_SERVERD_SERVER_H

/*
 * The daemon put together.
 *
 *   network loop (main thread)   connections, sessions, transfers: frontend.h
 *   coordinator thread           fl_coord and its effects: runtime.h
 *   io lane                      spool files, files that clients fetch
 *   db lane                      SQLite and checkpoints
 *   work lane                    aggregation and evaluation
 *   identity lane                certificates, invitations, denials: auth.h
 *
 * Threads meet only by posting struct fl_coord_msg (towards the coordinator) and struct
 * fl_net_msg (towards the network).
 */

#include <stdatomic.h>

#include "libfl/base/log_out.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/wire/wire_admin.h"
#include "server/daemon/replies.h"
#include "server/daemon/serverd_conf.h"
#include "server/work/bundles.h"

struct fl_frontend;
struct fl_runtime;
struct fl_auth;
struct fl_stop_limit;

struct fl_serverd {
    const struct fl_server_conf *conf;
    const struct fl_serverd_conf *own; /* what only a daemon needs of it */
    struct fl_log *log;                /* changed by reload.c only */
    struct fl_log_out *log_out;        /* where its lines go; NULL: elsewhere */
    const char *state_dir;
    const char *federation;
    const struct fl_generation *line; /* since the start, never changed */
    struct fl_loop *net;
    struct fl_worker_thread *io, *db, *work;
    struct fl_frontend *frontend;
    struct fl_runtime *runtime;
    struct fl_auth *auth; /* NULL: no address uses TLS */
    uint64_t started_ms;
    uint64_t max_connections;          /* limits.clients, or what descriptors allow */
    bool again, stopping;              /* start again after the stop; network loop only */
    struct fl_timer *straggler_factor; /* of a stop, with the coordinator */
    struct fl_stop_limit *stop_limit;  /* NULL: it does not stop */
    _Atomic(const char *) stop_waits_for;
};

/* What the network tells the coordinator. */
enum fl_coord_msg_type {
    FL_COORD_MSG_JOIN = 1, /* session, name, agent, samples */
    FL_COORD_MSG_LOST,     /* client */
    FL_COORD_MSG_HEARD,    /* client: it is there */
    FL_COORD_MSG_TAKEOVER, /* client, text: a newer session ended one that stood, from where to
                              where */
    FL_COORD_MSG_RELEASED, /* client: answer to RELEASE, nothing comes under that number any more */
    FL_COORD_MSG_EVENT,   /* session, client, event: report, failed or evaluation; answered by TAKEN
                           */
    FL_COORD_MSG_OFFER,   /* session, client, offer: all of it */
    FL_COORD_MSG_STORED,  /* client, round, attempt, bytes */
    FL_COORD_MSG_INVALID, /* client, round, attempt, text */
    FL_COORD_MSG_UNSTORED, /* client, round, attempt, code, text: our own trouble */
    FL_COORD_MSG_PROGRESS, /* client, round, attempt: HEARD, and more of its upload has arrived */
    FL_COORD_MSG_EXCLUDE,  /* text: name of a client whose certificate is denied; keeps */
    FL_COORD_MSG_ADMIN,    /* request */
    FL_COORD_MSG_STOP      /* text: why, for clients; answered by STOPPED */
};

struct fl_admin_request;

/* What stays of a client whose certificate is denied, beside what it contributed. */
enum fl_denied_keeps {
    FL_DENIED_KEEPS_ALL,    /* disabled: it goes on when it is enabled */
    FL_DENIED_KEEPS_RECORD, /* evicted: its data summary is removed */
    FL_DENIED_KEEPS_NOTHING /* revoked */
};

struct fl_coord_msg {
    enum fl_coord_msg_type type;
    struct fl_runtime *runtime;
    uint64_t session;
    uint32_t client;
    uint64_t round;
    uint32_t attempt;
    uint64_t bytes;
    int code;
    enum fl_denied_keeps keeps; /* EXCLUDE */
    bool held;                  /* PROGRESS: it waits for the server */
    char *text;                 /* owned */
    struct fl_norms norms;      /* STORED; owned */
    struct fl_wire_event event; /* owned; JOIN: the hello */
    struct fl_buf offer;        /* owned */
    struct fl_admin_request *request;
};

/* Not one client: all of them may fetch the bundle. */
#define FL_EVERYBODY UINT32_MAX

/* What the coordinator tells the network. */
enum fl_net_msg_type {
    FL_NET_MSG_JOINED = 1, /* session -> client, text = its name; wants_offer */
    FL_NET_MSG_REFUSED,    /* session, text */
    FL_NET_MSG_RELEASE,    /* client, text: it is forgotten */
    FL_NET_MSG_BAD_OFFER,  /* session, text; code: whose fault it is */
    FL_NET_MSG_TAKEN,      /* session, client: an event of it was dealt with */
    /* text = name, client or FL_EVERYBODY, round, bytes, digest; no bytes: gone */
    FL_NET_MSG_BUNDLE,
    FL_NET_MSG_TASK,
    FL_NET_MSG_PLAN,
    FL_NET_MSG_ACCEPTED,
    FL_NET_MSG_REJECTED,
    FL_NET_MSG_DISMISSED,
    FL_NET_MSG_EVALUATE,
    FL_NET_MSG_DRAIN,
    FL_NET_MSG_ROUND_CLOSED,
    FL_NET_MSG_ADMIN,    /* request is answered */
    FL_NET_MSG_FINISHED, /* all rounds are done */
    FL_NET_MSG_NO_SPACE, /* something could not be written: what is kept for later has to go */
    FL_NET_MSG_STOPPED   /* drained, or told to stop: the process ends */
};

struct fl_net_msg {
    enum fl_net_msg_type type;
    struct fl_frontend *frontend;
    uint64_t session;
    uint32_t client;
    uint64_t round;
    uint32_t attempt;
    double learning_rate;
    uint64_t seed;
    uint64_t order_seed;
    uint64_t epoch; /* fl_round_size */
    uint64_t deadline_ms;
    uint8_t *units; /* owned, [n_units] or NULL */
    char *text;     /* owned */
    int code;
    struct fl_bytes bytes; /* owned */
    bool has_digest;
    uint8_t digest[FL_DIGEST_SIZE];
    bool wants_offer;
    /* TASK: as the effect. */
    uint64_t counted_round;
    uint32_t counted_attempt;
    uint32_t n_selected, population;
    bool mixture;
    struct fl_admin_request *request;
};

/* One admin call on its way: filled by the coordinator side, sent by the network side. */
enum fl_admin_type {
    FL_ADMIN_STATUS = 1,
    FL_ADMIN_WHY,
    FL_ADMIN_ROUNDS,
    FL_ADMIN_CLIENTS,
    FL_ADMIN_FORGET,
    FL_ADMIN_EXPORT,
    FL_ADMIN_CHECKPOINTS,
    FL_ADMIN_HOLD,
    FL_ADMIN_ROLLBACK,
    FL_ADMIN_SUMMARIES,
    FL_ADMIN_DROP_SUMMARY,
    FL_ADMIN_PAUSE,
    FL_ADMIN_RESUME,
    FL_ADMIN_DRAIN,
    FL_ADMIN_RESET_CONTROLS,
    FL_ADMIN_ABORT_ROUND
};

struct fl_admin_request {
    enum fl_admin_type type;
    struct fl_serverd *srv;
    struct fl_call *call;   /* network side only; NULL when the peer went away */
    struct fl_timer *timer; /* network side only, while `call` is: looks whether the disk hangs */
    bool asked;             /* network side only: the coordinator has it, or had it */
    bool answered;          /* network side only */
    bool known;             /* network side only: `who` is */
    struct fl_identity who;
    struct fl_wire_list_rounds list;       /* ROUNDS */
    uint64_t round;                        /* EXPORT, HOLD, ROLLBACK */
    bool release;                          /* HOLD */
    bool force;                            /* ROLLBACK */
    struct fl_wire_control control;        /* PAUSE to ABORT_ROUND */
    struct fl_admin_request *next_command; /* and who waits behind it; coordinator side only */
    struct fl_wire_forget forget;
    char drop[FL_NAME_MAX]; /* DROP_SUMMARY: of this client */
    struct fl_wire_forgotten forgotten;
    size_t n_waits;            /* FORGET: for so many things to be on disk */
    struct fl_replies replies; /* the answer */
    struct fl_blob *model;     /* EXPORT */
    uint64_t model_round;
    uint64_t offset; /* of the export's bytes */
    struct fl_buf header;
    int code; /* FL_OK, or why it failed */
    struct fl_err err;
};

/* Append one encoded message to `replies`. */
FL_MUST_CHECK int fl_admin_reply(struct fl_admin_request *request, const struct fl_buf *message);

/*
 * Memory is missing for `what`, which somebody waits for and nothing takes the place of: a command
 * that is left out would have a client, an operator or the coordinator wait for ever. So the
 * process ends here, as by a kill, with a line and the exit code for a failure while running; what
 * can be refused is refused instead (docs/architecture.md#contracts-worth-knowing). Any thread.
 */
FL_NORETURN void fl_serverd_no_memory(const struct fl_serverd *srv, const char *what);
/* Keep memory back for the event loops, before the first of them; the process ends with a line when
   that does not suffice. Borrows `log` for good. FL_ENOMEM. */
FL_MUST_CHECK int fl_serverd_keep_back_memory(struct fl_log *log);
/* Network loop: stop as on a signal, tell clients to come back soon, and start anew. */
void fl_server_again(struct fl_serverd *srv, const char *why);
/* Network loop: the coordinator has stopped. */
void fl_server_stopped(struct fl_serverd *srv);
/* Run the daemon until it is told to stop; returns the exit code. A reload changes `log` and `out`.
 */
int fl_server_run(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out);
/*
 * --recover: make the newest good checkpoint of the state folder its last committed round
 * (fl_store_rebuild()), and print what came of it. Starts nothing. Returns the exit code.
 */
int fl_server_recover(const struct fl_serverd_conf *own, const struct fl_log *log);

#endif
