/*
 * What a client costs a server that is connected and idle: memory of the whole connection, with one
 * call open as fl-clientd has it (Attend), after a message each way. The server is a process of its
 * own and counts what malloc() has given out and what pages of mappings are in memory, without any
 * client and with all of them. Measures, asserts nothing.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/line.h"
#include "bench/peers.h"
#include "bench/secure.h"
#include "libfl/base/str.h"
#include "libfl/grpc/endpoint.h"

#define METHOD "/bench.Idle/Attend"
/* After the last message, so that answers are on their way and not in memory. */
#define SETTLE_MS 1000

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'c', "connections (default 1000)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints one line for each of: no TLS, TLS without and with a client's certificate:\n"
    "  idle: tls=… certificate=… clients=… malloc_bytes=… resident_bytes=…\n"
    "bytes are the server's, of one connection; what it has freed and keeps is in the second "
    "only\n";

const char bench_name[] = "bench/idle";

/* The server. */

struct usage_of {
    size_t allocated, mapped;
};

/* Of mappings without a file that are not the heap: bytes in memory. */
static size_t mapped_now(void)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[512];
    bool counts = false;
    size_t kib = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *colon = strchr(line, ':');

        if (strncmp(line, "Rss:", 4) == 0 && counts) {
            kib += strtoul(line + 4, NULL, 10);
        } else if (colon == NULL || colon[1] != ' ') { /* the first line of a mapping */
            counts = strchr(line, '/') == NULL && strchr(line, '[') == NULL;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib * 1024;
}

static struct usage_of usage_now(void)
{
    struct mallinfo2 info = mallinfo2();

    return (struct usage_of){.allocated = info.uordblks, .mapped = mapped_now()};
}

struct server {
    struct fl_loop *loop;
    struct fl_grpc_server *grpc;
    unsigned clients; /* that are awaited */
    unsigned calls;
    int fd;
    struct fl_timer *settled;
    struct usage_of before;
};

static void report(void *arg)
{
    struct server *server = arg;
    struct usage_of now = usage_now();

    now.allocated = (now.allocated - server->before.allocated) / server->clients;
    now.mapped = (now.mapped - server->before.mapped) / server->clients;
    peer_send(server->fd, &now, sizeof(now));
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct server *server = ctx;

    (void)peer_echo(call, NULL, data, len);
    if (++server->calls == server->clients) {
        fl_timer_start(server->settled, SETTLE_MS);
    }
    return true;
}

static void start_attend(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {.on_message = on_message,
                                                   .on_closed = peer_closed};

    fl_call_set_handler(call, &handler, ctx);
    fl_call_set_patient(call, true);
}

/* Both sides of one measurement. */
struct sides {
    unsigned clients;
    const struct fl_stream_filter *server_filter, *client_filter;
    char address[64];
};

static void run_server(const void *ctx, int fd)
{
    const struct sides *sides = ctx;
    struct server server = {.clients = sides->clients, .fd = fd};
    struct fl_rpc_method methods[] = {{METHOD, FL_WHO_ANYBODY, start_attend, &server},
                                      {NULL, 0, NULL, NULL}};
    struct fl_grpc_server_setup setup = {.max_connections = sides->clients + 16,
                                         .methods = methods};
    const struct fl_grpc_listen listen = {.address = "127.0.0.1:0", .filter = sides->server_filter};
    struct fl_err err = {0};
    unsigned port = 0;

    fl_rpc_limits_default(&setup.limits);
    setup.limits.handshake_ms = 600 * 1000;
    must_err(fl_loop_create(&server.loop, &err), &err);
    setup.loop = server.loop;
    must_err(fl_grpc_server_create(&setup, &server.grpc, &err), &err);
    must_err(fl_grpc_server_listen(server.grpc, &listen, &port, &err), &err);
    must(fl_timer_create(server.loop, report, &server, &server.settled), "timer");
    server.before = usage_now();
    peer_send(fd, &port, sizeof(port));
    fl_loop_run(server.loop); /* until it is killed */
}

/* The clients. */

struct client {
    struct fl_grpc_channel *channel;
    struct fl_call *call;
};

static bool on_answer(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return true;
}

static void on_up(void *ctx)
{
    static const struct fl_call_handler handler = {.on_message = on_answer,
                                                   .on_closed = peer_closed};
    struct client *client = ctx;
    struct fl_piece piece = {.data = "hello", .len = 5};

    must(fl_grpc_call(client->channel, METHOD, 0, &handler, client, &client->call), "call");
    must(fl_call_send(client->call, &piece, 1), "message");
}

static void on_down(void *ctx, int code, const char *text)
{
    (void)ctx;
    if (code != FL_OK) {
        die(text);
    }
}

static void run_clients(const void *ctx, int fd)
{
    static const struct fl_grpc_channel_cbs cbs = {on_up, on_down};
    const struct sides *sides = ctx;
    struct client *clients = calloc(sides->clients, sizeof(*clients));
    struct fl_grpc_channel_setup setup = {.address = sides->address,
                                          .timeout_ms = 600 * 1000,
                                          .cbs = &cbs,
                                          .filter = sides->client_filter};
    struct fl_rpc_limits limits;
    struct fl_err err = {0};
    unsigned i;

    (void)fd;
    if (clients == NULL) {
        die("out of memory");
    }
    fl_rpc_limits_default(&limits);
    setup.limits = &limits;
    must_err(fl_loop_create(&setup.loop, &err), &err);
    for (i = 0; i < sides->clients; i++) {
        setup.ctx = &clients[i];
        must_err(fl_grpc_connect(&setup, &clients[i].channel, &err), &err);
    }
    fl_loop_run(setup.loop); /* until it is killed */
}

/* A server and its clients, each in a process of its own. */
static void measure(struct sides sides, const char *tls, const char *certificate)
{
    struct usage_of cost = {0};
    unsigned port = 0;
    pid_t server;
    pid_t clients;
    int server_fd;
    int clients_fd;

    server = peer_start(run_server, &sides, &server_fd);
    peer_receive(server_fd, &port, sizeof(port), "the server did not start");
    (void)snprintf(sides.address, sizeof(sides.address), "127.0.0.1:%u", port);
    clients = peer_start(run_clients, &sides, &clients_fd);
    peer_receive(server_fd, &cost, sizeof(cost), "not all clients came");
    (void)close(clients_fd);
    (void)close(server_fd);
    peer_kill(clients);
    peer_kill(server);
    printf("idle: tls=%s certificate=%s clients=%u bytes=%zu malloc_bytes=%zu mapped_bytes=%zu\n",
           tls, certificate, sides.clients, cost.allocated + cost.mapped, cost.allocated,
           cost.mapped);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    struct fl_args line = {.program = "bench/idle", .rows = rows, .argc = argc, .argv = argv};
    uint64_t count = 1000;
    struct fl_stream_filter nameless;
    struct secure secure;
    unsigned n;

    while (bench_next(&line, prints) != FL_ARGS_END) {
        if (fl_str_to_u64(line.value, &count) != FL_OK || count == 0 || count > 20000) {
            die("--clients wants a number from 1 to 20000");
        }
    }
    n = (unsigned)count;
    peers_open_files();
    secure_make(&secure);
    nameless = fl_tls_filter(secure.nameless);
    measure((struct sides){.clients = n}, "no", "no");
    measure((struct sides){n, &secure.server_filter, &nameless, ""}, "yes", "no");
    measure((struct sides){n, &secure.server_filter, &secure.client_filter, ""}, "yes", "yes");
    secure_free(&secure);
    return EXIT_SUCCESS;
}
