#include "server/daemon/driver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "server/core/told.h"
#include "server/daemon/driver_impl.h"
#include "server/daemon/front.h"

void fl_up_free(struct fl_up *up)
{
    if (up == NULL) {
        return;
    }
    if (up->event.type != 0) {
        fl_wire_event_done(&up->event);
    }
    fl_buf_done(&up->offer);
    free(up->text);
    free(up->norms.unit);
    free(up);
}

void fl_down_free(struct fl_down *down)
{
    if (down == NULL) {
        return;
    }
    fl_bytes_done(&down->bytes);
    free(down->units);
    free(down->text);
    free(down);
}

struct fl_down *fl_down_new(struct fl_driver *driver, enum fl_down_type type)
{
    struct fl_down *down = calloc(1, sizeof(*down));

    if (down == NULL) {
        fl_serverd_no_memory(driver->srv, "a command");
    }
    down->type = type;
    down->front = driver->srv->front;
    return down;
}

void fl_driver_down(struct fl_driver *driver, struct fl_down *down)
{
    (void)driver;
    fl_front_post(down);
}

void *fl_down_copy(const struct fl_driver *driver, const void *data, size_t len)
{
    void *copy = data != NULL ? malloc(len > 0 ? len : 1) : NULL;

    if (data != NULL && copy == NULL) {
        fl_serverd_no_memory(driver->srv, "a command");
    }
    return copy != NULL ? memcpy(copy, data, len) : NULL;
}

char *fl_down_text(const struct fl_driver *driver, const char *text)
{
    return text != NULL ? fl_down_copy(driver, text, strlen(text) + 1) : NULL;
}

static void command(struct fl_driver *driver, const struct fl_effect *e, enum fl_down_type type)
{
    struct fl_down *down = fl_down_new(driver, type);
    size_t n = fl_layout_units(driver->srv->conf->layout);
    /* Of a round before clients restarted their state, they have nothing, and have lost nothing. */
    bool counted = e->counted_round > driver->federation.line.kept_since;

    down->client = e->client;
    down->round = e->round;
    down->attempt = e->attempt;
    down->learning_rate = e->learning_rate;
    down->seed = e->client_seed;
    down->order_seed = e->order_seed;
    down->deadline_ms = e->deadline_ms;
    down->text = fl_down_text(driver, e->text);
    down->counted_round = counted ? e->counted_round : 0;
    down->counted_attempt = counted ? e->counted_attempt : 0;
    down->n_selected = e->size.selected;
    down->population = e->size.population;
    down->epoch = e->size.epoch;
    if (e->mixture) { /* After damage it may be gone. */
        down->mixture = fl_bundles_has_mixture(&driver->progress,
                                               fl_coord_client(driver->coord, e->client)->name);
    }
    down->units = fl_down_copy(driver, e->units, n);
    fl_driver_down(driver, down);
}

/* A client that adapts the model to its data before does so as in the round's training. */
static void evaluate(struct fl_driver *driver, const struct fl_effect *e)
{
    struct fl_effect with_rate = *e;

    with_rate.learning_rate = fl_coord_learning_rate(&driver->coord_conf, e->round);
    command(driver, &with_rate, FL_DOWN_EVALUATE);
}

static void round_closed(struct fl_driver *driver, const struct fl_effect *e)
{
    fl_driver_round_bundles_closed(driver, e->round);
    command(driver, e, FL_DOWN_ROUND_CLOSED);
}

static void finished(struct fl_driver *driver)
{
    driver->finished = true;
    fl_log(driver->srv->log, FL_LOG_NOTICE, "server", "all rounds are done rounds=%llu",
           (unsigned long long)fl_coord_committed(driver->coord));
    fl_driver_down(driver, fl_down_new(driver, FL_DOWN_FINISHED));
}

static void refuse(struct fl_driver *driver, uint64_t session, const char *text)
{
    struct fl_down *down = fl_down_new(driver, FL_DOWN_REFUSED);

    down->session = session;
    down->text = fl_down_text(driver, text);
    fl_driver_down(driver, down);
}

static void keep_labels(struct fl_driver *driver, uint32_t client,
                        const struct fl_wire_hello *hello)
{
    if (fl_labels_set(&driver->labels, client, hello->labels, hello->n_labels) != FL_OK) {
        fl_log_peer(driver->srv->log, FL_LOG_WARNING, "server", hello->client,
                    "no memory for the labels of client '%s', they are not shown", hello->client);
    }
}

static void client_id(struct fl_driver *driver, const struct fl_effect *e)
{
    struct fl_down *down;

    if (driver->joining == NULL) {
        return; /* It was here before, and joined with what it has only now. */
    }
    if (e->text != NULL) {
        refuse(driver, driver->joining->session, e->text);
        return;
    }
    keep_labels(driver, e->client, &driver->joining->event.u.hello);
    down = fl_down_new(driver, FL_DOWN_JOINED);
    down->session = driver->joining->session;
    down->client = e->client;
    down->text = fl_down_text(driver, driver->joining->event.u.hello.client);
    down->wants_offer = fl_offering_wanted(&driver->federation, &driver->progress);
    fl_driver_down(driver, down);
}

static void commit(struct fl_driver *driver, const struct fl_effect *e)
{
    driver->newest_error[0] = '\0';
    fl_driver_commit(driver, e);
}

static void release(struct fl_driver *driver, const struct fl_effect *e)
{
    fl_labels_drop(&driver->labels, e->client);
    fl_takeovers_drop(&driver->takeovers, e->client);
    command(driver, e, FL_DOWN_RELEASE);
}

/* Lines about one client are those that it can cause at will, by coming and going, say. */
static void trace(const struct fl_driver *driver, enum fl_log_level level, const char *text)
{
    static const char about[] = "client '";
    const char *name = text + sizeof(about) - 1;
    const char *end;
    char who[FL_NAME_MAX];

    if (strncmp(text, about, sizeof(about) - 1) != 0 || (end = strchr(name, '\'')) == NULL) {
        fl_log(driver->srv->log, level, "round", "%s", text);
        return;
    }
    (void)snprintf(who, sizeof(who), "%.*s", (int)(end - name), name);
    fl_log_peer(driver->srv->log, level, "round", who, "%s", text);
}

static void note_told(const struct fl_driver *driver, const struct fl_effect *e)
{
    size_t n = fl_layout_units(driver->srv->conf->layout);
    char line[FL_TOLD_SIZE];

    if (driver->srv->log != NULL && atomic_load(&driver->srv->log->level) >= FL_LOG_DEBUG &&
        fl_told(driver->coord, e, n, line) != NULL)
    {
        fl_log(driver->srv->log, FL_LOG_DEBUG, "told", "%s", line);
    }
}

/* Effects that are one command to clients, and nothing else. */
static const enum fl_down_type command_of[] = {
    [FL_EFF_TASK] = FL_DOWN_TASK,           [FL_EFF_PLAN] = FL_DOWN_PLAN,
    [FL_EFF_ACCEPTED] = FL_DOWN_ACCEPTED,   [FL_EFF_REJECTED] = FL_DOWN_REJECTED,
    [FL_EFF_DISMISSED] = FL_DOWN_DISMISSED, [FL_EFF_DRAIN_CLIENTS] = FL_DOWN_DRAIN,
};

static void carry_out(struct fl_driver *driver, const struct fl_effect *e)
{
    switch (e->type) {
    case FL_EFF_TASK:
    case FL_EFF_PLAN:
    case FL_EFF_ACCEPTED:
    case FL_EFF_REJECTED:
    case FL_EFF_DISMISSED:
    case FL_EFF_DRAIN_CLIENTS:
        command(driver, e, command_of[e->type]);
        break;
    case FL_EFF_EVALUATE_CLIENT:
        evaluate(driver, e);
        break;
    case FL_EFF_CLIENT_ID:
        client_id(driver, e);
        break;
    case FL_EFF_RELEASE:
        release(driver, e);
        break;
    case FL_EFF_FORGOTTEN:
        fl_driver_forgotten(driver, e);
        break;
    case FL_EFF_ANSWER:
        fl_driver_wish_answered(driver, e);
        break;
    case FL_EFF_FORGET_CLIENTS:
    case FL_EFF_PERSIST_PAUSE:
    case FL_EFF_PERSIST_SELECTION:
    case FL_EFF_PERSIST_PLAN:
    case FL_EFF_PERSIST_UPDATE:
        fl_driver_persist(driver, e);
        break;
    case FL_EFF_AGGREGATE:
        fl_driver_aggregate(driver, e);
        break;
    case FL_EFF_EVALUATE:
        fl_driver_evaluate(driver, e);
        break;
    case FL_EFF_COMMIT:
        commit(driver, e);
        break;
    case FL_EFF_ROUND_OPEN:
        fl_driver_round_open(driver, e);
        break;
    case FL_EFF_ROUND_CLOSED:
        round_closed(driver, e);
        break;
    case FL_EFF_CLIENT_ERROR:
        fl_driver_client_error(driver, e);
        break;
    case FL_EFF_TRACE:
        trace(driver, e->warning ? FL_LOG_WARNING : FL_LOG_INFO, e->text);
        break;
    case FL_EFF_FINISHED:
        finished(driver);
        break;
    case FL_EFF_STOPPED:
        fl_driver_down(driver, fl_down_new(driver, FL_DOWN_STOPPED));
        break;
    }
}

void fl_driver_step(struct fl_driver *driver, struct fl_event *event)
{
    struct fl_effects effects = {0};
    uint64_t deadline;
    size_t i;
    int rv;

    if (driver->stopped) {
        return;
    }
    event->now_ms = fl_driver_now(driver);
    event->wall_ms = fl_clock_wall_ms();
    rv = fl_coord_step(driver->coord, event, &effects);
    if (rv != FL_OK) { /* FL_ENOMEM only. */
        fl_serverd_no_memory(driver->srv, "a step of the coordinator");
    }
    for (i = 0; i < effects.n; i++) {
        if (effects.list[i].type == FL_EFF_EVALUATE_CLIENT &&
            driver->progress.next.model.theta != NULL) {
            fl_driver_bundle(driver, FL_BUNDLE_CANDIDATE, effects.list[i].round,
                             driver->progress.next.model.theta);
        }
        note_told(driver, &effects.list[i]);
        carry_out(driver, &effects.list[i]);
    }
    deadline = fl_coord_deadline(driver->coord);
    if (deadline == UINT64_MAX) {
        fl_timer_stop(driver->timer);
    } else {
        uint64_t now = fl_driver_now(driver);

        fl_timer_start(driver->timer, deadline > now ? deadline - now : 0);
    }
    fl_driver_age_errors(driver);
    fl_status_changed(driver->status);
}

static void on_timer(void *arg)
{
    struct fl_event event = {.type = FL_EV_TICK};

    fl_driver_step(arg, &event);
}

static void on_join(struct fl_driver *driver, const struct fl_up *up)
{
    const struct fl_wire_hello *hello = &up->event.u.hello;
    struct fl_event event = {.type = FL_EV_CLIENT_JOINED};

    event.u.joined.name = hello->client;
    event.u.joined.agent = hello->agent != NULL ? hello->agent : "";
    event.u.joined.samples = hello->samples;
    event.u.joined.evaluation_samples = hello->evaluation_samples;
    event.u.joined.offer_missing =
        fl_offering_waits(&driver->federation, &driver->progress, hello->client);
    driver->joining = up;
    fl_driver_step(driver, &event);
    driver->joining = NULL;
}

static struct fl_eval_rec eval_rec(bool has, const struct fl_wire_evaluation *e)
{
    return has ? (struct fl_eval_rec){e->samples, e->correct, e->loss_sum}
               : (struct fl_eval_rec){0};
}

static void on_report(struct fl_driver *driver, const struct fl_up *up)
{
    const struct fl_wire_report *r = &up->event.u.report;
    struct fl_event event = {.type = FL_EV_REPORT};

    event.u.report.client = up->client;
    event.u.report.round = r->round;
    event.u.report.attempt = r->attempt;
    event.u.report.samples = r->samples;
    event.u.report.steps = r->steps;
    event.u.report.train_loss = r->train_loss;
    event.u.report.divergence = r->divergence;
    event.u.report.n_divergence = r->n_divergence;
    event.u.report.previous_dot = r->previous_dot;
    event.u.report.has_kept = r->has_kept;
    event.u.report.kept_round = r->kept_round;
    event.u.report.kept_attempt = r->kept_attempt;
    event.u.report.received = eval_rec(r->has_received, &r->received);
    event.u.report.trained = eval_rec(r->has_trained, &r->trained);
    fl_driver_step(driver, &event);
}

static void on_client_event(struct fl_driver *driver, const struct fl_up *up)
{
    struct fl_event event = {0};

    switch (up->event.type) {
    case FL_WIRE_REPORT:
        on_report(driver, up);
        return;
    case FL_WIRE_FAILED:
        event.type = FL_EV_CLIENT_FAILED;
        event.u.failed.client = up->client;
        event.u.failed.round = up->event.u.failed.round;
        event.u.failed.attempt = up->event.u.failed.attempt;
        event.u.failed.reason = up->event.u.failed.reason;
        event.u.failed.diverged = up->event.u.failed.diverged;
        break;
    case FL_WIRE_EVALUATION:
        event.type = FL_EV_EVAL_REPORT;
        event.u.eval.client = up->client;
        event.u.eval.round = up->event.u.evaluation.round;
        event.u.eval.result = eval_rec(true, &up->event.u.evaluation.result);
        event.u.eval.adapted =
            eval_rec(up->event.u.evaluation.has_adapted, &up->event.u.evaluation.adapted);
        break;
    case FL_WIRE_OFFER: /* The network side collects offers. */
    case FL_WIRE_HELLO:
    case FL_WIRE_HEARTBEAT_EVENT:
        return;
    }
    fl_driver_step(driver, &event);
}

/* The next event of that session may come. */
static void taken(struct fl_driver *driver, const struct fl_up *up)
{
    struct fl_down *down = fl_down_new(driver, FL_DOWN_TAKEN);

    down->session = up->session;
    down->client = up->client;
    fl_driver_down(driver, down);
}

static void on_upload(struct fl_driver *driver, const struct fl_up *up)
{
    struct fl_event event = {.type = up->type == FL_UP_STORED     ? FL_EV_UPLOAD_STORED
                                     : up->type == FL_UP_INVALID  ? FL_EV_UPLOAD_INVALID
                                     : up->type == FL_UP_UNSTORED ? FL_EV_UPLOAD_UNSTORED
                                                                  : FL_EV_UPLOAD_PROGRESS};

    event.u.upload.client = up->client;
    event.u.upload.round = up->round;
    event.u.upload.attempt = up->attempt;
    event.u.upload.bytes = up->bytes;
    event.u.upload.held = up->held;
    event.u.upload.code = up->code;
    event.u.upload.reason = up->text;
    event.u.upload.norms = up->norms.unit != NULL ? &up->norms : NULL;
    fl_driver_own_failure(driver, up->type == FL_UP_UNSTORED ? up->text : NULL);
    fl_driver_step(driver, &event);
}

static void on_up(void *arg)
{
    struct fl_up *up = arg;
    struct fl_driver *driver = up->driver;
    struct fl_event event = {0};

    switch (up->type) {
    case FL_UP_JOIN:
        on_join(driver, up);
        break;
    case FL_UP_LOST:
        event.type = FL_EV_CLIENT_LOST;
        event.u.client = up->client;
        fl_driver_step(driver, &event);
        break;
    case FL_UP_HEARD:
        event.type = FL_EV_CLIENT_HEARD;
        event.u.client = up->client;
        fl_driver_step(driver, &event);
        break;
    case FL_UP_TAKEOVER:
        fl_driver_takeover(driver, up->client, up->text);
        break;
    case FL_UP_RELEASED:
        event.type = FL_EV_RELEASED;
        event.u.client = up->client;
        fl_driver_step(driver, &event);
        break;
    case FL_UP_EVENT:
        on_client_event(driver, up);
        taken(driver, up);
        break;
    case FL_UP_OFFER:
        fl_driver_offer(driver, up);
        break;
    case FL_UP_STORED:
    case FL_UP_INVALID:
    case FL_UP_UNSTORED:
    case FL_UP_PROGRESS:
        on_upload(driver, up);
        break;
    case FL_UP_EXCLUDE:
        fl_driver_exclude(driver, up->text, up->keeps);
        break;
    case FL_UP_ADMIN:
        fl_driver_admin(driver, up->request);
        break;
    case FL_UP_STOP:
        event.type = FL_EV_STOP;
        event.u.reason = up->text;
        fl_driver_step(driver, &event);
        break;
    }
    fl_up_free(up);
}

void fl_driver_post(struct fl_driver *driver, struct fl_up *up)
{
    up->driver = driver;
    if (fl_loop_post(driver->loop, on_up, up) != FL_OK) {
        fl_serverd_no_memory(driver->srv, "news for the coordinator");
    }
}

static void on_start(void *arg)
{
    struct fl_driver *driver = arg;
    struct fl_event event = {.type = FL_EV_START};

    fl_driver_step(driver, &event);
}

static void thread_main(void *arg)
{
    struct fl_driver *driver = arg;

    fl_loop_run(driver->loop);
}

int fl_driver_create(struct fl_serverd *srv, struct fl_driver **ret, int *ret_exit,
                     struct fl_err *err)
{
    struct fl_driver *driver = calloc(1, sizeof(*driver));
    int rv;

    if (driver == NULL) {
        return FL_ENOMEM;
    }
    driver->srv = srv;
    driver->lock_fd = -1;
    fl_server_conf_coord(srv->conf, &driver->coord_conf);
    srv->line = &driver->federation.line;
    rv = fl_driver_recover(driver, ret_exit, err);
    if (rv == FL_OK) {
        rv = fl_coord_create(&driver->coord_conf, &driver->resume, &driver->coord, err);
    }
    if (rv == FL_OK) {
        rv = fl_loop_create(&driver->loop, err);
    }
    if (rv == FL_OK) {
        rv = fl_timer_create(driver->loop, on_timer, driver, &driver->timer);
    }
    if (rv == FL_OK) {
        rv = fl_driver_status_create(driver);
    }
    if (rv == FL_OK) {
        rv = fl_driver_stall_create(driver);
    }
    if (rv != FL_OK) {
        fl_driver_free(driver);
        return rv;
    }
    *ret = driver;
    return FL_OK;
}

int fl_driver_start(struct fl_driver *driver, struct fl_err *err)
{
    int rv = fl_thread_create("fl-coord", thread_main, driver, &driver->thread, err);

    return rv == FL_OK ? fl_loop_post(driver->loop, on_start, driver) : rv;
}

struct fl_loop *fl_driver_loop(struct fl_driver *driver)
{
    return driver->loop;
}

static void on_stop(void *arg)
{
    struct fl_driver *driver = arg;

    driver->stopped = true;
    fl_loop_stop(driver->loop);
}

void fl_driver_stop(struct fl_driver *driver)
{
    if (driver->thread == NULL) {
        return;
    }
    atomic_store(&driver->cancel, true);
    if (fl_loop_post(driver->loop, on_stop, driver) != FL_OK) {
        fl_serverd_no_memory(driver->srv, "stopping the coordinator");
    }
    fl_thread_join(driver->thread);
    driver->thread = NULL;
}

void fl_driver_free(struct fl_driver *driver)
{
    if (driver == NULL) {
        return;
    }
    driver->stopped = true;
    fl_timer_close(driver->timer);
    fl_timer_close(driver->look);
    fl_status_close(driver->status);
    driver->status = NULL;
    if (driver->loop != NULL) {
        fl_loop_free(driver->loop);
    }
    fl_driver_forget_done(driver);
    fl_driver_wish_done(driver);
    fl_coord_free(driver->coord);
    fl_store_close(driver->federation.store);
    fl_store_resume_done(&driver->resume);
    fl_progress_done(&driver->progress);
    fl_errors_done(&driver->errors);
    fl_labels_done(&driver->labels);
    fl_takeovers_done(&driver->takeovers);
    fl_evaluator_free(driver->evaluator);
    if (driver->lock_fd >= 0) {
        (void)close(driver->lock_fd);
    }
    free(driver);
}
