/*
 * Handles Welcome: prepares the worker for the federation that it describes, checks the operator's
 * limits, and leaves the session with a reason sent to the server when this client cannot take
 * part. Runs on the loop. It does not touch the worker's setup while a job is pending.
 */

#include "client/daemon/join.h"

#include <stdio.h>

#include "client/daemon/session_clock.h"
#include "client/store/day.h"
#include "client/work/terms.h"

#define DAY_S 86400
/*
 * Reconnect delay after the data went missing. Each reconnect checks the data first, with growing
 * pauses, and connects only when it is back.
 */
#define AFTER_LOSS_MS 1000

bool fl_joining_told(const struct fl_join_job *j)
{
    return j->unfit[0] != '\0';
}

/*
 * Sends the reason to the server and half-closes the stream. The session gets the event when the
 * stream has ended (fl_joining_down()); until then its greeting timeout applies.
 */
static void joining_leave(struct fl_join_job *j, struct fl_round_key key, bool unavailable,
                          const char *reason)
{
    struct fl_wire_event of_round = fl_session_failed(key, reason, /* diverged= */ false);
    const struct fl_wire_event leaves =
        fl_session_failed((struct fl_round_key){0}, reason, /* diverged= */ false);

    (void)snprintf(j->unfit, sizeof(j->unfit), "%s", reason);
    if (key.round > 0) { /* The server's round continues at once. */
        of_round.u.failed.unavailable = unavailable;
        fl_connection_send(j->connection, &of_round);
    }
    fl_connection_send(j->connection, &leaves);
    fl_connection_end(j->connection);
}

static void joining_leave_unfit(struct fl_join_job *j, const char *reason)
{
    fl_log(j->jobs->log, FL_LOG_ERROR, "client", "cannot take part in this federation, leaving: %s",
           reason);
    joining_leave(j, (struct fl_round_key){0}, /* unavailable= */ false, reason);
}

/* Before Welcome was accepted, or during a session. */
bool fl_joining_down(struct fl_join_job *j)
{
    bool greeting =
        fl_session_state(fl_session_shell_session(j->jobs->shell)) == FL_SESSION_GREETING;
    struct fl_session_event event = {.type = FL_CEV_WELCOME};

    if (!fl_joining_told(j)) {
        return false;
    }
    event.u.welcome.reason = j->unfit;
    if (!greeting || j->back_ms > 0) {
        event = (struct fl_session_event){.type = FL_CEV_REFUSED};
        event.u.refused.reason = j->unfit;
        event.u.refused.retry_after_ms = j->back_ms;
        event.u.refused.own = j->back_ms > 0;
    }
    fl_session_shell_step(j->jobs->shell, &event);
    j->unfit[0] = '\0';
    j->back_ms = 0;
    return true;
}

/* --- rounds of a day --- */

/* Is a round left today? An unreadable counter file counts as no rounds today. */
static bool day_has_room(struct fl_join_job *j, uint64_t day)
{
    uint64_t rounds = 0;
    struct fl_err err = {0};
    int rv = fl_day_rounds(j->worker->state_dir, day, &rounds, &err);

    if (rv != FL_OK) {
        fl_log(j->jobs->log, FL_LOG_WARNING, "client",
               "cannot read the number of rounds trained today, assuming 0: %s",
               fl_err_text(&err, rv));
    }
    return rounds < j->limits->rounds_per_day;
}

/* Leaves until the next day when today's rounds are used up; the reason is sent to the server. */
static bool leave_for_today(struct fl_join_job *j, struct fl_round_key key)
{
    uint64_t now = (uint64_t)fl_wall_seconds(NULL);
    char reason[128];

    if (j->limits->rounds_per_day == 0 || day_has_room(j, now / DAY_S)) {
        return false;
    }
    (void)snprintf(reason, sizeof(reason),
                   "it trained in %llu rounds today, its limit (limits.rounds_per_day)",
                   (unsigned long long)j->limits->rounds_per_day);
    fl_log(j->jobs->log, FL_LOG_NOTICE, "client", "leaving until tomorrow: %s", reason);
    j->back_ms = (uint32_t)(DAY_S - now % DAY_S) * 1000;
    joining_leave(j, key, /* unavailable= */ true, reason);
    return true;
}

/* --- the data of a task --- */

/* Leaves the session when the data is missing, or changed and has to be read again. */
static bool leave_for_data(struct fl_join_job *j, struct fl_round_key key)
{
    enum fl_data_state state = fl_data_watch_look(j->watch);
    bool again = key.round == j->changed.round && key.attempt == j->changed.attempt;

    /*
     * Data that changes all the time must not keep the client from training: one reconnect per
     * task.
     */
    if (state == FL_DATA_SAME || (state == FL_DATA_CHANGED && again)) {
        return false;
    }
    fl_trainings_cancel(j->trainings);
    if (state == FL_DATA_GONE) {
        j->back_ms = AFTER_LOSS_MS;
        joining_leave(j, key, /* unavailable= */ false,
                      "its data is missing: it reconnects when the data is back");
        return true;
    }
    j->changed = key;
    fl_log(j->jobs->log, FL_LOG_INFO, "client",
           "the data changed since it was read: reconnecting to read it before round %llu",
           (unsigned long long)key.round);
    fl_connection_close(j->connection);
    return true;
}

/* The device is not available now: the next Hello says so too. */
static bool leave_for_owner(struct fl_join_job *j, struct fl_round_key key)
{
    const char *why = fl_availability_evaluate(j->availability);
    struct fl_wire_event of_round;

    if (why[0] == '\0') {
        return false;
    }
    (void)snprintf(j->unfit, sizeof(j->unfit), "not available: %s", why);
    j->back_ms = AFTER_LOSS_MS;
    if (key.round > 0) { /* The server's round continues at once. */
        of_round = fl_session_failed(key, why, /* diverged= */ false);
        of_round.u.failed.unavailable = true;
        fl_connection_send(j->connection, &of_round);
    }
    fl_connection_end(j->connection);
    return true;
}

bool fl_joining_may_train(struct fl_join_job *j, struct fl_round_key key)
{
    /* A round already trained or in training is not counted again. */
    return fl_pending_result_is(j->pending, key) || fl_trainings_is(j->trainings, key) ||
           !(leave_for_owner(j, key) || leave_for_data(j, key) || leave_for_today(j, key));
}

void fl_joining_count_round(struct fl_join_job *j)
{
    struct fl_err err = {0};
    int rv = j->limits->rounds_per_day > 0
                 ? fl_day_add(j->worker->state_dir, (uint64_t)fl_wall_seconds(NULL) / DAY_S, &err)
                 : FL_OK;

    if (rv != FL_OK) {
        fl_log(j->jobs->log, FL_LOG_WARNING, "client",
               "cannot save the number of rounds trained today: %s", fl_err_text(&err, rv));
    }
}

void fl_joining_forget(struct fl_join_job *j)
{
    fl_downloads_cancel_task(j->downloads);
    fl_summary_upload_forget(j->summary_upload);
    fl_worker_forget(j->worker);
}

/* Does a running job, or one whose result is not processed yet, use the current setup? */
static bool joining_is_busy(const struct fl_join_job *j)
{
    return j->trainings->newest != NULL || fl_worker_thread_pending(j->jobs->thread) > 0;
}

/* Prepares the worker for a new setup. Takes the contents of `w`. */
static int joining_prepare_setup(struct fl_join_job *j, struct fl_wire_welcome *w,
                                 const char **held_unfit, struct fl_err *err)
{
    const struct fl_result *held = j->pending->result;
    struct fl_setup *setup = NULL;
    int rv = fl_setup_create(w, &setup, err);

    if (rv != FL_OK) {
        return rv;
    }
    fl_joining_forget(j);
    rv = fl_terms_check_model(&j->worker->terms, setup, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_worker_prepare(j->worker, setup, err);
    if (rv != FL_OK) {
        goto done;
    }
    *held_unfit = fl_worker_unfit(j->worker, held);
    if (*held_unfit != NULL) {
        fl_log_peer(j->jobs->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "dropping the pending result of round %llu: %s",
                    (unsigned long long)held->key.round, *held_unfit);
    }
done:
    fl_setup_unref(setup);
    return rv;
}

/* Cancels work for the previous setup and reconnects; the next Welcome finds the worker idle. */
static void joining_end_work(struct fl_join_job *j)
{
    fl_log_peer(j->jobs->log, FL_LOG_INFO, "client", FL_WORK_SERVER,
                "the server now describes another federation or setup: cancelling the current task "
                "and reconnecting");
    fl_trainings_cancel(j->trainings);
    fl_evaluations_leave(j->evaluations);
    fl_connection_close(j->connection);
}

/* Out of memory is temporary, so the client reconnects instead of leaving. */
static void joining_reconnect(struct fl_join_job *j)
{
    fl_log(j->jobs->log, FL_LOG_ERROR, "client",
           "out of memory while preparing the model and settings of the server: reconnecting");
    fl_connection_close(j->connection);
}

static void joining_log(const struct fl_join_job *j)
{
    const struct fl_setup *setup = j->worker->setup;

    fl_log_peer(j->jobs->log, FL_LOG_NOTICE, "client", FL_WORK_SERVER,
                "joined federation '%s' units=%zu parameters=%zu", setup->welcome.federation,
                fl_layout_units(setup->layout), fl_layout_count(setup->layout));
}

bool fl_joining_welcome(struct fl_join_job *j, struct fl_wire_welcome *w,
                        struct fl_session_event *event)
{
    struct fl_err err = {0};
    /* After a reconnect the setup is nearly always the prepared one. */
    bool same = j->worker->setup != NULL && fl_setup_is(j->worker->setup, w);
    bool wants_summary = w->wants_summary; /* of this session only, so not compared */
    int rv;

    if (!same && joining_is_busy(j)) {
        joining_end_work(j);
        return false;
    }
    fl_connection_welcomed(j->connection, w->session, w->limits.chunk_bytes);
    event->u.welcome.heartbeat_ms = w->heartbeat_ms;
    event->u.welcome.model_fits = true;
    if (!same) {
        rv = joining_prepare_setup(j, w, &event->u.welcome.held_unfit, &err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    /* A busy trainer belongs to the training thread, and its setup was checked before. */
    if (!joining_is_busy(j)) {
        rv = fl_terms_check_training(j->worker, &err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl_data_summary_check(j->worker, wants_summary, &err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (j->pending->result == NULL && leave_for_today(j, (struct fl_round_key){0})) {
        return false;
    }
    joining_log(j);
    /* With a pending result it stays until that is delivered. */
    return j->pending->result != NULL || !fl_availability_disconnects(j->availability) ||
           !leave_for_owner(j, (struct fl_round_key){0});
fail:
    if (rv == FL_ENOMEM) {
        joining_reconnect(j);
    } else {
        joining_leave_unfit(j, fl_err_text(&err, rv));
    }
    return false;
}
