/*
 * The events of the coordinator that have hooks, with the variables that their programs get
 * (docs/operating.md#hooks). Coordinator thread; server/daemon/hook_runner.c runs the programs.
 */

#include <inttypes.h>

#include "libfl/figures/share.h"
#include "server/runtime/runtime_impl.h"

void fl_runtime_hook_traced(struct fl_runtime *runtime, const struct fl_effect *e,
                            const char *client)
{
    struct fl_hook_event event = {.hook = fl_hook_of(e->event)};

    if (event.hook == FL_HOOK_N) {
        return;
    }
    fl_hook_event_add(&event, "FL_ROUND=%" PRIu64, e->round);
    fl_hook_event_add(&event, "FL_ATTEMPT=%" PRIu32, e->attempt);
    fl_hook_event_add(&event, "FL_REASON=%s", e->text);
    if (client != NULL) {
        fl_hook_event_add(&event, "FL_CLIENT=%s", client);
    }
    runtime->setup.hook(runtime->setup.ctx, &event);
}

/* A variable is empty where the figure is not known. */
static void hook_add_share(struct fl_hook_event *event, const char *name, double value, bool known)
{
    if (known) {
        fl_hook_event_add(event, "%s=%.6g", name, value);
    } else {
        fl_hook_event_add(event, "%s=", name);
    }
}

void fl_runtime_hook_committed(struct fl_runtime *runtime, const struct fl_round_rec *r)
{
    struct fl_hook_event event = {.hook = FL_HOOK_ROUND_COMMITTED};

    fl_hook_event_add(&event, "FL_ROUND=%" PRIu64, r->round);
    fl_hook_event_add(&event, "FL_ATTEMPT=%" PRIu32, r->attempt);
    fl_hook_event_add(&event, "FL_SELECTED=%" PRIu32, r->n_selected);
    fl_hook_event_add(&event, "FL_RESPONDERS=%" PRIu32, r->n_responders);
    hook_add_share(&event, "FL_ACCURACY", r->accuracy, r->accuracy >= 0.0);
    hook_add_share(&event, "FL_LOSS", r->loss, fl_share_measured(r->accuracy));
    fl_hook_event_add(&event, "FL_UPLINK_BYTES=%" PRIu64, r->uplink_bytes);
    runtime->setup.hook(runtime->setup.ctx, &event);
}

void fl_runtime_hook_finished(struct fl_runtime *runtime)
{
    struct fl_hook_event event = {.hook = FL_HOOK_FINISHED};

    fl_hook_event_add(&event, "FL_ROUND=%" PRIu64, fl_coord_committed(runtime->coord));
    runtime->setup.hook(runtime->setup.ctx, &event);
}
