/*
 * Hellos on their way to the coordinator, in the order they came. Only a few are with it at a
 * time: so what a flood of them leaves in its queue is bounded, and one whose call has ended
 * before its turn is never asked about.
 */

#include <string.h>

#include "server/daemon/driver.h"
#include "server/daemon/front_impl.h"

/* Hellos at the coordinator: enough to keep it busy while an answer travels. */
#define HELLOS_ASKED 64

static void add_hello(struct fl_hellos *list, struct fl_attend *attend)
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

static void remove_hello(struct fl_hellos *list, struct fl_attend *attend)
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

static void ask_next(struct fl_front *front)
{
    struct fl_attend *attend;

    while (front->n_asked < HELLOS_ASKED && (attend = front->waiting.first) != NULL) {
        struct fl_up *up = attend->hello;

        remove_hello(&front->waiting, attend);
        add_hello(&front->asked, attend);
        attend->hello = NULL;
        attend->asked = true;
        front->n_asked++;
        fl_front_up(front, up);
    }
}

void fl_attend_ask(struct fl_attend *attend, struct fl_up *up)
{
    attend->hello = up;
    add_hello(&attend->front->waiting, attend);
    ask_next(attend->front);
}

void fl_attend_ask_no_more(struct fl_attend *attend)
{
    if (attend->asked) {
        remove_hello(&attend->front->asked, attend);
        attend->asked = false;
    } else if (attend->hello != NULL) {
        remove_hello(&attend->front->waiting, attend);
        fl_up_free(attend->hello);
        attend->hello = NULL;
    }
}

struct fl_attend *fl_attend_answered(struct fl_front *front, uint64_t session)
{
    struct fl_attend *a = front->asked.first;

    while (a != NULL && a->id != session) {
        a = a->later;
    }
    if (a != NULL) {
        fl_attend_ask_no_more(a);
    }
    front->n_asked--;
    ask_next(front);
    return a;
}

bool fl_attend_asked(const struct fl_front *front, const char *name)
{
    const struct fl_attend *a = front->asked.first;

    while (a != NULL && strcmp(a->name, name) != 0) {
        a = a->later;
    }
    return a != NULL;
}
