#ifndef FL_SERVERD_PUSH_IMPL_H
#define FL_SERVERD_PUSH_IMPL_H

/* What push.c (the call) and push_file.c (its spool file and its end) share. */

#include "server/daemon/front_impl.h"

enum fl__push_state {
    PUSH_HEADER,
    PUSH_OPENING,
    PUSH_OPEN,
    PUSH_FINISHING,
    PUSH_JUDGED,
    PUSH_DEAD
};

struct fl_push {
    struct fl_front *front;
    struct fl_push *next, *prev;
    struct fl_call *call; /* NULL after it closed */
    enum fl__push_state state;
    bool ended; /* the peer has half-closed */
    uint32_t client;
    char name[FL_NAME_MAX];
    struct fl_session_key key;
    struct fl_spool_part *parts;
    size_t n_parts;
    uint64_t bytes;                          /* of the manifest */
    uint64_t written;                        /* what the lane has written */
    unsigned jobs;                           /* on the lane */
    bool closing;                            /* the spool is given up */
    struct fl_spool *spool;                  /* touched on the lane only, after opening */
    struct fl__push_chunk *held, **held_end; /* chunks that came while the file was being opened */
    int code;
    struct fl_err err;
};

struct fl__push_chunk {
    struct fl__push_chunk *next;
    struct fl_push *push;
    uint8_t *memory; /* the message */
    size_t message_len;
    struct fl_wire_chunk chunk;
    int code;
    struct fl_err err;
};

/* Free it once its call is closed and no job of it is on the lane; safe to call any time. */
void fl__push_release(struct fl_push *p);
/* The slot of its client forgets it. */
void fl__push_detach(struct fl_push *p);
/* Give the spool file up: a newer Push of the same client can then open it. */
void fl__push_give_up(struct fl_push *p);
/* End it: with a status, or with an answer. */
void fl__push_fail(struct fl_push *p, enum fl_grpc_status status, const char *message);
void fl__push_reply(struct fl_push *p, bool accepted, uint64_t received);
/* Tell the coordinator that the update is there, or why it is none (p->err). */
void fl__push_judge(struct fl_push *p, int code);
/* The coordinator's verdict on (round, attempt) is its answer. */
void fl__push_await(struct fl_push *p);
/* Open the spool file on the lane, behind which held chunks are written. */
void fl__push_open(struct fl_push *p);
/* Write a chunk on the lane; takes it. */
void fl__push_write(struct fl_push *p, struct fl__push_chunk *c);
/* When nothing is on the lane: validate what is complete, or answer how much there is. */
void fl__push_maybe_finish(struct fl_push *p);

#endif
