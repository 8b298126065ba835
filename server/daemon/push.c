/*
 * Push calls: an update on its way into its spool file.
 *
 *   HEADER ----> OPENING ----> STORING ----> FINISHING ----> JUDGED ----> ENDED
 *     |             |             |              ^             ^            ^
 *     |             +-> DRAINING <+              |             |            |
 *     |                    +---------------------+             |            |
 *     +--------------------------------------------------------+    (all of them)
 *
 *   HEADER     the first message is to come
 *   OPENING    the header fits the grant; the file is being opened, chunks may come already
 *   STORING    chunks come and are written; each gives its window credit back when it is
 *   DRAINING   the client has sent all it will; what came of it is being written
 *   FINISHING  all bytes are there and are being validated
 *   JUDGED     the coordinator has been told; its verdict is the answer
 *   ENDED      the answer is on its way; what still comes is dropped
 *
 * Failure modes: a header without grant, or of another shape: the call ends, or the coordinator
 * rejects the client; a chunk at another offset: OUT_OF_RANGE; the stream ends early or breaks:
 * what is there stays and PushStatus tells where to go on; a bad value: the coordinator rejects the
 * client; a newer Push of the same client replaces this one; our disk: the client tries again.
 * A peer may hang up at any time: what is complete is judged all the same.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/sm.h"
#include "server/daemon/runtime.h"
#include "server/daemon/spool_writer.h"
#include "server/work/payload_sizes.h"

enum push_state {
    PUSH_HEADER,
    PUSH_OPENING,
    PUSH_STORING,
    PUSH_DRAINING,
    PUSH_FINISHING,
    PUSH_JUDGED,
    PUSH_ENDED
};

/* clang-format off */
static const struct fl_sm_state states[] = {
    [PUSH_HEADER]    = {"header",    FL_SM_TO(PUSH_OPENING) | FL_SM_TO(PUSH_JUDGED) | FL_SM_TO(PUSH_ENDED)},
    [PUSH_OPENING]   = {"opening",   FL_SM_TO(PUSH_STORING) | FL_SM_TO(PUSH_DRAINING) | FL_SM_TO(PUSH_ENDED)},
    [PUSH_STORING]   = {"storing",   FL_SM_TO(PUSH_DRAINING) | FL_SM_TO(PUSH_FINISHING) | FL_SM_TO(PUSH_ENDED)},
    [PUSH_DRAINING]  = {"draining",  FL_SM_TO(PUSH_FINISHING) | FL_SM_TO(PUSH_ENDED)},
    [PUSH_FINISHING] = {"finishing", FL_SM_TO(PUSH_JUDGED) | FL_SM_TO(PUSH_ENDED)},
    [PUSH_JUDGED]    = {"judged",    FL_SM_TO(PUSH_ENDED)},
    [PUSH_ENDED]     = {"ended",     0},
};
/* clang-format on */

/* An update that a client sends. */
struct fl_push {
    struct fl_frontend *frontend;
    struct fl_list link;  /* all of the front */
    struct fl_call *call; /* NULL after it closed */
    struct fl_sm sm;
    uint32_t client; /* of the header, as is what follows */
    char name[FL_NAME_MAX];
    struct fl_session_key key;
    uint64_t bytes;   /* of the manifest */
    uint64_t written; /* bytes in the file */
    /* At the last fl_push_progress(): bytes that had arrived in this call, and were in the file. */
    uint64_t noted, noted_written;
    uint64_t whole; /* bytes that had arrived when the file was last seen to have grown */
    struct fl_spool_writer *writer; /* NULL before OPENING, and when the file is given up */
};

bool fl_session_is(const struct fl_session_key *key, uint64_t round, uint32_t attempt)
{
    return key->round != 0 && key->round == round && key->attempt == attempt;
}

static void move(struct fl_push *p, enum push_state to)
{
    fl_sm_move(&p->sm, to);
    if (p->call != NULL && to != PUSH_ENDED) {
        /* Whose turn it is: a client that waits for the disk or the verdict is not idle. */
        fl_call_set_patient(p->call, to != PUSH_STORING);
    }
}

/* --- how it ends --- */

/* Before it has a client it has no slot; the comparison covers that. */
static void leave_slot(struct fl_push *p)
{
    if (p->client < p->frontend->n_slots && p->frontend->slots[p->client].push == p) {
        p->frontend->slots[p->client].push = NULL;
    }
}

static void end(struct fl_push *p)
{
    leave_slot(p);
    fl_spool_writer_close(p->writer);
    p->writer = NULL;
    move(p, PUSH_ENDED);
}

/* Free it when its call has closed, unless what is complete has still to be judged. */
static void release(struct fl_push *p)
{
    if (p->call != NULL || p->sm.state == PUSH_FINISHING) {
        return;
    }
    if (p->sm.state != PUSH_ENDED) {
        end(p); /* The slot must not remember what is gone. */
    }
    fl_list_remove(&p->link);
    free(p);
}

static void fail(struct fl_push *p, enum fl_grpc_status status, const char *message)
{
    if (p->sm.state == PUSH_ENDED) {
        return;
    }
    end(p);
    if (p->call != NULL) {
        fl_log_peer(p->frontend->srv->log, FL_LOG_WARNING, "push",
                    p->name[0] != '?' ? p->name : fl_call_peer(p->call),
                    "upload of client '%s' for round %llu ended: %s", p->name,
                    (unsigned long long)p->key.round, message);
        fl_frontend_finish(p->frontend, p->call, status, message);
    }
}

static struct fl_coord_msg *news(const struct fl_push *p, enum fl_coord_msg_type type,
                                 const char *text)
{
    struct fl_coord_msg *up = fl_coord_msg_new(type);

    if (up == NULL) {
        return NULL;
    }
    up->client = p->client;
    up->round = p->key.round;
    up->attempt = p->key.attempt;
    up->bytes = p->bytes;
    up->text = text != NULL ? fl_str_dup(text) : NULL;
    if (text != NULL && up->text == NULL) {
        fl_coord_msg_free(up);
        return NULL;
    }
    return up;
}

/* The server's own fault: the client retries, and the coordinator learns why the update is not in.
 */
static void fail_ours(struct fl_push *p, int code, const char *reason)
{
    /* Before its header an upload belongs to no client and no round. */
    struct fl_coord_msg *up = p->key.round != 0 ? news(p, FL_COORD_MSG_UNSTORED, reason) : NULL;

    if (up != NULL) { /* Without memory for that the round's deadline stays as it is. */
        up->code = code;
        fl_frontend_up(p->frontend, up);
    }
    fail(p, FL_GRPC_UNAVAILABLE, reason);
}

static void reply(struct fl_push *p, bool accepted, uint64_t received)
{
    struct fl_wire_push_reply r = {.accepted = accepted, .received = received};
    struct fl_buf buf;
    int rv;

    end(p);
    if (p->call == NULL) {
        return;
    }
    fl_buf_init(&buf, 256);
    rv = fl_wire_push_reply_encode(&r, &buf);
    if (rv == FL_OK) {
        rv = fl_frontend_send(p->call, &buf);
    }
    fl_buf_done(&buf);
    if (rv == FL_OK) {
        fl_call_finish(p->call, FL_GRPC_OK, NULL);
    } else {
        fl_call_cancel(p->call);
    }
}

/* Tell the coordinator that the update is there, of what size, or why it is none. */
static void judge(struct fl_push *p, int code, struct fl_norms *norms, const struct fl_err *err)
{
    struct fl_coord_msg *up = news(p, code == FL_OK ? FL_COORD_MSG_STORED : FL_COORD_MSG_INVALID,
                                   code == FL_OK ? NULL : fl_err_text(err, code));

    if (up == NULL) {
        fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        return;
    }
    up->code = code;
    if (code == FL_OK) {
        p->frontend->slots[p->client].stored = p->key;
        up->norms = *norms;
        norms->unit = NULL;
    }
    move(p, PUSH_JUDGED);
    fl_frontend_up(p->frontend, up);
}

/* --- the file --- */

/* What is complete is validated; of what will not become so the client is told how much there is.
 */
static void settle(struct fl_push *p)
{
    if ((p->sm.state != PUSH_STORING && p->sm.state != PUSH_DRAINING) ||
        !fl_spool_writer_idle(p->writer))
    {
        return;
    }
    if (p->written < p->bytes) {
        if (p->sm.state == PUSH_DRAINING) {
            reply(p, /* accepted= */ false, p->written);
        }
        return;
    }
    if (fl_spool_writer_finish(p->writer) != FL_OK) {
        fail_ours(p, FL_ENOMEM, "out of memory");
        return;
    }
    move(p, PUSH_FINISHING);
}

static void opened(void *ctx, int code, uint64_t received, const struct fl_err *err)
{
    struct fl_push *p = ctx;

    if (code == FL_EINUSE) { /* An earlier Push of it still writes. */
        fail(p, FL_GRPC_UNAVAILABLE, fl_err_text(err, code));
    } else if (code != FL_OK) {
        fail_ours(p, code, fl_err_text(err, code));
    } else {
        p->written = received;
        if (p->sm.state == PUSH_OPENING) {
            move(p, PUSH_STORING);
        }
        settle(p);
    }
    release(p);
}

static void appended(void *ctx, int code, uint64_t received, size_t memory_len,
                     const struct fl_err *err)
{
    struct fl_push *p = ctx;

    if (code == FL_OK) {
        p->written = received;
        fl_call_consume(p->call, memory_len);
        settle(p);
    } else if (code == FL_ERANGE || code == FL_ELIMIT) { /* An offset or a length is the peer's. */
        fail(p, fl_grpc_status_from_err(code), fl_err_text(err, code));
    } else {
        fail_ours(p, code, fl_err_text(err, code));
    }
    release(p);
}

static void finished(void *ctx, int code, struct fl_norms *norms, const struct fl_err *err)
{
    struct fl_push *p = ctx;

    if (code == FL_OK || fl_spool_is_bad(code)) {
        judge(p, code, norms, err);
    } else {
        fail_ours(p, code, fl_err_text(err, code));
    }
    release(p);
}

static const struct fl_spool_writer_cbs writer_cbs = {
    .opened = opened, .appended = appended, .finished = finished};

/* --- the header --- */

static void take_slot(struct fl_push *p, struct fl_slot_rec *slot)
{
    struct fl_push *older = slot->push;

    if (older != NULL) {
        fail(older, FL_GRPC_ABORTED, "a newer Push of the same client took over");
        release(older);
    }
    slot->push = p;
}

/* It is granted: its file is opened, or it is seen to be none. */
static void open_file(struct fl_push *p, const struct fl_wire_push_header *h,
                      const struct fl_slot_rec *slot)
{
    const struct fl_server_conf *conf = p->frontend->srv->conf;
    struct fl_spool_part *parts = NULL;
    struct fl_err err = {0};
    int rv = fl_sent_parts(conf->layout, conf->strategy, h, slot->units, &parts, &err);

    if (rv != FL_OK && rv != FL_ENOMEM) {
        judge(p, rv, NULL,
              &err); /* A wrong shape never becomes right: the client leaves the round. */
        return;
    }
    if (rv == FL_OK) {
        rv = fl_spool_writer_open(p->frontend, &p->key, p->name, parts, h->n_parts, &writer_cbs, p,
                                  &p->writer);
    }
    if (rv != FL_OK) {
        free(parts);
        fail_ours(p, FL_ENOMEM, "out of memory");
        return;
    }
    move(p, PUSH_OPENING);
}

static void on_header(struct fl_push *p, const struct fl_wire_push_header *h)
{
    struct fl_control_stream *attend = fl_frontend_session(p->frontend, p->call, &h->session);
    struct fl_slot_rec *slot;
    struct fl_err err = {0};

    if (attend == NULL) {
        fail(p, FL_GRPC_UNAUTHENTICATED, "unknown session: attend first, or a newer one took over");
        return;
    }
    slot = &p->frontend->slots[attend->client];
    fl_call_vouch(p->call, attend->name);
    p->client = attend->client;
    (void)memcpy(p->name, attend->name, sizeof(p->name));
    p->key = (struct fl_session_key){h->round, h->attempt};
    p->bytes = h->bytes;
    p->whole = fl_call_received(p->call);
    p->noted = p->whole; /* A header says nothing of the update's progress. */
    if (fl_session_is(&slot->accepted, h->round, h->attempt)) {
        reply(p, /* accepted= */ true, h->bytes);
        return;
    }
    if (!fl_session_is(&slot->grant, h->round, h->attempt) || slot->units == NULL) {
        (void)fl_err_set(&err, FL_ESTATE,
                         "no upload was asked for round %llu attempt %u (asked: round %llu "
                         "attempt %u)",
                         (unsigned long long)h->round, h->attempt,
                         (unsigned long long)slot->grant.round, slot->grant.attempt);
        fail(p, FL_GRPC_FAILED_PRECONDITION, err.msg);
        return;
    }
    take_slot(p, slot);
    if (fl_session_is(&slot->stored, h->round, h->attempt)) {
        /* What was judged once stays as it is; the answer to that is the answer to this. */
        p->written = h->bytes;
        move(p, PUSH_JUDGED);
        return;
    }
    open_file(p, h, slot);
}

/* --- chunks --- */

/* Returns true when the chunk is dealt with, false when it is held until it is written. */
static bool on_chunk(struct fl_push *p, const struct fl_wire_chunk *chunk, const uint8_t *message,
                     size_t len)
{
    struct fl_spool_piece piece = {.offset = chunk->offset, .len = chunk->len, .memory_len = len};
    struct fl_err err = {0};

    if (chunk->offset > p->bytes) {
        (void)fl_err_set(&err, FL_ERANGE, "offset %llu is past the header's %llu bytes",
                         (unsigned long long)chunk->offset, (unsigned long long)p->bytes);
    } else if (chunk->len > p->bytes - chunk->offset) {
        (void)fl_err_set(&err, FL_EINVAL, "more bytes than the header's %llu",
                         (unsigned long long)p->bytes);
    }
    if (err.code != FL_OK) {
        fail(p, fl_grpc_status_from_err(err.code), err.msg);
        return true;
    }
    if (p->sm.state == PUSH_FINISHING) {
        return true; /* All of it is there. */
    }
    piece.memory = fl_call_take(p->call);
    if (piece.memory == NULL) {
        fail_ours(p, FL_ENOMEM, "out of memory");
        return true;
    }
    /* A short message was lent from the read buffer. */
    piece.data = piece.memory + (chunk->data - message);
    if (fl_spool_writer_append(p->writer, &piece) != FL_OK) {
        free(piece.memory);
        fail_ours(p, FL_ENOMEM, "out of memory");
        return true;
    }
    return false;
}

/* --- the call --- */

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_push *p = ctx;
    struct fl_wire_push_header header;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    bool is_header = false;
    int rv;

    (void)call;
    if (p->sm.state == PUSH_ENDED || p->sm.state == PUSH_JUDGED) {
        return true; /* The answer is on its way. */
    }
    rv = fl_wire_push_decode(data, len, &is_header, &header, &chunk, &err);
    if (rv == FL_ENOMEM) { /* This says nothing about the message. */
        fail_ours(p, rv, fl_err_text(&err, rv));
        return true;
    }
    if (rv != FL_OK) {
        fail(p, fl_frontend_request_status(rv), fl_err_text(&err, rv));
        return true;
    }
    if (is_header != (p->sm.state == PUSH_HEADER)) {
        fail(p, FL_GRPC_INVALID_ARGUMENT, "expected one header first, then chunks");
    } else if (is_header) {
        on_header(p, &header);
    } else {
        return on_chunk(p, &chunk, data, len);
    }
    if (is_header) {
        fl_wire_push_header_done(&header);
    }
    return true;
}

static void on_end(struct fl_call *call, void *ctx)
{
    struct fl_push *p = ctx;

    if (p->sm.state == PUSH_HEADER) {
        end(p);
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "expected a header");
    } else if (fl_sm_can(&p->sm, PUSH_DRAINING)) {
        move(p, PUSH_DRAINING);
        settle(p);
    }
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_push *p = ctx;

    (void)call;
    (void)status;
    (void)message;
    p->call = NULL;
    release(p); /* A file that is complete is still judged: the client asks PushStatus later. */
}

static const struct fl_call_handler push_handler = {
    .on_message = on_message, .on_end = on_end, .on_closed = on_closed};

void fl_push_start(struct fl_call *call, void *ctx)
{
    struct fl_frontend *frontend = ctx;
    struct fl_push *p = calloc(1, sizeof(*p));

    if (p == NULL) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    fl_sm_init(&p->sm, states, PUSH_ENDED + 1, PUSH_HEADER);
    p->frontend = frontend;
    p->call = call;
    p->name[0] = '?';
    fl_list_prepend(&frontend->pushes, &p->link);
    fl_call_set_handler(call, &push_handler, p);
}

/* --- what the coordinator says --- */

void fl_push_withdraw(struct fl_slot_rec *slot, uint64_t round, uint32_t attempt)
{
    if (fl_session_is(&slot->grant, round, attempt)) {
        slot->grant = (struct fl_session_key){0};
    }
    if (fl_session_is(&slot->stored, round, attempt)) {
        slot->stored = (struct fl_session_key){0};
    }
}

void fl_push_verdict(struct fl_frontend *frontend, const struct fl_net_msg *down, int code)
{
    struct fl_slot_rec *slot = fl_frontend_slot(frontend, down->client);
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
        reply(p, /* accepted= */ true, p->bytes);
    } else {
        fail(p, code == FL_EINVAL ? FL_GRPC_INVALID_ARGUMENT : FL_GRPC_FAILED_PRECONDITION,
             down->text != NULL ? down->text : "the round is over");
    }
    release(p);
}

bool fl_push_written(const struct fl_push *push, uint64_t round, uint32_t attempt,
                     uint64_t *ret_written)
{
    if (push == NULL || !fl_session_is(&push->key, round, attempt)) {
        return false;
    }
    *ret_written = push->written;
    return true;
}

/* A message may take a slow link minutes: bytes count, not messages. */
bool fl_push_progress(struct fl_push *push, struct fl_push_progress *ret)
{
    uint64_t arrived;
    uint64_t begun;
    bool judging;
    bool writing;
    bool grown;

    if (push == NULL || push->call == NULL || push->key.round == 0) {
        return false;
    }
    arrived = fl_call_received(push->call);
    judging = push->sm.state == PUSH_FINISHING || push->sm.state == PUSH_JUDGED;
    writing = push->writer != NULL && !fl_spool_writer_idle(push->writer);
    if (arrived == push->noted && !judging && !writing) {
        return false;
    }
    grown = push->written != push->noted_written;
    push->noted = arrived;
    push->noted_written = push->written;
    push->whole = grown ? arrived : push->whole;
    /* Of a message that is not whole no more can be the update's than a chunk has. */
    begun = arrived - push->whole < FL_WIRE_CHUNK ? arrived - push->whole : FL_WIRE_CHUNK;
    *ret = (struct fl_push_progress){
        .key = push->key, .bytes = push->written + begun, .held = judging || (writing && !grown)};
    return true;
}

void fl_push_round_closed(struct fl_frontend *frontend, uint64_t round, uint32_t attempt)
{
    struct fl_push *p, *next;

    FL_LIST_FOREACH_SAFE (p, next, &frontend->pushes, struct fl_push, link) {
        if (p->sm.state != PUSH_ENDED && fl_session_is(&p->key, round, attempt)) {
            fail(p, FL_GRPC_FAILED_PRECONDITION, "the round is over");
            release(p);
        }
    }
}

void fl_push_release(struct fl_frontend *frontend, uint32_t client)
{
    struct fl_push *p = frontend->slots[client].push;

    if (p != NULL) {
        fail(p, FL_GRPC_ABORTED, "the client is forgotten");
        release(p);
    }
}
