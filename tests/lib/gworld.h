#ifndef FL_TESTS_GWORLD_H
#define FL_TESTS_GWORLD_H

/*
 * A gRPC server and its clients on one loop, for tests. Methods: Echo sends each message back and
 * ends with the client; Hold never ends; Known neither, and the server knows who it is; Members is
 * Echo for FL_WHO_CLIENT, Nobody for nobody. Everything that happens is recorded, and the loop
 * stops when a test's condition holds.
 */

#include <check.h>

#include "libfl/grpc/endpoint.h"

#define CLIENTS 200 /* at most */
#define WAITING 8
#define MIB     ((size_t)1024 * 1024)

struct world;

/* A call on either side. */
struct side {
    struct world *world;
    struct fl_call *call;
    struct fl_blob *blob; /* Client: each message that it sends. */
    unsigned to_send;
    struct {
        uint8_t *data;
        size_t len;
    } waiting[WAITING]; /* Server: echoes that did not fit the queue. */
    unsigned n_waiting;
    bool ended;
    unsigned messages;
    size_t bytes;
    bool intact; /* All messages were equal to `blob`. */
    bool hold;   /* The client sends, but does not end. */
    enum fl_call_bulk bulk;
    unsigned closed;
    enum fl_grpc_status status;
};

struct client {
    struct world *world;
    struct fl_grpc_channel *channel;
    struct side side;
    unsigned up;
    unsigned down;
    int code;
    char text[300];
    bool call_on_up;
    const char *path;
    uint64_t timeout_ms;
};

struct world {
    struct fl_loop *loop;
    struct fl_grpc_server *server;
    struct fl_rpc_limits limits;
    uint32_t max_connections, peer_connections;
    const char *known_as; /* name of the clients that call Known; NULL: each is another one */
    char address[64];
    struct client client[CLIENTS];
    unsigned n_clients;
    unsigned server_calls;
    unsigned server_closed_calls;
    enum fl_grpc_status server_status;
    unsigned server_closed;
    unsigned notices;
    char notice[300]; /* the last */
    /* As in struct fl_grpc_listen, with the world as its context. */
    uint32_t (*who)(void *ctx, const struct fl_identity *identity, const char **why);
    bool inside;
    bool (*done)(struct world *world);
};

extern const struct fl_grpc_channel_cbs gworld_channel_cbs;
/* Over every connection that the server accepts, and that a client makes; NULL: nothing. */
extern const struct fl_stream_filter *gworld_filter;
extern const struct fl_stream_filter *gworld_dial_filter;

/* Start the server. Fields of `world` that a test sets come before. */
void gworld_begin(struct world *world, const char *listen_on);
/* The next client connects; `address` is often world->address. */
struct client *gworld_connect(struct world *world, const char *address, uint32_t timeout_ms);
/* Begin the client's call, and send what it has to send. */
int gworld_call(struct client *client);
void gworld_send_more(struct side *side);
void gworld_close_server(struct world *world, uint32_t grace_ms);
/* Close what is open, free, and check that everything ended exactly once. */
void gworld_end(struct world *world);
/* Something happened: check that nothing of ours is on the stack, ask the condition. */
void gworld_happened(struct world *world);
struct fl_blob *gworld_blob(size_t len);

/* Conditions. */
bool gworld_calls_closed(struct world *world);
bool gworld_all_gone(struct world *world);

#endif
