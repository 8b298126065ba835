#ifndef FL_SERVERD_SERVER_IMPL_H
#define FL_SERVERD_SERVER_IMPL_H

/* Private to the serverd*.c files that start, run and stop the daemon. */

#include <stdatomic.h>

#include "server/admin/admin.h"
#include "server/auth/auth.h"
#include "server/daemon/hook_runner.h"
#include "server/daemon/serverd.h"
#include "server/http/server_http.h"
#include "server/network/frontend.h"
#include "server/runtime/runtime.h"

/* What main wires together. Rooms below name what they need of it in a setup of their own. */
struct fl_serverd {
    const struct fl_server_conf *conf;
    const struct fl_serverd_conf *own; /* the part for the daemon only */
    struct fl_log *log;                /* changed by a reload only */
    struct fl_log_out *log_out;        /* destination of `log`; NULL: not ours */
    struct fl_loop *net;
    struct fl_stall_watch disk; /* the worker threads, the state folder and authentication */
    struct fl_traffic traffic;  /* of all clients */
    struct fl_download_counts downloads;
    struct fl_frontend *frontend;
    struct fl_admin *admin;
    struct fl_runtime *runtime;
    struct fl_hooks *hooks;      /* NULL: none is configured */
    struct fl_event_log *events; /* NULL without an HTTP port */
    struct fl_server_http *http; /* likewise */
    uint64_t started_ms;
    uint64_t max_connections;         /* limits.clients, or fewer if descriptors are short */
    bool restart, stopping;           /* restart after the stop; network loop only */
    struct fl_timer *stop_timer;      /* limits the time for the coordinator's stop */
    struct fl_stop_limit *stop_limit; /* NULL: not stopping */
    _Atomic(const char *) stop_waits_for;
};

/* serverd_start.c */
/* Create and start everything; `*ret_exit`: the exit code on error. Close it in both cases. */
FL_MUST_CHECK int fl_serverd_open(struct fl_serverd *srv, int *ret_exit, struct fl_err *err);
void fl_serverd_close(struct fl_serverd *srv);

/* serverd_stop.c; each takes a struct fl_serverd. */
void fl_serverd_on_signal(void *arg, int signum);
void fl_serverd_on_stop_timeout(void *arg);
/* Stop as on a signal, make clients reconnect soon, and restart. */
void fl_serverd_restart(void *ctx, const char *why);
/* The coordinator has stopped. */
void fl_serverd_stopped(void *ctx);
/* Begin the time limit of the stop, unless it has begun. */
void fl_serverd_limit_stop(struct fl_serverd *srv);

#endif
