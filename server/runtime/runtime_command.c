/*
 * The verbs of operators that are events of the core, which executes one at a time; its answer is
 * durable.
 */

#include "server/runtime/runtime_impl.h"

/* The event of each verb on the thread CORE (libfl/wire/verbs.h); of the others there is none. */
#define COMMAND_ON_CORE(id, handler) [FL_VERB_##id] = FL_EV_##handler,
#define COMMAND_ON_COORDINATOR(id, handler)
#define COMMAND_ON_DB(id, handler)
#define COMMAND_ON_IDENTITY(id, handler)
#define COMMAND_EVENT_OF(id, name, method, access, audit, thread, handler, ...) \
    COMMAND_ON_##thread(id, handler)

static const enum fl_event_type command_events[FL_VERB_N] = {FL_VERBS(COMMAND_EVENT_OF)};

#define COMMAND_ABOUT_CLIENT(event, rule) \
    case FL_EV_##event:                   \
        return true;

static bool command_is_about_client(enum fl_event_type type)
{
    switch (type) {
        FL_COORD_CLIENT_COMMANDS(COMMAND_ABOUT_CLIENT)
    default:
        return false;
    }
}

static void command_post_next(void *arg)
{
    struct fl_runtime *runtime = arg;
    const struct fl_admin_request *first = runtime->commands.first;
    struct fl_event event = {0};

    if (first == NULL) {
        return;
    }
    event.type = command_events[first->verb];
    if (command_is_about_client(event.type)) {
        event.u.of_client.name = first->client_control.client;
        event.u.of_client.reason = first->client_control.reason;
    } else {
        event.u.reason = first->control.reason;
    }
    fl_coord_shell_step(&runtime->shell, &event);
}

void fl_runtime_on_command(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    struct fl_runtime_commands *w = &runtime->commands;

    request->next_command = NULL;
    if (w->first != NULL) {
        w->last->next_command = request;
        w->last = request;
        return; /* After the commands before it are answered. */
    }
    w->first = w->last = request;
    command_post_next(runtime);
}

static struct fl_admin_request *commands_take_first(struct fl_runtime_commands *w)
{
    struct fl_admin_request *request = w->first;

    w->first = request->next_command;
    return request;
}

void fl_runtime_command_answered(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;
    struct fl_admin_request *request = commands_take_first(&runtime->commands);

    request->code = e->code;
    if (e->code == FL_OK) {
        const struct fl_wire_controlled reply = {
            .phase = fl_wire_lend(fl_phase_name(fl_coord_phase(runtime->coord))),
            .text = fl_wire_lend(e->text),
            .round = fl_coord_round(runtime->coord)};

        fl_log(runtime->setup.log, FL_LOG_NOTICE, "server", "operator command: %s", e->text);
        FL_ADMIN_REPLY(request, fl_wire_controlled_encode, &reply);
    } else {
        (void)fl_err_set(&request->err, e->code, "%s", e->text);
    }
    fl_runtime_answer(runtime, request);
    /* Not within the effects of this step. */
    if (runtime->commands.first != NULL &&
        fl_loop_post(runtime->loop, command_post_next, runtime) != FL_OK)
    {
        fl_serverd_no_memory(runtime->setup.log, "an operator command");
    }
}

void fl_runtime_command_done(struct fl_runtime *runtime)
{
    while (runtime->commands.first != NULL) {
        struct fl_admin_request *request = commands_take_first(&runtime->commands);

        request->code = fl_err_set(&request->err, FL_EUNAVAIL,
                                   "the server is stopping: the result of the command is unknown");
        fl_runtime_answer(runtime, request);
    }
}
