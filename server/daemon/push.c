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
 * push_file.c has the file and the end of it.
 */

#include <stdlib.h>
#include <string.h>

#include "server/daemon/push_impl.h"

static void take_chunk(struct fl_push *p, struct fl__push_chunk *c)
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
        fl__push_fail(p, fl_grpc_status_from_err(err.code), err.msg);
        return;
    }
    if (p->state == PUSH_OPENING) {
        c->next = NULL;
        *p->held_end = c;
        p->held_end = &c->next;
        return;
    }
    fl__push_write(p, c);
}

static void take_slot(struct fl_push *p, struct fl_slot_rec *slot)
{
    if (slot->push != NULL) {
        fl__push_fail(slot->push, FL_GRPC_ABORTED, "a newer Push of the same client took over");
    }
    slot->push = p;
}

static void open_push(struct fl_push *p, const struct fl_wire_push_header *h,
                      struct fl_slot_rec *slot)
{
    take_slot(p, slot);
    p->bytes = h->bytes;
    fl__push_open(p);
}

bool fl_session_is(const struct fl_session_key *key, uint64_t round, uint32_t attempt)
{
    return key->round != 0 && key->round == round && key->attempt == attempt;
}

static void on_header(struct fl_push *p, const struct fl_wire_push_header *h)
{
    struct fl_attend *attend = fl_front_session(p->front, &h->session);
    struct fl_slot_rec *slot;
    struct fl_err err = {0};
    int rv;

    if (attend == NULL) {
        fl__push_fail(p, FL_GRPC_UNAUTHENTICATED,
                      "unknown session: attend first, or a newer one took over");
        return;
    }
    slot = &p->front->slots[attend->client];
    fl_call_vouch(p->call);
    p->client = attend->client;
    (void)memcpy(p->name, attend->name, sizeof(p->name));
    p->key = (struct fl_session_key){h->round, h->attempt};
    if (fl_session_is(&slot->accepted, h->round, h->attempt)) {
        fl__push_reply(p, /* accepted= */ true, h->bytes);
        return;
    }
    if (!fl_session_is(&slot->grant, h->round, h->attempt) || slot->units == NULL) {
        (void)fl_err_set(&err, FL_ESTATE,
                         "no upload was asked for round %llu attempt %u (asked: round %llu "
                         "attempt %u)",
                         (unsigned long long)h->round, h->attempt,
                         (unsigned long long)slot->grant.round, slot->grant.attempt);
        fl__push_fail(p, FL_GRPC_FAILED_PRECONDITION, err.msg);
        return;
    }
    if (fl_session_is(&slot->stored, h->round, h->attempt)) {
        /* What was judged once stays as it is; the answer to that is the answer to this. */
        take_slot(p, slot);
        p->bytes = h->bytes;
        p->written = h->bytes;
        fl__push_await(p);
        return;
    }
    rv = fl_push_parts(p->front->srv->conf, h, slot->units, &p->parts, &err);
    p->n_parts = h->n_parts;
    if (rv != FL_OK) {
        /* A wrong shape never becomes right: the client leaves the round. */
        p->err = err;
        take_slot(p, slot);
        fl__push_judge(p, rv);
        return;
    }
    open_push(p, h, slot);
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_push *p = ctx;
    struct fl_wire_push_header header;
    struct fl_err err = {0};
    struct fl__push_chunk *c;
    bool is_header = false;
    size_t at;
    int rv;

    if (p->state == PUSH_DEAD || p->state == PUSH_JUDGED) {
        return true; /* The answer is on its way; what still comes is dropped. */
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        fl__push_fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        return true;
    }
    rv = fl_wire_push_decode(data, len, &is_header, &header, &c->chunk, &err);
    if (rv != FL_OK || is_header != (p->state == PUSH_HEADER)) {
        fl__push_fail(p, rv != FL_OK ? fl_front_request_status(rv) : FL_GRPC_INVALID_ARGUMENT,
                      rv != FL_OK ? fl_err_text(&err, rv)
                                  : "expected one header first, then chunks");
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
        fl__push_fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
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
    fl__push_maybe_finish(p);
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
        fl__push_detach(p);
        fl__push_give_up(p);
        p->state = PUSH_DEAD;
    }
    fl__push_release(p);
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
    p->name[0] = '?';
    p->next = front->pushes;
    if (p->next != NULL) {
        p->next->prev = p;
    }
    front->pushes = p;
    fl_call_set_handler(call, &push_handler, p);
}

void fl_push_withdraw(struct fl_slot_rec *slot, uint64_t round, uint32_t attempt)
{
    if (fl_session_is(&slot->grant, round, attempt)) {
        slot->grant = (struct fl_session_key){0};
    }
    if (fl_session_is(&slot->stored, round, attempt)) {
        slot->stored = (struct fl_session_key){0};
    }
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
    } else {
        fl_push_withdraw(slot, down->round, down->attempt); /* It is out of the round. */
    }
    if (p == NULL || !fl_session_is(&p->key, down->round, down->attempt)) {
        return;
    }
    if (code == FL_OK) {
        fl__push_reply(p, /* accepted= */ true, p->bytes);
    } else {
        fl__push_fail(p, code == FL_EINVAL ? FL_GRPC_INVALID_ARGUMENT : FL_GRPC_FAILED_PRECONDITION,
                      down->text != NULL ? down->text : "the round is over");
    }
    fl__push_release(p);
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
            fl__push_fail(p, FL_GRPC_FAILED_PRECONDITION, "the round is over");
        }
    }
}

void fl_push_release(struct fl_front *front, uint32_t client)
{
    struct fl_push *p = front->slots[client].push;

    if (p != NULL) {
        front->slots[client].push = NULL;
        fl__push_fail(p, FL_GRPC_ABORTED, "the client is forgotten");
    }
}
