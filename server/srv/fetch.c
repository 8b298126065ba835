/*
 * Fetch calls: a bundle from an offset, as chunks that point into the one shared block of
 * the model. Per receiver only the few bytes around each chunk are new.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/srv/front_state.h"

struct fl_fetch {
    struct fl_front *front;
    struct fl_fetch *next, *prev;
    struct fl_call *call;
    struct fl_blob *blob;
    uint64_t offset;
    uint64_t progress_ms;
    bool started, finished;
};

static void send_chunks(struct fl_fetch *f)
{
    size_t len = fl_blob_len(f->blob);

    /* Until the call's queue is full: only then on_writable comes. It holds references. */
    while (!f->finished && f->offset < len) {
        uint8_t head[FL_WIRE_CHUNK_HEAD];
        size_t n = len - f->offset < FL_WIRE_CHUNK ? (size_t)(len - f->offset) : FL_WIRE_CHUNK;
        struct fl_piece pieces[2];
        int rv;

        pieces[0] = (struct fl_piece){head, fl_wire_chunk_head(f->offset, n, head), NULL};
        pieces[1] = (struct fl_piece){fl_blob_data(f->blob) + f->offset, n, f->blob};
        rv = fl_call_send(f->call, pieces, 2);
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

static const struct fl_bundle_rec *find(const struct fl_front *front, const char *name,
                                        uint64_t round)
{
    size_t i;

    for (i = 0; i < FL_FRONT_MAX_BUNDLES; i++) {
        const struct fl_bundle_rec *b = &front->bundles[i];

        if (b->name[0] != '\0' && strcmp(b->name, name) == 0 && b->round == round) {
            return b;
        }
    }
    return NULL;
}

static int begin(struct fl_fetch *f, const uint8_t *data, size_t len, struct fl_err *err)
{
    const struct fl_bundle_rec *bundle;
    struct fl_wire_fetch request;
    int rv = fl_wire_fetch_decode(data, len, &request, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_front_session(f->front, &request.session) == NULL) {
        return fl_err_set(err, FL_EPERM, "unknown session: attend first, or a newer one took over");
    }
    bundle = find(f->front, request.bundle, request.round);
    if (bundle == NULL) {
        return fl_err_set(err, FL_ENOENT, "no bundle '%s' of round %llu is open", request.bundle,
                          (unsigned long long)request.round);
    }
    if (request.offset > fl_blob_len(bundle->blob)) {
        return fl_err_set(err, FL_ERANGE, "offset %llu is past the bundle's %zu bytes",
                          (unsigned long long)request.offset, fl_blob_len(bundle->blob));
    }
    f->blob = fl_blob_ref(bundle->blob);
    f->offset = request.offset;
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
    f->progress_ms = fl_clock_ms();
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
    f->progress_ms = fl_clock_ms();
    if (f->blob != NULL) {
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
    fl_blob_unref(f->blob);
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
    f->progress_ms = fl_clock_ms();
    f->next = front->fetches;
    if (f->next != NULL) {
        f->next->prev = f;
    }
    front->fetches = f;
    fl_call_set_handler(call, &fetch_handler, f);
}

void fl_fetch_sweep(struct fl_front *front, uint64_t now_ms)
{
    struct fl_fetch *f;

    for (f = front->fetches; f != NULL; f = f->next) {
        if (now_ms > f->progress_ms + front->srv->conf->rpc.idle_ms) {
            fl_log(front->srv->log, FL_LOG_WARNING, "fetch",
                   "%s takes nothing for %u ms, ending its transfer", fl_call_peer(f->call),
                   front->srv->conf->rpc.idle_ms);
            f->progress_ms = now_ms;
            fl_call_cancel(f->call);
        }
    }
}
