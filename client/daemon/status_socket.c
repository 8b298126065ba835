/* Serves the report for the owner of the device at a unix socket (status_socket.h). On the loop. */

#include "client/daemon/status_socket.h"

#include <stdio.h>
#include <stdlib.h>

#include "libfl/net/conn.h"

/* Readers at a time; more are closed. */
#define STATUS_READERS 8
/* A reader that takes nothing for so long is closed. */
#define STATUS_READER_MS 5000
#define STATUS_ADDRESS   4200

struct fl_status_socket {
    struct fl_status_socket_setup setup;
    struct fl_listener *listener;
    unsigned readers;
};

struct status_reader {
    struct fl_status_socket *socket;
    struct fl_stream *stream;
    struct fl_buf bytes;
    size_t sent;
};

static void status_on_data(void *ctx, const uint8_t *data, size_t len)
{
    (void)ctx;
    (void)data;
    (void)len;
}

static int status_output(void *ctx, struct iovec *iov, int max)
{
    struct status_reader *r = ctx;

    if (max < 1 || r->sent == r->bytes.len) {
        return 0;
    }
    iov[0] = (struct iovec){.iov_base = r->bytes.data + r->sent, .iov_len = r->bytes.len - r->sent};
    return 1;
}

static void status_sent(void *ctx, size_t n)
{
    struct status_reader *r = ctx;

    r->sent += n;
}

static void status_on_close(void *ctx, int code, const char *text)
{
    struct status_reader *r = ctx;

    (void)code;
    (void)text;
    r->socket->readers--;
    fl_buf_done(&r->bytes);
    free(r);
}

static const struct fl_stream_cbs status_cbs = {.on_data = status_on_data,
                                                .output = status_output,
                                                .sent = status_sent,
                                                .on_close = status_on_close};

static int status_bytes(const struct fl_owner_facts *facts, struct fl_buf *out)
{
    struct fl_owner_report report;
    struct fl_buf text;
    struct fl_buf json;
    int rv;

    fl_buf_init(&text, FL_STATUS_SOCKET_BYTES / 4);
    fl_buf_init(&json, FL_STATUS_SOCKET_BYTES / 4);
    rv = fl_owner_text(facts, &text);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_owner_json(facts, &json);
    if (rv != FL_OK) {
        goto done;
    }
    fl_owner_report(facts, &report);
    rv = fl_buf_printf(out, "%s %d %zu %zu\n", FL_STATUS_SOCKET_MAGIC, report.needs_owner, text.len,
                       json.len);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_buf_add(out, text.data, text.len);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_buf_add(out, json.data, json.len);
done:
    fl_buf_done(&text);
    fl_buf_done(&json);
    return rv;
}

static int status_reader_new(struct fl_status_socket *s, struct fl_stream *stream,
                             struct status_reader **ret)
{
    struct fl_owner_facts *facts = calloc(1, sizeof(*facts));
    struct status_reader *r = calloc(1, sizeof(*r));
    int rv = FL_ENOMEM;

    if (facts == NULL || r == NULL) {
        goto fail;
    }
    r->socket = s;
    r->stream = stream;
    fl_buf_init(&r->bytes, FL_STATUS_SOCKET_BYTES);
    s->setup.describe(s->setup.ctx, facts);
    rv = status_bytes(facts, &r->bytes);
    if (rv != FL_OK) {
        goto fail;
    }
    free(facts);
    *ret = r;
    return FL_OK;
fail:
    if (r != NULL) {
        fl_buf_done(&r->bytes);
    }
    free(facts);
    free(r);
    return rv;
}

static void status_on_accept(void *ctx, struct fl_stream *stream)
{
    struct fl_status_socket *s = ctx;
    struct status_reader *r = NULL;

    if (s->readers >= STATUS_READERS || status_reader_new(s, stream, &r) != FL_OK) {
        fl_stream_close(stream);
        return;
    }
    s->readers++;
    fl_stream_start(stream, &status_cbs, r);
    fl_stream_wake(stream);
    fl_stream_close_flushed(stream, STATUS_READER_MS);
}

int fl_status_socket_create(const struct fl_status_socket_setup *setup,
                            struct fl_status_socket **ret)
{
    struct fl_status_socket *s = calloc(1, sizeof(*s));
    char address[STATUS_ADDRESS];
    struct fl_err err = {0};
    int rv;

    if (s == NULL) {
        return FL_ENOMEM;
    }
    s->setup = *setup;
    (void)snprintf(address, sizeof(address), "unix:%s/" FL_STATUS_SOCKET_NAME, setup->state_dir);
    rv = fl_listen(setup->loop, address, status_on_accept, s, &s->listener, &err);
    if (rv != FL_OK) {
        fl_log(setup->log, FL_LOG_WARNING, "client",
               "fl-clientd --status cannot reach this client, which runs on without it: %s",
               fl_err_text(&err, rv));
    }
    *ret = s;
    return FL_OK;
}

void fl_status_socket_stop(struct fl_status_socket *s)
{
    if (s != NULL) {
        fl_listener_close(s->listener);
        s->listener = NULL;
    }
}

void fl_status_socket_free(struct fl_status_socket *s)
{
    if (s != NULL) {
        free(s);
    }
}
