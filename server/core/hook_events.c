#include "server/core/hook_events.h"

#include <stdarg.h>
#include <stdio.h>

#include "libfl/base/str.h"

#define HOOK_NAME(id, name) [FL_HOOK_##id] = #name,

const char *const fl_hook_names[FL_HOOK_N] = {FL_HOOKS(HOOK_NAME)};

enum fl_hook fl_hook_of(enum fl_log_event event)
{
#define HOOK_CASE(id, name) \
    case FL_LOG_EVENT_##id: \
        return FL_HOOK_##id;
    switch (event) {
        FL_HOOKS(HOOK_CASE)
    default:
        return FL_HOOK_N;
    }
#undef HOOK_CASE
}

void fl_hook_event_add(struct fl_hook_event *event, const char *fmt, ...)
{
    char *text = event->variables[event->n];
    va_list ap;

    FL_REQUIRE(event->n < FL_HOOK_VARIABLES);
    va_start(ap, fmt);
    (void)vsnprintf(text, FL_HOOK_TEXT, fmt, ap);
    va_end(ap);
    (void)fl_str_clean(text);
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
