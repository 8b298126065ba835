#include "libfl/net/systemd_status.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/net/notify.h"

#define PAUSE_MS 1000

struct fl_status {
    struct fl_timer *timer;
    fl_status_fn *fill;
    void *ctx;
    bool pausing; /* the last line was sent less than a second ago */
    bool changed; /* since the last line */
    char sent[FL_STATUS_SIZE];
};

static void send_status(struct fl_status *s)
{
    char now[FL_STATUS_SIZE] = "";

    s->changed = false;
    s->fill(s->ctx, now, sizeof(now));
    if (strcmp(now, s->sent) == 0) {
        return;
    }
    (void)memcpy(s->sent, now, sizeof(now));
    fl_notify_status(now);
    s->pausing = true;
    fl_timer_start(s->timer, PAUSE_MS);
}

static void status_on_timer(void *arg)
{
    struct fl_status *s = arg;

    s->pausing = false;
    if (s->changed) {
        send_status(s);
    }
}

int fl_status_create(struct fl_loop *loop, fl_status_fn *fill, void *ctx, struct fl_status **ret)
{
    struct fl_status *s = calloc(1, sizeof(*s));
    int rv;

    if (s == NULL) {
        return FL_ENOMEM;
    }
    s->fill = fill;
    s->ctx = ctx;
    rv = fl_timer_create(loop, status_on_timer, s, &s->timer);
    if (rv != FL_OK) {
        free(s);
        return rv;
    }
    *ret = s;
    return FL_OK;
}

void fl_status_changed(struct fl_status *s)
{
    if (s == NULL) {
        return;
    }
    s->changed = true;
    if (!s->pausing) {
        send_status(s);
    }
}

void fl_status_close(struct fl_status *s)
{
    if (s == NULL) {
        return;
    }
    fl_timer_close(s->timer);
    free(s);
}
