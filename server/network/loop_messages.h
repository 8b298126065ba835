#ifndef FL_SERVER_NETWORK_LOOP_MESSAGES_H
#define FL_SERVER_NETWORK_LOOP_MESSAGES_H

/*
 * The messages between the network front end and the coordinator, each of which runs on a thread of
 * its own. A message is owned by the queue that it was posted to, and freed when it was handled.
 */

#include "libfl/wire/messages.h"
#include "server/auth/auth.h"
#include "server/store/store.h"
#include "server/work/payloads.h"

struct fl_admin_request;
struct fl_frontend;
struct fl_runtime;

/* Messages from the network front end to the coordinator. */
enum fl_coord_msg_type {
    FL_COORD_MSG_JOIN = 1, /* session, name, agent, samples */
    FL_COORD_MSG_LOST,     /* client */
    FL_COORD_MSG_ALIVE,    /* client: it is alive */
    FL_COORD_MSG_TAKEOVER, /* client, text: a newer session ended an older one: addresses */
    FL_COORD_MSG_RELEASED, /* client: answer to RELEASE, no further message has this number */
    FL_COORD_MSG_EVENT,   /* session, client, event: report, failed or evaluation; answered by TAKEN
                           */
    FL_COORD_MSG_SUMMARY, /* session, client, summary: the complete data summary */
    FL_COORD_MSG_STORED,  /* client, round, attempt, bytes */
    FL_COORD_MSG_INVALID, /* client, round, attempt, text */
    FL_COORD_MSG_UNSTORED, /* client, round, attempt, code, text: failure of the server */
    FL_COORD_MSG_PROGRESS, /* client, round, attempt: HEARD, and more of its upload has arrived */
    FL_COORD_MSG_FETCHES, /* client, round, bytes: it downloads the model of the round as so many */
    FL_COORD_MSG_EXCLUDE, /* text: name of a client whose certificate is revoked; keeps */
    FL_COORD_MSG_ADMIN,   /* request */
    FL_COORD_MSG_STOP     /* text: reason for the clients; answered by STOPPED */
};

struct fl_coord_msg {
    enum fl_coord_msg_type type;
    struct fl_runtime *runtime; /* set by fl_runtime_post() */
    uint64_t session;
    uint32_t client;
    uint64_t round;
    uint32_t attempt;
    uint64_t bytes;
    int code;
    enum fl_revoked_keeps keeps; /* EXCLUDE */
    bool silent;                 /* LOST: nothing was received for some heartbeats */
    bool held;                   /* PROGRESS: it waits for the server's disk or verdict */
    char *text;                  /* owned */
    struct fl_norms norms;       /* STORED; owned */
    struct fl_wire_event event;  /* owned; JOIN: the hello */
    struct fl_buf summary;       /* owned */
    struct fl_admin_request *request;
};

/* Instead of a client number: all clients may fetch the payload. */
#define FL_EVERYBODY UINT32_MAX

/* Messages from the coordinator to the network front end. */
enum fl_net_msg_type {
    FL_NET_MSG_JOINED = 1,  /* session -> client, text = its name; wants_summary */
    FL_NET_MSG_REFUSED,     /* session, text */
    FL_NET_MSG_RELEASE,     /* client, text: it was forgotten */
    FL_NET_MSG_BAD_SUMMARY, /* session, text; code: distinguishes errors of the client and of the
                             server */
    FL_NET_MSG_TAKEN,       /* session, client: one of its events was consumed */
    /* text = name, client or FL_EVERYBODY, round, bytes, digest, differences; no bytes: withdrawn
     */
    FL_NET_MSG_PAYLOAD,
    FL_NET_MSG_COMMAND, /* client or FL_EVERYBODY (Drain), command; it borrows units and text; it
                           owns central settings */
    FL_NET_MSG_ROUND_CLOSED,
    FL_NET_MSG_ADMIN,    /* the answer to request is complete */
    FL_NET_MSG_FINISHED, /* all rounds are done */
    FL_NET_MSG_NO_SPACE, /* disk full: recycled files have to be removed */
    FL_NET_MSG_STOPPED   /* drained, or stopped: the process ends */
};

struct fl_net_msg {
    enum fl_net_msg_type type;
    struct fl_frontend *frontend; /* set by fl_frontend_post() */
    uint64_t session;
    uint32_t client;
    uint64_t round;
    uint32_t attempt;
    struct fl_wire_command command;
    uint8_t *units; /* owned, [n_units] or NULL */
    char *text;     /* owned */
    int code;
    struct fl_bytes bytes;              /* owned */
    struct fl_differences *differences; /* a reference, or NULL */
    bool has_digest;
    uint8_t digest[FL_DIGEST_SIZE];
    bool wants_summary;
    bool personal_model; /* COMMAND: the Task also lists the client's personalized model */
    struct fl_admin_request *request;
};

struct fl_coord_msg *fl_coord_msg_new(enum fl_coord_msg_type type); /* NULL: out of memory */
void fl_coord_msg_free(struct fl_coord_msg *up);                    /* NULL is allowed */
void fl_net_msg_free(struct fl_net_msg *down);                      /* NULL is allowed */

#endif
