#include "libfl/sim/agenda.h"

#include <stdlib.h>

/* Children of a node: four share few cache lines, and the tree is half as deep as with two. */
#define CHILDREN  4
#define CAP_FIRST 64

static bool agenda_before(const struct fl_agenda_event *a, const struct fl_agenda_event *b)
{
    if (a->at != b->at) {
        return a->at < b->at;
    }
    if (a->rank1 != b->rank1) {
        return a->rank1 < b->rank1;
    }
    if (a->rank2 != b->rank2) {
        return a->rank2 < b->rank2;
    }
    return a->order < b->order;
}

void fl_agenda_done(struct fl_agenda *agenda)
{
    free(agenda->heap);
    *agenda = (struct fl_agenda){0};
}

int fl_agenda_reserve(struct fl_agenda *agenda, size_t n)
{
    struct fl_agenda_event *heap;
    size_t cap = agenda->cap > 0 ? agenda->cap : CAP_FIRST;

    if (n <= agenda->cap) {
        return FL_OK;
    }
    while (cap < n) {
        if (cap > SIZE_MAX / 2 / sizeof(*heap)) {
            return FL_ENOMEM;
        }
        cap *= 2;
    }
    heap = realloc(agenda->heap, cap * sizeof(*heap));
    if (heap == NULL) {
        return FL_ENOMEM;
    }
    agenda->heap = heap;
    agenda->cap = cap;
    return FL_OK;
}

int fl_agenda_push(struct fl_agenda *agenda, const struct fl_agenda_event *event)
{
    struct fl_agenda_event e = *event;
    size_t i = agenda->n;
    int rv = fl_agenda_reserve(agenda, agenda->n + 1);

    if (rv != FL_OK) {
        return rv;
    }
    e.order = agenda->n_scheduled++;
    while (i > 0 && agenda_before(&e, &agenda->heap[(i - 1) / CHILDREN])) {
        agenda->heap[i] = agenda->heap[(i - 1) / CHILDREN];
        i = (i - 1) / CHILDREN;
    }
    agenda->heap[i] = e;
    agenda->n++;
    return FL_OK;
}

const struct fl_agenda_event *fl_agenda_peek(const struct fl_agenda *agenda)
{
    return agenda->n > 0 ? &agenda->heap[0] : NULL;
}

bool fl_agenda_pop(struct fl_agenda *agenda, struct fl_agenda_event *ret)
{
    struct fl_agenda_event last;
    size_t i = 0;

    if (agenda->n == 0) {
        return false;
    }
    *ret = agenda->heap[0];
    last = agenda->heap[--agenda->n];
    while (CHILDREN * i + 1 < agenda->n) {
        size_t first = CHILDREN * i + 1;
        size_t end = first + CHILDREN < agenda->n ? first + CHILDREN : agenda->n;
        size_t child = first;
        size_t k;

        for (k = first + 1; k < end; k++) {
            child = agenda_before(&agenda->heap[k], &agenda->heap[child]) ? k : child;
        }
        if (!agenda_before(&agenda->heap[child], &last)) {
            break;
        }
        agenda->heap[i] = agenda->heap[child];
        i = child;
    }
    agenda->heap[i] = last;
    return true;
}
