#ifndef FL_SERVERD_SERVER_H
#define FL_SERVERD_SERVER_H

/*
 * The assembled daemon.
 *
 *   network loop (main thread)   connections, sessions, transfers: server/network
 *   coordinator thread           fl_coord and its effects: runtime.h
 *   io thread                    spool files, files that clients fetch
 *   db thread                    SQLite and checkpoints
 *   work thread                  aggregation and evaluation
 *   identity thread              certificates, invitations, revocations: server/auth
 *
 * Threads communicate only by posting struct fl_coord_msg (to the coordinator) and struct
 * fl_net_msg (to the network front end).
 */

#include <stdatomic.h>

#include "libfl/base/log_out.h"
#include "server/admin/admin.h"
#include "server/daemon/serverd_conf.h"
#include "server/network/loop_messages.h"

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
    struct fl_admin *admin;
    struct fl_runtime *runtime;
    struct fl_auth *auth; /* NULL: no address uses TLS */
    uint64_t started_ms;
    uint64_t max_connections;         /* limits.clients, or fewer if descriptors are short */
    bool restart, stopping;           /* restart after the stop; network loop only */
    struct fl_timer *stop_timer;      /* limits the time for the coordinator's stop */
    struct fl_stop_limit *stop_limit; /* NULL: not stopping */
    _Atomic(const char *) stop_waits_for;
};

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
