#ifndef FL_SERVER_NETWORK_FRONTEND_IMPL_H
#define FL_SERVER_NETWORK_FRONTEND_IMPL_H

/* Private to the files of the network front end. */

#include "libfl/base/list.h"
#include "libfl/grpc/endpoint.h"
#include "server/auth/admin_access.h"
#include "server/network/disk.h"
#include "server/network/frontend.h"
#include "server/network/inbox.h"
#include "server/network/no_memory.h"
#include "server/store/recycled_files.h"

/* The model, the candidate, and the other payloads of a solver. */
#define FL_FRONTEND_MAX_PAYLOADS 16

struct fl_session_key {
    uint64_t round; /* 0: none */
    uint32_t attempt;
};

/* One open Attend call, the control stream of a session. */
struct fl_control_stream {
    struct fl_frontend *frontend;
    struct fl_list link;   /* all open ones */
    struct fl_list hellos; /* in one of the front end's two lists of Hellos */
    uint64_t id;
    struct fl_call *call;       /* NULL after it closed */
    bool greeted;               /* Hello was received */
    bool verified;              /* its connection's certificate is for `name` */
    bool asked;                 /* the coordinator was asked for a number and has not answered */
    struct fl_coord_msg *hello; /* its Hello while it waits in the queue; owned */
    bool joined;                /* the coordinator assigned a number: `client` is valid */
    uint32_t client;
    char name[FL_NAME_MAX];
    struct fl_wire_session token;
    uint64_t heard_ms;
    uint64_t reported_ms; /* when the coordinator was last notified that it is alive */
    uint64_t heartbeat;
    bool timed_out;     /* its call is about to close, for its silence */
    bool ended;         /* by fl_control_stream_review_plain(): its call is about to close */
    bool wants_summary; /* a data summary, or the rest of it, is expected */
    uint64_t summary_total;
    struct fl_buf summary;
    struct fl_inbox inbox; /* events for the coordinator */
};

struct fl_payload_rec {
    char name[FL_NAME_MAX]; /* empty: free */
    uint64_t round;
    struct fl_bytes bytes;
    struct fl_differences *differences; /* a reference, or NULL */
    bool has_digest;
    uint8_t digest[FL_DIGEST_SIZE];
};

/* The front end's record of a client, connected or not. */
struct fl_frontend_client {
    struct fl_control_stream *stream; /* newest session, or NULL */
    struct fl_session_key grant;      /* the round and attempt that it may push for */
    uint8_t *units;                   /* [n_units] upload mask */
    /*
     * The upload that is complete and with the coordinator, which has not answered: the client can
     * no longer change the file.
     */
    struct fl_session_key stored;
    struct fl_session_key accepted;
    uint64_t fetched;                      /* round whose model it has begun to download */
    struct fl_push *push;                  /* its current transfer; older ones were ended */
    struct fl_payload_rec *personal_model; /* its personalized model; owned, or NULL */
};

struct fl_frontend {
    struct fl_frontend_setup setup;
    struct fl_grpc_builtin *builtin;
    struct fl_rpc_method methods[16];
    struct fl_admin_access access;
    uint16_t port;       /* of the first TLS address that has one */
    uint64_t n_expelled; /* peers disconnected or refused because of a limit, since the start */
    struct fl_grpc_server *server, *admin;
    struct fl_timer *sweep;
    struct fl_list streams;
    size_t n_events, most_events; /* posted to the coordinator and not consumed yet; maximum */
    size_t n_plain, n_verified;   /* sessions that sent Hello, without a certificate and with one */
    size_t n_asked; /* Hellos that the coordinator has not answered, of ended calls too */
    struct fl_list asked, waiting; /* Hellos, in order of arrival */
    struct fl_frontend_client *slots;
    size_t n_slots;
    struct fl_payload_rec payloads[FL_FRONTEND_MAX_PAYLOADS];
    struct fl_list fetches;
    struct fl_disk disk;          /* file requests of peers */
    struct fl_recycled *recycled; /* recycled spool files, of the io thread */
    struct fl_list pushes;
    uint64_t next_id;
    size_t n_units;
    bool closing;
    int n_open_servers;
    fl_loop_cb closed;
    void *closed_ctx;
};

/* The slot of a client number, growing the table; NULL: out of memory. */
struct fl_frontend_client *fl_frontend_client_at(struct fl_frontend *frontend, uint32_t client);
/*
 * The control stream that a session token belongs to, or NULL. The token is valid only on
 * connections of the identity that began the session.
 */
struct fl_control_stream *fl_frontend_session(struct fl_frontend *frontend,
                                              const struct fl_call *call,
                                              const struct fl_wire_session *token);
/*
 * Run work(arg) on the io thread, then done(arg) (may be NULL) here. FL_ENOMEM; FL_ECLOSED:
 * shutting down, and the thread has finished its jobs.
 */
FL_MUST_CHECK int fl_frontend_on_disk(struct fl_frontend *frontend, fl_loop_cb work,
                                      fl_loop_cb done, void *arg);
/* `text` without the path of the state folder; returns `out`. */
const char *fl_frontend_public(const struct fl_frontend *frontend, const char *text, char *out,
                               size_t size);
/* The same for a request of a session: FL_EPERM means that there is no such session. */
void fl_frontend_fail_request(struct fl_call *call, int code, const struct fl_err *err);
enum fl_grpc_status fl_frontend_request_status(int code);

/* A peer was disconnected or refused because of what it did: one line in the log. */
void fl_frontend_notice(struct fl_frontend *frontend, const char *peer, const char *reason,
                        const char *text);

/* control_stream.c */
void fl_control_stream_start(struct fl_call *call, void *ctx);
void fl_control_stream_joined(struct fl_frontend *frontend, const struct fl_net_msg *down);
void fl_control_stream_refused(struct fl_frontend *frontend, const struct fl_net_msg *down);
void fl_control_stream_bad_summary(struct fl_frontend *frontend, const struct fl_net_msg *down);
void fl_control_stream_taken(struct fl_frontend *frontend, const struct fl_net_msg *down);
/* Ends the session of a forgotten client, which may join again as a new one. */
void fl_control_stream_release(struct fl_frontend *frontend, const struct fl_net_msg *down);
void fl_control_stream_sweep(struct fl_frontend *frontend, uint64_t now_ms);
/* control_stream_hello.c */
/* Ask the coordinator for a client number, after the Hellos that arrived before; takes `up`. */
void fl_control_stream_ask(struct fl_control_stream *stream, struct fl_coord_msg *up);
/* The session has ended: removes its Hello from the queue, or ignores its answer. */
void fl_control_stream_withdraw_hello(struct fl_control_stream *stream);
/* The coordinator has answered a Hello: its control stream, or NULL when that session has ended. */
struct fl_control_stream *fl_control_stream_answered(struct fl_frontend *frontend,
                                                     uint64_t session);
/*
 * True while a session of this name is with the coordinator and not answered. A report that the
 * older session was lost would arrive after it, and the coordinator would treat a connected client
 * as lost.
 */
bool fl_control_stream_asked(const struct fl_frontend *frontend, const char *name);
/* control_stream_plaintext.c; only with authentication */
/*
 * fl_control_stream_ask() of a client without TLS, unless its name is refused in plaintext; takes
 * `up`.
 */
void fl_control_stream_ask_plain(struct fl_control_stream *stream, struct fl_coord_msg *up);
/* The client has shown a certificate: its name is refused in plaintext from now on. */
void fl_control_stream_shown(const struct fl_control_stream *stream,
                             const struct fl_identity *identity);
/* Ends plaintext sessions under revoked names; does nothing without authentication. */
void fl_control_stream_review_plain(struct fl_frontend *frontend);
/* control_stream_command.c */
/*
 * Rate-limit key for fl_log_peer(): many clients may share one address, but unauthenticated peers
 * choose their names.
 */
const char *fl_control_stream_who(const struct fl_control_stream *stream);
struct fl_control_stream *fl_control_stream_find(struct fl_frontend *frontend,
                                                 uint64_t id); /* or NULL */
/* Sends Refused, logs it, and ends the call; 0: the client chooses when it retries. */
void fl_control_stream_refuse(struct fl_control_stream *stream, enum fl_wire_reason reason,
                              uint32_t retry_ms, const char *message);
void fl_control_stream_command(struct fl_control_stream *stream,
                               const struct fl_wire_command *command);
void fl_control_stream_down(struct fl_frontend *frontend,
                            struct fl_net_msg *down); /* may take its units */
/* control_stream_summary.c */
void fl_control_stream_summary(struct fl_control_stream *stream,
                               const struct fl_wire_data_summary *piece);

/* fetch.c */
void fl_fetch_start(struct fl_call *call, void *ctx);
/* The payload that `client` may fetch by this name, or NULL. */
const struct fl_payload_rec *fl_fetch_payload(const struct fl_frontend *frontend, const char *name,
                                              uint64_t round, uint32_t client);
/* Handles FL_NET_MSG_PAYLOAD; takes its bytes. */
void fl_fetch_serve(struct fl_frontend *frontend, struct fl_net_msg *down);
/* The client has no personalized model any more. */
void fl_fetch_drop_personal_model(struct fl_frontend_client *slot);

/* push.c */
void fl_push_start(struct fl_call *call, void *ctx);
/* A verdict of the coordinator (Accepted, Rejected, Dismissed) on the upload of its client. */
void fl_push_verdict(struct fl_frontend *frontend, const struct fl_net_msg *down);
/* True when `key` is (round, attempt); round 0 is none. */
bool fl_session_is(const struct fl_session_key *key, uint64_t round, uint32_t attempt);
/* No more of (round, attempt) is accepted from the client. */
void fl_push_withdraw(struct fl_frontend_client *slot, uint64_t round, uint32_t attempt);
/* True, and the bytes on disk, when `push` (may be NULL) is for (round, attempt). */
bool fl_push_written(const struct fl_push *push, uint64_t round, uint32_t attempt,
                     uint64_t *ret_written);
struct fl_push_progress {
    struct fl_session_key key; /* its round and attempt */
    uint64_t bytes;            /* of the update that have arrived, on disk or in memory */
    bool held; /* it has waited for our disk since the last query, or for the verdict */
};
/*
 * True when more of `push` (may be NULL) has arrived since the last query, or it waits for our disk
 * or the verdict.
 */
bool fl_push_progress(struct fl_push *push, struct fl_push_progress *ret);
/* Ends the transfers of (round, attempt). */
void fl_push_round_closed(struct fl_frontend *frontend, uint64_t round, uint32_t attempt);
/* The client was forgotten: ends its transfer. */
void fl_push_release(struct fl_frontend *frontend, uint32_t client);

/* push_status.c */
void fl_push_status_start(struct fl_call *call, void *ctx);

#endif
