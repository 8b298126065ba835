/*
 * Bytes of a client into a server session. Byte 0: bit 0 puts the connection preface in
 * front, bit 1 stops reading the answers, the rest is the length of the runs that the bytes
 * are cut into (0: one run). The service echoes, holds or ends its calls.
 */
#include <stdint.h>
#include <stdlib.h>

#include "libfl/h2/h2.h"

/* Magic and empty SETTINGS (RFC 9113 section 3.4). */
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

static size_t open_calls;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

static bool on_echo(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_piece piece = {.data = data, .len = len};
    uint64_t sum = 0;

    (void)ctx;
    for (size_t i = 0; i < len; i++) {
        sum += data[i]; /* every byte may be read */
    }
    if (sum % 251 == 250) {
        fl_call_cancel(call);
    }
    if (fl_call_send(call, &piece, 1) != FL_OK) {
        fl_call_finish(call, FL_GRPC_ABORTED, "no \n more");
    }
    return true;
}

static bool on_hold(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)ctx;
    (void)data;
    if (len % 2 == 1) {
        free(fl_call_take(call));
    }
    fl_call_consume(call, len / 2);
    return false;
}

static void on_end(struct fl_call *call, void *ctx)
{
    (void)ctx;
    fl_call_finish(call, FL_GRPC_OK, NULL);
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    (void)call;
    (void)ctx;
    (void)status;
    expect(message != NULL && open_calls > 0);
    open_calls--;
}

static const struct fl_call_handler echo = {on_echo, on_end, NULL, on_closed};
static const struct fl_call_handler hold = {on_hold, on_end, NULL, on_closed};

static void start(struct fl_call *call, void *ctx)
{
    open_calls++;
    fl_call_set_handler(call, ctx == NULL ? &echo : &hold, NULL);
}

static void read_answers(struct fl_h2 *h2)
{
    struct iovec iov[8];
    int n;

    while ((n = fl_h2_output(h2, iov, 8)) > 0) {
        size_t total = 0;

        for (int i = 0; i < n; i++) {
            total += iov[i].iov_len;
        }
        fl_h2_sent(h2, total);
        fl_h2_dispatch(h2);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fl_rpc_method methods[] = {
        {"/t.T/Echo", FL_WHO_ANYBODY, start, NULL},
        {"/t.T/Hold", FL_WHO_ANYBODY, start, &open_calls},
        {NULL, 0, NULL, NULL}};
    struct fl_h2_setup setup = {.peer = "fuzz", .methods = methods};
    struct fl_h2 *h2 = NULL;
    uint64_t now_ms = 1000;
    uint8_t how;
    size_t step;
    int rv = FL_OK;

    if (size < 1) {
        return 0;
    }
    how = data[0];
    data++;
    size--;
    fl_rpc_limits_default(&setup.limits);
    setup.limits.message_bytes = 4096;
    setup.limits.queue_bytes = 16384;
    setup.limits.stream_window = 65535;
    setup.limits.conn_window = 65535;
    if (fl_h2_server_create(&setup, &h2) != FL_OK) {
        return 0;
    }
    if ((how & 1u) != 0) {
        rv = fl_h2_recv(h2, preface, sizeof(preface) - 1);
    }
    step = how >> 2;
    while (size > 0 && rv == FL_OK) {
        size_t n = step > 0 && step < size ? step : size;

        rv = fl_h2_recv(h2, data, n);
        data += n;
        size -= n;
        if ((how & 2u) == 0) {
            read_answers(h2);
        }
        now_ms += 100;
        if (fl_h2_deadline(h2) <= now_ms) {
            fl_h2_tick(h2, now_ms);
        }
    }
    expect(rv == FL_OK || fl_h2_finished(h2));
    read_answers(h2);
    fl_h2_free(h2);
    expect(open_calls == 0);
    return 0;
}
