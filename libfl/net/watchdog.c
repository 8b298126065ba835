#include "libfl/net/watchdog.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "libfl/net/notify.h"

/* Asked so often in a span: one question that is answered late does no harm. */
#define ASKS 4

/* The question is with the other loop while it is ASKED: whoever comes second then frees. */
enum { QUIET, ASKED, ANSWERED, CLOSED };

struct fl_watchdog {
    struct fl_loop *asked;
    struct fl_timer *timer;
    uint64_t every_ms;
    fl_watchdog_healthy_fn *healthy; /* NULL: always */
    void *ctx;
    atomic_int state;
};

/* On `asked`. */
static void on_question(void *arg)
{
    struct fl_watchdog *w = arg;
    int expected = ASKED;

    if (!atomic_compare_exchange_strong(&w->state, &expected, ANSWERED)) {
        free(w);
    }
}

static void ask(struct fl_watchdog *w)
{
    atomic_store(&w->state, ASKED);
    if (fl_loop_post(w->asked, on_question, w) != FL_OK) {
        atomic_store(&w->state, QUIET); /* The next time, then. */
    }
}

static void on_timer(void *arg)
{
    struct fl_watchdog *w = arg;
    int state = atomic_load(&w->state);

    fl_timer_start(w->timer, w->every_ms);
    if ((w->asked == NULL || state == ANSWERED) && (w->healthy == NULL || w->healthy(w->ctx))) {
        fl_notify_alive();
    }
    if (w->asked != NULL && state != ASKED) {
        ask(w);
    }
}

int fl_watchdog_create(struct fl_loop *loop, struct fl_loop *asked, struct fl_watchdog **ret)
{
    uint64_t span = fl_notify_watchdog_ms();
    struct fl_watchdog *w = calloc(1, sizeof(*w));
    int rv;

    if (w == NULL) {
        return FL_ENOMEM;
    }
    *w = (struct fl_watchdog){.asked = asked, .every_ms = span / ASKS + 1};
    rv = fl_timer_create(loop, on_timer, w, &w->timer);
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
    if (atomic_exchange(&w->state, CLOSED) != ASKED) {
        free(w);
    }
}
