/* The identity and class of a connection's peer, and the methods that it may call. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/rpc/call_impl.h"

int fl_rpc_conn_identify(struct fl_rpc_conn *conn, uint32_t who, const char *why,
                         const struct fl_identity *identity)
{
    struct fl_identity *copy = identity != NULL ? malloc(sizeof(*copy)) : NULL;
    char *text = why != NULL ? fl_str_dup(why) : NULL;

    if ((identity != NULL && copy == NULL) || (why != NULL && text == NULL)) {
        free(copy);
        free(text);
        return FL_ENOMEM;
    }
    if (copy != NULL) {
        *copy = *identity;
    }
    fl_rpc_conn_done(conn);
    conn->who = who;
    conn->why = text;
    conn->identity = copy;
    return FL_OK;
}

void fl_rpc_conn_done(struct fl_rpc_conn *conn)
{
    free(conn->why);
    free(conn->identity);
    conn->why = NULL;
    conn->identity = NULL;
}

const struct fl_identity *fl_call_identity(const struct fl_call *call)
{
    return call->conn->identity;
}

uint32_t fl_call_who(const struct fl_call *call)
{
    return call->conn->who;
}

int fl_call_set_identity(struct fl_call *call, const struct fl_identity *identity)
{
    struct fl_rpc_conn *conn = call->conn;
    struct fl_identity copy = *identity; /* It may be the connection's own identity. */

    return fl_rpc_conn_identify(conn, conn->who, NULL, &copy);
}

/* Why an authenticated peer may not call the method. */
static const char *denial_reason(uint32_t who)
{
    switch (who) {
    case FL_WHO_ADMIN:
        return "it presents an admin's certificate, a client's is required; join that host with "
               "its own invitation";
    case FL_WHO_CLIENT:
        return "it presents a client's certificate, an admin's is required (create one with `flctl "
               "admin-certificate`)";
    case FL_WHO_PLAIN:
        return "it presents no certificate at this address, which is `insecure`";
    case FL_WHO_VIEWER:
        return "it has read access only (`admin_viewers`)";
    default:
        return "a different identity is required";
    }
}

static enum fl_grpc_status refused_as(const struct fl_rpc_conn *conn)
{
    return (conn->who & FL_WHO_DISOWNED) != 0 ? FL_GRPC_UNAUTHENTICATED : FL_GRPC_PERMISSION_DENIED;
}

enum fl_grpc_status fl_call_check_peer(const struct fl_call *call,
                                       const struct fl_rpc_method *method, char *text, size_t size)
{
    const struct fl_rpc_conn *conn = call->conn;

    if ((conn->who & method->who) != 0) {
        if (fl_account_may_call(&conn->account)) {
            return FL_GRPC_OK;
        }
        (void)snprintf(text, size,
                       "%u calls are open over all connections of this client, the limit",
                       conn->account.party->n_calls);
        return FL_GRPC_RESOURCE_EXHAUSTED;
    }
    if (conn->why != NULL) {
        (void)snprintf(text, size, "%s", conn->why);
        return refused_as(conn);
    }
    if ((conn->who & (FL_WHO_UNAUTHENTICATED | FL_WHO_LAPSED)) != 0) {
        (void)snprintf(text, size, "%s: %s", method->path,
                       (conn->who & FL_WHO_LAPSED) != 0
                           ? "certificate expired: only renewing it is allowed"
                           : "a certificate of this federation is required");
        return FL_GRPC_UNAUTHENTICATED;
    }
    (void)snprintf(text, size, "%s: permission denied: %s", method->path, denial_reason(conn->who));
    return FL_GRPC_PERMISSION_DENIED;
}

void fl_call_expel(struct fl_call *call, const char *why)
{
    fl__call_fail(call, refused_as(call->conn), "%s", why);
}
