#ifndef FL_SIM_QUEUE_H
#define FL_SIM_QUEUE_H

/* What will happen in a virtual world: a heap in the order that sim.h promises. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fl__sim_kind { FL__SIM_TIMER, FL__SIM_DISK, FL__SIM_NETWORK };

struct fl__sim_event {
    uint64_t at;
    uint32_t node;
    enum fl__sim_kind kind;
    uint64_t order; /* of scheduling */
    uint64_t life;  /* of the node; another one has no part in it */
    uint64_t tag;   /* timer, disk */
    uint32_t peer;  /* network */
    uint64_t epoch; /* of the link, for messages */
    bool is_link;   /* network: the link went up or down, no message */
    bool up;
    bool mend; /* network: a broken link may stand again; no node hears of it */
    void *data;
    size_t len;
};

struct fl__sim_queue {
    struct fl__sim_event *heap;
    size_t n;
    size_t cap;
    uint64_t n_scheduled;
};

/* Takes `event->data`. */
void fl__sim_push(struct fl__sim_queue *q, const struct fl__sim_event *event);
/* The next event; its data belongs to the caller. */
bool fl__sim_pop(struct fl__sim_queue *q, struct fl__sim_event *ret);
void fl__sim_queue_done(struct fl__sim_queue *q);

#endif
