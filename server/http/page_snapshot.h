#ifndef FL_SERVER_HTTP_PAGE_SNAPSHOT_H
#define FL_SERVER_HTTP_PAGE_SNAPSHOT_H

/*
 * What the status pages show: one copy of the answers of the coordinator, asked for in small parts
 * between its other work and shared by all readers of that moment, so that neither many readers nor
 * many clients cost it more than one copy every FL_PAGE_AGE_MS. HTTP thread.
 */

#include "libfl/page/page.h"
#include "server/http/event_log.h"
#include "server/http/page_parts.h"

/* A copy is shown to everyone for so long. */
#define FL_PAGE_AGE_MS 2000
/* Clients and rounds of a copy; further clients are not shown, and older rounds only by their
 * number. */
#define FL_PAGE_CLIENTS_MAX 20000
#define FL_PAGE_ROUNDS_MAX  200

struct fl_page_snapshot {
    struct fl_wire_status status;
    struct fl_wire_why why;
    struct fl_page_parts parts;   /* of the newest rounds */
    struct fl_wire_round *rounds; /* oldest first */
    size_t n_rounds;
    struct fl_wire_client *clients; /* by name */
    size_t n_clients, clients_cap;
    struct fl_event_line *lines;
    struct fl_page_event *events; /* newest first, of `lines` */
    size_t n_events;
    uint64_t asked_ms; /* monotonic */
};

struct fl_admin_request;

/* Frees what it holds. */
void fl_page_snapshot_done(struct fl_page_snapshot *snapshot);
/*
 * Take the answer to a request for STATUS, WHY, ROUNDS (newest first), PARTICIPATIONS (of the
 * newest rounds) or CLIENTS (a page of them).
 * FL_ENOMEM; the errors of decoding.
 */
FL_MUST_CHECK int fl_page_snapshot_take(struct fl_page_snapshot *snapshot,
                                        struct fl_admin_request *asked, struct fl_err *err);
/* The newest events of the log that are no ordinary progress of rounds. FL_ENOMEM. */
FL_MUST_CHECK int fl_page_snapshot_events(struct fl_page_snapshot *snapshot,
                                          struct fl_event_log *log);

#endif
