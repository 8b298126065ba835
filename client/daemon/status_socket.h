#ifndef FL_CLIENTD_STATUS_SOCKET_H
#define FL_CLIENTD_STATUS_SOCKET_H

/*
 * A unix socket in the state folder, at which fl-clientd --status reads the report for the owner of
 * the device. Each connection gets one report and is closed; nothing is read from it:
 *
 *   "FL-STATUS-1 CODE TEXT JSON\n"   CODE 1: it needs its owner, else 0; lengths of the next two
 *   text for a terminal, JSON document
 *
 * Who may read the state folder may connect. Threading: the loop.
 */

#include "client/http/client_report.h"
#include "libfl/base/log.h"
#include "libfl/net/loop.h"

#define FL_STATUS_SOCKET_NAME  "status.sock"
#define FL_STATUS_SOCKET_MAGIC "FL-STATUS-1"
/* Bytes of a report, at most. */
#define FL_STATUS_SOCKET_BYTES ((size_t)1 << 20)

struct fl_status_socket;

/* Everything is borrowed and outlives the socket; `describe` as in fl_client_http_setup. */
struct fl_status_socket_setup {
    struct fl_loop *loop;
    const struct fl_log *log;
    const char *state_dir;
    void (*describe)(void *ctx, struct fl_owner_facts *ret);
    void *ctx;
};

/* Without the socket the client runs on, so an address that cannot be bound is logged. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_status_socket_create(const struct fl_status_socket_setup *setup,
                                          struct fl_status_socket **ret);
/* Before the loop is freed: accepts no more. NULL is allowed. */
void fl_status_socket_stop(struct fl_status_socket *socket);
/* After the loop was freed. NULL is allowed. */
void fl_status_socket_free(struct fl_status_socket *socket);

#endif
