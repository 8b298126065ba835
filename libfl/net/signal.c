#include <stdlib.h>

#include "libfl/net/internal.h"

struct fl_signal {
    uv_signal_t uv;
    struct fl_loop *loop;
    fl_signal_cb fn;
    void *arg;
};

static void on_signal(uv_signal_t *uv, int signum)
{
    struct fl_signal *self = uv->data;

    self->fn(self->arg, signum);
}

static void on_closed(uv_handle_t *handle)
{
    struct fl_signal *self = handle->data;

    fl__loop_closed(self->loop);
    free(self);
}

int fl_signal_create(struct fl_loop *loop, int signum, fl_signal_cb fn, void *arg,
                     struct fl_signal **ret)
{
    struct fl_signal *self = calloc(1, sizeof(*self));
    int status;

    if (self == NULL) {
        return FL_ENOMEM;
    }
    self->loop = loop;
    self->fn = fn;
    self->arg = arg;
    /* Makes the pipe of the process that carries signals into loops, so it can fail. */
    status = uv_signal_init(&loop->uv, &self->uv);
    if (status != 0) {
        free(self);
        return fl_uv_err(status);
    }
    self->uv.data = self;
    fl__loop_opened(loop);
    status = uv_signal_start(&self->uv, on_signal, signum);
    if (status != 0) {
        fl_signal_close(self);
        return fl_uv_err(status);
    }
    *ret = self;
    return FL_OK;
}

void fl_signal_close(struct fl_signal *self)
{
    if (self == NULL) {
        return;
    }
    fl__loop_closing(self->loop);
    uv_close((uv_handle_t *)&self->uv, on_closed);
}
