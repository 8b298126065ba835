#ifndef FL_SERVER_ADMIN_ADMIN_REQUEST_H
#define FL_SERVER_ADMIN_ADMIN_REQUEST_H

/*
 * A call of an operator that the coordinator answers. The network loop decodes it and posts it in
 * FL_COORD_MSG_ADMIN; the coordinator thread fills in the answer and posts it back in
 * FL_NET_MSG_ADMIN; the network loop sends the answer and frees the request.
 */

#include <stdatomic.h>

#include "libfl/wire/verbs.h"
#include "libfl/wire/wire_admin.h"
#include "server/admin/replies.h"

struct fl_admin;
struct fl_blob;
struct fl_coord_figures;
struct fl_call;
struct fl_runtime;
struct fl_timer;

/* Part of a list, for a request of the HTTP port. */
struct fl_admin_page {
    uint32_t most;           /* entries; 0: all, as flctl asks */
    uint64_t before;         /* ROUNDS: below this round, newest first */
    char after[FL_NAME_MAX]; /* CLIENTS: behind this name, by name */
    char name[FL_NAME_MAX];  /* CLIENTS: this one only; "": not set */
    const char *state;       /* CLIENTS: in this state; NULL: any */
    bool more;               /* answer: there are further entries; */
    char last[FL_NAME_MAX];  /* CLIENTS: they follow this name */
};

/* One admin call: the coordinator fills in the answer, the network front end sends it. */
struct fl_admin_request {
    enum fl_verb verb;
    struct fl_admin *admin;     /* network front end only */
    struct fl_runtime *runtime; /* coordinator only */
    struct fl_call *call;       /* network front end only; NULL when the peer disconnected */
    struct fl_timer
        *timer;    /* network front end only, while `call` is set: checks for a disk stall */
    size_t seen;   /* network front end only: `n_replies` when the timer last ran */
    bool asked;    /* network front end only: the request was posted to the coordinator */
    bool answered; /* network front end only */
    bool known;    /* network front end only: `who` is valid */
    struct fl_identity who;
    struct fl_wire_list_rounds list;              /* ROUNDS */
    struct fl_wire_list_participations parts;     /* PARTICIPATIONS */
    uint64_t round;                               /* EXPORT, PIN, UNPIN, ROLLBACK */
    bool force;                                   /* ROLLBACK */
    struct fl_wire_control control;               /* verbs on CORE */
    struct fl_wire_client_control client_control; /* those about one client */
    struct fl_wire_label_client label;            /* CLIENTS_LABEL */
    struct fl_wire_schedule_client schedule;      /* CLIENTS_SCHEDULE */
    struct fl_wire_limit_client limit;            /* CLIENTS_LIMIT */
    struct fl_admin_request *next_command;        /* next in the queue; coordinator only */
    struct fl_wire_forget forget;
    char drop[FL_NAME_MAX]; /* SUMMARIES_DROP: the client's name */
    struct fl_wire_forgotten forgotten;
    size_t n_waits; /* CLIENTS_FORGET: number of pending writes */
    /*
     * A request of the HTTP port, which has no call: the coordinator calls it on its thread with
     * the complete answer, and it takes the request. NULL: the answer goes to the network loop.
     */
    void (*done)(struct fl_admin_request *request);
    void *done_ctx;
    struct fl_admin_page page;        /* HTTP port only */
    struct fl_coord_figures *figures; /* HTTP port only: filled in instead of the verb */
    struct fl_replies replies;        /* the answer */
    atomic_size_t n_replies;          /* messages of the answer so far; any thread */
    struct fl_blob *model;            /* EXPORT */
    uint64_t model_round;
    uint64_t offset; /* bytes of the export sent so far */
    struct fl_buf header;
    int code; /* FL_OK, or the error */
    struct fl_err err;
};

/* A request without a call. NULL: out of memory. */
struct fl_admin_request *fl_admin_request_new(enum fl_verb verb);
void fl_admin_request_free(struct fl_admin_request *request); /* any thread */

/* Append one encoded message to `replies`. */
FL_MUST_CHECK int fl_admin_reply(struct fl_admin_request *request, const struct fl_buf *message);

/* Encode with `encode(item)` and append to the answer. */
#define FL_ADMIN_REPLY(request, encode, item)                 \
    do {                                                      \
        struct fl_buf buf_;                                   \
                                                              \
        fl_buf_init(&buf_, FL_WIRE_MAX_CONTROL);              \
        (request)->code = encode(item, &buf_);                \
        if ((request)->code == FL_OK) {                       \
            (request)->code = fl_admin_reply(request, &buf_); \
        }                                                     \
        fl_buf_done(&buf_);                                   \
    } while (0)

#endif
