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

static void ask_next(struct fl_frontend *frontend)
{
    struct fl_control_stream *attend;

    while (frontend->n_asked < HELLOS_ASKED &&
           (attend = FL_LIST_FIRST(&frontend->waiting, struct fl_control_stream, hellos)) != NULL)
    {
        struct fl_coord_msg *up = attend->hello;

        fl_list_remove(&attend->hellos);
        fl_list_append(&frontend->asked, &attend->hellos);
        attend->hello = NULL;
        attend->asked = true;
        frontend->n_asked++;
        fl_frontend_up(frontend, up);
    }
}

void fl_control_stream_ask(struct fl_control_stream *attend, struct fl_coord_msg *up)
{
    attend->hello = up;
    fl_list_append(&attend->frontend->waiting, &attend->hellos);
    ask_next(attend->frontend);
}

void fl_control_stream_ask_no_more(struct fl_control_stream *attend)
{
    if (attend->asked) {
        fl_list_remove(&attend->hellos);
        attend->asked = false;
    } else if (attend->hello != NULL) {
        fl_list_remove(&attend->hellos);
        fl_coord_msg_free(attend->hello);
        attend->hello = NULL;
    }
}

struct fl_control_stream *fl_control_stream_answered(struct fl_frontend *frontend, uint64_t session)
{
    struct fl_control_stream *a = FL_LIST_FIRST(&frontend->asked, struct fl_control_stream, hellos);

    while (a != NULL && a->id != session) {
        a = FL_LIST_NEXT(&frontend->asked, a, struct fl_control_stream, hellos);
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
    const struct fl_control_stream *a;

    FL_LIST_FOREACH (a, &frontend->asked, struct fl_control_stream, hellos) {
        if (strcmp(a->name, name) == 0) {
            return true;
        }
    }
    return false;
}
