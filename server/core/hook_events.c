#include "server/core/hook_events.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"

#define HOOK_NAME(id, name, when, variables) [FL_HOOK_##id] = #name,
#define HOOK_ROW(id, name, when, variables)  [FL_HOOK_##id] = {when, variables},

const char *const fl_hook_names[FL_HOOK_N] = {FL_HOOKS(HOOK_NAME)};

static const struct {
    const char *when, *variables;
} hook_rows[FL_HOOK_N] = {FL_HOOKS(HOOK_ROW)};

enum fl_hook fl_hook_of(enum fl_log_event event)
{
#define HOOK_CASE(id, ...)  \
    case FL_LOG_EVENT_##id: \
        return FL_HOOK_##id;
    switch (event) {
        FL_HOOKS(HOOK_CASE)
    default:
        return FL_HOOK_N;
    }
#undef HOOK_CASE
}

/* Is `text`, up to a "=", a variable of this hook? */
static bool hook_has(enum fl_hook hook, const char *text)
{
    const char *at = hook_rows[hook].variables;
    size_t length = strcspn(text, "=");

    for (; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        if (strcspn(at, " ") == length && strncmp(at, text, length) == 0) {
            return true;
        }
    }
    return false;
}

static int hook_reference_row(struct fl_buf *out, int hook)
{
    const char *at = hook_rows[hook].variables;
    int rv = fl_buf_printf(out, "| `%s` | %s |", fl_hook_names[hook], hook_rows[hook].when);

    if (rv != FL_OK) {
        return rv;
    }
    while (*at != '\0') {
        int length = (int)strcspn(at, " ");

        rv = fl_buf_printf(out, " `%.*s`%s", length, at, at[length] == ' ' ? "," : "");
        if (rv != FL_OK) {
            return rv;
        }
        at += length + (at[length] == ' ');
    }
    return fl_buf_printf(out, " |\n");
}

int fl_hooks_reference(struct fl_buf *out)
{
    int rv = fl_buf_printf(out, "| hook | when | variables of its own |\n| --- | --- | --- |\n");
    int hook;

    if (rv != FL_OK) {
        return rv;
    }
    for (hook = 0; hook < FL_HOOK_N; hook++) {
        rv = hook_reference_row(out, hook);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

void fl_hook_event_add(struct fl_hook_event *event, const char *fmt, ...)
{
    char text[FL_HOOK_TEXT];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!hook_has(event->hook, text)) {
        return;
    }
    FL_REQUIRE(event->n < FL_HOOK_VARIABLES);
    memcpy(event->variables[event->n], text, sizeof(text));
    (void)fl_str_clean(event->variables[event->n]);
    event->n++;
}

bool fl_hook_queue_add(struct fl_hook_queue *queue)
{
    if (queue->n >= FL_HOOK_QUEUE) {
        queue->left_out++;
        return false;
    }
    queue->n++;
    return true;
}

uint64_t fl_hook_queue_end(struct fl_hook_queue *queue)
{
    uint64_t left_out = queue->left_out;

    queue->n--;
    queue->left_out = 0;
    return left_out;
}
