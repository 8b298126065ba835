#include "client/daemon/join.h"

#include <stdio.h>

#include "client/daemon/events.h"

bool fl_joining_told(const struct fl_joining *j)
{
    return j->unfit[0] != '\0';
}

/*
 * The server's operator is told too. The session hears of it once that is out and the stream has
 * ended (fl_joining_down()); until then it waits for its Welcome, and no longer than for that.
 */
static void tell_unfit(struct fl_joining *j, const char *reason)
{
    (void)snprintf(j->unfit, sizeof(j->unfit), "%s", reason);
    fl_log(j->jobs->log, FL_LOG_ERROR, "client", "this federation does not fit: %s", reason);
    fl_event_failed(j->connection, (struct fl_round_key){0}, reason, false);
    fl_connection_end(j->connection);
}

bool fl_joining_down(struct fl_joining *j)
{
    struct fl_session_event event = {.type = FL_CEV_WELCOME};

    if (!fl_joining_told(j)) {
        return false;
    }
    event.u.welcome.reason = j->unfit;
    fl_stepper_step(j->jobs->stepper, &event);
    j->unfit[0] = '\0';
    return true;
}

void fl_joining_forget(struct fl_joining *j)
{
    fl_downloads_cancel_task(j->downloads);
    fl_offering_forget(j->offering);
    fl_worker_forget(j->worker);
}

/* Is anything on the lane that uses the description, or not yet heard of? */
static bool busy(const struct fl_joining *j)
{
    return j->trainings->newest != NULL || fl_lane_pending(j->jobs->lane) > 0;
}

/* Another description than the one that is prepared. Takes the contents of `w`. */
static int describe(struct fl_joining *j, struct fl_wire_welcome *w, const char **held_unfit,
                    struct fl_err *err)
{
    const struct fl_result *held = j->held->result;
    struct fl_setup *setup = NULL;
    int rv = fl_setup_create(w, &setup, err);

    if (rv == FL_OK) {
        fl_joining_forget(j);
        rv = fl_worker_prepare(j->worker, setup, err);
        fl_setup_unref(setup);
    }
    if (rv != FL_OK) {
        return rv;
    }
    *held_unfit = held != NULL ? fl_worker_unfit(j->worker, held) : NULL;
    if (*held_unfit != NULL) {
        fl_log_peer(j->jobs->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "dropping the kept result of round %llu: %s",
                    (unsigned long long)held->key.round, *held_unfit);
    }
    return FL_OK;
}

/* The work for another description ends first, then the client comes again. */
static void end_work(struct fl_joining *j)
{
    fl_log_peer(j->jobs->log, FL_LOG_INFO, "client", FL_WORK_SERVER,
                "the server describes another federation than the one that is still worked for: "
                "ending that work, then coming again");
    fl_trainings_cancel(j->trainings);
    fl_evaluations_leave(j->evaluations);
    fl_connection_close(j->connection);
}

/* That passes: what the server describes is no reason to stay away from it. */
static void come_again(struct fl_joining *j)
{
    fl_log(j->jobs->log, FL_LOG_ERROR, "client",
           "out of memory while preparing what the server describes: coming again");
    fl_connection_close(j->connection);
}

static void joined(struct fl_joining *j, struct fl_session_event *event, bool wants_offer)
{
    const struct fl_setup *setup = j->worker->setup;

    event->u.welcome.model_fits = true;
    fl_log_peer(j->jobs->log, FL_LOG_NOTICE, "client", FL_WORK_SERVER,
                "joined federation '%s' units=%zu parameters=%zu", setup->welcome.federation,
                fl_layout_units(setup->layout), fl_layout_count(setup->layout));
    fl_stepper_step(j->jobs->stepper, event);
    if (wants_offer) {
        fl_offering_begin(j->offering);
    }
}

void fl_joining_welcome(struct fl_joining *j, struct fl_wire_welcome *w)
{
    struct fl_session_event event = {.type = FL_CEV_WELCOME};
    struct fl_err err = {0};
    /* After a reconnect the description is nearly always the one that is prepared already. */
    bool same = j->worker->setup != NULL && fl_setup_is(j->worker->setup, w);
    bool wants_offer = w->wants_offer; /* Asked anew in each session, so no part of what is same. */
    int rv = FL_OK;

    if (!same && busy(j)) {
        end_work(j);
        return;
    }
    fl_connection_welcomed(j->connection, w->session, w->limits.chunk_bytes);
    event.u.welcome.heartbeat_ms = w->heartbeat_ms;
    if (!same) {
        rv = describe(j, w, &event.u.welcome.held_unfit, &err);
    }
    if (rv == FL_OK) {
        rv = fl_offer_check(j->worker->setup, wants_offer, j->may_offer, &err);
    }
    if (rv == FL_OK) {
        joined(j, &event, wants_offer);
    } else if (rv == FL_ENOMEM) {
        come_again(j);
    } else {
        tell_unfit(j, fl_err_text(&err, rv));
    }
}
