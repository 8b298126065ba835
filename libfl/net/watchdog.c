#include "libfl/net/watchdog.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "libfl/net/notify.h"

/* Pings per period: one late reply does no harm. */
#define PINGS_PER_PERIOD 4

/* While PINGED the second loop holds a reference: whichever of the two sides ends last frees. */
enum { QUIET, PINGED, REPLIED, CLOSED };

struct fl_watchdog {
    struct fl_loop *pinged;
    struct fl_timer *timer;
    uint64_t every_ms;
    fl_watchdog_healthy_fn *healthy; /* NULL: always */
    void *ctx;
    atomic_int state;
};

/* Runs on `pinged`. */
static void on_ping(void *arg)
{
    struct fl_watchdog *w = arg;
    int expected = PINGED;

    if (!atomic_compare_exchange_strong(&w->state, &expected, REPLIED)) {
        free(w);
    }
}

static void watchdog_on_timer(void *arg)
{
    struct fl_watchdog *w = arg;
    int state = atomic_load(&w->state);

    fl_timer_start(w->timer, w->every_ms);
    if ((w->pinged == NULL || state == REPLIED) && (w->healthy == NULL || w->healthy(w->ctx))) {
        fl_notify_alive();
    }
    if (w->pinged != NULL && state != PINGED) {
        atomic_store(&w->state, PINGED);
        if (fl_loop_post(w->pinged, on_ping, w) != FL_OK) {
            atomic_store(&w->state, QUIET); /* Tried again at the next tick. */
        }
    }
}

int fl_watchdog_create(struct fl_loop *loop, struct fl_loop *pinged, struct fl_watchdog **ret)
{
    uint64_t span = fl_notify_watchdog_ms();
    struct fl_watchdog *w = calloc(1, sizeof(*w));
    int rv;

    if (w == NULL) {
        return FL_ENOMEM;
    }
    *w = (struct fl_watchdog){.pinged = pinged, .every_ms = span / PINGS_PER_PERIOD + 1};
    rv = fl_timer_create(loop, watchdog_on_timer, w, &w->timer);
    if (rv != FL_OK) {
        free(w);
        return rv;
    }
    if (span > 0) {
        fl_timer_start(w->timer, 0);
    }
    *ret = w;
    return FL_OK;
}

void fl_watchdog_heed(struct fl_watchdog *w, fl_watchdog_healthy_fn *healthy, void *ctx)
{
    w->healthy = healthy;
    w->ctx = ctx;
}

void fl_watchdog_close(struct fl_watchdog *w)
{
    if (w == NULL) {
        return;
    }
    fl_timer_close(w->timer);
    if (atomic_exchange(&w->state, CLOSED) != PINGED) {
        free(w);
    }
}
