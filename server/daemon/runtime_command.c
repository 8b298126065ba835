/*
 * What the operator wishes of the rounds (pause, resume, drain, abort-round, controls reset). The
 * core takes one at a time, and its answer is a promise that no kill takes back.
 */

#include "server/daemon/runtime_impl.h"

static enum fl_event_type event_of(enum fl_admin_type type)
{
    switch (type) {
    case FL_ADMIN_PAUSE:
        return FL_EV_PAUSE;
    case FL_ADMIN_RESUME:
        return FL_EV_RESUME;
    case FL_ADMIN_DRAIN:
        return FL_EV_DRAIN;
    case FL_ADMIN_RESET_CONTROLS:
        return FL_EV_NEW_EPOCH;
    default:
        return FL_EV_ABORT_ROUND;
    }
}

static void ask_core(void *arg)
{
    struct fl_runtime *runtime = arg;
    struct fl_event event = {0};

    if (runtime->wishes.first != NULL) {
        event.type = event_of(runtime->wishes.first->type);
        event.u.reason = runtime->wishes.first->control.reason;
        fl_runtime_step(runtime, &event);
    }
}

void fl_runtime_command(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    struct fl_runtime_commands *w = &runtime->wishes;

    request->next_command = NULL;
    if (w->first != NULL) {
        w->last->next_command = request;
        w->last = request;
        return; /* When the ones before it are answered. */
    }
    w->first = w->last = request;
    ask_core(runtime);
}

static struct fl_admin_request *take(struct fl_runtime_commands *w)
{
    struct fl_admin_request *request = w->first;

    w->first = request->next_command;
    return request;
}

void fl_runtime_command_answered(struct fl_runtime *runtime, const struct fl_effect *e)
{
    struct fl_admin_request *request = take(&runtime->wishes);

    request->code = e->code;
    if (e->code == FL_OK) {
        const struct fl_wire_controlled reply = {
            .phase = fl_wire_lend(fl_phase_name(fl_coord_phase(runtime->coord))),
            .text = fl_wire_lend(e->text),
            .round = fl_coord_round(runtime->coord)};

        fl_log(runtime->srv->log, FL_LOG_NOTICE, "server", "the operator is told: %s", e->text);
        FL_ADMIN_REPLY(request, fl_wire_controlled_encode, &reply);
    } else {
        (void)fl_err_set(&request->err, e->code, "%s", e->text);
    }
    fl_runtime_answer(runtime, request);
    /* Not within the effects of this step. */
    if (runtime->wishes.first != NULL && fl_loop_post(runtime->loop, ask_core, runtime) != FL_OK) {
        fl_serverd_no_memory(runtime->srv, "what the operator wishes");
    }
}

void fl_runtime_command_done(struct fl_runtime *runtime)
{
    while (runtime->wishes.first != NULL) {
        struct fl_admin_request *request = take(&runtime->wishes);

        request->code = fl_err_set(&request->err, FL_EUNAVAIL,
                                   "the server stops: whether that came to pass is not known");
        fl_runtime_answer(runtime, request);
    }
}
