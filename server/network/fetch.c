/*
 * The payloads that are served, and Fetch calls, which send a payload from an offset. Runs on the
 * network loop; files are read on the io thread. Chunks of a payload in memory point into the one
 * shared block: each receiver costs only the few bytes around each chunk. A payload in a file is
 * read one chunk ahead of a short queue, as fast as the peer receives it: hundreds of personalized
 * models are never in memory together, a slow disk delays only its own readers, and a disk error
 * ends a call, not the server. What changed since a model that the client holds is added up on the
 * io thread and then sent from memory. Does not decide which payloads are served: the coordinator
 * does.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/sm.h"
#include "server/network/frontend_impl.h"

/* Bytes per read from a file, and most bytes queued. */
#define FILE_CHUNK ((size_t)128 << 10)
#define FILE_QUEUE (4 * FILE_CHUNK)
/* Overhead of a chunk in the queue beside its bytes, an upper bound. */
#define CHUNK_COST ((size_t)1024)

enum fetch_state { FETCH_REQUEST, FETCH_PREPARING, FETCH_SENDING, FETCH_ENDED };

/* clang-format off */
static const struct fl_sm_state states[] = {
    [FETCH_REQUEST] = {"request", FL_SM_TO(FETCH_PREPARING) | FL_SM_TO(FETCH_SENDING) |
                                      FL_SM_TO(FETCH_ENDED)},
    [FETCH_PREPARING] = {"preparing", FL_SM_TO(FETCH_SENDING) | FL_SM_TO(FETCH_ENDED)},
    [FETCH_SENDING] = {"sending", FL_SM_TO(FETCH_ENDED)},
    [FETCH_ENDED]   = {"ended",   0},
};
/* clang-format on */

/* One Fetch call: a payload being sent to a client. */
struct fl_fetch {
    struct fl_frontend *frontend;
    struct fl_list link; /* all of the front */
    struct fl_call *call;
    struct fl_sm sm;
    struct fl_bytes bytes;
    uint64_t offset; /* of the next chunk */
    uint64_t first;  /* the offset that it began at */
    enum fl_download_kind kind;
    struct read *read;            /* the read of the next chunk in progress; NULL: none */
    struct preparation *prepares; /* PREPARING: what is sent is being made */
    const struct fl_blob *of;     /* the model that it is for, not referenced */
    uint32_t client;
    uint64_t round;
};

/* One difference to a model that a client holds, being made. */
struct preparation {
    struct fl_disk_job job; /* first member: the callbacks of the job cast to struct preparation */
    struct fl_fetch *fetch;
    struct fl_differences *differences;
    uint8_t held[FL_DIGEST_SIZE];
    struct fl_blob *made;
};

/* One read of a file. The call is charged with `len` bytes until it is done. */
struct read {
    struct fl_disk_job job; /* first member: the callbacks of the job cast to struct read */
    struct fl_fetch *fetch;
    struct fl_file *file;
    uint64_t offset;
    size_t len;
    struct fl_blob *blob;
};

/* --- sending --- */

static void fetch_end(struct fl_fetch *f, enum fl_grpc_status status, const char *message)
{
    fl_sm_move(&f->sm, FETCH_ENDED);
    fl_frontend_finish(f->frontend, f->call, status, message);
}

static void fetch_cancel(struct fl_fetch *f)
{
    fl_sm_move(&f->sm, FETCH_ENDED);
    fl_call_cancel(f->call);
}

/*
 * Queue the next chunk, which is all of `bytes`. FL_ELIMIT: the queue is full, fetch_on_writable()
 * follows.
 */
static int send_chunk(struct fl_fetch *f, const struct fl_piece *bytes)
{
    uint8_t head[FL_WIRE_CHUNK_HEAD];
    struct fl_piece pieces[2] = {
        {.data = head, .len = fl_wire_chunk_head(f->offset, bytes->len, head)}, *bytes};
    int rv = fl_call_send(f->call, pieces, 2);

    if (rv != FL_OK) {
        return rv;
    }
    f->offset += bytes->len;
    return FL_OK;
}

/* Bytes of the next chunk; 0: everything was sent. */
static size_t next_len(const struct fl_fetch *f, size_t most)
{
    uint64_t left = fl_bytes_len(&f->bytes) - f->offset;

    return left < most ? (size_t)left : most;
}

/* --- bytes that are no longer served --- */

/* Under any name? */
static bool fetch_is_served(const struct fl_frontend *frontend, const struct fl_blob *blob)
{
    size_t i = 0;

    while (i < FL_FRONTEND_MAX_PAYLOADS && frontend->payloads[i].bytes.blob != blob) {
        i++;
    }
    return i < FL_FRONTEND_MAX_PAYLOADS;
}

/* A transfer that still references them is charged with all of it. False: it has ended by that. */
static bool fetch_charge(struct fl_fetch *f)
{
    if (fl_call_charge(f->call, (size_t)fl_bytes_len(&f->bytes)) == FL_OK) {
        return true;
    }
    fl_frontend_notice(f->frontend, fl_call_peer(f->call), "superseded",
                       "transfer ended: the model is no longer served");
    if (f->sm.state == FETCH_ENDED) { /* Its last bytes are still queued for the peer. */
        fl_call_cancel(f->call);
    } else {
        fetch_cancel(f);
    }
    return false;
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
            fetch_cancel(f);
            return;
        }
    }
    fetch_end(f, FL_GRPC_OK, NULL);
}

/* --- from a file --- */

static void read_ahead(struct fl_fetch *f);

static int fetch_read_work(struct fl_disk_job *job)
{
    struct read *r = (struct read *)(void *)job;
    int rv = fl_blob_create(r->len, &r->blob);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_file_read(r->file, r->offset, fl_blob_fill(r->blob), r->len);
}

static void fetch_read_done(struct fl_disk_job *job)
{
    struct read *r = (struct read *)(void *)job;
    struct fl_fetch *f = r->fetch;

    f->read = NULL;
    fl_call_discharge(f->call, r->len); /* The queue is charged for them now. */
    if (f->sm.state != FETCH_SENDING) {
        return;
    }
    if (job->code != FL_OK) {
        fl_log_peer(f->frontend->setup.log, FL_LOG_ERROR, "fetch", fl_call_peer(f->call),
                    "cannot read the payload for %s: %s", fl_call_peer(f->call),
                    fl_strerror(job->code));
        fetch_end(f, FL_GRPC_UNAVAILABLE, "the server cannot read the payload");
        return;
    }
    if (send_chunk(f, &(struct fl_piece){.data = fl_blob_data(r->blob),
                                         .len = r->len,
                                         .blob = r->blob,
                                         .own = true}) != FL_OK)
    {
        fetch_cancel(f);
        return;
    }
    read_ahead(f);
}

static void fetch_read_release(struct fl_disk_job *job)
{
    struct read *r = (struct read *)(void *)job;

    fl_file_unref(r->file);
    fl_blob_unref(r->blob);
}

static int fetch_ask_file(struct fl_fetch *f, size_t n)
{
    struct read *r = calloc(1, sizeof(*r));
    int rv;

    if (r == NULL) {
        return FL_ENOMEM;
    }
    *r = (struct read){
        .job = {.work = fetch_read_work, .done = fetch_read_done, .release = fetch_read_release},
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
        fetch_end(f, FL_GRPC_OK, NULL);
        return;
    }
    /* A full queue is more than half full, so fetch_on_writable() follows. */
    if (f->read != NULL || fl_call_queued(f->call) + n + CHUNK_COST > FILE_QUEUE) {
        return;
    }
    if (fl_call_charge(f->call, n) != FL_OK) {
        fl_frontend_notice(f->frontend, fl_call_peer(f->call), "unread",
                           "transfer ended: too much unsent or unread data");
        fetch_end(
            f, FL_GRPC_RESOURCE_EXHAUSTED,
            "memory limit: too much unsent or unread data on this connection, or on all of them");
        return;
    }
    if (fetch_ask_file(f, n) != FL_OK) {
        fl_call_discharge(f->call, n);
        fetch_end(f, FL_GRPC_UNAVAILABLE, "out of memory");
    }
}

/* --- differences --- */

/*
 * The first download of the model of a round is counted when it begins: however often a client
 * asks, the coordinator gets one message.
 */
static void fetch_count(const struct fl_fetch *f)
{
    struct fl_frontend_client *slot = fl_frontend_client_at(f->frontend, f->client);
    struct fl_coord_msg *up;

    if (slot != NULL && slot->fetched == f->round) {
        return;
    }
    up = fl_coord_msg_new(FL_COORD_MSG_FETCHES);
    if (slot == NULL || up == NULL) {
        fl_serverd_no_memory(f->frontend->setup.log, "a message to the coordinator");
    }
    slot->fetched = f->round;
    up->client = f->client;
    up->round = f->round;
    up->bytes = fl_bytes_len(&f->bytes);
    fl_frontend_up(f->frontend, up);
}

static int fetch_prepare_work(struct fl_disk_job *job)
{
    struct preparation *p = (struct preparation *)(void *)job;

    return fl_differences_get(p->differences, p->held, &p->made);
}

static void fetch_prepare_done(struct fl_disk_job *job)
{
    struct preparation *p = (struct preparation *)(void *)job;
    struct fl_fetch *f = p->fetch;

    f->prepares = NULL;
    if (f->sm.state != FETCH_PREPARING) {
        return;
    }
    if (job->code != FL_OK) {
        fetch_end(
            f, job->code == FL_ENOENT ? FL_GRPC_FAILED_PRECONDITION : FL_GRPC_UNAVAILABLE,
            job->code == FL_ENOENT
                ? "what changed since the model that is held is not known, or is as long as the "
                  "whole model: fetch that"
                : fl_strerror(job->code));
        return;
    }
    if (f->offset > fl_blob_len(p->made)) {
        fetch_end(f, FL_GRPC_OUT_OF_RANGE, "the offset is past the end of what changed");
        return;
    }
    f->bytes.blob = fl_blob_ref(p->made);
    fl_call_set_patient(f->call, false);
    fl_sm_move(&f->sm, FETCH_SENDING);
    if (f->offset == 0 && f->client != FL_EVERYBODY) {
        fetch_count(f);
    }
    /* It may have been superseded meanwhile. */
    if (fetch_is_served(f->frontend, f->of) || fetch_charge(f)) {
        send_shared(f);
    }
}

static void fetch_prepare_release(struct fl_disk_job *job)
{
    struct preparation *p = (struct preparation *)(void *)job;

    fl_differences_unref(p->differences);
    fl_blob_unref(p->made);
}

static int fetch_prepare(struct fl_fetch *f, const struct fl_payload_rec *payload,
                         const uint8_t *held)
{
    struct preparation *p = calloc(1, sizeof(*p));
    int rv;

    if (p == NULL) {
        return FL_ENOMEM;
    }
    *p = (struct preparation){.job = {.work = fetch_prepare_work,
                                      .done = fetch_prepare_done,
                                      .release = fetch_prepare_release},
                              .fetch = f,
                              .differences = fl_differences_ref(payload->differences)};
    (void)memcpy(p->held, held, sizeof(p->held));
    rv = fl_disk_ask(f->frontend, &p->job);
    if (rv != FL_OK) {
        fl_differences_unref(p->differences);
        free(p);
        return rv;
    }
    f->prepares = p;
    fl_call_set_patient(f->call, true); /* It waits for us. */
    return FL_OK;
}

/* --- the call --- */

static void fetch_continue(struct fl_fetch *f)
{
    if (f->bytes.file != NULL) {
        read_ahead(f);
    } else {
        send_shared(f);
    }
}

static int fetch_begin(struct fl_fetch *f, const uint8_t *data, size_t len, struct fl_err *err)
{
    const struct fl_payload_rec *payload;
    const struct fl_control_stream *stream;
    struct fl_wire_fetch request;
    int rv = fl_wire_fetch_decode(data, len, &request, err);

    if (rv != FL_OK) {
        return rv;
    }
    stream = fl_frontend_session(f->frontend, f->call, &request.session);
    if (stream == NULL) {
        return fl_err_set(err, FL_EPERM, "unknown session: stream first, or a newer one took over");
    }
    payload = fl_fetch_payload(f->frontend, request.payload, request.round, stream->client);
    if (payload == NULL) {
        return fl_err_set(err, FL_ENOENT, "payload '%s' of round %llu is not served",
                          request.payload, (unsigned long long)request.round);
    }
    fl_call_vouch(f->call, stream->name);
    f->offset = request.offset;
    f->round = request.round;
    f->first = request.offset;
    f->kind = fl_download_kind_of(request.payload, request.has_held);
    f->of = payload->bytes.blob;
    /* Downloads of a candidate belong to no participant. */
    f->client = strcmp(request.payload, FL_PAYLOAD_MODEL) == 0 ? stream->client : FL_EVERYBODY;
    if (request.has_held) {
        return payload->differences != NULL
                   ? fetch_prepare(f, payload, request.held)
                   : fl_err_set(err, FL_ESTATE, "payload '%s' is sent as a whole only",
                                request.payload);
    }
    if (request.offset > fl_bytes_len(&payload->bytes)) {
        return fl_err_set(err, FL_ERANGE, "offset %llu is past the payload's %llu bytes",
                          (unsigned long long)request.offset,
                          (unsigned long long)fl_bytes_len(&payload->bytes));
    }
    f->bytes = fl_bytes_ref(&payload->bytes);
    if (payload->differences != NULL && f->offset == 0 && f->client != FL_EVERYBODY) {
        fetch_count(f);
    }
    if (f->bytes.file != NULL) {
        fl_call_set_queue(f->call, FILE_QUEUE);
        fl_call_set_patient(f->call,
                            true); /* The call may wait for our disk, so the peer is not idle. */
    }
    return FL_OK;
}

static bool fetch_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_fetch *f = ctx;
    struct fl_err err = {0};
    int rv;

    if (f->sm.state != FETCH_REQUEST) {
        if (f->sm.state != FETCH_ENDED) {
            fetch_end(f, FL_GRPC_INVALID_ARGUMENT, "a second FetchRequest");
        }
        return true;
    }
    rv = fetch_begin(f, data, len, &err);
    if (rv != FL_OK) {
        fl_sm_move(&f->sm, FETCH_ENDED);
        fl_frontend_fail_request(call, rv, &err);
        return true;
    }
    fl_sm_move(&f->sm, f->prepares != NULL ? FETCH_PREPARING : FETCH_SENDING);
    if (f->sm.state == FETCH_SENDING) {
        fetch_continue(f);
    }
    return true;
}

static void fetch_on_end(struct fl_call *call, void *ctx)
{
    struct fl_fetch *f = ctx;

    (void)call;
    if (f->sm.state == FETCH_REQUEST) {
        fetch_end(f, FL_GRPC_INVALID_ARGUMENT, "the request is missing");
    }
}

static void fetch_on_writable(struct fl_call *call, void *ctx)
{
    struct fl_fetch *f = ctx;

    (void)call;
    if (f->sm.state == FETCH_SENDING) {
        fetch_continue(f);
    }
}

static void fetch_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                            const char *message)
{
    struct fl_fetch *f = ctx;

    (void)call;
    (void)status;
    (void)message;
    if (fl_bytes_are(&f->bytes)) {
        uint64_t bytes = fl_bytes_len(&f->bytes);

        fl_download_counted(f->frontend->setup.downloads, f->kind, f->offset - f->first, bytes,
                            f->offset == bytes);
    }
    fl_list_remove(&f->link);
    fl_disk_forget(f->read != NULL ? &f->read->job : NULL);
    fl_disk_forget(f->prepares != NULL ? &f->prepares->job : NULL);
    fl_bytes_done(&f->bytes);
    free(f);
}

static const struct fl_call_handler fetch_handler = {.on_message = fetch_on_message,
                                                     .on_end = fetch_on_end,
                                                     .on_writable = fetch_on_writable,
                                                     .on_closed = fetch_on_closed};

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

/* --- served payloads --- */

static bool is_payload(const struct fl_payload_rec *b, const char *name, uint64_t round)
{
    return b->name[0] != '\0' && b->round == round && strcmp(b->name, name) == 0;
}

const struct fl_payload_rec *fl_fetch_payload(const struct fl_frontend *frontend, const char *name,
                                              uint64_t round, uint32_t client)
{
    const struct fl_payload_rec *own =
        client < frontend->n_slots ? frontend->slots[client].personal_model : NULL;
    size_t i;

    if (own != NULL && is_payload(own, name, round)) {
        return own;
    }
    for (i = 0; i < FL_FRONTEND_MAX_PAYLOADS; i++) {
        if (is_payload(&frontend->payloads[i], name, round)) {
            return &frontend->payloads[i];
        }
    }
    return NULL;
}

static void fetch_charge_readers(struct fl_frontend *frontend, const struct fl_blob *blob)
{
    struct fl_fetch *f;

    FL_LIST_FOREACH (f, &frontend->fetches, struct fl_fetch, link) {
        /* A transfer near its end references the block as much as one that has just begun. */
        if (f->of == blob && blob != NULL) {
            (void)fetch_charge(f);
        }
    }
}

void fl_fetch_drop_personal_model(struct fl_frontend_client *slot)
{
    if (slot->personal_model != NULL) {
        fl_bytes_done(&slot->personal_model->bytes);
        free(slot->personal_model);
        slot->personal_model = NULL;
    }
}

/* The record of the payload, or a free one for it; NULL: there is neither. */
static struct fl_payload_rec *fetch_find_record(struct fl_frontend *frontend,
                                                const struct fl_net_msg *down)
{
    struct fl_payload_rec *place = NULL;
    struct fl_frontend_client *slot;
    size_t i;

    if (down->client != FL_EVERYBODY) {
        slot = fl_frontend_client_at(frontend, down->client);
        if (slot != NULL && slot->personal_model == NULL) {
            slot->personal_model = calloc(1, sizeof(*slot->personal_model));
        }
        return slot != NULL ? slot->personal_model : NULL;
    }
    for (i = 0; i < FL_FRONTEND_MAX_PAYLOADS; i++) {
        struct fl_payload_rec *b = &frontend->payloads[i];

        if (strcmp(b->name, down->text) == 0) {
            return b;
        }
        if (b->name[0] == '\0' && place == NULL) {
            place = b;
        }
    }
    return place;
}

/* These bytes can no longer be fetched under their old name; another name may share them. */
static void fetch_supersede(struct fl_frontend *frontend, struct fl_bytes *bytes)
{
    if (!fetch_is_served(frontend, bytes->blob)) {
        fetch_charge_readers(frontend, bytes->blob);
    }
    fl_bytes_done(bytes);
}

void fl_fetch_serve(struct fl_frontend *frontend, struct fl_net_msg *down)
{
    struct fl_payload_rec *place = fetch_find_record(frontend, down);
    struct fl_bytes old;

    if (place == NULL && down->client != FL_EVERYBODY) {
        fl_serverd_no_memory(frontend->setup.log, "a personalized model for its client");
    }
    if (place == NULL) {
        fl_log(frontend->setup.log, FL_LOG_ERROR, "server", "too many payloads, cannot serve '%s'",
               down->text);
        return;
    }
    old = place->bytes;
    fl_differences_unref(place->differences);
    *place = (struct fl_payload_rec){0};
    if (fl_bytes_are(&down->bytes) &&
        fl_str_copy(place->name, sizeof(place->name), down->text) == FL_OK)
    {
        place->round = down->round;
        place->bytes = down->bytes;
        place->differences = fl_differences_ref(down->differences);
        place->has_digest = down->has_digest;
        (void)memcpy(place->digest, down->digest, sizeof(place->digest));
        down->bytes = (struct fl_bytes){0};
    }
    fetch_supersede(frontend, &old);
}
