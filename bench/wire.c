/*
 * Throughput of calls between two processes on loopback, beside a plain TCP stream in the same
 * run: uploads as a client pushes an update (client streaming), downloads as it fetches a model
 * (server streaming), 1 MiB messages from a shared blob, dropped on arrival. Measures, asserts
 * nothing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/line.h"
#include "bench/peers.h"
#include "bench/raw.h"
#include "bench/secure.h"
#include "libfl/base/clock.h"
#include "libfl/base/quantity.h"
#include "libfl/base/rate.h"
#include "libfl/base/str.h"
#include "libfl/grpc/endpoint.h"

#define MESSAGE_BYTES ((size_t)1024 * 1024)
/* More than a cache holds of it: the bytes of a model do not stay there either. */
#define BLOB_BYTES ((size_t)64 * 1024 * 1024)
#define MAX_RUNS   31

static const struct fl_arg rows[] = {
    FL_ARG("mb", '\0', "N", 'm', "MiB for each measurement (default 2048)"),
    FL_ARG("runs", '\0', "N", 'r', "repetitions, the median counts (default 3)"),
    FL_ARG("unix", '\0', NULL, 'u', "calls over a unix socket instead of TCP"),
    FL_ARG("control", '\0', NULL, 'k',
           "send small messages beside the upload and print their round trips"),
    FL_ARG("rate", '\0', "RATE", 'l',
           "keep both directions to it, as fl-clientd does with limits (10Mbit/s, 1MB/s); the "
           "ratios are then to the rate"),
    FL_ARG("tls", '\0', NULL, 't',
           "measure the same over TLS too, in the same run, and print tls: upload_mb_s=… "
           "download_mb_s=… upload_ratio=… download_ratio=… with ratios to the calls without TLS"),
    FL_ARG("cpu", '\0', NULL, 'c', "print processor seconds per measurement as well"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints one line (MB are 10^6 bytes, ratios are to the raw TCP stream):\n"
    "  wire: upload_mb_s=… download_mb_s=… raw_tcp_mb_s=… upload_ratio=… download_ratio=…\n";

struct args {
    uint64_t mib;
    uint64_t runs;
    bool over_unix;
    bool cpu;
    bool control;
    bool tls;
    uint64_t rate; /* 0: none */
};

const char bench_name[] = "bench/wire";

static struct fl_blob *make_blob(void)
{
    struct fl_blob *blob = NULL;
    size_t i;

    must(fl_blob_create(BLOB_BYTES, &blob), "blob");
    for (i = 0; i < BLOB_BYTES; i++) {
        fl_blob_fill(blob)[i] = (uint8_t)(i * 2654435761u >> 24);
    }
    return blob;
}

/* Sending `left` messages on a call, as many as its queue takes. */
struct stream {
    struct fl_blob *blob;
    uint64_t left;
    size_t at;
};

static bool send_more(struct fl_call *call, struct stream *stream)
{
    /* As long as the head of a Chunk with name, offset and round. */
    static const uint8_t head[48];

    while (stream->left > 0) {
        struct fl_piece pieces[2] = {
            {.data = head, .len = sizeof(head)},
            {.data = fl_blob_data(stream->blob) + stream->at,
             .len = MESSAGE_BYTES,
             .blob = stream->blob},
        };
        int rv = fl_call_send(call, pieces, 2);

        if (rv == FL_ELIMIT) {
            return false;
        }
        must(rv, "send");
        stream->left--;
        stream->at = (stream->at + MESSAGE_BYTES) % BLOB_BYTES;
    }
    return true;
}

/* The server: Push drops what comes; Fetch sends as many messages as its request says. */

struct server {
    struct fl_loop *loop;
    struct fl_grpc_server *grpc;
    struct fl_blob *blob;
};

struct fetch {
    struct stream stream;
    bool finished;
};

static bool drop_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return true;
}

static void finish_push(struct fl_call *call, void *ctx)
{
    (void)ctx;
    fl_call_finish(call, FL_GRPC_OK, NULL);
}

static void start_push(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {
        .on_message = drop_message, .on_end = finish_push, .on_closed = peer_closed};

    fl_call_set_handler(call, &handler, ctx);
}

static void fetch_more(struct fl_call *call, void *ctx)
{
    struct fetch *fetch = ctx;

    if (!fetch->finished && send_more(call, &fetch->stream)) {
        fetch->finished = true;
        fl_call_finish(call, FL_GRPC_OK, NULL);
    }
}

static bool fetch_request(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fetch *fetch = ctx;

    if (len != sizeof(fetch->stream.left)) {
        die("bad request");
    }
    (void)memcpy(&fetch->stream.left, data, len);
    fetch_more(call, fetch);
    return true;
}

static void fetch_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                         const char *message)
{
    (void)call;
    (void)status;
    (void)message;
    free(ctx);
}

static void start_fetch(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {
        .on_message = fetch_request, .on_writable = fetch_more, .on_closed = fetch_closed};
    struct server *server = ctx;
    struct fetch *fetch = calloc(1, sizeof(*fetch));

    if (fetch == NULL) {
        die("out of memory");
    }
    fetch->stream.blob = server->blob;
    fl_call_set_handler(call, &handler, fetch);
}

static void start_ping(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {
        .on_message = peer_echo, .on_end = finish_push, .on_closed = peer_closed};

    fl_call_set_handler(call, &handler, ctx);
}

static void server_closed(void *arg)
{
    fl_loop_stop(arg);
}

static void on_term(void *arg, int signum)
{
    struct server *server = arg;

    (void)signum;
    fl_grpc_server_close(server->grpc, 100, server_closed, server->loop);
}

/* Where it listens without TLS; with it, too, unless `secure` holds nothing. */
struct place {
    char address[64];
    struct secure secure;
};

/* The other process: tells its ports, without and with TLS, through `fd`, runs until SIGTERM. */
static void run_server(const void *ctx, int fd)
{
    const struct place *place = ctx;
    const struct secure *secure = &place->secure;
    const struct fl_grpc_listen plain = {.address = place->address};
    const struct fl_grpc_listen with_tls = {.address = "127.0.0.1:0",
                                            .filter = &secure->server_filter};
    struct server server = {.blob = make_blob()};
    struct fl_rpc_method methods[] = {{"/bench.Wire/Push", FL_WHO_ANYBODY, start_push, &server},
                                      {"/bench.Wire/Fetch", FL_WHO_ANYBODY, start_fetch, &server},
                                      {"/bench.Wire/Ping", FL_WHO_ANYBODY, start_ping, &server},
                                      {NULL, 0, NULL, NULL}};
    struct fl_grpc_server_setup setup = {.max_connections = 16, .methods = methods};
    struct fl_signal *term = NULL;
    struct fl_err err = {0};
    unsigned port[2] = {0};

    fl_rpc_limits_default(&setup.limits);
    must_err(fl_loop_create(&server.loop, &err), &err);
    setup.loop = server.loop;
    must_err(fl_grpc_server_create(&setup, &server.grpc, &err), &err);
    must_err(fl_grpc_server_listen(server.grpc, &plain, &port[0], &err), &err);
    if (secure->server != NULL) {
        must_err(fl_grpc_server_listen(server.grpc, &with_tls, &port[1], &err), &err);
    }
    must(fl_signal_create(server.loop, SIGTERM, on_term, &server, &term), "signal");
    peer_send(fd, port, sizeof(port));
    fl_loop_run(server.loop);
    fl_signal_close(term);
    fl_loop_free(server.loop);
    fl_blob_unref(server.blob);
}

/* The client. */

struct client {
    struct fl_loop *loop;
    struct fl_grpc_channel *channel;
    struct fl_grpc_channel *secure; /* the same over TLS, or NULL */
    struct stream stream;
    uint64_t messages; /* of this measurement */
    uint64_t received;
    bool upload;
    bool sent;
    uint64_t begin_ns;
    uint64_t end_ns;
};

static void on_up(void *ctx)
{
    struct client *client = ctx;

    fl_loop_stop(client->loop);
}

static void on_down(void *ctx, int code, const char *text)
{
    struct client *client = ctx;

    if (code != FL_OK) {
        die(text);
    }
    fl_loop_stop(client->loop);
}

static void push_more(struct fl_call *call, void *ctx)
{
    struct client *client = ctx;

    if (!client->sent && send_more(call, &client->stream)) {
        client->sent = true;
        fl_call_end(call);
    }
}

static bool count_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct client *client = ctx;

    (void)call;
    (void)data;
    (void)len;
    client->received++;
    return true;
}

static void call_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                        const char *message)
{
    struct client *client = ctx;

    (void)call;
    if (status != FL_GRPC_OK || (!client->upload && client->received != client->messages)) {
        die(message);
    }
    client->end_ns = fl_clock_ns();
    fl_loop_stop(client->loop);
}

/* Round trips of a control stream beside the bulk: one message every PING_MS. */
#define PING_MS 10

struct pings {
    struct fl_call *call;
    struct fl_timer *timer;
    uint64_t sent_ns;
    uint64_t sum_ns;
    uint64_t max_ns;
    unsigned n;
};

static void send_ping(void *arg)
{
    struct pings *pings = arg;
    struct fl_piece piece = {.data = &pings->sent_ns, .len = sizeof(pings->sent_ns)};

    pings->sent_ns = fl_clock_ns();
    must(fl_call_send(pings->call, &piece, 1), "ping");
}

static bool ping_came_back(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct pings *pings = ctx;
    uint64_t took_ns = fl_clock_ns() - pings->sent_ns;

    (void)call;
    (void)data;
    (void)len;
    pings->n++;
    pings->sum_ns += took_ns;
    pings->max_ns = took_ns > pings->max_ns ? took_ns : pings->max_ns;
    fl_timer_start(pings->timer, PING_MS);
    return true;
}

static void start_pings(struct client *client, struct pings *pings)
{
    static const struct fl_call_handler handler = {.on_message = ping_came_back,
                                                   .on_closed = peer_closed};

    must(fl_timer_create(client->loop, send_ping, pings, &pings->timer), "timer");
    must(fl_grpc_call(client->channel, "/bench.Wire/Ping", 0, &handler, pings, &pings->call),
         "ping");
    send_ping(pings);
}

static void end_pings(struct pings *pings)
{
    fl_call_cancel(pings->call);
    fl_timer_close(pings->timer);
}

static void print_pings(const struct pings *pings)
{
    if (pings->n > 0) {
        printf("control beside upload: n=%u mean_ms=%.2f max_ms=%.2f\n", pings->n,
               (double)pings->sum_ns / 1e6 / pings->n, (double)pings->max_ns / 1e6);
    } else {
        printf("control beside upload: n=0\n");
    }
}

static double measure_call(struct client *client, struct fl_grpc_channel *channel, bool upload)
{
    static const struct fl_call_handler handler = {
        .on_message = count_message, .on_writable = push_more, .on_closed = call_closed};
    struct fl_piece request = {.data = &client->messages, .len = sizeof(client->messages)};
    struct fl_call *call = NULL;

    client->upload = upload;
    client->received = 0;
    client->sent = !upload;
    client->stream.left = client->messages;
    client->begin_ns = fl_clock_ns();
    must(fl_grpc_call(channel, upload ? "/bench.Wire/Push" : "/bench.Wire/Fetch", 0, &handler,
                      client, &call),
         "call");
    fl_call_set_bulk(call, upload ? FL_CALL_SENDS_BULK : FL_CALL_TAKES_BULK);
    if (upload) {
        push_more(call, client);
    } else {
        must(fl_call_send(call, &request, 1), "request");
        fl_call_end(call);
    }
    fl_loop_run(client->loop);
    return (double)client->messages * (double)MESSAGE_BYTES * 1e3 /
           (double)(client->end_ns - client->begin_ns);
}

static double cpu_seconds(void)
{
    struct rusage use;

    (void)getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
           ((double)use.ru_utime.tv_usec + (double)use.ru_stime.tv_usec) / 1e6;
}

static void print_tls(const double plain[2], double up, double down)
{
    printf("tls: upload_mb_s=%.0f download_mb_s=%.0f upload_ratio=%.2f download_ratio=%.2f\n", up,
           down, up / plain[0], down / plain[1]);
}

static double measure_raw(const struct fl_blob *blob, uint64_t messages)
{
    double bytes = (double)messages * (double)MESSAGE_BYTES;

    return bytes / 1e6 / raw_tcp(fl_blob_data(blob), BLOB_BYTES, (uint64_t)bytes).seconds;
}

static void measure(struct client *client, const struct args *args)
{
    double tls_up[MAX_RUNS];
    double tls_down[MAX_RUNS];
    double raw[MAX_RUNS];
    double up[MAX_RUNS];
    double down[MAX_RUNS];
    double cpu[4] = {0};
    double mid[3];
    struct pings pings = {0};
    size_t i;

    client->messages = args->mib;
    for (i = 0; i < args->runs; i++) {
        double t[4];

        t[0] = cpu_seconds();
        raw[i] =
            args->rate > 0 ? (double)args->rate / 1e6 : measure_raw(client->stream.blob, args->mib);
        t[1] = cpu_seconds();
        if (args->control) {
            start_pings(client, &pings);
        }
        up[i] = measure_call(client, client->channel, true);
        if (args->control) {
            end_pings(&pings);
        }
        t[2] = cpu_seconds();
        down[i] = measure_call(client, client->channel, false);
        t[3] = cpu_seconds();
        if (client->secure != NULL) {
            tls_up[i] = measure_call(client, client->secure, true);
            tls_down[i] = measure_call(client, client->secure, false);
        }
        cpu[0] += t[1] - t[0];
        cpu[1] += t[2] - t[1];
        cpu[2] += t[3] - t[2];
    }
    if (args->control) {
        print_pings(&pings);
    }
    mid[0] = bench_median(raw, args->runs);
    mid[1] = bench_median(up, args->runs);
    mid[2] = bench_median(down, args->runs);
    if (args->cpu) {
        printf("cpu of this process: raw_write_s=%.2f upload_s=%.2f download_s=%.2f\n", cpu[0],
               cpu[1], cpu[2]);
    }
    if (args->rate > 0) {
        printf("wire: upload_mb_s=%.3f download_mb_s=%.3f rate_mb_s=%.3f upload_ratio=%.4f "
               "download_ratio=%.4f\n",
               mid[1], mid[2], mid[0], mid[1] / mid[0], mid[2] / mid[0]);
        return;
    }
    printf("wire: upload_mb_s=%.0f download_mb_s=%.0f raw_tcp_mb_s=%.0f upload_ratio=%.2f "
           "download_ratio=%.2f\n",
           mid[1], mid[2], mid[0], mid[1] / mid[0], mid[2] / mid[0]);
    if (client->secure != NULL) {
        print_tls(mid + 1, bench_median(tls_up, args->runs), bench_median(tls_down, args->runs));
    }
}

static struct fl_grpc_channel *connect_to(struct client *client, const char *address,
                                          const struct fl_rpc_limits *limits,
                                          const struct fl_stream_filter *filter)
{
    static const struct fl_grpc_channel_cbs cbs = {on_up, on_down};
    const struct fl_grpc_channel_setup setup = {.loop = client->loop,
                                                .address = address,
                                                .limits = limits,
                                                .timeout_ms = 5000,
                                                .cbs = &cbs,
                                                .ctx = client,
                                                .filter = filter};
    struct fl_grpc_channel *channel = NULL;
    struct fl_err err = {0};

    must_err(fl_grpc_connect(&setup, &channel, &err), &err);
    fl_loop_run(client->loop);
    return channel;
}

static void run_client(const char *address, const char *tls_address, const struct secure *secure,
                       const struct args *args)
{
    struct client client = {0};
    struct fl_rpc_limits limits;
    struct fl_err err = {0};

    fl_rpc_limits_default(&limits);
    limits.send_rate = args->rate;
    limits.take_rate = args->rate;
    client.stream.blob = make_blob();
    must_err(fl_loop_create(&client.loop, &err), &err);
    client.channel = connect_to(&client, address, &limits, NULL);
    if (args->tls) {
        client.secure = connect_to(&client, tls_address, &limits, &secure->client_filter);
    }
    measure(&client, args);
    fl_grpc_channel_close(client.channel);
    fl_loop_run(client.loop);
    if (client.secure != NULL) {
        fl_grpc_channel_close(client.secure);
        fl_loop_run(client.loop);
    }
    fl_loop_free(client.loop);
    fl_blob_unref(client.stream.blob);
}

static struct args parse(int argc, char **argv)
{
    struct fl_args line = {.program = "bench/wire", .rows = rows, .argc = argc, .argv = argv};
    static const struct fl_quantity_range rates = {
        .kind = FL_QUANTITY_RATE, .step = 8, .min = 1, .max = FL_RATE_MAX, .none = "none"};
    struct args args = {.mib = 2048, .runs = 3};
    struct fl_err err = {0};
    int opt;

    while ((opt = bench_next(&line, prints)) != FL_ARGS_END) {
        switch (opt) {
        case 'm':
            if (fl_str_to_u64(line.value, &args.mib) != FL_OK || args.mib == 0 ||
                args.mib > 1u << 20) {
                die("--mb wants a number from 1 to 1048576");
            }
            break;
        case 'r':
            if (fl_str_to_u64(line.value, &args.runs) != FL_OK || args.runs == 0 ||
                args.runs > MAX_RUNS) {
                die("--runs wants a number from 1 to 31");
            }
            break;
        case 'u':
            args.over_unix = true;
            break;
        case 'c':
            args.cpu = true;
            break;
        case 'l':
            if (fl_quantity_read(&rates, line.value, &args.rate, &err) != FL_OK) {
                die(err.msg);
            }
            break;
        case 'k':
            args.control = true;
            break;
        case 't':
            args.tls = true;
            break;
        default:
            break;
        }
    }
    return args;
}

int main(int argc, char **argv)
{
    struct args args = parse(argc, argv);
    struct place place = {.address = "127.0.0.1:0"};
    char tls_address[64];
    unsigned port[2] = {0};
    pid_t pid;
    int fd;

    if (args.over_unix) {
        (void)snprintf(place.address, sizeof(place.address), "unix:/tmp/fl-bench-wire-%ld.sock",
                       (long)getpid());
    }
    if (args.tls) {
        secure_make(&place.secure);
    }
    pid = peer_start(run_server, &place, &fd);
    peer_receive(fd, port, sizeof(port), "the server did not start");
    if (!args.over_unix) {
        (void)snprintf(place.address, sizeof(place.address), "127.0.0.1:%u", port[0]);
    }
    (void)snprintf(tls_address, sizeof(tls_address), "127.0.0.1:%u", port[1]);
    run_client(place.address, tls_address, &place.secure, &args);
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, NULL, 0);
    if (args.tls) {
        secure_free(&place.secure);
    }
    return EXIT_SUCCESS;
}
