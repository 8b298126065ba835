/*
 * Push calls: an update on its way into its spool file.
 *
 * The happy path: the header comes in and is checked against the grant that the
 * coordinator gave; the spool file is opened on the io lane; each chunk is written there
 * and gives its window credit back when it is; after the last one the file is validated
 * on the lane and the coordinator is told; its verdict answers the call.
 * Failure modes: a header without grant, or of another shape: the call ends; a chunk at
 * another offset: OUT_OF_RANGE; the stream ends early or breaks: what is there stays and
 * PushStatus tells where to go on; a bad value: the coordinator rejects the client; a
 * newer Push of the same client replaces this one.
 *
 * The object lives until the call is closed and no job of it is on the lane.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "server/srv/front_state.h"

enum push_state { PUSH_HEADER, PUSH_OPENING, PUSH_OPEN, PUSH_FINISHING, PUSH_JUDGED, PUSH_DEAD };

struct fl_push {
    struct fl_front *front;
    struct fl_push *next, *prev;
    struct fl_call *call; /* NULL after it closed */
    enum push_state state;
    bool ended; /* the peer has half-closed */
    uint32_t client;
    char name[FL_NAME_MAX];
    struct fl_session_key key;
    struct fl_spool_part *parts;
    size_t n_parts;
    uint64_t bytes;                 /* of the manifest */
    uint64_t written;               /* what the lane has written */
    unsigned jobs;                  /* on the lane */
    bool closing;                   /* the spool is given up */
    struct fl_spool *spool;         /* touched on the lane only, after opening */
    struct chunk *held, **held_end; /* chunks that came while the file was being opened */
    uint64_t progress_ms;
    int code;
    struct fl_err err;
};

struct chunk {
    struct chunk *next;
    struct fl_push *push;
    uint8_t *memory; /* the message */
    size_t message_len;
    struct fl_wire_chunk chunk;
    int code;
    struct fl_err err;
};

static void push_release(struct fl_push *p);

/* --- ending --- */

static void close_spool(void *arg)
{
    struct fl_push *p = arg;

    fl_spool_close(p->spool);
    p->spool = NULL;
}

static void spool_closed(void *arg)
{
    struct fl_push *p = arg;

    p->jobs--;
    push_release(p);
}

/*
 * Give the spool file up, behind the jobs that are on the lane and before any that come
 * later: a newer Push of the same client can then open it.
 */
static void give_up_spool(struct fl_push *p)
{
    if (p->closing || (p->state != PUSH_OPENING && p->state != PUSH_OPEN &&
                       p->state != PUSH_FINISHING && p->state != PUSH_JUDGED))
    {
        return;
    }
    p->closing = true;
    p->jobs++;
    if (fl_lane_submit(p->front->srv->io, close_spool, p->front->srv->net, spool_closed, p) !=
        FL_OK) {
        p->jobs--; /* It stays open as long as the process: no memory is left anyway. */
    }
}

/* Before it has a client it has no slot; the comparison covers that. */
static void detach(struct fl_push *p)
{
    if (p->client < p->front->n_slots && p->front->slots[p->client].push == p) {
        p->front->slots[p->client].push = NULL;
    }
}

static void push_release(struct fl_push *p)
{
    struct chunk *c;

    if (p->call != NULL || p->jobs > 0) {
        return;
    }
    /* A peer may hang up while its upload is judged: the slot must not remember what is gone. */
    detach(p);
    give_up_spool(p);
    p->state = PUSH_DEAD;
    if (p->jobs > 0) {
        return;
    }
    while ((c = p->held) != NULL) {
        p->held = c->next;
        free(c->memory);
        free(c);
    }
    if (p->prev != NULL) {
        p->prev->next = p->next;
    } else {
        p->front->pushes = p->next;
    }
    if (p->next != NULL) {
        p->next->prev = p->prev;
    }
    free(p->parts);
    free(p);
}

static void fail(struct fl_push *p, enum fl_grpc_status status, const char *message)
{
    detach(p);
    give_up_spool(p);
    p->state = PUSH_DEAD;
    if (p->call != NULL) {
        fl_log(p->front->srv->log, FL_LOG_WARNING, "push",
               "upload of client '%s' for round %llu ended: %s", p->name,
               (unsigned long long)p->key.round, message);
        fl_call_finish(p->call, status, message);
    }
}

static void reply(struct fl_push *p, bool accepted, uint64_t received)
{
    struct fl_wire_push_reply r = {.accepted = accepted, .received = received};
    struct fl_buf buf;
    int rv;

    detach(p);
    give_up_spool(p);
    p->state = PUSH_DEAD;
    if (p->call == NULL) {
        return;
    }
    fl_buf_init(&buf, 256);
    rv = fl_wire_push_reply_encode(&r, &buf);
    if (rv == FL_OK) {
        rv = fl_front_send(p->call, &buf);
    }
    fl_buf_done(&buf);
    if (rv == FL_OK) {
        fl_call_finish(p->call, FL_GRPC_OK, NULL);
    } else {
        fl_call_cancel(p->call);
    }
}

/* --- finishing --- */

static void tell_coordinator(struct fl_push *p, int code)
{
    struct fl_up *up = fl_up_new(code == FL_OK ? FL_UP_STORED : FL_UP_INVALID);

    if (up == NULL) {
        fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        return;
    }
    up->client = p->client;
    up->round = p->key.round;
    up->attempt = p->key.attempt;
    up->bytes = p->bytes;
    up->text = code != FL_OK ? fl_str_dup(fl_err_text(&p->err, code)) : NULL;
    p->state = PUSH_JUDGED;
    fl_front_up(p->front, up);
}

static void finish_work(void *arg)
{
    struct fl_push *p = arg;
    const struct fl_server_conf *conf = p->front->srv->conf;

    p->code = fl_spool_finish(p->spool, conf->layout, fl_options_float(conf->round, "norm_bound"),
                              conf->durability, &p->err);
}

/* Not the peer's fault: it may try again. */
static bool own_fault(int code)
{
    return code == FL_EIO || code == FL_ENOSPC || code == FL_ENOMEM || code == FL_EPERM;
}

static void finish_done(void *arg)
{
    struct fl_push *p = arg;

    p->jobs--;
    p->progress_ms = fl_clock_ms();
    if (p->state == PUSH_FINISHING) {
        if (own_fault(p->code)) {
            fail(p, FL_GRPC_UNAVAILABLE, fl_err_text(&p->err, p->code));
        } else {
            tell_coordinator(p, p->code);
        }
    }
    push_release(p);
}

static void maybe_finish(struct fl_push *p)
{
    if (p->state != PUSH_OPEN || p->jobs > 0) {
        return;
    }
    if (p->written == p->bytes) {
        p->state = PUSH_FINISHING;
        p->jobs++;
        if (fl_lane_submit(p->front->srv->io, finish_work, p->front->srv->net, finish_done, p) !=
            FL_OK) {
            p->jobs--;
            fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        }
    } else if (p->ended) {
        reply(p, /* accepted= */ false, p->written);
    }
}

/* --- chunks --- */

static void write_work(void *arg)
{
    struct chunk *c = arg;

    c->code = fl_spool_write(c->push->spool, c->chunk.offset, c->chunk.data, c->chunk.len, &c->err);
}

static void write_done(void *arg)
{
    struct chunk *c = arg;
    struct fl_push *p = c->push;

    p->jobs--;
    p->progress_ms = fl_clock_ms();
    if (c->code == FL_OK) {
        p->written = c->chunk.offset + c->chunk.len;
        if (p->call != NULL) {
            fl_call_consume(p->call, c->message_len);
        }
    } else if (p->state == PUSH_OPEN) {
        if (own_fault(c->code)) {
            fail(p, FL_GRPC_UNAVAILABLE, fl_err_text(&c->err, c->code));
        } else {
            fail(p, fl_grpc_status_from_err(c->code), fl_err_text(&c->err, c->code));
        }
    }
    free(c->memory);
    free(c);
    maybe_finish(p);
    push_release(p);
}

static void submit_chunk(struct fl_push *p, struct chunk *c)
{
    p->jobs++;
    if (fl_lane_submit(p->front->srv->io, write_work, p->front->srv->net, write_done, c) != FL_OK) {
        p->jobs--;
        free(c->memory);
        free(c);
        fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
    }
}

static void take_chunk(struct fl_push *p, struct chunk *c)
{
    struct fl_err err = {0};

    if (c->chunk.offset > p->bytes) {
        (void)fl_err_set(&err, FL_ERANGE, "offset %llu is past the header's %llu bytes",
                         (unsigned long long)c->chunk.offset, (unsigned long long)p->bytes);
    } else if (c->chunk.len > p->bytes || c->chunk.offset > p->bytes - c->chunk.len) {
        (void)fl_err_set(&err, FL_EINVAL, "more bytes than the header's %llu",
                         (unsigned long long)p->bytes);
    }
    if (err.code != FL_OK) {
        free(c->memory);
        free(c);
        fail(p, fl_grpc_status_from_err(err.code), err.msg);
        return;
    }
    if (p->state == PUSH_OPENING) {
        c->next = NULL;
        *p->held_end = c;
        p->held_end = &c->next;
        return;
    }
    submit_chunk(p, c);
}

/* --- opening --- */

static void open_work(void *arg)
{
    struct fl_push *p = arg;

    p->code = fl_spool_open(p->front->srv->state_dir, p->key.round, p->key.attempt, p->name,
                            p->parts, p->n_parts, &p->spool, &p->written, &p->err);
}

static void open_done(void *arg)
{
    struct fl_push *p = arg;

    p->jobs--;
    if (p->state == PUSH_OPENING) {
        if (p->code != FL_OK) {
            fail(p, FL_GRPC_UNAVAILABLE, fl_err_text(&p->err, p->code));
        } else {
            p->state = PUSH_OPEN;
            while (p->state == PUSH_OPEN && p->held != NULL) {
                struct chunk *c = p->held;

                p->held = c->next;
                submit_chunk(p, c);
            }
            p->held_end = &p->held;
            maybe_finish(p);
        }
    }
    push_release(p);
}

static void take_slot(struct fl_push *p, struct fl_slot_rec *slot)
{
    if (slot->push != NULL) {
        fail(slot->push, FL_GRPC_ABORTED, "a newer Push of the same client took over");
    }
    slot->push = p;
}

static void open_push(struct fl_push *p, const struct fl_wire_push_header *h,
                      struct fl_slot_rec *slot)
{
    take_slot(p, slot);
    p->state = PUSH_OPENING;
    p->bytes = h->bytes;
    p->jobs++;
    if (fl_lane_submit(p->front->srv->io, open_work, p->front->srv->net, open_done, p) != FL_OK) {
        p->jobs--;
        fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
    }
}

static void on_header(struct fl_push *p, const struct fl_wire_push_header *h)
{
    struct fl_attend *attend = fl_front_session(p->front, &h->session);
    struct fl_slot_rec *slot;
    struct fl_err err = {0};
    int rv;

    if (attend == NULL) {
        fail(p, FL_GRPC_UNAUTHENTICATED, "unknown session: attend first, or a newer one took over");
        return;
    }
    slot = &p->front->slots[attend->client];
    p->client = attend->client;
    (void)memcpy(p->name, attend->name, sizeof(p->name));
    p->key = (struct fl_session_key){h->round, h->attempt};
    if (slot->accepted.round == h->round && slot->accepted.attempt == h->attempt) {
        reply(p, /* accepted= */ true, h->bytes);
        return;
    }
    if (slot->grant.round != h->round || slot->grant.attempt != h->attempt || slot->units == NULL) {
        (void)fl_err_set(&err, FL_ESTATE,
                         "no upload was asked for round %llu attempt %u (asked: round %llu "
                         "attempt %u)",
                         (unsigned long long)h->round, h->attempt,
                         (unsigned long long)slot->grant.round, slot->grant.attempt);
        fail(p, FL_GRPC_FAILED_PRECONDITION, err.msg);
        return;
    }
    rv = fl_push_parts(p->front->srv->conf, h, slot->units, &p->parts, &err);
    p->n_parts = h->n_parts;
    if (rv != FL_OK) {
        /* A wrong shape never becomes right: the client leaves the round. */
        p->err = err;
        take_slot(p, slot);
        tell_coordinator(p, rv);
        return;
    }
    open_push(p, h, slot);
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_push *p = ctx;
    struct fl_wire_push_header header;
    struct fl_err err = {0};
    struct chunk *c;
    bool is_header = false;
    size_t at;
    int rv;

    p->progress_ms = fl_clock_ms();
    if (p->state == PUSH_DEAD || p->state == PUSH_JUDGED) {
        return true; /* The answer is on its way; what still comes is dropped. */
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        return true;
    }
    rv = fl_wire_push_decode(data, len, &is_header, &header, &c->chunk, &err);
    if (rv != FL_OK || is_header != (p->state == PUSH_HEADER)) {
        fail(p, rv != FL_OK ? fl_front_request_status(rv) : FL_GRPC_INVALID_ARGUMENT,
             rv != FL_OK ? fl_err_text(&err, rv) : "expected one header first, then chunks");
        if (rv == FL_OK && is_header) {
            fl_wire_push_header_done(&header);
        }
        free(c);
        return true;
    }
    if (is_header) {
        free(c);
        on_header(p, &header);
        fl_wire_push_header_done(&header);
        return true;
    }
    at = (size_t)(c->chunk.data - data);
    c->push = p;
    c->memory = fl_call_take(call);
    c->message_len = len;
    if (c->memory == NULL) {
        free(c);
        fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        return true;
    }
    c->chunk.data = c->memory + at; /* A short message was lent from the read buffer. */
    take_chunk(p, c);
    return p->state == PUSH_DEAD; /* Held until it is written. */
}

static void on_end(struct fl_call *call, void *ctx)
{
    struct fl_push *p = ctx;

    p->ended = true;
    if (p->state == PUSH_HEADER) {
        p->state = PUSH_DEAD;
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "expected a header");
        return;
    }
    maybe_finish(p);
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_push *p = ctx;

    (void)call;
    (void)status;
    (void)message;
    p->call = NULL;
    /* A file that is complete is still judged: the client asks PushStatus later. */
    if (p->state == PUSH_OPENING || p->state == PUSH_OPEN) {
        detach(p);
        give_up_spool(p);
        p->state = PUSH_DEAD;
    }
    push_release(p);
}

static const struct fl_call_handler push_handler = {
    .on_message = on_message, .on_end = on_end, .on_closed = on_closed};

void fl_push_start(struct fl_call *call, void *ctx)
{
    struct fl_front *front = ctx;
    struct fl_push *p = calloc(1, sizeof(*p));

    if (p == NULL) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    p->front = front;
    p->call = call;
    p->held_end = &p->held;
    p->progress_ms = fl_clock_ms();
    p->name[0] = '?';
    p->next = front->pushes;
    if (p->next != NULL) {
        p->next->prev = p;
    }
    front->pushes = p;
    fl_call_set_handler(call, &push_handler, p);
}

void fl_push_verdict(struct fl_front *front, const struct fl_down *down, int code)
{
    struct fl_slot_rec *slot = fl_front_slot(front, down->client);
    struct fl_push *p = slot != NULL ? slot->push : NULL;

    if (slot == NULL) {
        return;
    }
    if (code == FL_OK) {
        slot->accepted = (struct fl_session_key){down->round, down->attempt};
    }
    if (p == NULL || p->key.round != down->round || p->key.attempt != down->attempt) {
        return;
    }
    if (code == FL_OK) {
        reply(p, /* accepted= */ true, p->bytes);
    } else {
        fail(p, code == FL_EINVAL ? FL_GRPC_INVALID_ARGUMENT : FL_GRPC_FAILED_PRECONDITION,
             down->text != NULL ? down->text : "the round is over");
    }
    push_release(p);
}

bool fl_push_written(const struct fl_push *p, uint64_t round, uint32_t attempt,
                     uint64_t *ret_written)
{
    if (p == NULL || p->key.round != round || p->key.attempt != attempt) {
        return false;
    }
    *ret_written = p->written;
    return true;
}

void fl_push_round_closed(struct fl_front *front, uint64_t round, uint32_t attempt)
{
    struct fl_push *p;

    for (p = front->pushes; p != NULL; p = p->next) {
        if (p->state != PUSH_HEADER && p->state != PUSH_DEAD && p->key.round == round &&
            p->key.attempt == attempt)
        {
            fail(p, FL_GRPC_FAILED_PRECONDITION, "the round is over");
        }
    }
}

void fl_push_sweep(struct fl_front *front, uint64_t now_ms)
{
    struct fl_push *p;

    for (p = front->pushes; p != NULL; p = p->next) {
        bool waits_for_peer = p->state == PUSH_HEADER || (p->state == PUSH_OPEN && p->jobs == 0);

        if (p->call != NULL && waits_for_peer &&
            now_ms > p->progress_ms + front->srv->conf->rpc.idle_ms) {
            p->progress_ms = now_ms;
            fail(p, FL_GRPC_DEADLINE_EXCEEDED, "no bytes for limits.idle");
        }
    }
}
