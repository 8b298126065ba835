/*
 * What readers of the HTTP port cost the others: a real fl-serverd with many connected clients, the
 * latency of control calls (Admin/Status, which network loop and coordinator answer) without and
 * with readers that never read and a scrape a second, in turn; and the time of a scrape. Measures,
 * asserts nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/line.h"
#include "bench/peers.h"
#include "bench/round_server.h"
#include "bench/scratch.h"
#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/net/loop.h"
#include "libfl/wire/wire_admin.h"

const char bench_name[] = "bench/readers";

#define CALL_EVERY_MS 5
#define CALLS_MAX     200000
#define SCRAPES_MAX   1000
#define BLOCKS_MAX    100

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'c', "connected clients, default 1000"),
    FL_ARG("readers", '\0', "N", 'n', "readers that never read, default 200"),
    FL_ARG("blocks", '\0', "N", 'b', "measurements of each kind, default 7"),
    FL_ARG("seconds", '\0', "N", 't', "of each measurement, default 3"),
    FL_ARG("server", '\0', "PROGRAM", 's', "default: fl-serverd of the same build folder"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "\n"
    "Prints\n"
    "  readers: clients=… readers=… calls=… p50_ms=… p99_ms=… with_p50_ms=… with_p99_ms=…\n"
    "           ratio_p99=… scrapes=… scrape_ms=MEDIAN scrape_max_ms=… bytes=…\n"
    "the latency of control calls without readers and with them, a scrape a second included,\n"
    "medians over the measurements of each kind, which alternate;\n"
    "scrape_ms is what Prometheus would measure.\n";

struct readers_of {
    uint64_t clients, readers, blocks, seconds;
    const char *server;
    char dir[4096], address[128], admin[4200];
    uint16_t port; /* HTTP */
};

/* --- clients that only connect --- */

struct member {
    const struct readers_of *all;
    struct fl_grpc_channel *channel;
    struct fl_call *attend;
    size_t index;
};

static bool member_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return true;
}

static const struct fl_call_handler member_handler = {.on_message = member_on_message,
                                                      .on_closed = peer_closed};

static void member_on_up(void *ctx)
{
    struct member *m = ctx;
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};
    struct fl_piece piece = {0};
    char name[32];
    struct fl_buf buf;

    (void)snprintf(name, sizeof(name), "client-%06zu", m->index);
    event.u.hello.version_min = FL_WIRE_VERSION;
    event.u.hello.version_max = FL_WIRE_VERSION;
    event.u.hello.client = name;
    event.u.hello.agent = fl_wire_lend("bench");
    event.u.hello.samples = 100;
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    must(fl_wire_event_encode(&event, &buf), "a hello");
    must(fl_grpc_call(m->channel, "/fl.v1.Federation/Attend", 0, &member_handler, m, &m->attend),
         "a session");
    piece = (struct fl_piece){.data = buf.data, .len = buf.len};
    must(fl_call_send(m->attend, &piece, 1), "a hello");
    fl_buf_done(&buf);
}

static void member_on_down(void *ctx, int code, const char *text)
{
    (void)ctx;
    (void)code;
    die(text != NULL ? text : "a client was disconnected");
}

static void run_members(const void *ctx, int fd)
{
    static const struct fl_grpc_channel_cbs cbs = {.on_up = member_on_up,
                                                   .on_down = member_on_down};
    const struct readers_of *a = ctx;
    struct fl_rpc_limits limits;
    struct fl_loop *loop = NULL;
    struct member *members = calloc(a->clients, sizeof(*members));
    size_t i;

    (void)fd;
    fl_rpc_limits_default(&limits);
    must(members != NULL ? FL_OK : FL_ENOMEM, "clients");
    must(fl_loop_create(&loop, NULL), "loop");
    for (i = 0; i < a->clients; i++) {
        members[i] = (struct member){.all = a, .index = i};
        must(fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = loop,
                                                             .address = a->address,
                                                             .limits = &limits,
                                                             .timeout_ms = 120000,
                                                             .cbs = &cbs,
                                                             .ctx = &members[i]},
                             &members[i].channel, NULL),
             "a client");
    }
    fl_loop_run(loop); /* until it is killed */
}

/* --- readers --- */

static int reader_dial(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0) {
        die("the HTTP port cannot be reached");
    }
    return fd;
}

struct scrape {
    double seconds;
    uint64_t bytes;
};

static struct scrape scrape_once(uint16_t port)
{
    static const char request[] =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct scrape s = {0};
    uint64_t from = fl_clock_ns();
    char answer[65536];
    int fd = reader_dial(port);
    ssize_t n;

    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0) {
        die("a scrape");
    }
    while ((n = recv(fd, answer, sizeof(answer), 0)) > 0) {
        s.bytes += (uint64_t)n;
    }
    (void)close(fd);
    s.seconds = (double)(fl_clock_ns() - from) / 1e9;
    return s;
}

static void run_readers(const void *ctx, int out)
{
    static const char stuck[] =
        "GET /api/v1/clients?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const struct readers_of *a = ctx;
    size_t i;

    for (i = 0; i < a->readers; i++) {
        int fd = reader_dial(a->port);

        struct pollfd begun = {.fd = fd, .events = POLLIN};

        /* Each has its answer before the next one asks, and does not read it. */
        if (send(fd, stuck, sizeof(stuck) - 1, MSG_NOSIGNAL) < 0 || poll(&begun, 1, 60000) != 1) {
            die("a reader");
        }
    }
    for (;;) {
        struct scrape s = scrape_once(a->port);

        peer_send(out, &s, sizeof(s));
        (void)poll(NULL, 0, 1000); /* Prometheus waits, too. */
    }
}

/* --- control calls --- */

struct control {
    struct fl_loop *loop;
    struct fl_grpc_channel *channel;
    struct fl_timer *timer;
    uint64_t from_ns, until_ns, connected;
    double *seconds; /* [CALLS_MAX] */
    size_t n;
    bool busy;
};

static bool control_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct control *c = ctx;
    struct fl_wire_status status;

    (void)call;
    must(fl_wire_status_decode(data, len, &status, NULL), "a status");
    c->connected = status.clients_connected;
    fl_wire_status_done(&status);
    return true;
}

static void control_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                              const char *message)
{
    struct control *c = ctx;

    (void)call;
    (void)message;
    must(status == FL_GRPC_OK ? FL_OK : FL_EIO, "a control call");
    if (c->n < CALLS_MAX) {
        c->seconds[c->n++] = (double)(fl_clock_ns() - c->from_ns) / 1e9;
    }
    c->busy = false;
}

static void control_on_tick(void *arg)
{
    static const struct fl_call_handler handler = {.on_message = control_on_message,
                                                   .on_closed = control_on_closed};
    struct control *c = arg;
    struct fl_piece piece = {.data = (const uint8_t *)"", .len = 0};
    struct fl_call *call = NULL;

    if (fl_clock_ns() >= c->until_ns && !c->busy) {
        fl_loop_stop(c->loop);
        return;
    }
    fl_timer_start(c->timer, CALL_EVERY_MS);
    if (c->busy) {
        return;
    }
    c->busy = true;
    c->from_ns = fl_clock_ns();
    must(fl_grpc_call(c->channel, "/fl.v1.Admin/Status", 0, &handler, c, &call), "a call");
    must(fl_call_send(call, &piece, 1), "a call");
    fl_call_end(call);
}

static void control_on_up(void *ctx)
{
    struct control *c = ctx;

    fl_loop_stop(c->loop);
}

static void control_on_down(void *ctx, int code, const char *text)
{
    (void)ctx;
    (void)code;
    die(text != NULL ? text : "the control connection ended");
}

/* The server listens at its address for clients first. */
static void control_await(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd;

    must(fl_str_copy(to.sun_path, sizeof(to.sun_path), path), "the path of the admin socket");
    do {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0) {
            (void)close(fd);
            return;
        }
        (void)close(fd);
        (void)poll(NULL, 0, 10);
    } while (true);
}

static void control_open(struct control *c, const char *admin)
{
    static const struct fl_grpc_channel_cbs cbs = {.on_up = control_on_up,
                                                   .on_down = control_on_down};
    struct fl_rpc_limits limits;

    control_await(admin + sizeof("unix:") - 1);
    fl_rpc_limits_default(&limits);
    c->seconds = calloc(CALLS_MAX, sizeof(double));
    must(c->seconds != NULL ? FL_OK : FL_ENOMEM, "calls");
    must(fl_loop_create(&c->loop, NULL), "loop");
    must(fl_timer_create(c->loop, control_on_tick, c, &c->timer), "timer");
    must(fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = c->loop,
                                                         .address = admin,
                                                         .limits = &limits,
                                                         .timeout_ms = 60000,
                                                         .cbs = &cbs,
                                                         .ctx = c},
                         &c->channel, NULL),
         "the control connection");
    fl_loop_run(c->loop);
}

static void control_for(struct control *c, uint64_t ms)
{
    c->until_ns = fl_clock_ns() + ms * 1000000;
    fl_timer_start(c->timer, 0);
    fl_loop_run(c->loop);
}

/* --- the measurement --- */

/* Medians over the measurements of one kind: what else the machine does comes in bursts. */
struct latencies {
    double p50[BLOCKS_MAX], p99[BLOCKS_MAX]; /* ms */
    size_t n, calls;
};

static void latencies_add(struct latencies *to, struct control *c)
{
    must(c->n > 0 ? FL_OK : FL_ETIMEOUT, "no control call was answered");
    fl_sort(c->seconds, c->n);
    to->p50[to->n] = 1e3 * c->seconds[c->n / 2];
    to->p99[to->n++] = 1e3 * c->seconds[(size_t)((double)(c->n - 1) * 0.99)];
    to->calls += c->n;
}

static void print_latencies(const struct readers_of *a, struct latencies *without,
                            struct latencies *with, const struct scrape *scrapes, size_t n)
{
    double seconds[SCRAPES_MAX];
    double p99 = bench_median(without->p99, without->n);
    double with_p99 = bench_median(with->p99, with->n);
    size_t i;

    for (i = 0; i < n; i++) {
        seconds[i] = scrapes[i].seconds;
    }
    fl_sort(seconds, n);
    (void)printf("readers: clients=%llu readers=%llu calls=%zu p50_ms=%.3f p99_ms=%.3f "
                 "with_p50_ms=%.3f with_p99_ms=%.3f ratio_p99=%.2f scrapes=%zu scrape_ms=%.2f "
                 "scrape_max_ms=%.2f bytes=%llu\n",
                 (unsigned long long)a->clients, (unsigned long long)a->readers,
                 without->calls + with->calls, bench_median(without->p50, without->n), p99,
                 bench_median(with->p50, with->n), with_p99, with_p99 / p99, n,
                 1e3 * seconds[n / 2], 1e3 * seconds[n - 1], (unsigned long long)scrapes[0].bytes);
}

static void measure_readers(const struct readers_of *a, struct control *c)
{
    static struct latencies without, with;
    static struct scrape scrapes[SCRAPES_MAX];
    size_t n = 0;
    uint64_t block;

    for (block = 0; block < a->blocks; block++) {
        int fd = -1;
        pid_t readers;

        c->n = 0;
        control_for(c, 1000 * a->seconds);
        latencies_add(&without, c);
        readers = peer_start(run_readers, a, &fd);
        peer_receive(fd, &scrapes[n], sizeof(scrapes[n]), "the first scrape");
        n += n + 1 < SCRAPES_MAX;
        c->n = 0;
        control_for(c, 1000 * a->seconds);
        latencies_add(&with, c);
        peer_kill(readers);
        while (n < SCRAPES_MAX &&
               read(fd, &scrapes[n], sizeof(scrapes[n])) == (ssize_t)sizeof(scrapes[n])) {
            n++;
        }
        (void)close(fd);
    }
    print_latencies(a, &without, &with, scrapes, n);
}

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0)
    {
        die("no free port");
    }
    (void)close(fd);
    return ntohs(at.sin_port);
}

static void run_readers_bench(struct readers_of *a)
{
    struct control c = {0};
    char config[4200];
    struct fl_buf buf;
    pid_t server;
    pid_t members = -1;
    int fd = -1;

    a->port = free_port();
    (void)snprintf(config, sizeof(config), "%s/server.yaml", a->dir);
    (void)snprintf(a->admin, sizeof(a->admin), "unix:%s/admin.sock", a->dir);
    fl_buf_init(&buf, 1u << 16);
    must(fl_buf_printf(&buf,
                       "federation: bench\nstate_dir: \"%s/state\"\nlisten: \"127.0.0.1:0\"\n"
                       "insecure: yes\nlog_level: error\nheartbeat: 1h\n"
                       "admin_socket: \"%s/admin.sock\"\nalgorithm: fedavg\n"
                       "model: {preset: dnn60}\nround: {start_clients: %llu}\n"
                       "limits: {clients: %llu, known_clients: %llu, idle: 1h}\n"
                       "http: {listen: [\"127.0.0.1:%u\"]}\n",
                       a->dir, a->dir, (unsigned long long)a->clients + 1,
                       (unsigned long long)a->clients + 10, (unsigned long long)a->clients + 10,
                       a->port),
         "the configuration");
    must(fl_fs_replace(config, buf.data, buf.len, false, NULL), "the configuration");
    fl_buf_done(&buf);
    server = round_server_start(a->server, config, a->address, sizeof(a->address));
    if (server < 0) {
        die("the server did not start");
    }
    if (a->clients > 0) {
        members = peer_start(run_members, a, &fd);
    }
    control_open(&c, a->admin);
    do {
        control_for(&c, 100);
    } while (c.connected < a->clients);
    measure_readers(a, &c);
    if (members > 0) {
        peer_kill(members);
    }
    round_server_stop(server);
    free(c.seconds);
}

static const char *default_program(char *out, size_t size, const char *argv0)
{
    const char *slash = strrchr(argv0, '/');

    (void)snprintf(out, size, "%.*s/../fl-serverd", slash != NULL ? (int)(slash - argv0) : 1,
                   slash != NULL ? argv0 : ".");
    return out;
}

int main(int argc, char **argv)
{
    struct fl_args line = {.program = bench_name, .rows = rows, .argc = argc, .argv = argv};
    struct readers_of a = {.clients = 1000, .readers = 200, .blocks = 7, .seconds = 3};
    struct fl_err err = {0};
    char program[4096];
    int opt;

    a.server = default_program(program, sizeof(program), argv[0]);
    while ((opt = bench_next(&line, prints)) != FL_ARGS_END) {
        int rv = FL_OK;

        if (opt == 's') {
            a.server = line.value;
        } else {
            rv = fl_str_to_u64(line.value, opt == 'c'   ? &a.clients
                                           : opt == 'n' ? &a.readers
                                           : opt == 'b' ? &a.blocks
                                                        : &a.seconds);
        }
        if (rv != FL_OK || a.blocks == 0 || a.blocks > BLOCKS_MAX || a.seconds == 0) {
            bench_usage(&line, prints, /* asked= */ false);
        }
    }
    peers_open_files();
    must_err(scratch_make(scratch_parent(), "fl-bench", a.dir, sizeof(a.dir), &err), &err);
    run_readers_bench(&a);
    scratch_remove(a.dir);
    return EXIT_SUCCESS;
}
