/*
 * What is served, and Fetch calls: a bundle from an offset. Of what is in memory the chunks point
 * into the one shared block: per receiver only the few bytes around each chunk are new. What lies
 * in a file is read on the io lane, one chunk ahead of a short queue, as the peer takes it:
 * hundreds of personal models are never in memory, a disk that is slow holds up nobody else, and
 * one that fails ends a call, not the server.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/sm.h"
#include "server/daemon/frontend_impl.h"

/* Read at a time from a file, and queued at most. */
#define FILE_CHUNK ((size_t)128 << 10)
#define FILE_QUEUE (4 * FILE_CHUNK)
/* What a chunk costs in the queue beside its bytes, generously. */
#define CHUNK_COST ((size_t)1024)

enum fetch_state { FETCH_REQUEST, FETCH_SENDING, FETCH_ENDED };

/* clang-format off */
static const struct fl_sm_state states[] = {
    [FETCH_REQUEST] = {"request", FL_SM_TO(FETCH_SENDING) | FL_SM_TO(FETCH_ENDED)},
    [FETCH_SENDING] = {"sending", FL_SM_TO(FETCH_ENDED)},
    [FETCH_ENDED]   = {"ended",   0},
};
/* clang-format on */

/* A bundle that a client is sent. */
struct fl_fetch {
    struct fl_frontend *frontend;
    struct fl_list link; /* all of the front */
    struct fl_call *call;
    struct fl_sm sm;
    struct fl_bytes bytes;
    uint64_t offset;   /* of the next chunk */
    struct read *read; /* the next chunk on its way from the file; NULL: none is */
};

/* The call is charged with `len` bytes until it is done. */
struct read {
    struct fl_disk_job job; /* First: the lane's callbacks lead here. */
    struct fl_fetch *fetch;
    struct fl_file *file;
    uint64_t offset;
    size_t len;
    struct fl_blob *blob;
};

/* --- sending --- */

static void end(struct fl_fetch *f, enum fl_grpc_status status, const char *message)
{
    fl_sm_move(&f->sm, FETCH_ENDED);
    fl_frontend_finish(f->frontend, f->call, status, message);
}

static void cancel(struct fl_fetch *f)
{
    fl_sm_move(&f->sm, FETCH_ENDED);
    fl_call_cancel(f->call);
}

/* Queue the next chunk, which is all of `bytes`. FL_ELIMIT: there is no room, on_writable comes. */
static int send_chunk(struct fl_fetch *f, const struct fl_piece *bytes)
{
    uint8_t head[FL_WIRE_CHUNK_HEAD];
    struct fl_piece pieces[2] = {
        {.data = head, .len = fl_wire_chunk_head(f->offset, bytes->len, head)}, *bytes};
    int rv = fl_call_send(f->call, pieces, 2);

    if (rv == FL_OK) {
        f->offset += bytes->len;
    }
    return rv;
}

/* Bytes of the next chunk; 0: all were sent. */
static size_t next_len(const struct fl_fetch *f, size_t most)
{
    uint64_t left = fl_bytes_len(&f->bytes) - f->offset;

    return left < most ? (size_t)left : most;
}

/* --- from memory --- */

static void send_shared(struct fl_fetch *f)
{
    struct fl_blob *blob = f->bytes.blob;
    size_t n;

    while ((n = next_len(f, FL_WIRE_CHUNK)) > 0) {
        struct fl_piece bytes = {.data = fl_blob_data(blob) + f->offset, .len = n, .blob = blob};
        int rv = send_chunk(f, &bytes);

        if (rv == FL_ELIMIT) {
            return;
        }
        if (rv != FL_OK) {
            cancel(f);
            return;
        }
    }
    end(f, FL_GRPC_OK, NULL);
}

/* --- from a file --- */

static void read_ahead(struct fl_fetch *f);

static int read_work(struct fl_disk_job *job)
{
    struct read *r = (struct read *)(void *)job;
    int rv = fl_blob_create(r->len, &r->blob);

    return rv == FL_OK ? fl_file_read(r->file, r->offset, fl_blob_fill(r->blob), r->len) : rv;
}

static void read_done(struct fl_disk_job *job)
{
    struct read *r = (struct read *)(void *)job;
    struct fl_fetch *f = r->fetch;

    f->read = NULL;
    fl_call_discharge(f->call, r->len); /* The queue is charged with it now. */
    if (f->sm.state != FETCH_SENDING) {
        return;
    }
    if (job->code != FL_OK) {
        fl_log_peer(f->frontend->srv->log, FL_LOG_ERROR, "fetch", fl_call_peer(f->call),
                    "cannot serve %s: %s", fl_call_peer(f->call), fl_strerror(job->code));
        end(f, FL_GRPC_UNAVAILABLE, "the server cannot read what it serves");
        return;
    }
    if (send_chunk(f, &(struct fl_piece){.data = fl_blob_data(r->blob),
                                         .len = r->len,
                                         .blob = r->blob,
                                         .own = true}) != FL_OK)
    {
        cancel(f);
        return;
    }
    read_ahead(f);
}

static void read_release(struct fl_disk_job *job)
{
    struct read *r = (struct read *)(void *)job;

    fl_file_unref(r->file);
    fl_blob_unref(r->blob);
}

static int ask_file(struct fl_fetch *f, size_t n)
{
    struct read *r = calloc(1, sizeof(*r));
    int rv;

    if (r == NULL) {
        return FL_ENOMEM;
    }
    *r = (struct read){.job = {.work = read_work, .done = read_done, .release = read_release},
                       .fetch = f,
                       .file = fl_file_ref(f->bytes.file),
                       .offset = f->offset,
                       .len = n};
    rv = fl_disk_ask(f->frontend, &r->job);
    if (rv != FL_OK) {
        fl_file_unref(r->file);
        free(r);
        return rv;
    }
    f->read = r;
    return FL_OK;
}

static void read_ahead(struct fl_fetch *f)
{
    size_t n = next_len(f, FILE_CHUNK);

    if (n == 0) {
        end(f, FL_GRPC_OK, NULL);
        return;
    }
    /* A queue without room for it is more than half full: on_writable comes. */
    if (f->read != NULL || fl_call_queued(f->call) + n + CHUNK_COST > FILE_QUEUE) {
        return;
    }
    if (fl_call_charge(f->call, n) != FL_OK) {
        fl_frontend_notice(f->frontend, fl_call_peer(f->call), "unread",
                           "its transfer is ended: too much is unfinished or unread");
        end(f, FL_GRPC_RESOURCE_EXHAUSTED,
            "too much is unfinished or unread on this connection, or on all of them");
        return;
    }
    if (ask_file(f, n) != FL_OK) {
        fl_call_discharge(f->call, n);
        end(f, FL_GRPC_UNAVAILABLE, "out of memory");
    }
}

/* --- the call --- */

static void go_on(struct fl_fetch *f)
{
    if (f->bytes.file != NULL) {
        read_ahead(f);
    } else {
        send_shared(f);
    }
}

static int begin(struct fl_fetch *f, const uint8_t *data, size_t len, struct fl_err *err)
{
    const struct fl_bundle_rec *bundle;
    const struct fl_control_stream *attend;
    struct fl_wire_fetch request;
    int rv = fl_wire_fetch_decode(data, len, &request, err);

    if (rv != FL_OK) {
        return rv;
    }
    attend = fl_frontend_session(f->frontend, f->call, &request.session);
    if (attend == NULL) {
        return fl_err_set(err, FL_EPERM, "unknown session: attend first, or a newer one took over");
    }
    bundle = fl_fetch_bundle(f->frontend, request.bundle, request.round, attend->client);
    if (bundle == NULL) {
        return fl_err_set(err, FL_ENOENT, "no bundle '%s' of round %llu is open", request.bundle,
                          (unsigned long long)request.round);
    }
    if (request.offset > fl_bytes_len(&bundle->bytes)) {
        return fl_err_set(err, FL_ERANGE, "offset %llu is past the bundle's %llu bytes",
                          (unsigned long long)request.offset,
                          (unsigned long long)fl_bytes_len(&bundle->bytes));
    }
    fl_call_vouch(f->call, attend->name);
    f->bytes = fl_bytes_ref(&bundle->bytes);
    f->offset = request.offset;
    if (f->bytes.file != NULL) {
        fl_call_set_queue(f->call, FILE_QUEUE);
        fl_call_set_patient(f->call, true); /* The disk may be what is waited for. */
    }
    return FL_OK;
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_fetch *f = ctx;
    struct fl_err err = {0};
    int rv;

    if (f->sm.state != FETCH_REQUEST) {
        if (f->sm.state == FETCH_SENDING) {
            end(f, FL_GRPC_INVALID_ARGUMENT, "a second FetchRequest");
        }
        return true;
    }
    rv = begin(f, data, len, &err);
    if (rv != FL_OK) {
        fl_sm_move(&f->sm, FETCH_ENDED);
        fl_frontend_fail_request(call, rv, &err);
        return true;
    }
    fl_sm_move(&f->sm, FETCH_SENDING);
    go_on(f);
    return true;
}

static void on_end(struct fl_call *call, void *ctx)
{
    struct fl_fetch *f = ctx;

    (void)call;
    if (f->sm.state == FETCH_REQUEST) {
        end(f, FL_GRPC_INVALID_ARGUMENT, "the request is missing");
    }
}

static void on_writable(struct fl_call *call, void *ctx)
{
    struct fl_fetch *f = ctx;

    (void)call;
    if (f->sm.state == FETCH_SENDING) {
        go_on(f);
    }
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_fetch *f = ctx;

    (void)call;
    (void)status;
    (void)message;
    fl_list_remove(&f->link);
    fl_disk_forget(f->read != NULL ? &f->read->job : NULL);
    fl_bytes_done(&f->bytes);
    free(f);
}

static const struct fl_call_handler fetch_handler = {
    .on_message = on_message, .on_end = on_end, .on_writable = on_writable, .on_closed = on_closed};

void fl_fetch_start(struct fl_call *call, void *ctx)
{
    struct fl_frontend *frontend = ctx;
    struct fl_fetch *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    fl_sm_init(&f->sm, states, FETCH_ENDED + 1, FETCH_REQUEST);
    f->frontend = frontend;
    f->call = call;
    fl_list_prepend(&frontend->fetches, &f->link);
    fl_call_set_handler(call, &fetch_handler, f);
}

/* --- what is served --- */

static bool is_bundle(const struct fl_bundle_rec *b, const char *name, uint64_t round)
{
    return b->name[0] != '\0' && b->round == round && strcmp(b->name, name) == 0;
}

const struct fl_bundle_rec *fl_fetch_bundle(const struct fl_frontend *frontend, const char *name,
                                            uint64_t round, uint32_t client)
{
    const struct fl_bundle_rec *own =
        client < frontend->n_slots ? frontend->slots[client].mixture : NULL;
    size_t i;

    if (own != NULL && is_bundle(own, name, round)) {
        return own;
    }
    for (i = 0; i < FL_FRONTEND_MAX_BUNDLES; i++) {
        if (is_bundle(&frontend->bundles[i], name, round)) {
            return &frontend->bundles[i];
        }
    }
    return NULL;
}

/* `blob` is no longer served: transfers that keep it are charged with all of it from now on. */
static void charge_keepers(struct fl_frontend *frontend, const struct fl_blob *blob)
{
    struct fl_fetch *f;

    FL_LIST_FOREACH (f, &frontend->fetches, struct fl_fetch, link) {
        /* The one who is being sent the last of it keeps it as much as the one who began. */
        if (f->bytes.blob == blob && blob != NULL &&
            fl_call_charge(f->call, fl_blob_len(blob)) != FL_OK) {
            fl_frontend_notice(frontend, fl_call_peer(f->call), "superseded",
                               "its transfer of a model that is no longer served is ended");
            if (f->sm.state == FETCH_ENDED) { /* Its last bytes wait for the peer. */
                fl_call_cancel(f->call);
            } else {
                cancel(f);
            }
        }
    }
}

void fl_fetch_drop_personal_model(struct fl_slot_rec *slot)
{
    if (slot->mixture != NULL) {
        fl_bytes_done(&slot->mixture->bytes);
        free(slot->mixture);
        slot->mixture = NULL;
    }
}

/* Where the bundle is or goes; NULL: nowhere. */
static struct fl_bundle_rec *bundle_place(struct fl_frontend *frontend,
                                          const struct fl_net_msg *down)
{
    struct fl_bundle_rec *place = NULL;
    struct fl_slot_rec *slot;
    size_t i;

    if (down->client != FL_EVERYBODY) {
        slot = fl_frontend_slot(frontend, down->client);
        if (slot != NULL && slot->mixture == NULL) {
            slot->mixture = calloc(1, sizeof(*slot->mixture));
        }
        return slot != NULL ? slot->mixture : NULL;
    }
    for (i = 0; i < FL_FRONTEND_MAX_BUNDLES; i++) {
        struct fl_bundle_rec *b = &frontend->bundles[i];

        if (strcmp(b->name, down->text) == 0) {
            return b;
        }
        if (b->name[0] == '\0' && place == NULL) {
            place = b;
        }
    }
    return place;
}

/* Nobody may fetch these bytes under their old name any more; another name may have them too. */
static void supersede(struct fl_frontend *frontend, struct fl_bytes *bytes)
{
    size_t i = 0;

    while (i < FL_FRONTEND_MAX_BUNDLES && frontend->bundles[i].bytes.blob != bytes->blob) {
        i++;
    }
    if (i == FL_FRONTEND_MAX_BUNDLES) {
        charge_keepers(frontend, bytes->blob);
    }
    fl_bytes_done(bytes);
}

void fl_fetch_serve(struct fl_frontend *frontend, struct fl_net_msg *down)
{
    struct fl_bundle_rec *place = bundle_place(frontend, down);
    struct fl_bytes old;

    if (place == NULL && down->client != FL_EVERYBODY) {
        fl_serverd_no_memory(frontend->srv, "a mixture that its client is told of");
    }
    if (place == NULL) {
        fl_log(frontend->srv->log, FL_LOG_ERROR, "server", "no room to serve '%s'", down->text);
        return;
    }
    old = place->bytes;
    *place = (struct fl_bundle_rec){0};
    if (fl_bytes_are(&down->bytes) &&
        fl_str_copy(place->name, sizeof(place->name), down->text) == FL_OK)
    {
        place->round = down->round;
        place->bytes = down->bytes;
        place->has_digest = down->has_digest;
        (void)memcpy(place->digest, down->digest, sizeof(place->digest));
        down->bytes = (struct fl_bytes){0};
    }
    supersede(frontend, &old);
}
