#ifndef FL_LIB_ENROL_SERVER_H
#define FL_LIB_ENROL_SERVER_H

/*
 * A server on a real socket with TLS that summaries Identity/Join and Renew, and an Attend that
 * only stays open, on the loop of the test.
 */

#include "libfl/grpc/endpoint.h"
#include "libfl/tls/tls.h"
#include "tests/lib/identity_rig.h"

enum enrol_mode {
    ENROL_ANSWERS,
    ENROL_LOSES,   /* signs, and the reply never comes */
    ENROL_IS_BUSY, /* RESOURCE_EXHAUSTED */
    ENROL_DENIES,  /* PERMISSION_DENIED */
    ENROL_EXPIRED  /* FAILED_PRECONDITION */
};

struct enrol_server {
    struct rig_identity *rig;
    struct fl_loop *loop;
    struct fl_tls *tls;
    struct fl_stream_filter filter;
    struct fl_grpc_server *server;
    struct fl_rpc_method methods[4];
    char address[64];
    enum enrol_mode mode;
    unsigned modes_left;         /* calls until it answers; 0: it stays so */
    int64_t validity_s, begun_s; /* of what it issues: for so long, begun so long ago */
    unsigned joins, renewals, attends;
    unsigned attending; /* open now */
    bool bound;         /* to `key` by a Join */
    uint8_t key[FL_KEY_HASH];
    struct fl_wire_joined last;
    void (*after)(void *ctx); /* a Renew or an Attend came; may be NULL */
    void *after_ctx;
};

/* Shows the certificate of `pki`, which may be another one than the rig's. */
void enrol_server_begin(struct enrol_server *s, struct rig_identity *rig, const struct rig_pki *pki,
                        struct fl_loop *loop);
void enrol_server_end(struct enrol_server *s);
int64_t enrol_server_now(void);

#endif
