/*
 * The coordinator runtime: passes the messages of the network front end as events to the shell of
 * the coordinator (server/shell), and has its operations: commands to clients, timers; those of
 * jobs are in runtime_jobs.c. Coordinator thread. Decisions about rounds are made in server/core.
 */

#include "server/runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "server/runtime/runtime_impl.h"
#include "server/shell/coord_messages.h"

static void runtime_send(struct fl_runtime *runtime, const struct fl_effect *e,
                         enum fl_net_msg_type type)
{
    struct fl_net_msg *down = fl_net_msg_new(runtime, type);

    down->client = e->client;
    down->round = e->round;
    down->attempt = e->attempt;
    down->text = fl_net_msg_text(runtime, e->text);
    fl_runtime_down(runtime, down);
}

static void runtime_command(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;
    struct fl_net_msg *down = fl_net_msg_new(runtime, FL_NET_MSG_COMMAND);
    struct fl_effect lasting = *e;

    down->client = e->client;
    lasting.text = down->text = fl_net_msg_text(runtime, e->text);
    lasting.units = down->units =
        fl_net_msg_copy(runtime, e->units, fl_layout_units(runtime->setup.conf->layout));
    down->command = fl_coord_command_of(&runtime->shell, &lasting);
    if (e->personal_model) { /* The personalized model may be missing after damage. */
        down->personal_model = fl_payloads_has_personal_model(
            &runtime->progress, fl_coord_client(runtime->coord, e->client)->name);
    }
    fl_runtime_down(runtime, down);
}

static void runtime_evaluate(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;

    if (runtime->progress.next.model.theta != NULL) {
        fl_runtime_publish_candidate(runtime, e->round);
    }
    runtime_command(runtime, e);
}

static void runtime_round_closed(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;

    fl_runtime_round_payloads_closed(runtime, e->round);
    runtime_send(runtime, e, FL_NET_MSG_ROUND_CLOSED);
}

static void runtime_finished(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;

    (void)e;
    runtime->finished = true;
    fl_log_noted(runtime->setup.log, FL_LOG_NOTICE, "server", NULL,
                 FL_LOG_NOTE(FINISHED, FL_LOG_WHOLE("round", fl_coord_committed(runtime->coord))),
                 "all rounds are done rounds=%llu",
                 (unsigned long long)fl_coord_committed(runtime->coord));
    fl_runtime_hook_finished(runtime);
    fl_runtime_down(runtime, fl_net_msg_new(runtime, FL_NET_MSG_FINISHED));
}

static void runtime_client_id(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;
    const struct fl_wire_hello *hello;
    struct fl_net_msg *down;

    if (runtime->joining == NULL) {
        return; /* It was known before, and joined with the data that it has now. */
    }
    if (e->text != NULL) {
        down = fl_net_msg_new(runtime, FL_NET_MSG_REFUSED);
        down->session = runtime->joining->session;
        down->text = fl_net_msg_text(runtime, e->text);
        fl_runtime_down(runtime, down);
        return;
    }
    hello = &runtime->joining->event.u.hello;
    fl_runtime_label_hello(runtime, e->client, hello);
    down = fl_net_msg_new(runtime, FL_NET_MSG_JOINED);
    down->session = runtime->joining->session;
    down->client = e->client;
    down->text = fl_net_msg_text(runtime, hello->client);
    down->wants_summary = fl_collection_wanted(&runtime->federation, &runtime->progress);
    fl_runtime_down(runtime, down);
    fl_runtime_central_hello(runtime, e->client, hello);
}

static void runtime_release(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;

    fl_labels_drop(&runtime->labels, e->client);
    fl_takeovers_drop(&runtime->takeovers, e->client);
    runtime_send(runtime, e, FL_NET_MSG_RELEASE);
}

/* Log lines about one client are rate-limited: it can cause them at will, e.g. by reconnecting. */
static void runtime_trace(void *ctx, const struct fl_effect *e)
{
    static const char about[] = "client '";
    struct fl_runtime *runtime = ctx;
    enum fl_log_level level = e->warning ? FL_LOG_WARNING : e->detail ? FL_LOG_DEBUG : FL_LOG_INFO;
    struct fl_log_field fields[] = {
        FL_LOG_WHOLE("round", e->round), FL_LOG_WHOLE("attempt", e->attempt),
        FL_LOG_WORD("phase", fl_phase_name(e->phase)), FL_LOG_WORD("client", NULL)};
    struct fl_log_note note = {.event = e->event, .fields = fields, .n = 3};
    const char *text = e->text;
    const char *name = text + sizeof(about) - 1;
    const char *end;
    char who[FL_NAME_MAX];

    if (strncmp(text, about, sizeof(about) - 1) != 0 || (end = strchr(name, '\'')) == NULL) {
        fl_log_noted(runtime->setup.log, level, "round", NULL, &note, "%s", text);
        fl_runtime_hook_traced(runtime, e, NULL);
        fl_runtime_event(runtime, FL_EVENT_ROUND, e->warning, NULL, text);
        return;
    }
    (void)snprintf(who, sizeof(who), "%.*s", (int)(end - name), name);
    fields[note.n++].text = who;
    fl_log_noted(runtime->setup.log, level, "round", who, &note, "%s", text);
    fl_runtime_hook_traced(runtime, e, who);
    fl_runtime_event(runtime, FL_EVENT_CLIENT, e->warning, who, text);
}

/* --- the operations of the shell --- */

static void runtime_ended(void *ctx, const struct fl_effect *e)
{
    (void)e;
    fl_runtime_down(ctx, fl_net_msg_new(ctx, FL_NET_MSG_STOPPED));
}

static uint64_t runtime_now_ms(void *ctx)
{
    return fl_runtime_now(ctx);
}

static uint64_t runtime_wall_ms(void *ctx)
{
    (void)ctx;
    return fl_clock_wall_ms();
}

static struct fl_traffic_sums runtime_traffic(void *ctx)
{
    const struct fl_runtime *runtime = ctx;
    const struct fl_traffic *t = runtime->setup.traffic;

    return (struct fl_traffic_sums){.up = atomic_load(&t->in), .down = atomic_load(&t->out)};
}

static void runtime_set_timer(void *ctx, uint64_t due_ms)
{
    struct fl_runtime *runtime = ctx;

    if (due_ms == UINT64_MAX) {
        fl_timer_stop(runtime->timer);
    } else {
        uint64_t now = fl_runtime_now(runtime);

        fl_timer_start(runtime->timer, due_ms > now ? due_ms - now : 0);
    }
}

static void runtime_no_memory(void *ctx)
{
    const struct fl_runtime *runtime = ctx;

    fl_serverd_no_memory(runtime->setup.log, "a step of the coordinator");
}

static void runtime_settled(void *ctx)
{
    struct fl_runtime *runtime = ctx;

    fl_runtime_phase(runtime);
    fl_runtime_age_errors(runtime);
    fl_runtime_write_labels(runtime);
    fl_status_changed(runtime->status);
}

static const struct fl_coord_ops runtime_ops = {
    .now_ms = runtime_now_ms,
    .wall_ms = runtime_wall_ms,
    .traffic = runtime_traffic,
    .timer = runtime_set_timer,
    .submit = fl_runtime_submit,
    .unsubmitted = fl_runtime_unsubmitted,
    .result = fl_runtime_result,
    .failed = fl_runtime_work_failed,
    .no_memory = runtime_no_memory,
    .stepped = fl_runtime_stepped,
    .settled = runtime_settled,
    .effects = {[FL_EFF_TASK] = runtime_command,
                [FL_EFF_PLAN] = runtime_command,
                [FL_EFF_ACCEPTED] = runtime_command,
                [FL_EFF_REJECTED] = runtime_command,
                [FL_EFF_DISMISSED] = runtime_command,
                [FL_EFF_DRAIN_CLIENTS] = runtime_command,
                [FL_EFF_EVALUATE_CLIENT] = runtime_evaluate,
                [FL_EFF_CLIENT_ID] = runtime_client_id,
                [FL_EFF_RELEASE] = runtime_release,
                [FL_EFF_FORGOTTEN] = fl_runtime_forgotten,
                [FL_EFF_ANSWER] = fl_runtime_command_answered,
                [FL_EFF_ROUND_OPEN] = fl_runtime_round_open,
                [FL_EFF_ROUND_CLOSED] = runtime_round_closed,
                [FL_EFF_CLIENT_ERROR] = fl_runtime_client_error,
                [FL_EFF_TRACE] = runtime_trace,
                [FL_EFF_FINISHED] = runtime_finished,
                [FL_EFF_STOPPED] = runtime_ended}};

static void runtime_on_timer(void *arg)
{
    struct fl_runtime *runtime = arg;
    struct fl_event event = {.type = FL_EV_TICK};

    fl_coord_shell_step(&runtime->shell, &event);
}

static void on_join(struct fl_runtime *runtime, const struct fl_coord_msg *up)
{
    struct fl_event event;

    FL_REQUIRE(fl_coord_event_of(&up->event, FL_NO_CLIENT, &event));
    event.u.joined.summary_missing =
        fl_collection_waits(&runtime->federation, &runtime->progress, up->event.u.hello.client);
    runtime->joining = up;
    fl_coord_shell_step(&runtime->shell, &event);
    runtime->joining = NULL;
}

/* The next event of that session may be posted. */
static void runtime_event_taken(struct fl_runtime *runtime, const struct fl_coord_msg *up)
{
    struct fl_net_msg *down = fl_net_msg_new(runtime, FL_NET_MSG_TAKEN);

    down->session = up->session;
    down->client = up->client;
    fl_runtime_down(runtime, down);
}

static void on_upload(struct fl_runtime *runtime, const struct fl_coord_msg *up)
{
    struct fl_event event = {.type = up->type == FL_COORD_MSG_STORED     ? FL_EV_UPLOAD_STORED
                                     : up->type == FL_COORD_MSG_INVALID  ? FL_EV_UPLOAD_INVALID
                                     : up->type == FL_COORD_MSG_UNSTORED ? FL_EV_UPLOAD_UNSTORED
                                     : up->type == FL_COORD_MSG_FETCHES  ? FL_EV_MODEL_FETCHED
                                                                         : FL_EV_UPLOAD_PROGRESS};

    event.u.upload.client = up->client;
    event.u.upload.round = up->round;
    event.u.upload.attempt = up->attempt;
    event.u.upload.bytes = up->bytes;
    event.u.upload.held = up->held;
    event.u.upload.code = up->code;
    event.u.upload.reason = up->text;
    event.u.upload.norms = up->norms.unit != NULL ? &up->norms : NULL;
    if (up->type == FL_COORD_MSG_UNSTORED || up->type == FL_COORD_MSG_STORED) {
        fl_runtime_own_failure(runtime, up->type == FL_COORD_MSG_UNSTORED ? up->text : NULL);
    }
    fl_coord_shell_step(&runtime->shell, &event);
}

static void runtime_on_message(void *arg)
{
    struct fl_coord_msg *up = arg;
    struct fl_runtime *runtime = up->runtime;
    struct fl_event event = {0};

    switch (up->type) {
    case FL_COORD_MSG_JOIN:
        on_join(runtime, up);
        break;
    case FL_COORD_MSG_LOST:
    case FL_COORD_MSG_ALIVE:
    case FL_COORD_MSG_RELEASED:
        event.type = up->type == FL_COORD_MSG_LOST    ? FL_EV_CLIENT_LOST
                     : up->type == FL_COORD_MSG_ALIVE ? FL_EV_CLIENT_HEARD
                                                      : FL_EV_RELEASED;
        event.u.lost.client = up->client;
        event.u.lost.silent = up->silent;
        fl_coord_shell_step(&runtime->shell, &event);
        break;
    case FL_COORD_MSG_TAKEOVER:
        fl_runtime_takeover(runtime, up->client, up->text);
        break;
    case FL_COORD_MSG_EVENT:
        if (fl_coord_event_of(&up->event, up->client, &event)) {
            fl_coord_shell_step(&runtime->shell, &event);
        }
        runtime_event_taken(runtime, up);
        break;
    case FL_COORD_MSG_SUMMARY:
        fl_runtime_summary(runtime, up);
        break;
    case FL_COORD_MSG_STORED:
    case FL_COORD_MSG_INVALID:
    case FL_COORD_MSG_UNSTORED:
    case FL_COORD_MSG_PROGRESS:
    case FL_COORD_MSG_FETCHES:
        on_upload(runtime, up);
        break;
    case FL_COORD_MSG_EXCLUDE:
        fl_runtime_exclude(runtime, up->text, up->keeps);
        break;
    case FL_COORD_MSG_ADMIN:
        fl_runtime_admin(runtime, up->request);
        break;
    case FL_COORD_MSG_STOP:
        event.type = FL_EV_STOP;
        event.u.reason = up->text;
        fl_coord_shell_step(&runtime->shell, &event);
        break;
    }
    fl_coord_msg_free(up);
}

void fl_runtime_post(struct fl_runtime *runtime, struct fl_coord_msg *up)
{
    up->runtime = runtime;
    if (fl_loop_post(runtime->loop, runtime_on_message, up) != FL_OK) {
        fl_serverd_no_memory(runtime->setup.log, "a message to the coordinator");
    }
}

static void runtime_on_start(void *arg)
{
    struct fl_runtime *runtime = arg;
    struct fl_event event = {.type = FL_EV_START};

    fl_coord_shell_step(&runtime->shell, &event);
}

static void runtime_thread_main(void *arg)
{
    struct fl_runtime *runtime = arg;

    fl_loop_run(runtime->loop);
}

int fl_runtime_create(const struct fl_runtime_setup *setup, struct fl_runtime **ret,
                      bool *ret_no_model, struct fl_err *err)
{
    struct fl_runtime *runtime = calloc(1, sizeof(*runtime));
    bool *ineligible = NULL;
    int rv;

    if (runtime == NULL) {
        return FL_ENOMEM;
    }
    runtime->setup = *setup;
    runtime->lock_fd = -1;
    fl_server_conf_coord(setup->conf, &runtime->coord_conf);
    rv = fl_runtime_recover(runtime, ret_no_model, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_runtime_load_labels(runtime, &ineligible, err);
    if (rv != FL_OK) {
        goto fail;
    }
    runtime->resume.ineligible = ineligible;
    rv = fl_coord_create(&runtime->coord_conf, &runtime->resume, &runtime->coord, err);
    runtime->resume.ineligible = NULL;
    free(ineligible);
    if (rv != FL_OK) {
        goto fail;
    }
    runtime->shell = (struct fl_coord_shell){.ops = &runtime_ops,
                                             .ctx = runtime,
                                             .coord = runtime->coord,
                                             .conf = &runtime->coord_conf,
                                             .federation = &runtime->federation,
                                             .progress = &runtime->progress,
                                             .log = setup->log};
    fl_runtime_figures_init(runtime);
    rv = fl_loop_create(&runtime->loop, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_timer_create(runtime->loop, runtime_on_timer, runtime, &runtime->timer);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_runtime_status_create(runtime);
    if (rv != FL_OK) {
        goto fail;
    }
    fl_runtime_disk_init(runtime);
    rv = fl_runtime_stall_create(runtime);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = runtime;
    return FL_OK;
fail:
    runtime->setup.evaluator = NULL; /* They stay the caller's. */
    runtime->setup.root = NULL;
    runtime->setup.program = NULL;
    fl_runtime_free(runtime);
    return rv;
}

int fl_runtime_start(struct fl_runtime *runtime, struct fl_err *err)
{
    int rv = fl_thread_create("fl-coord", runtime_thread_main, runtime, &runtime->thread, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_loop_post(runtime->loop, runtime_on_start, runtime);
}

const struct fl_generation *fl_runtime_generation(const struct fl_runtime *runtime)
{
    return &runtime->federation.generation;
}

struct fl_loop *fl_runtime_loop(struct fl_runtime *runtime)
{
    return runtime->loop;
}

static void on_stop(void *arg)
{
    struct fl_runtime *runtime = arg;

    runtime->shell.stopped = true;
    fl_loop_stop(runtime->loop);
}

void fl_runtime_stop(struct fl_runtime *runtime)
{
    if (runtime->thread == NULL) {
        return;
    }
    atomic_store(&runtime->cancel, true);
    if (fl_loop_post(runtime->loop, on_stop, runtime) != FL_OK) {
        fl_serverd_no_memory(runtime->setup.log, "stopping the coordinator");
    }
    fl_thread_join(runtime->thread);
    runtime->thread = NULL;
}

void fl_runtime_free(struct fl_runtime *runtime)
{
    if (runtime == NULL) {
        return;
    }
    runtime->shell.stopped = true;
    fl_timer_close(runtime->timer);
    fl_timer_close(runtime->stall_timer);
    fl_status_close(runtime->status);
    runtime->status = NULL;
    if (runtime->loop != NULL) {
        fl_loop_free(runtime->loop);
    }
    fl_runtime_forget_done(runtime);
    fl_runtime_command_done(runtime);
    fl_coord_free(runtime->coord);
    fl_store_close(runtime->federation.store);
    fl_store_resume_done(&runtime->resume);
    fl_progress_done(&runtime->progress);
    fl_errors_done(&runtime->errors);
    fl_labels_done(&runtime->labels);
    free(runtime->label_queue.clients);
    fl_central_done(&runtime->central);
    fl_takeovers_done(&runtime->takeovers);
    fl_evaluator_free(runtime->setup.evaluator);
    fl_root_free(runtime->setup.root);
    fl_aggregation_program_free(runtime->setup.program);
    if (runtime->lock_fd >= 0) {
        (void)close(runtime->lock_fd);
    }
    free(runtime);
}
