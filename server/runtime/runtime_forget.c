/*
 * Forgets clients at an operator's request. Coordinator thread. The answer is sent when all parts
 * of the deletion (record, errors, data summary) are durable.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/grow.h"
#include "server/runtime/runtime_impl.h"

/* Names whose errors are dropped as well. */
struct names {
    struct fl_client_error *list;
    size_t n;
};

/* A connected client counts as seen now, whatever its record says. */
static bool forget_is_unseen(const struct fl_runtime *runtime, uint32_t number, uint64_t span_ms)
{
    const struct fl_client_rec *c = fl_coord_client(runtime->coord, number);
    uint64_t now = fl_clock_wall_ms();

    return c != NULL && !fl_coord_connected(runtime->coord, number) && now > c->last_seen_ms &&
           now - c->last_seen_ms >= span_ms;
}

/* An error of a name without a record. */
static bool forget_is_unseen_error(const struct fl_runtime *runtime,
                                   const struct fl_client_error *error, uint64_t span_ms)
{
    uint64_t now = fl_clock_wall_ms();

    return fl_coord_find(runtime->coord, error->name) == UINT32_MAX && now > error->at_ms &&
           now - error->at_ms >= span_ms;
}

/* `names` has room for all recorded errors. */
static void forget_add_name(const struct fl_runtime *runtime, struct names *names, const char *name)
{
    const struct fl_client_error *error = fl_errors_find(&runtime->errors, name);

    if (error != NULL) {
        names->list[names->n++] = *error;
    }
}

static void forget_number(struct fl_runtime *runtime, struct fl_admin_request *request,
                          uint32_t number, struct names *names)
{
    struct fl_event event = {.type = FL_EV_FORGET};

    request->forgotten.forgotten++;
    request->forgotten.in_round += fl_coord_part(runtime->coord, number) != NULL;
    request->n_waits++;
    runtime->forgetting[number] = request;
    forget_add_name(runtime, names, fl_coord_client(runtime->coord, number)->name);
    if (fl_runtime_forget_central(runtime, fl_coord_client(runtime->coord, number)->name, request))
    {
        request->n_waits++;
    }
    event.u.client = number;
    fl_coord_shell_step(&runtime->shell, &event);
}

static void forget_name(struct fl_runtime *runtime, struct fl_admin_request *request,
                        struct names *names)
{
    const char *name = request->forget.name;
    uint32_t number = fl_coord_find(runtime->coord, name);

    if (number != UINT32_MAX) {
        forget_number(runtime, request, number, names);
        request->n_waits++;
        fl_runtime_forget_summary(runtime, name, request);
        return;
    }
    forget_add_name(runtime, names, name);
    request->forgotten.forgotten += names->n;
    if (fl_runtime_forget_central(runtime, name, request)) {
        request->n_waits++;
        request->forgotten.forgotten += names->n == 0;
    } else if (names->n == 0) {
        request->code = fl_err_set(&request->err, FL_ENOENT, "no client '%s' is known", name);
    }
}

static void forget_unseen(struct fl_runtime *runtime, struct fl_admin_request *request,
                          struct names *names)
{
    uint64_t span_ms = request->forget.unseen_for_ms;
    size_t n = fl_coord_numbers(runtime->coord);
    uint32_t number;
    size_t i;

    for (i = 0; i < runtime->errors.n; i++) {
        if (forget_is_unseen_error(runtime, &runtime->errors.list[i], span_ms)) {
            request->forgotten.forgotten++;
            names->list[names->n++] = runtime->errors.list[i];
        }
    }
    for (number = 0; number < n; number++) {
        if (forget_is_unseen(runtime, number, span_ms)) {
            forget_number(runtime, request, number, names);
        }
    }
}

void fl_runtime_on_forget(struct fl_runtime *runtime, struct fl_admin_request *request)
{
    struct names names = {.list = calloc(runtime->errors.n + 1, sizeof(*names.list))};
    size_t n = fl_coord_numbers(runtime->coord);
    int rv = fl_grow_zeroed(&runtime->forgetting, &runtime->n_forgetting, n,
                            sizeof(struct fl_admin_request *));

    /* Room for all clients that can be forgotten. */
    if (names.list == NULL || rv != FL_OK) {
        free(names.list);
        request->code = FL_ENOMEM;
        fl_runtime_answer(runtime, request);
        return;
    }
    request->n_waits = 1; /* Until all parts are requested. */
    if (request->forget.name[0] != '\0') {
        forget_name(runtime, request, &names);
    } else {
        forget_unseen(runtime, request, &names);
    }
    if (names.n > 0) {
        request->n_waits++;
        fl_runtime_drop_errors(runtime, names.list, names.n, request);
    } else {
        free(names.list);
    }
    fl_runtime_forgot(runtime, request, NULL);
}

void fl_runtime_forgotten(void *ctx, const struct fl_effect *e)
{
    struct fl_runtime *runtime = ctx;
    struct fl_admin_request *request =
        e->client < runtime->n_forgetting ? runtime->forgetting[e->client] : NULL;

    if (request != NULL) {
        runtime->forgetting[e->client] = NULL;
        fl_runtime_forgot(runtime, request, e->text);
    }
}

void fl_runtime_forget_done(struct fl_runtime *runtime)
{
    size_t i;

    for (i = 0; i < runtime->n_forgetting; i++) {
        if (runtime->forgetting[i] != NULL) {
            fl_runtime_forgot(runtime, runtime->forgetting[i], "the server is stopping");
        }
    }
    free(runtime->forgetting);
    runtime->forgetting = NULL;
    runtime->n_forgetting = 0;
}

void fl_runtime_exclude(struct fl_runtime *runtime, const char *name, enum fl_revoked_keeps keeps)
{
    struct fl_event event = {.type = FL_EV_EXCLUDE};
    uint32_t number = fl_coord_find(runtime->coord, name);

    if (keeps != FL_REVOKED_KEEPS_ALL) {
        fl_runtime_forget_summary(runtime, name, NULL);
    }
    if (keeps == FL_REVOKED_KEEPS_NOTHING) {
        (void)fl_runtime_forget_central(runtime, name, NULL);
    }
    if (number == UINT32_MAX) {
        return;
    }
    event.u.excluded.client = number;
    event.u.excluded.reason = "its certificate is revoked";
    event.u.excluded.leaves = keeps == FL_REVOKED_KEEPS_RECORD;
    fl_coord_shell_step(&runtime->shell, &event);
    if (keeps == FL_REVOKED_KEEPS_NOTHING) {
        event = (struct fl_event){.type = FL_EV_FORGET};
        event.u.client = number;
        fl_coord_shell_step(&runtime->shell, &event);
    }
}
