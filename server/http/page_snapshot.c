/* The copy of a federation that the status pages show (page_snapshot.h). No I/O. */

#include "server/http/page_snapshot.h"

#include <stdlib.h>

#include "libfl/base/grow.h"
#include "server/admin/admin_request.h"

void fl_page_snapshot_done(struct fl_page_snapshot *s)
{
    size_t i;

    for (i = 0; i < s->n_rounds; i++) {
        fl_wire_round_done(&s->rounds[i]);
    }
    for (i = 0; i < s->n_clients; i++) {
        fl_wire_client_done(&s->clients[i]);
    }
    fl_wire_status_done(&s->status);
    fl_wire_why_done(&s->why);
    fl_page_parts_done(&s->parts);
    free(s->rounds);
    free(s->clients);
    free(s->events);
    free(s->lines);
    *s = (struct fl_page_snapshot){.asked_ms = 0};
}

static int snapshot_take_rounds(struct fl_page_snapshot *s, struct fl_admin_request *asked,
                                struct fl_err *err)
{
    const uint8_t *data;
    size_t len;
    size_t i;

    s->rounds = calloc(FL_PAGE_ROUNDS_MAX, sizeof(*s->rounds));
    if (s->rounds == NULL) {
        return FL_ENOMEM;
    }
    while (s->n_rounds < FL_PAGE_ROUNDS_MAX && fl_replies_next(&asked->replies, &data, &len)) {
        int rv = fl_wire_round_decode(data, len, &s->rounds[s->n_rounds], err);

        if (rv != FL_OK) {
            return rv;
        }
        s->n_rounds++;
    }
    for (i = 0; i < s->n_rounds / 2; i++) {
        struct fl_wire_round swap = s->rounds[i];

        s->rounds[i] = s->rounds[s->n_rounds - 1 - i];
        s->rounds[s->n_rounds - 1 - i] = swap;
    }
    return FL_OK;
}

static int snapshot_take_clients(struct fl_page_snapshot *s, struct fl_admin_request *asked,
                                 struct fl_err *err)
{
    const uint8_t *data;
    size_t len;

    while (s->n_clients < FL_PAGE_CLIENTS_MAX && fl_replies_next(&asked->replies, &data, &len)) {
        int rv = fl_grow(&s->clients, &s->clients_cap, s->n_clients, sizeof(*s->clients));

        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_wire_client_decode(data, len, &s->clients[s->n_clients], err);
        if (rv != FL_OK) {
            return rv;
        }
        s->n_clients++;
    }
    return FL_OK;
}

int fl_page_snapshot_take(struct fl_page_snapshot *s, struct fl_admin_request *asked,
                          struct fl_err *err)
{
    const uint8_t *data = NULL;
    size_t len = 0;
    int rv;

    switch (asked->verb) {
    case FL_VERB_STATUS:
        (void)fl_replies_next(&asked->replies, &data, &len);
        return fl_wire_status_decode(data, len, &s->status, err);
    case FL_VERB_WHY:
        (void)fl_replies_next(&asked->replies, &data, &len);
        return fl_wire_why_decode(data, len, &s->why, err);
    case FL_VERB_ROUNDS:
        return snapshot_take_rounds(s, asked, err);
    case FL_VERB_PARTICIPATIONS:
        rv = fl_page_parts_take(&s->parts, asked, err);
        if (rv != FL_OK) {
            return rv;
        }
        fl_page_parts_newest(&s->parts, s->parts.n == FL_PAGE_PARTS_NEWEST);
        return FL_OK;
    default:
        return snapshot_take_clients(s, asked, err);
    }
}

int fl_page_snapshot_events(struct fl_page_snapshot *s, struct fl_event_log *log)
{
    struct fl_event_line *lines = calloc(FL_PAGE_EVENTS, sizeof(*lines));
    struct fl_page_event *events = calloc(FL_PAGE_EVENTS, sizeof(*events));
    uint64_t newest = fl_event_log_newest(log);
    uint64_t at = newest > FL_EVENT_LOG_MAX ? newest - FL_EVENT_LOG_MAX : 0;
    struct fl_event_line line;
    size_t kept = 0;
    size_t i;

    if (lines == NULL || events == NULL) {
        free(lines);
        free(events);
        return FL_ENOMEM;
    }
    /* A ring: the newest that are kept overwrite the oldest. */
    while (fl_event_log_next(log, at, &line)) {
        at = line.id;
        if (line.warning || line.kind != FL_EVENT_ROUND) {
            lines[kept++ % FL_PAGE_EVENTS] = line;
        }
    }
    s->n_events = kept < FL_PAGE_EVENTS ? kept : FL_PAGE_EVENTS;
    for (i = 0; i < s->n_events; i++) {
        const struct fl_event_line *of = &lines[(kept - 1 - i) % FL_PAGE_EVENTS];

        events[i] = (struct fl_page_event){.at_ms = of->at_ms, .text = of->text};
    }
    s->lines = lines;
    s->events = events;
    return FL_OK;
}
