/*
 * Queues Hellos for the coordinator in the order of arrival. Only a few are posted at a time, which
 * bounds the coordinator's queue during a flood of connections, and a session that ends before its
 * turn is never posted. One that yields is refused here while another session of its client is
 * open: the coordinator would take it for a reconnect.
 */

#include <string.h>

#include "server/network/frontend_impl.h"

/* Hellos posted at a time: enough to keep the coordinator busy while an answer travels. */
#define HELLOS_POSTED_MAX 64

static void hello_post_next(struct fl_frontend *frontend)
{
    struct fl_control_stream *stream;

    while (frontend->n_asked < HELLOS_POSTED_MAX &&
           (stream = FL_LIST_FIRST(&frontend->waiting, struct fl_control_stream, hellos)) != NULL)
    {
        struct fl_coord_msg *up = stream->hello;

        fl_list_remove(&stream->hellos);
        fl_list_append(&frontend->asked, &stream->hellos);
        stream->hello = NULL;
        stream->asked = true;
        frontend->n_asked++;
        fl_frontend_up(frontend, up);
    }
}

/* Does another session of the same name exist, or is one about to? */
static bool hello_has_rival(const struct fl_control_stream *stream)
{
    const struct fl_frontend *frontend = stream->frontend;
    const struct fl_control_stream *a;

    FL_LIST_FOREACH (a, &frontend->streams, struct fl_control_stream, link) {
        bool is_open = a->joined && frontend->slots[a->client].stream == a;

        if (a != stream && a->call != NULL && (is_open || a->asked || a->hello != NULL) &&
            strcmp(a->name, stream->name) == 0)
        {
            return true;
        }
    }
    return false;
}

void fl_control_stream_ask(struct fl_control_stream *stream, struct fl_coord_msg *up)
{
    if (up->event.u.hello.yields && hello_has_rival(stream)) {
        fl_coord_msg_free(up);
        fl_control_stream_refuse(stream, FL_WIRE_REASON_DUPLICATE, 0,
                                 "another session of this client is open: two machines use one "
                                 "identity (a copied state folder or disk image): stop one, or "
                                 "give it its own invitation; this one connects soon after the "
                                 "other has ended");
        return;
    }
    stream->hello = up;
    fl_list_append(&stream->frontend->waiting, &stream->hellos);
    hello_post_next(stream->frontend);
}

void fl_control_stream_withdraw_hello(struct fl_control_stream *stream)
{
    if (stream->asked) {
        fl_list_remove(&stream->hellos);
        stream->asked = false;
    } else if (stream->hello != NULL) {
        fl_list_remove(&stream->hellos);
        fl_coord_msg_free(stream->hello);
        stream->hello = NULL;
    }
}

struct fl_control_stream *fl_control_stream_answered(struct fl_frontend *frontend, uint64_t session)
{
    struct fl_control_stream *a = FL_LIST_FIRST(&frontend->asked, struct fl_control_stream, hellos);

    while (a != NULL && a->id != session) {
        a = FL_LIST_NEXT(&frontend->asked, a, struct fl_control_stream, hellos);
    }
    if (a != NULL) {
        fl_control_stream_withdraw_hello(a);
    }
    frontend->n_asked--;
    hello_post_next(frontend);
    return a;
}

bool fl_control_stream_asked(const struct fl_frontend *frontend, const char *name)
{
    const struct fl_control_stream *a;

    FL_LIST_FOREACH (a, &frontend->asked, struct fl_control_stream, hellos) {
        if (strcmp(a->name, name) == 0) {
            return true;
        }
    }
    return false;
}
