/*
 * Fetch calls: a bundle from an offset. Of what is in memory the chunks point into the one
 * shared block: per receiver only the few bytes around each chunk are new. What lies in a
 * file is read chunk by chunk as the peer takes it, with a short queue: hundreds of
 * personal models are never in memory, and a disk that fails ends a call, not the server.
 */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/front_impl.h"

/* Read at a time from a file, and queued at most. */
#define FILE_CHUNK ((size_t)128 << 10)
#define FILE_QUEUE (4 * FILE_CHUNK)
/* What a chunk costs in the queue beside its bytes, generously. */
#define CHUNK_COST ((size_t)1024)

struct fl_fetch {
    struct fl_front *front;
    struct fl_fetch *next, *prev;
    struct fl_call *call;
    struct fl_bytes bytes;
    uint64_t offset;
    bool started, finished;
};

/*
 * What is read from a file goes into the queue, where it is counted. A queue without room for it is
 * more than half full: on_writable comes.
 */
static bool has_room(const struct fl_fetch *f, size_t n)
{
    return f->bytes.blob != NULL || fl_call_queued(f->call) + n + CHUNK_COST <= FILE_QUEUE;
}

/* The next n bytes to be sent, with a reference to their blob. */
static int next_piece(const struct fl_fetch *f, size_t n, struct fl_piece *ret)
{
    struct fl_blob *blob = NULL;
    int rv;

    if (f->bytes.blob != NULL) {
        blob = fl_blob_ref(f->bytes.blob);
        *ret = (struct fl_piece){.data = fl_blob_data(blob) + f->offset, .len = n, .blob = blob};
        return FL_OK;
    }
    rv = fl_blob_create(n, &blob);
    if (rv == FL_OK) {
        rv = fl_file_read(f->bytes.file, f->offset, fl_blob_fill(blob), n);
    }
    if (rv != FL_OK) {
        fl_blob_unref(blob);
        return rv;
    }
    *ret = (struct fl_piece){.data = fl_blob_data(blob), .len = n, .blob = blob, .own = true};
    return FL_OK;
}

static void fail(struct fl_fetch *f, int code)
{
    fl_log_peer(f->front->srv->log, FL_LOG_ERROR, "fetch", fl_call_peer(f->call),
                "cannot serve %s: %s", fl_call_peer(f->call), fl_strerror(code));
    f->finished = true;
    fl_call_finish(f->call, FL_GRPC_UNAVAILABLE, "the server cannot read what it serves");
}

static void send_chunks(struct fl_fetch *f)
{
    uint64_t len = fl_bytes_len(&f->bytes);
    uint64_t most = f->bytes.blob != NULL ? FL_WIRE_CHUNK : FILE_CHUNK;

    /* Until the call's queue is full: only then on_writable comes. It holds references. */
    while (!f->finished && f->offset < len) {
        uint8_t head[FL_WIRE_CHUNK_HEAD];
        size_t n = (size_t)(len - f->offset < most ? len - f->offset : most);
        struct fl_piece pieces[2];
        int rv;

        if (!has_room(f, n)) {
            return;
        }
        rv = next_piece(f, n, &pieces[1]);
        if (rv != FL_OK) {
            fail(f, rv);
            return;
        }
        pieces[0] = (struct fl_piece){.data = head, .len = fl_wire_chunk_head(f->offset, n, head)};
        rv = fl_call_send(f->call, pieces, 2);
        fl_blob_unref(pieces[1].blob);
        if (rv == FL_ELIMIT) {
            return;
        }
        if (rv != FL_OK) {
            fl_call_cancel(f->call);
            f->finished = true;
            return;
        }
        f->offset += n;
    }
    if (!f->finished && f->offset >= len) {
        f->finished = true;
        fl_call_finish(f->call, FL_GRPC_OK, NULL);
    }
}

static int begin(struct fl_fetch *f, const uint8_t *data, size_t len, struct fl_err *err)
{
    const struct fl_bundle_rec *bundle;
    const struct fl_attend *attend;
    struct fl_wire_fetch request;
    int rv = fl_wire_fetch_decode(data, len, &request, err);

    if (rv != FL_OK) {
        return rv;
    }
    attend = fl_front_session(f->front, &request.session);
    if (attend == NULL) {
        return fl_err_set(err, FL_EPERM, "unknown session: attend first, or a newer one took over");
    }
    bundle = fl_front_bundle(f->front, request.bundle, request.round, attend->client);
    if (bundle == NULL) {
        return fl_err_set(err, FL_ENOENT, "no bundle '%s' of round %llu is open", request.bundle,
                          (unsigned long long)request.round);
    }
    if (request.offset > fl_bytes_len(&bundle->bytes)) {
        return fl_err_set(err, FL_ERANGE, "offset %llu is past the bundle's %llu bytes",
                          (unsigned long long)request.offset,
                          (unsigned long long)fl_bytes_len(&bundle->bytes));
    }
    fl_call_vouch(f->call);
    f->bytes = fl_bytes_ref(&bundle->bytes);
    f->offset = request.offset;
    if (f->bytes.file != NULL) {
        fl_call_set_queue(f->call, FILE_QUEUE);
    }
    return FL_OK;
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_fetch *f = ctx;
    struct fl_err err = {0};
    int rv;

    if (f->started) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "a second FetchRequest");
        f->finished = true;
        return true;
    }
    f->started = true;
    rv = begin(f, data, len, &err);
    if (rv != FL_OK) {
        f->finished = true;
        fl_front_fail_request(call, rv, &err);
        return true;
    }
    send_chunks(f);
    return true;
}

static void on_end(struct fl_call *call, void *ctx)
{
    const struct fl_fetch *f = ctx;

    if (!f->started) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "the request is missing");
    }
}

static void on_writable(struct fl_call *call, void *ctx)
{
    struct fl_fetch *f = ctx;

    (void)call;
    if (fl_bytes_are(&f->bytes)) {
        send_chunks(f);
    }
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_fetch *f = ctx;

    (void)call;
    (void)status;
    (void)message;
    if (f->prev != NULL) {
        f->prev->next = f->next;
    } else {
        f->front->fetches = f->next;
    }
    if (f->next != NULL) {
        f->next->prev = f->prev;
    }
    fl_bytes_done(&f->bytes);
    free(f);
}

static const struct fl_call_handler fetch_handler = {
    .on_message = on_message, .on_end = on_end, .on_writable = on_writable, .on_closed = on_closed};

void fl_fetch_start(struct fl_call *call, void *ctx)
{
    struct fl_front *front = ctx;
    struct fl_fetch *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    f->front = front;
    f->call = call;
    f->next = front->fetches;
    if (f->next != NULL) {
        f->next->prev = f;
    }
    front->fetches = f;
    fl_call_set_handler(call, &fetch_handler, f);
}

void fl_fetch_superseded(struct fl_front *front, const struct fl_blob *blob)
{
    struct fl_fetch *f;

    for (f = front->fetches; f != NULL; f = f->next) {
        /* The one who is being sent the last of it keeps it as much as the one who began. */
        if (f->bytes.blob == blob && blob != NULL &&
            fl_call_charge(f->call, fl_blob_len(blob)) != FL_OK) {
            fl_front_notice(front, fl_call_peer(f->call), "superseded",
                            "its transfer of a model that is no longer served is ended");
            f->finished = true;
            fl_call_cancel(f->call);
        }
    }
}
