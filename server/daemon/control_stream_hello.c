/*
 * Hellos on their way to the coordinator, in the order they came. Only a few are with it at a
 * time: so what a flood of them leaves in its queue is bounded, and one whose call has ended
 * before its turn is never asked about.
 */

#include <string.h>

#include "server/daemon/frontend_impl.h"
#include "server/daemon/runtime.h"

/* Hellos at the coordinator: enough to keep it busy while an answer travels. */
#define HELLOS_ASKED 64

static void add_hello(struct fl_hellos *list, struct fl_control_stream *attend)
{
    attend->earlier = list->last;
    attend->later = NULL;
    if (list->last != NULL) {
        list->last->later = attend;
    } else {
        list->first = attend;
    }
    list->last = attend;
}

static void remove_hello(struct fl_hellos *list, struct fl_control_stream *attend)
{
    if (attend->earlier != NULL) {
        attend->earlier->later = attend->later;
    } else {
        list->first = attend->later;
    }
    if (attend->later != NULL) {
        attend->later->earlier = attend->earlier;
    } else {
        list->last = attend->earlier;
    }
    attend->earlier = attend->later = NULL;
}

static void ask_next(struct fl_frontend *frontend)
{
    struct fl_control_stream *attend;

    while (frontend->n_asked < HELLOS_ASKED && (attend = frontend->waiting.first) != NULL) {
        struct fl_coord_msg *up = attend->hello;

        remove_hello(&frontend->waiting, attend);
        add_hello(&frontend->asked, attend);
        attend->hello = NULL;
        attend->asked = true;
        frontend->n_asked++;
        fl_frontend_up(frontend, up);
    }
}

void fl_control_stream_ask(struct fl_control_stream *attend, struct fl_coord_msg *up)
{
    attend->hello = up;
    add_hello(&attend->frontend->waiting, attend);
    ask_next(attend->frontend);
}

void fl_control_stream_ask_no_more(struct fl_control_stream *attend)
{
    if (attend->asked) {
        remove_hello(&attend->frontend->asked, attend);
        attend->asked = false;
    } else if (attend->hello != NULL) {
        remove_hello(&attend->frontend->waiting, attend);
        fl_coord_msg_free(attend->hello);
        attend->hello = NULL;
    }
}

struct fl_control_stream *fl_control_stream_answered(struct fl_frontend *frontend, uint64_t session)
{
    struct fl_control_stream *a = frontend->asked.first;

    while (a != NULL && a->id != session) {
        a = a->later;
    }
    if (a != NULL) {
        fl_control_stream_ask_no_more(a);
    }
    frontend->n_asked--;
    ask_next(frontend);
    return a;
}

bool fl_control_stream_asked(const struct fl_frontend *frontend, const char *name)
{
    const struct fl_control_stream *a = frontend->asked.first;

    while (a != NULL && strcmp(a->name, name) != 0) {
        a = a->later;
    }
    return a != NULL;
}
