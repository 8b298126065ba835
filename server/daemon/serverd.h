#ifndef FL_SERVERD_SERVER_H
#define FL_SERVERD_SERVER_H

/*
 * The assembled daemon.
 *
 *   network loop (main thread)   connections, sessions, transfers: frontend.h
 *   coordinator thread           fl_coord and its effects: runtime.h
 *   io thread                    spool files, files that clients fetch
 *   db thread                    SQLite and checkpoints
 *   work thread                  aggregation and evaluation
 *   identity thread              certificates, invitations, revocations: auth.h
 *
 * Threads communicate only by posting struct fl_coord_msg (to the coordinator) and struct
 * fl_net_msg (to the network front end).
 */

#include <stdatomic.h>

#include "libfl/base/log_out.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/wire/wire_admin.h"
#include "server/auth/auth.h"
#include "server/daemon/replies.h"
#include "server/daemon/serverd_conf.h"
#include "server/work/payloads.h"

struct fl_frontend;
struct fl_runtime;
struct fl_stop_limit;

struct fl_serverd {
    const struct fl_server_conf *conf;
    const struct fl_serverd_conf *own; /* the part for the daemon only */
    struct fl_log *log;                /* changed by serverd_reload.c only */
    struct fl_log_out *log_out;        /* destination of `log`; NULL: not ours */
    const char *state_dir;
    const char *federation;
    const struct fl_generation *line; /* constant since the start */
    struct fl_loop *net;
    struct fl_worker_thread *io, *db, *work;
    struct fl_frontend *frontend;
    struct fl_runtime *runtime;
    struct fl_auth *auth; /* NULL: no address uses TLS */
    uint64_t started_ms;
    uint64_t max_connections;         /* limits.clients, or fewer if descriptors are short */
    bool restart, stopping;           /* restart after the stop; network loop only */
    struct fl_timer *stop_timer;      /* limits the time for the coordinator's stop */
    struct fl_stop_limit *stop_limit; /* NULL: not stopping */
    _Atomic(const char *) stop_waits_for;
};

/* Messages from the network front end to the coordinator. */
enum fl_coord_msg_type {
    FL_COORD_MSG_JOIN = 1, /* session, name, agent, samples */
    FL_COORD_MSG_LOST,     /* client */
    FL_COORD_MSG_ALIVE,    /* client: it is alive */
    FL_COORD_MSG_TAKEOVER, /* client, text: a newer session ended an older one: addresses */
    FL_COORD_MSG_RELEASED, /* client: answer to RELEASE, no further message has this number */
    FL_COORD_MSG_EVENT,   /* session, client, event: report, failed or evaluation; answered by TAKEN
                           */
    FL_COORD_MSG_OFFER,   /* session, client, offer: the complete data summary */
    FL_COORD_MSG_STORED,  /* client, round, attempt, bytes */
    FL_COORD_MSG_INVALID, /* client, round, attempt, text */
    FL_COORD_MSG_UNSTORED, /* client, round, attempt, code, text: failure of the server */
    FL_COORD_MSG_PROGRESS, /* client, round, attempt: HEARD, and more of its upload has arrived */
    FL_COORD_MSG_EXCLUDE,  /* text: name of a client whose certificate is revoked; keeps */
    FL_COORD_MSG_ADMIN,    /* request */
    FL_COORD_MSG_STOP      /* text: reason for the clients; answered by STOPPED */
};

struct fl_admin_request;

struct fl_coord_msg {
    enum fl_coord_msg_type type;
    struct fl_runtime *runtime;
    uint64_t session;
    uint32_t client;
    uint64_t round;
    uint32_t attempt;
    uint64_t bytes;
    int code;
    enum fl_revoked_keeps keeps; /* EXCLUDE */
    bool held;                   /* PROGRESS: it waits for the server's disk or verdict */
    char *text;                  /* owned */
    struct fl_norms norms;       /* STORED; owned */
    struct fl_wire_event event;  /* owned; JOIN: the hello */
    struct fl_buf offer;         /* owned */
    struct fl_admin_request *request;
};

/* Instead of a client number: all clients may fetch the payload. */
#define FL_EVERYBODY UINT32_MAX

/* Messages from the coordinator to the network front end. */
enum fl_net_msg_type {
    FL_NET_MSG_JOINED = 1, /* session -> client, text = its name; wants_offer */
    FL_NET_MSG_REFUSED,    /* session, text */
    FL_NET_MSG_RELEASE,    /* client, text: it was forgotten */
    FL_NET_MSG_BAD_OFFER,  /* session, text; code: distinguishes errors of the client and of the
                              server */
    FL_NET_MSG_TAKEN,      /* session, client: one of its events was consumed */
    /* text = name, client or FL_EVERYBODY, round, bytes, digest; no bytes: withdrawn */
    FL_NET_MSG_PAYLOAD,
    FL_NET_MSG_TASK,
    FL_NET_MSG_PLAN,
    FL_NET_MSG_ACCEPTED,
    FL_NET_MSG_REJECTED,
    FL_NET_MSG_DISMISSED,
    FL_NET_MSG_EVALUATE,
    FL_NET_MSG_DRAIN,
    FL_NET_MSG_ROUND_CLOSED,
    FL_NET_MSG_ADMIN,    /* the answer to request is complete */
    FL_NET_MSG_FINISHED, /* all rounds are done */
    FL_NET_MSG_NO_SPACE, /* disk full: recycled files have to be removed */
    FL_NET_MSG_STOPPED   /* drained, or stopped: the process ends */
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
    bool personal_model;
    struct fl_admin_request *request;
};

/* One admin call: the coordinator fills in the answer, the network front end sends it. */
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
    struct fl_call *call; /* network front end only; NULL when the peer disconnected */
    struct fl_timer
        *timer;    /* network front end only, while `call` is set: checks for a disk stall */
    bool asked;    /* network front end only: the request was posted to the coordinator */
    bool answered; /* network front end only */
    bool known;    /* network front end only: `who` is valid */
    struct fl_identity who;
    struct fl_wire_list_rounds list;       /* ROUNDS */
    uint64_t round;                        /* EXPORT, HOLD, ROLLBACK */
    bool release;                          /* HOLD */
    bool force;                            /* ROLLBACK */
    struct fl_wire_control control;        /* PAUSE to ABORT_ROUND */
    struct fl_admin_request *next_command; /* next in the queue; coordinator only */
    struct fl_wire_forget forget;
    char drop[FL_NAME_MAX]; /* DROP_SUMMARY: the client's name */
    struct fl_wire_forgotten forgotten;
    size_t n_waits;            /* FORGET: number of pending writes */
    struct fl_replies replies; /* the answer */
    struct fl_blob *model;     /* EXPORT */
    uint64_t model_round;
    uint64_t offset; /* bytes of the export sent so far */
    struct fl_buf header;
    int code; /* FL_OK, or the error */
    struct fl_err err;
};

/* Append one encoded message to `replies`. */
FL_MUST_CHECK int fl_admin_reply(struct fl_admin_request *request, const struct fl_buf *message);

/*
 * Out of memory for `what`, a message that must not be lost: without it a client, an operator or
 * the coordinator would wait forever. So the process ends here, as if killed, with a log line and
 * the exit code for a failure while running; operations that can be refused are refused instead
 * (docs/architecture.md#contracts-worth-knowing). Any thread.
 */
FL_NORETURN void fl_serverd_no_memory(const struct fl_serverd *srv, const char *what);
/*
 * Reserve memory for the event loops, before the first of them is created; the process ends with a
 * log line when the reserve does not suffice. Borrows `log` permanently. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_serverd_keep_back_memory(struct fl_log *log);
/* Network loop: stop as on a signal, tell clients to reconnect soon, and restart. */
void fl_server_restart(struct fl_serverd *srv, const char *why);
/* Network loop: the coordinator has stopped. */
void fl_server_stopped(struct fl_serverd *srv);
/* Run the daemon until it is stopped; returns the exit code. A reload changes `log` and `out`. */
int fl_server_run(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out);
/*
 * --recover: make the newest good checkpoint of the state folder its last committed round
 * (fl_store_rebuild()), and print the result. Starts no server. Returns the exit code.
 */
int fl_server_recover(const struct fl_serverd_conf *own, const struct fl_log *log);

#endif
