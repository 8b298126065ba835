/*
 * The file side of a Push: its jobs on the io lane, what follows from them, and its end.
 * The object lives until the call is closed and no job of it is on the lane.
 */

#include <stdlib.h>

#include "server/daemon/push_impl.h"

/* Whose turn it is: a client that waits for the disk or the verdict is not idle. */
static void our_turn(struct fl_push *p, bool ours)
{
    if (p->call != NULL) {
        fl_call_set_patient(p->call, ours);
    }
}

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
    fl__push_release(p);
}

/*
 * Give the spool file up, behind the jobs that are on the lane and before any that come
 * later: a newer Push of the same client can then open it.
 */
void fl__push_give_up(struct fl_push *p)
{
    int rv;

    if (p->closing || (p->state != PUSH_OPENING && p->state != PUSH_OPEN &&
                       p->state != PUSH_FINISHING && p->state != PUSH_JUDGED))
    {
        return;
    }
    p->closing = true;
    p->jobs++;
    rv = fl_front_on_disk(p->front, close_spool, spool_closed, p);
    if (rv != FL_OK) {
        p->jobs--; /* It stays open as long as the process: no memory is left anyway. */
    }
    if (rv == FL_ECLOSED) { /* But while all ends, nothing is before it any more. */
        close_spool(p);
    }
}

/* Before it has a client it has no slot; the comparison covers that. */
void fl__push_detach(struct fl_push *p)
{
    if (p->client < p->front->n_slots && p->front->slots[p->client].push == p) {
        p->front->slots[p->client].push = NULL;
    }
}

void fl__push_release(struct fl_push *p)
{
    struct fl__push_chunk *c;

    if (p->call != NULL || p->jobs > 0) {
        return;
    }
    /* A peer may hang up while its upload is judged: the slot must not remember what is gone. */
    fl__push_detach(p);
    fl__push_give_up(p);
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

void fl__push_fail(struct fl_push *p, enum fl_grpc_status status, const char *message)
{
    fl__push_detach(p);
    fl__push_give_up(p);
    p->state = PUSH_DEAD;
    if (p->call != NULL) {
        fl_log_peer(p->front->srv->log, FL_LOG_WARNING, "push",
                    p->name[0] != '?' ? p->name : fl_call_peer(p->call),
                    "upload of client '%s' for round %llu ended: %s", p->name,
                    (unsigned long long)p->key.round, message);
        fl_call_finish(p->call, status, message);
    }
}

void fl__push_reply(struct fl_push *p, bool accepted, uint64_t received)
{
    struct fl_wire_push_reply r = {.accepted = accepted, .received = received};
    struct fl_buf buf;
    int rv;

    fl__push_detach(p);
    fl__push_give_up(p);
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

/* What failed is ours: its client tries again, and the coordinator hears why it is not in yet. */
static void fail_ours(struct fl_push *p, const char *reason)
{
    struct fl_up *up = fl_up_new(FL_UP_UNSTORED);

    if (up != NULL) { /* Else the round's deadline stays as it is. */
        up->client = p->client;
        up->round = p->key.round;
        up->attempt = p->key.attempt;
        up->text = fl_str_dup(reason);
        fl_front_up(p->front, up);
    }
    fl__push_fail(p, FL_GRPC_UNAVAILABLE, reason);
}

/* --- finishing --- */

void fl__push_await(struct fl_push *p)
{
    p->state = PUSH_JUDGED;
    our_turn(p, true);
}

void fl__push_judge(struct fl_push *p, int code)
{
    struct fl_up *up = fl_up_new(code == FL_OK ? FL_UP_STORED : FL_UP_INVALID);

    if (up == NULL) {
        fl__push_fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        return;
    }
    up->client = p->client;
    up->round = p->key.round;
    up->attempt = p->key.attempt;
    up->bytes = p->bytes;
    up->text = code != FL_OK ? fl_str_dup(fl_err_text(&p->err, code)) : NULL;
    if (code == FL_OK) {
        p->front->slots[p->client].stored = p->key;
    }
    fl__push_await(p);
    fl_front_up(p->front, up);
}

static void finish_work(void *arg)
{
    struct fl_push *p = arg;
    const struct fl_server_conf *conf = p->front->srv->conf;

    p->code = fl_spool_finish(p->spool, conf->layout, fl_options_float(conf->round, "norm_bound"),
                              conf->durability, &p->err);
}

static void finish_done(void *arg)
{
    struct fl_push *p = arg;

    p->jobs--;
    if (p->state == PUSH_FINISHING) {
        if (p->code == FL_OK || fl_spool_is_bad(p->code)) {
            fl__push_judge(p, p->code);
        } else {
            fail_ours(p, fl_err_text(&p->err, p->code));
        }
    }
    fl__push_release(p);
}

void fl__push_maybe_finish(struct fl_push *p)
{
    if (p->state != PUSH_OPEN || p->jobs > 0) {
        return;
    }
    if (p->written == p->bytes) {
        p->state = PUSH_FINISHING;
        our_turn(p, true);
        p->jobs++;
        if (fl_front_on_disk(p->front, finish_work, finish_done, p) != FL_OK) {
            p->jobs--;
            fl__push_fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
        }
    } else if (p->ended) {
        fl__push_reply(p, /* accepted= */ false, p->written);
    }
}

/* --- chunks --- */

static void write_work(void *arg)
{
    struct fl__push_chunk *c = arg;

    c->code = fl_spool_write(c->push->spool, c->chunk.offset, c->chunk.data, c->chunk.len, &c->err);
}

static void write_done(void *arg)
{
    struct fl__push_chunk *c = arg;
    struct fl_push *p = c->push;

    p->jobs--;
    if (c->code == FL_OK) {
        p->written = c->chunk.offset + c->chunk.len;
        if (p->call != NULL) {
            fl_call_consume(p->call, c->message_len);
        }
    } else if (p->state == PUSH_OPEN) {
        /* An offset or a length is the peer's; all else is ours, and it may try again. */
        if (c->code == FL_ERANGE || c->code == FL_ELIMIT) {
            fl__push_fail(p, fl_grpc_status_from_err(c->code), fl_err_text(&c->err, c->code));
        } else {
            fail_ours(p, fl_err_text(&c->err, c->code));
        }
    }
    free(c->memory);
    free(c);
    fl__push_maybe_finish(p);
    fl__push_release(p);
}

void fl__push_write(struct fl_push *p, struct fl__push_chunk *c)
{
    p->jobs++;
    if (fl_front_on_disk(p->front, write_work, write_done, c) != FL_OK) {
        p->jobs--;
        free(c->memory);
        free(c);
        fl__push_fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
    }
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
        if (p->code == FL_EINUSE) { /* An earlier Push of it still writes. */
            fl__push_fail(p, FL_GRPC_UNAVAILABLE, fl_err_text(&p->err, p->code));
        } else if (p->code != FL_OK) {
            fail_ours(p, fl_err_text(&p->err, p->code));
        } else {
            p->state = PUSH_OPEN;
            our_turn(p, false);
            while (p->state == PUSH_OPEN && p->held != NULL) {
                struct fl__push_chunk *c = p->held;

                p->held = c->next;
                fl__push_write(p, c);
            }
            p->held_end = &p->held;
            fl__push_maybe_finish(p);
        }
    }
    fl__push_release(p);
}

void fl__push_open(struct fl_push *p)
{
    p->state = PUSH_OPENING;
    our_turn(p, true);
    p->jobs++;
    if (fl_front_on_disk(p->front, open_work, open_done, p) != FL_OK) {
        p->jobs--;
        fl__push_fail(p, FL_GRPC_UNAVAILABLE, "out of memory");
    }
}
