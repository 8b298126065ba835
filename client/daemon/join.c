#include "client/daemon/join.h"

#include <stdio.h>

#include "client/daemon/events.h"
#include "client/daemon/session_clock.h"
#include "client/store/day.h"
#include "client/work/terms.h"

#define DAY_S 86400
/* Then the data is looked at, and with growing pauses; the server is not asked before it is there.
 */
#define AFTER_LOSS_MS 1000

bool fl_joining_told(const struct fl_join_job *j)
{
    return j->unfit[0] != '\0';
}

/*
 * The server's operator is told too. The session hears of it once that is out and the stream has
 * ended (fl_joining_down()); until then it waits for its Welcome, and no longer than for that.
 */
static void leave(struct fl_join_job *j, struct fl_round_key key, const char *reason)
{
    (void)snprintf(j->unfit, sizeof(j->unfit), "%s", reason);
    if (key.round > 0) { /* Its round goes on at once. */
        fl_event_failed(j->connection, key, reason, false);
    }
    fl_event_failed(j->connection, (struct fl_round_key){0}, reason, false);
    fl_connection_end(j->connection);
}

static void tell_unfit(struct fl_join_job *j, const char *reason)
{
    fl_log(j->jobs->log, FL_LOG_ERROR, "client", "this federation does not fit: %s", reason);
    leave(j, (struct fl_round_key){0}, reason);
}

/* Before or in the middle of a session. */
bool fl_joining_down(struct fl_join_job *j)
{
    bool greeting = fl_session_state(fl_stepper_session(j->jobs->stepper)) == FL_SESSION_GREETING;
    struct fl_session_event event = {.type = FL_CEV_WELCOME};

    if (!fl_joining_told(j)) {
        return false;
    }
    event.u.welcome.reason = j->unfit;
    if (!greeting || j->back_ms > 0) {
        event = (struct fl_session_event){.type = FL_CEV_REFUSED};
        event.u.refused.reason = j->unfit;
        event.u.refused.retry_after_ms = j->back_ms;
    }
    fl_stepper_step(j->jobs->stepper, &event);
    j->unfit[0] = '\0';
    j->back_ms = 0;
    return true;
}

/* --- rounds of a day --- */

/* Is there one left? A file that cannot be read counts as none of today. */
static bool day_has_room(struct fl_join_job *j, uint64_t day)
{
    uint64_t rounds = 0;
    struct fl_err err = {0};
    int rv = fl_day_rounds(j->worker->state_dir, day, &rounds, &err);

    if (rv != FL_OK) {
        fl_log(j->jobs->log, FL_LOG_WARNING, "client",
               "cannot tell how many rounds were trained today: %s", fl_err_text(&err, rv));
    }
    return rounds < j->rounds_per_day;
}

/* Today's rounds are used up: the server is sent the reason, and this client leaves until tomorrow.
 */
static bool leave_for_today(struct fl_join_job *j, struct fl_round_key key)
{
    uint64_t now = (uint64_t)fl_wall_seconds(NULL);
    char reason[128];

    if (j->rounds_per_day == 0 || day_has_room(j, now / DAY_S)) {
        return false;
    }
    (void)snprintf(reason, sizeof(reason),
                   "it trained in %llu rounds today, limits.rounds_per_day of this client",
                   (unsigned long long)j->rounds_per_day);
    fl_log(j->jobs->log, FL_LOG_NOTICE, "client", "leaving until tomorrow: %s", reason);
    j->back_ms = (uint32_t)(DAY_S - now % DAY_S) * 1000;
    leave(j, key, reason);
    return true;
}

/* --- the data of a task --- */

/* Goes away: the data is gone, or has to be read again before a session tells of it. */
static bool leave_for_data(struct fl_join_job *j, struct fl_round_key key)
{
    enum fl_data_state state = fl_data_watch_look(j->watch);
    bool again = key.round == j->changed.round && key.attempt == j->changed.attempt;

    /* Data that never stays as it is must not keep the client from training. */
    if (state == FL_DATA_SAME || (state == FL_DATA_CHANGED && again)) {
        return false;
    }
    fl_trainings_cancel(j->trainings);
    if (state == FL_DATA_GONE) {
        j->back_ms = AFTER_LOSS_MS;
        leave(j, key, "its data is gone: it comes back with the data");
        return true;
    }
    j->changed = key;
    fl_log(j->jobs->log, FL_LOG_INFO, "client",
           "the data changed since it was read: reading it again before round %llu",
           (unsigned long long)key.round);
    fl_connection_close(j->connection);
    return true;
}

bool fl_joining_may_train(struct fl_join_job *j, struct fl_round_key key)
{
    /* What is trained already, or still in training, is none more. */
    return fl_pending_result_is(j->held, key) || fl_trainings_is(j->trainings, key) ||
           !(leave_for_data(j, key) || leave_for_today(j, key));
}

void fl_joining_count_round(struct fl_join_job *j)
{
    struct fl_err err = {0};
    int rv = j->rounds_per_day > 0
                 ? fl_day_add(j->worker->state_dir, (uint64_t)fl_wall_seconds(NULL) / DAY_S, &err)
                 : FL_OK;

    if (rv != FL_OK) {
        fl_log(j->jobs->log, FL_LOG_WARNING, "client", "cannot count the rounds of today: %s",
               fl_err_text(&err, rv));
    }
}

void fl_joining_forget(struct fl_join_job *j)
{
    fl_downloads_cancel_task(j->downloads);
    fl_summary_upload_forget(j->offering);
    fl_worker_forget(j->worker);
}

/* Is anything on the lane that uses the description, or not yet heard of? */
static bool busy(const struct fl_join_job *j)
{
    return j->trainings->newest != NULL || fl_worker_thread_pending(j->jobs->thread) > 0;
}

/* Another description than the one that is prepared. Takes the contents of `w`. */
static int describe(struct fl_join_job *j, struct fl_wire_welcome *w, const char **held_unfit,
                    struct fl_err *err)
{
    const struct fl_result *held = j->held->result;
    struct fl_setup *setup = NULL;
    int rv = fl_setup_create(w, &setup, err);

    if (rv == FL_OK) {
        fl_joining_forget(j);
        rv = fl_terms_check_model(&j->worker->terms, setup, err);
        rv = rv == FL_OK ? fl_worker_prepare(j->worker, setup, err) : rv;
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
static void end_work(struct fl_join_job *j)
{
    fl_log_peer(j->jobs->log, FL_LOG_INFO, "client", FL_WORK_SERVER,
                "the server describes another federation than the one that is still worked for: "
                "ending that work, then coming again");
    fl_trainings_cancel(j->trainings);
    fl_evaluations_leave(j->evaluations);
    fl_connection_close(j->connection);
}

/* That passes: what the server describes is no reason to stay away from it. */
static void come_again(struct fl_join_job *j)
{
    fl_log(j->jobs->log, FL_LOG_ERROR, "client",
           "out of memory while preparing what the server describes: coming again");
    fl_connection_close(j->connection);
}

static void joined(struct fl_join_job *j, struct fl_session_event *event, bool wants_offer)
{
    const struct fl_setup *setup = j->worker->setup;

    event->u.welcome.model_fits = true;
    fl_log_peer(j->jobs->log, FL_LOG_NOTICE, "client", FL_WORK_SERVER,
                "joined federation '%s' units=%zu parameters=%zu", setup->welcome.federation,
                fl_layout_units(setup->layout), fl_layout_count(setup->layout));
    fl_stepper_step(j->jobs->stepper, event);
    if (wants_offer) {
        fl_summary_upload_begin(j->offering);
    }
}

void fl_joining_welcome(struct fl_join_job *j, struct fl_wire_welcome *w)
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
    /* The trainer is the lane's while it works, for a description that was checked before. */
    if (rv == FL_OK && !busy(j)) {
        rv = fl_terms_check_training(j->worker, &err);
    }
    if (rv == FL_OK) {
        rv = fl_offer_check(j->worker, wants_offer, &err);
    }
    if (rv == FL_OK && j->held->result == NULL && leave_for_today(j, (struct fl_round_key){0})) {
        return;
    }
    if (rv == FL_OK) {
        joined(j, &event, wants_offer);
    } else if (rv == FL_ENOMEM) {
        come_again(j);
    } else {
        tell_unfit(j, fl_err_text(&err, rv));
    }
}
