/*
 * A federation that comes back at once: so many clients shake hands with a server while others,
 * which stand, send a heartbeat each and wait for its answer. Server, calm and new clients are
 * processes of their own. Prints the round trips of the heartbeats before and during the storm.
 * Measures, asserts nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/line.h"
#include "bench/peers.h"
#include "bench/secure.h"
#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/grpc/endpoint.h"

#define METHOD "/bench.Storm/Heartbeat"
/* Of each calm client. */
#define BEAT_MS 100

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'n', "that come at once (default 1000)"),
    FL_ARG("calm", '\0', "N", 'c', "that heartbeat meanwhile, ten times a second (default 50)"),
    FL_ARG("insecure", '\0', NULL, 'i', "without TLS, to compare"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints one line:\n"
    "  storm: clients=… storm_ms=… calm_mean_ms=… calm_max_ms=… storm_mean_ms=… "
    "storm_max_ms=…\n"
    "storm_ms is the time until all stand; calm and storm are round trips of "
    "heartbeats before and in it\n";

const char bench_name[] = "bench/storm";

/* The server. */

static void start_heartbeat(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {.on_message = peer_echo,
                                                   .on_closed = peer_closed};

    fl_call_set_handler(call, &handler, ctx);
    fl_call_set_patient(call, true);
}

static void run_server(const void *filter, int fd)
{
    static struct fl_rpc_method methods[] = {{METHOD, FL_WHO_ANYBODY, start_heartbeat, NULL},
                                             {NULL, 0, NULL, NULL}};
    struct fl_grpc_server_setup setup = {.max_connections = 30000, .methods = methods};
    const struct fl_grpc_listen listen = {.address = "127.0.0.1:0", .filter = filter};
    struct fl_grpc_server *server = NULL;
    struct fl_err err = {0};
    unsigned port = 0;

    fl_rpc_limits_default(&setup.limits);
    setup.limits.handshake_ms = 600 * 1000;
    must_err(fl_loop_create(&setup.loop, &err), &err);
    must_err(fl_grpc_server_create(&setup, &server, &err), &err);
    must_err(fl_grpc_server_listen(server, &listen, &port, &err), &err);
    peer_send(fd, &port, sizeof(port));
    fl_loop_run(setup.loop); /* until it is killed */
}

/* Clients of either kind. */

struct trips {
    unsigned n;
    double sum_ms, max_ms;
};

struct crowd {
    struct fl_grpc_channel_setup setup;
    struct fl_rpc_limits limits;
    unsigned n, up;
    struct trips *trips; /* where round trips go now; NULL: they do not heartbeat */
};

struct client {
    struct crowd *crowd;
    struct fl_grpc_channel *channel;
    struct fl_call *call;
    struct fl_timer *timer;
    uint64_t sent_ns;
};

static void beat(void *arg)
{
    struct client *client = arg;
    struct fl_piece piece = {.data = "beat", .len = 4};

    client->sent_ns = fl_clock_ns();
    must(fl_call_send(client->call, &piece, 1), "heartbeat");
}

static bool on_answer(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct client *client = ctx;
    struct trips *trips = client->crowd->trips;
    double ms = (double)(fl_clock_ns() - client->sent_ns) / 1e6;

    (void)call;
    (void)data;
    (void)len;
    trips->n++;
    trips->sum_ms += ms;
    trips->max_ms = ms > trips->max_ms ? ms : trips->max_ms;
    fl_timer_start(client->timer, BEAT_MS);
    return true;
}

static void on_up(void *ctx)
{
    static const struct fl_call_handler handler = {.on_message = on_answer,
                                                   .on_closed = peer_closed};
    struct client *client = ctx;
    struct crowd *crowd = client->crowd;

    if (crowd->trips != NULL) {
        must(fl_timer_create(crowd->setup.loop, beat, client, &client->timer), "timer");
        must(fl_grpc_call(client->channel, METHOD, 0, &handler, client, &client->call), "call");
        fl_timer_start(client->timer, (uint64_t)crowd->up * BEAT_MS / crowd->n);
    }
    if (++crowd->up == crowd->n) {
        fl_loop_stop(crowd->setup.loop);
    }
}

static void on_down(void *ctx, int code, const char *text)
{
    (void)ctx;
    if (code != FL_OK) {
        die(text);
    }
}

/* Connect all of them at once; returns when all stand. */
static void bring(struct crowd *crowd, const char *address, const struct fl_stream_filter *filter)
{
    static const struct fl_grpc_channel_cbs cbs = {on_up, on_down};
    struct client *clients = calloc(crowd->n, sizeof(*clients));
    struct fl_err err = {0};
    unsigned i;

    if (clients == NULL) {
        die("out of memory");
    }
    fl_rpc_limits_default(&crowd->limits);
    must_err(fl_loop_create(&crowd->setup.loop, &err), &err);
    crowd->setup.address = address;
    crowd->setup.limits = &crowd->limits;
    crowd->setup.timeout_ms = 600 * 1000;
    crowd->setup.cbs = &cbs;
    crowd->setup.filter = filter;
    for (i = 0; i < crowd->n; i++) {
        clients[i].crowd = crowd;
        crowd->setup.ctx = &clients[i];
        must_err(fl_grpc_connect(&crowd->setup, &clients[i].channel, &err), &err);
    }
    fl_loop_run(crowd->setup.loop);
}

struct storm {
    struct crowd calm;
    struct fl_timer *timer;
    int fd; /* the new clients tell through it that all stand */
};

static void stop(void *arg)
{
    fl_loop_stop(arg);
}

static void look(void *arg)
{
    struct storm *storm = arg;
    char byte;
    ssize_t n = read(storm->fd, &byte, 1);

    if (n == 0) {
        die("not all clients came");
    }
    if (n == 1) {
        fl_loop_stop(storm->calm.setup.loop);
    } else {
        fl_timer_start(storm->timer, 1);
    }
}

struct newcomers {
    unsigned n;
    const char *address;
    const struct fl_stream_filter *filter;
};

static void run_storm(const void *ctx, int fd)
{
    const struct newcomers *new = ctx;
    struct crowd crowd = {.n = new->n};

    bring(&crowd, new->address, new->filter);
    peer_send(fd, "u", 1);
    (void)pause(); /* until it is killed */
}

static double mean(const struct trips *trips)
{
    return trips->n > 0 ? trips->sum_ms / trips->n : 0;
}

static void measure(const struct newcomers *new, unsigned n_calm)
{
    struct trips before = {0};
    struct trips during = {0};
    struct storm storm = {.calm = {.n = n_calm, .trips = &before}};
    struct fl_loop *loop;
    uint64_t begin_ns;
    pid_t pid;

    bring(&storm.calm, new->address, new->filter);
    loop = storm.calm.setup.loop;
    must(fl_timer_create(loop, stop, loop, &storm.timer), "timer");
    fl_timer_start(storm.timer, 3000);
    fl_loop_run(loop);
    fl_timer_close(storm.timer);
    storm.calm.trips = &during;
    pid = peer_start(run_storm, new, &storm.fd);
    (void)fcntl(storm.fd, F_SETFL, O_NONBLOCK);
    begin_ns = fl_clock_ns();
    must(fl_timer_create(loop, look, &storm, &storm.timer), "timer");
    fl_timer_start(storm.timer, 0);
    fl_loop_run(loop);
    printf("storm: clients=%u storm_ms=%.0f calm_mean_ms=%.2f calm_max_ms=%.2f storm_mean_ms=%.2f "
           "storm_max_ms=%.2f\n",
           new->n, (double)(fl_clock_ns() - begin_ns) / 1e6, mean(&before), before.max_ms,
           mean(&during), during.max_ms);
    peer_kill(pid);
}

struct args {
    uint64_t clients, calm;
    bool insecure;
};

static struct args parse(int argc, char **argv)
{
    struct fl_args line = {.program = "bench/storm", .rows = rows, .argc = argc, .argv = argv};
    struct args args = {.clients = 1000, .calm = 50};
    int opt;

    while ((opt = bench_next(&line, prints)) != FL_ARGS_END) {
        if (opt == 'i') {
            args.insecure = true;
        } else if (fl_str_to_u64(line.value, opt == 'n' ? &args.clients : &args.calm) != FL_OK) {
            die("--clients and --calm want a number");
        }
    }
    if (args.clients == 0 || args.clients > 20000 || args.calm == 0 || args.calm > 1000) {
        die("--clients wants a number from 1 to 20000, --calm one from 1 to 1000");
    }
    return args;
}

int main(int argc, char **argv)
{
    struct args args = parse(argc, argv);
    struct newcomers new = {.n = (unsigned)args.clients};
    struct secure secure;
    char address[64];
    unsigned port = 0;
    pid_t server;
    int fd;

    peers_open_files();
    secure_make(&secure);
    server = peer_start(run_server, args.insecure ? NULL : &secure.server_filter, &fd);
    peer_receive(fd, &port, sizeof(port), "the server did not start");
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    new.address = address;
    new.filter = args.insecure ? NULL : &secure.client_filter;
    measure(&new, (unsigned)args.calm);
    peer_kill(server);
    secure_free(&secure);
    return EXIT_SUCCESS;
}
