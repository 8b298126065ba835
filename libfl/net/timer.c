#include <stdlib.h>

#include "libfl/net/internal.h"

struct fl_timer {
    uv_timer_t uv;
    struct fl_loop *loop;
    fl_loop_cb fn;
    void *arg;
};

static void on_timer(uv_timer_t *uv)
{
    struct fl_timer *timer = uv->data;

    timer->fn(timer->arg);
}

static void on_closed(uv_handle_t *handle)
{
    struct fl_timer *timer = handle->data;

    fl__loop_closed(timer->loop);
    free(timer);
}

int fl_timer_create(struct fl_loop *loop, fl_loop_cb fn, void *arg, struct fl_timer **ret)
{
    struct fl_timer *timer = calloc(1, sizeof(*timer));

    if (timer == NULL) {
        return FL_ENOMEM;
    }
    timer->loop = loop;
    timer->fn = fn;
    timer->arg = arg;
    (void)uv_timer_init(&loop->uv, &timer->uv);
    timer->uv.data = timer;
    fl__loop_opened(loop);
    *ret = timer;
    return FL_OK;
}

void fl_timer_start(struct fl_timer *timer, uint64_t delay_ms)
{
    /* The cached time may be old (before the first turn, after a long callback): the timer
       would fire early by as much. */
    uv_update_time(&timer->loop->uv);
    (void)uv_timer_start(&timer->uv, on_timer, delay_ms, 0);
}

void fl_timer_stop(struct fl_timer *timer)
{
    (void)uv_timer_stop(&timer->uv);
}

void fl_timer_close(struct fl_timer *timer)
{
    if (timer == NULL) {
        return;
    }
    fl__loop_closing(timer->loop);
    uv_close((uv_handle_t *)&timer->uv, on_closed);
}
