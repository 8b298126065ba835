/*
 * Push calls: an update on its way into its spool file. Runs on the network loop; the file is
 * written on the io thread (spool_writer.h). Does not accept updates: the coordinator does.
 *
 *   HEADER ----> OPENING ----> STORING ----> FINISHING ----> JUDGED ----> ENDED
 *     |             |             |              ^             ^            ^
 *     |             +-> DRAINING <+              |             |            |
 *     |                    +---------------------+             |            |
 *     +--------------------------------------------------------+    (all of them)
 *
 *   HEADER     the first message is expected
 *   OPENING    the header fits the upload mask; the file is being opened, chunks may arrive already
 *   STORING    chunks arrive and are written; each returns its window credit when written
 *   DRAINING   the client has sent everything; the last chunks are being written
 *   FINISHING  all bytes are on disk and are being validated
 *   JUDGED     the update was posted to the coordinator; its verdict is the answer
 *   ENDED      the answer is queued; further messages are dropped
 *
 * Failures: a header without an upload mask, or of another shape: the call ends, or the coordinator
 * rejects the client; a chunk at another offset: OUT_OF_RANGE; the stream ends early or breaks: the
 * bytes on disk stay and PushStatus tells the client where to continue; an invalid value: the
 * coordinator rejects the client; a newer Push of the same client replaces this one; an error of
 * our disk: the client retries. The peer may disconnect at any time: a complete update is judged
 * anyway.
 */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/sm.h"
#include "server/network/spool_writer.h"
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

/* One Push call: an update being received. */
struct fl_push {
    struct fl_frontend *frontend;
    struct fl_list link;  /* all of the front */
    struct fl_call *call; /* NULL after it closed */
    struct fl_sm sm;
    uint32_t client; /* this and the next ones: from the header */
    char name[FL_NAME_MAX];
    struct fl_session_key key;
    uint64_t bytes;   /* of the manifest */
    uint64_t written; /* bytes in the file */
    /*
     * At the last fl_push_progress(): bytes that had arrived in this call, and bytes in the file.
     */
    uint64_t noted, noted_written;
    uint64_t whole;                 /* bytes that had arrived when the file last grew */
    struct fl_spool_writer *writer; /* NULL before OPENING, and after the file was closed */
};

bool fl_session_is(const struct fl_session_key *key, uint64_t round, uint32_t attempt)
{
    return key->round != 0 && key->round == round && key->attempt == attempt;
}

static void push_move(struct fl_push *p, enum push_state to)
{
    fl_sm_move(&p->sm, to);
    if (p->call != NULL && to != PUSH_ENDED) {
        /* A client that waits for the disk or the verdict is not idle. */
        fl_call_set_patient(p->call, to != PUSH_STORING);
    }
}

/* --- ending a call --- */

/* A call without a client has no slot; the comparison covers that. */
static void push_leave_slot(struct fl_push *p)
{
    if (p->client < p->frontend->n_slots && p->frontend->slots[p->client].push == p) {
        p->frontend->slots[p->client].push = NULL;
    }
}

static void push_end(struct fl_push *p)
{
    push_leave_slot(p);
    fl_spool_writer_close(p->writer);
    p->writer = NULL;
    push_move(p, PUSH_ENDED);
}

/* Free it when its call has closed, unless its complete update still has to be judged. */
static void push_release(struct fl_push *p)
{
    if (p->call != NULL || p->sm.state == PUSH_FINISHING) {
        return;
    }
    if (p->sm.state != PUSH_ENDED) {
        push_end(p); /* The slot must not point to a freed call. */
    }
    fl_list_remove(&p->link);
    free(p);
}

static void push_fail(struct fl_push *p, enum fl_grpc_status status, const char *message)
{
    if (p->sm.state == PUSH_ENDED) {
        return;
    }
    push_end(p);
    if (p->call != NULL) {
        fl_log_peer(p->frontend->setup.log, FL_LOG_WARNING, "push",
                    p->name[0] != '?' ? p->name : fl_call_peer(p->call),
                    "upload of client '%s' for round %llu ended: %s", p->name,
                    (unsigned long long)p->key.round, message);
        fl_frontend_finish(p->frontend, p->call, status, message);
    }
}

static struct fl_coord_msg *push_coord_msg(const struct fl_push *p, enum fl_coord_msg_type type,
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

/*
 * A failure of the server: the client retries, and the coordinator learns why the update is
 * missing.
 */
static void push_fail_server(struct fl_push *p, int code, const char *reason)
{
    /* Before its header an upload has no client and no round. */
    struct fl_coord_msg *up =
        p->key.round != 0 ? push_coord_msg(p, FL_COORD_MSG_UNSTORED, reason) : NULL;

    if (up != NULL) { /* Out of memory: the round's deadline is not extended. */
        up->code = code;
        fl_frontend_up(p->frontend, up);
    }
    push_fail(p, FL_GRPC_UNAVAILABLE, reason);
}

static void push_reply(struct fl_push *p, bool accepted, uint64_t received)
{
    struct fl_wire_push_reply r = {.accepted = accepted, .received = received};
    struct fl_buf buf;
    int rv;

    push_end(p);
    if (p->call == NULL) {
        return;
    }
    fl_buf_init(&buf, 256);
    rv = fl_wire_push_reply_encode(&r, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_frontend_send(p->call, &buf);
done:
    fl_buf_done(&buf);
    if (rv != FL_OK) {
        fl_call_cancel(p->call);
        return;
    }
    fl_call_finish(p->call, FL_GRPC_OK, NULL);
}

/* Post the update to the coordinator with its size, or the reason why it is invalid. */
static void push_judge(struct fl_push *p, int code, struct fl_norms *norms,
                       const struct fl_err *err)
{
    struct fl_coord_msg *up =
        push_coord_msg(p, code == FL_OK ? FL_COORD_MSG_STORED : FL_COORD_MSG_INVALID,
                       code == FL_OK ? NULL : fl_err_text(err, code));

    if (up == NULL) {
        push_fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        return;
    }
    up->code = code;
    if (code == FL_OK) {
        p->frontend->slots[p->client].stored = p->key;
        up->norms = *norms;
        norms->unit = NULL;
    }
    push_move(p, PUSH_JUDGED);
    fl_frontend_up(p->frontend, up);
}

/* --- the file --- */

/* Validate a complete update; of an incomplete one tell the client how many bytes are on disk. */
static void push_finish_or_report(struct fl_push *p)
{
    if ((p->sm.state != PUSH_STORING && p->sm.state != PUSH_DRAINING) ||
        !fl_spool_writer_idle(p->writer))
    {
        return;
    }
    if (p->written < p->bytes) {
        if (p->sm.state == PUSH_DRAINING) {
            push_reply(p, /* accepted= */ false, p->written);
        }
        return;
    }
    if (fl_spool_writer_finish(p->writer) != FL_OK) {
        push_fail_server(p, FL_ENOMEM, "out of memory");
        return;
    }
    push_move(p, PUSH_FINISHING);
}

static void push_opened(void *ctx, int code, uint64_t received, const struct fl_err *err)
{
    struct fl_push *p = ctx;

    if (code == FL_EINUSE) { /* An earlier Push of the client is still being written. */
        push_fail(p, FL_GRPC_UNAVAILABLE, fl_err_text(err, code));
    } else if (code != FL_OK) {
        push_fail_server(p, code, fl_err_text(err, code));
    } else {
        p->written = received;
        if (p->sm.state == PUSH_OPENING) {
            push_move(p, PUSH_STORING);
        }
        push_finish_or_report(p);
    }
    push_release(p);
}

static void push_appended(void *ctx, int code, uint64_t received, size_t memory_len,
                          const struct fl_err *err)
{
    struct fl_push *p = ctx;

    if (code == FL_OK) {
        p->written = received;
        fl_call_consume(p->call, memory_len);
        push_finish_or_report(p);
    } else if (code == FL_ERANGE || code == FL_ELIMIT)
    { /* A wrong offset or length is the peer's error. */
        push_fail(p, fl_grpc_status_from_err(code), fl_err_text(err, code));
    } else {
        push_fail_server(p, code, fl_err_text(err, code));
    }
    push_release(p);
}

static void push_finished(void *ctx, int code, struct fl_norms *norms, const struct fl_err *err)
{
    struct fl_push *p = ctx;

    if (code == FL_OK || fl_spool_is_bad(code)) {
        push_judge(p, code, norms, err);
    } else {
        push_fail_server(p, code, fl_err_text(err, code));
    }
    push_release(p);
}

static const struct fl_spool_writer_cbs writer_cbs = {
    .opened = push_opened, .appended = push_appended, .finished = push_finished};

/* --- the header --- */

static void push_take_slot(struct fl_push *p, struct fl_frontend_client *slot)
{
    struct fl_push *older = slot->push;

    if (older != NULL) {
        push_fail(older, FL_GRPC_ABORTED, "a newer Push of the same client took over");
        push_release(older);
    }
    slot->push = p;
}

/* The update is expected: open its file, or find that its shape is wrong. */
static void push_open_file(struct fl_push *p, const struct fl_wire_push_header *h,
                           const struct fl_frontend_client *slot)
{
    const struct fl_server_conf *conf = p->frontend->setup.conf;
    struct fl_spool_part *parts = NULL;
    struct fl_err err = {0};
    int rv = fl_sent_parts(fl_space_updates(conf->space, conf->layout), conf->strategy, h,
                           slot->units, &parts, &err);

    if (rv != FL_OK && rv != FL_ENOMEM) {
        push_judge(
            p, rv, NULL,
            &err); /* A wrong shape cannot be corrected: the coordinator rejects the client. */
        return;
    }
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_spool_writer_open(&(struct fl_spool_writer_setup){.frontend = p->frontend,
                                                              .key = &p->key,
                                                              .client = p->name,
                                                              .parts = parts,
                                                              .n_parts = h->n_parts,
                                                              .cbs = &writer_cbs,
                                                              .ctx = p},
                              &p->writer);
    if (rv != FL_OK) {
        goto fail;
    }
    push_move(p, PUSH_OPENING);
    return;
fail:
    free(parts);
    push_fail_server(p, FL_ENOMEM, "out of memory");
}

static void push_on_header(struct fl_push *p, const struct fl_wire_push_header *h)
{
    struct fl_control_stream *stream = fl_frontend_session(p->frontend, p->call, &h->session);
    struct fl_frontend_client *slot;
    struct fl_err err = {0};

    if (stream == NULL) {
        push_fail(p, FL_GRPC_UNAUTHENTICATED,
                  "unknown session: stream first, or a newer one took over");
        return;
    }
    slot = &p->frontend->slots[stream->client];
    fl_call_vouch(p->call, stream->name);
    p->client = stream->client;
    (void)memcpy(p->name, stream->name, sizeof(p->name));
    p->key = (struct fl_session_key){h->round, h->attempt};
    p->bytes = h->bytes;
    p->whole = fl_call_received(p->call);
    p->noted = p->whole; /* The header is not progress of the update. */
    if (fl_session_is(&slot->accepted, h->round, h->attempt)) {
        push_reply(p, /* accepted= */ true, h->bytes);
        return;
    }
    if (!fl_session_is(&slot->grant, h->round, h->attempt) || slot->units == NULL) {
        (void)fl_err_set(
            &err, FL_ESTATE,
            "no upload expected for round %llu attempt %u (expected: round %llu attempt %u)",
            (unsigned long long)h->round, h->attempt, (unsigned long long)slot->grant.round,
            slot->grant.attempt);
        push_fail(p, FL_GRPC_FAILED_PRECONDITION, err.msg);
        return;
    }
    push_take_slot(p, slot);
    if (fl_session_is(&slot->stored, h->round, h->attempt)) {
        /* A verdict is final; the answer to the first Push answers this one too. */
        p->written = h->bytes;
        push_move(p, PUSH_JUDGED);
        return;
    }
    push_open_file(p, h, slot);
}

/* --- chunks --- */

/*
 * Returns true when the chunk was consumed, false when its credit is withheld until it is written.
 */
static bool push_on_chunk(struct fl_push *p, const struct fl_wire_chunk *chunk,
                          const uint8_t *message, size_t len)
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
        push_fail(p, fl_grpc_status_from_err(err.code), err.msg);
        return true;
    }
    if (p->sm.state == PUSH_FINISHING) {
        return true; /* The update is complete. */
    }
    piece.memory = fl_call_take(p->call);
    if (piece.memory == NULL) {
        push_fail_server(p, FL_ENOMEM, "out of memory");
        return true;
    }
    /* A short message is borrowed from the read buffer. */
    piece.data = piece.memory + (chunk->data - message);
    if (fl_spool_writer_append(p->writer, &piece) != FL_OK) {
        free(piece.memory);
        push_fail_server(p, FL_ENOMEM, "out of memory");
        return true;
    }
    return false;
}

/* --- the call --- */

static bool push_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_push *p = ctx;
    struct fl_wire_push_header header;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    bool is_header = false;
    int rv;

    (void)call;
    if (p->sm.state == PUSH_ENDED || p->sm.state == PUSH_JUDGED) {
        return true; /* The answer is queued. */
    }
    rv = fl_wire_push_decode(data, len, &is_header, &header, &chunk, &err);
    if (rv == FL_ENOMEM) { /* Our own failure, not an error of the message. */
        push_fail_server(p, rv, fl_err_text(&err, rv));
        return true;
    }
    if (rv != FL_OK) {
        push_fail(p, fl_frontend_request_status(rv), fl_err_text(&err, rv));
        return true;
    }
    if (is_header != (p->sm.state == PUSH_HEADER)) {
        push_fail(p, FL_GRPC_INVALID_ARGUMENT, "expected one header first, then chunks");
    } else if (is_header) {
        push_on_header(p, &header);
    } else {
        return push_on_chunk(p, &chunk, data, len);
    }
    if (is_header) {
        fl_wire_push_header_done(&header);
    }
    return true;
}

static void push_on_end(struct fl_call *call, void *ctx)
{
    struct fl_push *p = ctx;

    if (p->sm.state == PUSH_HEADER) {
        push_end(p);
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "expected a header");
    } else if (fl_sm_can(&p->sm, PUSH_DRAINING)) {
        push_move(p, PUSH_DRAINING);
        push_finish_or_report(p);
    }
}

static void push_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                           const char *message)
{
    struct fl_push *p = ctx;

    (void)call;
    (void)status;
    (void)message;
    p->call = NULL;
    push_release(p); /* A complete file is still judged: the client calls PushStatus later. */
}

static const struct fl_call_handler push_handler = {
    .on_message = push_on_message, .on_end = push_on_end, .on_closed = push_on_closed};

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

/* --- messages from the coordinator --- */

void fl_push_withdraw(struct fl_frontend_client *slot, uint64_t round, uint32_t attempt)
{
    if (fl_session_is(&slot->grant, round, attempt)) {
        slot->grant = (struct fl_session_key){0};
    }
    if (fl_session_is(&slot->stored, round, attempt)) {
        slot->stored = (struct fl_session_key){0};
    }
}

void fl_push_verdict(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    const struct fl_wire_verdict *v = &down->command.u.verdict;
    bool accepted = down->command.type == FL_WIRE_ACCEPTED;
    struct fl_frontend_client *slot = fl_frontend_client_at(frontend, down->client);
    struct fl_push *p = slot != NULL ? slot->push : NULL;

    if (slot == NULL) {
        return;
    }
    if (accepted) {
        slot->accepted = (struct fl_session_key){v->round, v->attempt};
    } else {
        fl_push_withdraw(slot, v->round, v->attempt); /* The client has left the round. */
    }
    if (p == NULL || !fl_session_is(&p->key, v->round, v->attempt)) {
        return;
    }
    if (accepted) {
        push_reply(p, /* accepted= */ true, p->bytes);
    } else {
        push_fail(p,
                  down->command.type == FL_WIRE_REJECTED ? FL_GRPC_INVALID_ARGUMENT
                                                         : FL_GRPC_FAILED_PRECONDITION,
                  v->reason != NULL ? v->reason : "the round has ended");
    }
    push_release(p);
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

/* One message may take minutes on a slow link, so progress counts bytes, not messages. */
bool fl_push_progress(struct fl_push *push, struct fl_push_progress *ret)
{
    uint64_t arrived;
    uint64_t in_flight;
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
    /* Of an incomplete message at most one chunk counts as part of the update. */
    in_flight = arrived - push->whole < FL_WIRE_CHUNK ? arrived - push->whole : FL_WIRE_CHUNK;
    *ret = (struct fl_push_progress){.key = push->key,
                                     .bytes = push->written + in_flight,
                                     .held = judging || (writing && !grown)};
    return true;
}

void fl_push_round_closed(struct fl_frontend *frontend, uint64_t round, uint32_t attempt)
{
    struct fl_push *p, *next;

    FL_LIST_FOREACH_SAFE (p, next, &frontend->pushes, struct fl_push, link) {
        if (p->sm.state != PUSH_ENDED && fl_session_is(&p->key, round, attempt)) {
            push_fail(p, FL_GRPC_FAILED_PRECONDITION, "the round has ended");
            push_release(p);
        }
    }
}

void fl_push_release(struct fl_frontend *frontend, uint32_t client)
{
    struct fl_push *p = frontend->slots[client].push;

    if (p != NULL) {
        push_fail(p, FL_GRPC_ABORTED, "the client was forgotten by the operator");
        push_release(p);
    }
}
