/*
 * Bytes of a server into a client session that has three calls open. Byte 0: the length of
 * the runs that the bytes are cut into (0: one run).
 */
#include <stdint.h>
#include <stdlib.h>

#include "libfl/h2/h2.h"

static size_t open_calls;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    uint64_t sum = 0;

    (void)ctx;
    for (size_t i = 0; i < len; i++) {
        sum += data[i]; /* every byte may be read */
    }
    if (sum % 251 == 250) {
        fl_call_cancel(call);
    } else if (sum % 2 == 1) {
        fl_call_end(call);
    }
    return sum % 3 != 0;
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    (void)call;
    (void)ctx;
    expect(message != NULL && open_calls > 0);
    expect(status <= FL_GRPC_UNAUTHENTICATED);
    open_calls--;
}

static const struct fl_call_handler handler = {on_message, NULL, NULL, on_closed};

static void send_requests(struct fl_h2 *h2)
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

static bool open_some(struct fl_h2 *h2)
{
    for (int i = 0; i < 3; i++) {
        static const uint8_t bytes[100];
        struct fl_piece piece = {.data = bytes, .len = sizeof(bytes)};
        struct fl_call *call = NULL;

        if (fl_h2_call(h2, "/t.T/Echo", 1000, 5000, &handler, NULL, &call) != FL_OK) {
            return false;
        }
        open_calls++;
        if (i > 0) {
            expect(fl_call_send(call, &piece, 1) == FL_OK);
        }
        if (i > 1) {
            fl_call_end(call);
        }
    }
    send_requests(h2);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_h2_setup setup = {.peer = "fuzz", .authority = "fuzz"};
    struct fl_h2 *h2 = NULL;
    size_t step;
    int rv = FL_OK;

    if (size < 1) {
        return 0;
    }
    step = data[0];
    data++;
    size--;
    fl_rpc_limits_default(&setup.limits);
    setup.limits.message_bytes = 4096;
    setup.limits.conn_window = 65535;
    setup.limits.stream_window = 65535;
    if (fl_h2_client_create(&setup, &h2) != FL_OK) {
        return 0;
    }
    expect(open_some(h2));
    while (size > 0 && rv == FL_OK) {
        size_t n = step > 0 && step < size ? step : size;

        rv = fl_h2_recv(h2, data, n);
        data += n;
        size -= n;
        send_requests(h2);
    }
    expect(rv == FL_OK || fl_h2_finished(h2));
    fl_h2_tick(h2, 6000);
    expect(open_calls == 0);
    send_requests(h2);
    fl_h2_free(h2);
    return 0;
}
