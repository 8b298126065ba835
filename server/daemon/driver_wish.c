/*
 * What the operator wishes of the rounds (pause, resume, drain, abort-round, controls reset). The
 * core takes one at a time, and its answer is a promise that no kill takes back.
 */

#include "server/daemon/driver_impl.h"

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
    struct fl_driver *driver = arg;
    struct fl_event event = {0};

    if (driver->wishes.first != NULL) {
        event.type = event_of(driver->wishes.first->type);
        event.u.reason = driver->wishes.first->control.reason;
        fl_driver_step(driver, &event);
    }
}

void fl_driver_wish(struct fl_driver *driver, struct fl_admin_request *request)
{
    struct fl_wishes *w = &driver->wishes;

    request->next_wish = NULL;
    if (w->first != NULL) {
        w->last->next_wish = request;
        w->last = request;
        return; /* When the ones before it are answered. */
    }
    w->first = w->last = request;
    ask_core(driver);
}

static struct fl_admin_request *take(struct fl_wishes *w)
{
    struct fl_admin_request *request = w->first;

    w->first = request->next_wish;
    return request;
}

void fl_driver_wish_answered(struct fl_driver *driver, const struct fl_effect *e)
{
    struct fl_admin_request *request = take(&driver->wishes);

    request->code = e->code;
    if (e->code == FL_OK) {
        const struct fl_wire_controlled reply = {
            .phase = fl_wire_lend(fl_phase_name(fl_coord_phase(driver->coord))),
            .text = fl_wire_lend(e->text),
            .round = fl_coord_round(driver->coord)};

        fl_log(driver->srv->log, FL_LOG_NOTICE, "server", "the operator is told: %s", e->text);
        FL_ADMIN_REPLY(request, fl_wire_controlled_encode, &reply);
    } else {
        (void)fl_err_set(&request->err, e->code, "%s", e->text);
    }
    fl_driver_answer(driver, request);
    /* Not within the effects of this step. */
    if (driver->wishes.first != NULL && fl_loop_post(driver->loop, ask_core, driver) != FL_OK) {
        fl_serverd_no_memory(driver->srv, "what the operator wishes");
    }
}

void fl_driver_wish_done(struct fl_driver *driver)
{
    while (driver->wishes.first != NULL) {
        struct fl_admin_request *request = take(&driver->wishes);

        request->code = fl_err_set(&request->err, FL_EUNAVAIL,
                                   "the server stops: whether that came to pass is not known");
        fl_driver_answer(driver, request);
    }
}
