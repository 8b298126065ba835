#include "tests/lib/ends.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/rng.h"

const struct fl_stream_filter *ends_filter;
const struct fl_stream_filter *ends_dial_filter;

static void happened(struct end *end, const char *what)
{
    struct world *world = end->world;

    ck_assert(!world->inside);
    ck_assert_uint_eq(end->closed, strcmp(what, "on_close") == 0);
    if (end->close_in != NULL && strcmp(end->close_in, what) == 0) {
        world->inside = true;
        if (end->flush) {
            fl_stream_close_flushed(end->stream, 5000);
        } else {
            fl_stream_close(end->stream);
            fl_stream_close(end->stream);
        }
        fl_stream_wake(end->stream);
        world->inside = false;
    }
    if (world->done != NULL && world->done(world)) {
        fl_loop_stop(world->loop);
    }
}

static void shrink(struct end *end)
{
    int size = end->world->small_buffers;
    uv_os_fd_t fd;

    if (size > 0 && uv_fileno(&end->socket->u.handle, &fd) == 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    }
}

static void on_open(void *ctx)
{
    struct end *end = ctx;

    end->opened++;
    shrink(end);
    happened(end, "on_open");
}

static void on_data(void *ctx, const uint8_t *data, size_t len)
{
    struct end *end = ctx;

    ck_assert_uint_gt(len, 0);
    if (end->in != NULL) {
        ck_assert_uint_le(len, end->in_cap - end->in_len);
        (void)memcpy(end->in + end->in_len, data, len);
    }
    end->in_len += len;
    if (end->echo) {
        fl_stream_wake(end->stream);
    }
    happened(end, "on_data");
}

static void on_wake(void *ctx)
{
    struct end *end = ctx;

    end->woken++;
    if (end->rewakes > 0) {
        end->rewakes--;
        fl_stream_wake(end->stream);
    }
    happened(end, "on_wake");
}

static const uint8_t zeros[256 * 1024];

static int output(void *ctx, struct iovec *iov, int max)
{
    struct end *end = ctx;
    const uint8_t *from = end->echo ? end->in : end->out;
    size_t len = end->echo ? end->in_len : end->out_len;
    size_t at = end->sent;
    int n;

    happened(end, "output");
    if (end->output_code != 0) {
        return end->output_code;
    }
    if (end->endless) {
        iov[0].iov_base = (void *)(uintptr_t)zeros;
        iov[0].iov_len = sizeof(zeros);
        return 1;
    }
    for (n = 0; n < max && at < len; n++) {
        size_t run = end->run != 0 && end->run < len - at ? end->run : len - at;

        iov[n].iov_base = (void *)(uintptr_t)(from + at);
        iov[n].iov_len = run;
        at += run;
    }
    return n;
}

static void sent(void *ctx, size_t n)
{
    struct end *end = ctx;

    end->sent += n;
    happened(end, "sent");
}

static void on_close(void *ctx, int code, const char *text)
{
    struct end *end = ctx;

    end->closed++;
    end->code = code;
    (void)snprintf(end->text, sizeof(end->text), "%s", text);
    happened(end, "on_close");
    end->stream = NULL;
}

const struct fl_stream_cbs ends_cbs = {on_open, on_data, on_wake, output, sent, on_close};

void ends_accept(void *ctx, struct fl_stream *stream)
{
    struct world *world = ctx;
    struct end *end = &world->end[world->accepted++];

    ck_assert(!world->inside);
    ck_assert_uint_le(world->accepted, ENDS);
    end->world = world;
    end->socket = (struct fl_conn *)stream;
    shrink(end);
    ck_assert_int_eq(fl_stream_wrap(ends_filter, &stream), FL_OK);
    end->stream = stream;
    world->inside = true;
    fl_stream_start(stream, &ends_cbs, end);
    world->inside = false;
}

void ends_begin(struct world *world, const char *listen_on)
{
    struct fl_err err = {0};

    ck_assert_int_eq(fl_loop_create(&world->loop, &err), FL_OK);
    if (listen_on == NULL) {
        return;
    }
    ck_assert_msg(fl_listen(world->loop, listen_on, ends_accept, world, &world->listener, &err) ==
                      FL_OK,
                  "%s", err.msg);
    if (fl_listener_port(world->listener) != 0) {
        (void)snprintf(world->address, sizeof(world->address), "127.0.0.1:%u",
                       fl_listener_port(world->listener));
    } else {
        (void)snprintf(world->address, sizeof(world->address), "%s", listen_on);
    }
}

void ends_end(struct world *world)
{
    unsigned i;

    fl_listener_close(world->listener);
    for (i = 0; i < ENDS; i++) {
        if (world->end[i].stream != NULL) {
            fl_stream_close(world->end[i].stream);
        }
    }
    world->done = NULL;
    fl_loop_free(world->loop);
    for (i = 0; i < ENDS; i++) {
        ck_assert_ptr_null(world->end[i].stream);
        ck_assert_uint_le(world->end[i].closed, 1);
        free(world->end[i].in);
    }
}

struct end *ends_dial(struct world *world, unsigned which, const char *address, uint32_t timeout_ms)
{
    struct end *end = &world->end[which];
    struct fl_err err = {0};

    end->world = world;
    world->inside = true;
    ck_assert_msg(fl_conn_connect(world->loop, address, timeout_ms, &end->stream, &err) == FL_OK,
                  "%s", err.msg);
    end->socket = (struct fl_conn *)end->stream;
    ck_assert_int_eq(fl_stream_wrap(ends_dial_filter, &end->stream), FL_OK);
    fl_stream_start(end->stream, &ends_cbs, end);
    world->inside = false;
    return end;
}

bool ends_client_closed(struct world *world)
{
    return world->end[CLIENT].closed > 0;
}

bool ends_both_closed(struct world *world)
{
    return world->end[CLIENT].closed > 0 && world->end[0].closed > 0;
}

bool ends_client_has_all(struct world *world)
{
    return world->end[CLIENT].in_len == world->end[CLIENT].out_len;
}

char *ends_unix_address(char *out, size_t size)
{
    (void)snprintf(out, size, "unix:/tmp/fl-net-%ld.sock", (long)getpid());
    return out;
}

uint8_t *ends_random_bytes(size_t len)
{
    uint8_t *bytes = malloc(len + 1);
    struct fl_rng rng;
    size_t i;

    ck_assert_ptr_nonnull(bytes);
    fl_rng_seed(&rng, len);
    for (i = 0; i < len; i++) {
        bytes[i] = (uint8_t)fl_rng_u64(&rng);
    }
    return bytes;
}

int ends_raw_client(const struct world *world)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    struct fl_address parsed;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(fl_address_parse(world->address, &parsed, NULL), FL_OK);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    addr.sin_port = htons(parsed.port);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}
