#include "server/http/event_log.h"

#include <pthread.h>
#include <stdlib.h>

const char *const fl_event_kinds[] = {
    [FL_EVENT_ROUND] = "round", [FL_EVENT_CLIENT] = "client", [FL_EVENT_SERVER] = "server", NULL};

struct fl_event_log {
    pthread_mutex_t lock;
    uint64_t newest;
    void (*added)(void *ctx);
    void *ctx;
    struct fl_event_line lines[FL_EVENT_LOG_MAX]; /* by id modulo the size */
};

int fl_event_log_create(struct fl_event_log **ret)
{
    struct fl_event_log *log = calloc(1, sizeof(*log));

    if (log == NULL) {
        return FL_ENOMEM;
    }
    (void)pthread_mutex_init(&log->lock, NULL);
    *ret = log;
    return FL_OK;
}

void fl_event_log_free(struct fl_event_log *log)
{
    if (log != NULL) {
        (void)pthread_mutex_destroy(&log->lock);
        free(log);
    }
}

void fl_event_log_watch(struct fl_event_log *log, void (*added)(void *ctx), void *ctx)
{
    log->added = added;
    log->ctx = ctx;
}

void fl_event_log_add(struct fl_event_log *log, const struct fl_event_line *line, const char *text)
{
    struct fl_event_line *to;

    if (log == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&log->lock);
    log->newest++;
    to = &log->lines[log->newest % FL_EVENT_LOG_MAX];
    *to = *line;
    to->id = log->newest;
    (void)fl_str_clean(fl_str_ends(to->text, sizeof(to->text), text));
    (void)pthread_mutex_unlock(&log->lock);
    if (log->added != NULL) {
        log->added(log->ctx);
    }
}

bool fl_event_log_next(struct fl_event_log *log, uint64_t after, struct fl_event_line *ret)
{
    bool found;
    uint64_t id;

    (void)pthread_mutex_lock(&log->lock);
    id = log->newest >= FL_EVENT_LOG_MAX ? log->newest - FL_EVENT_LOG_MAX + 1 : 1;
    id = after >= id ? after + 1 : id;
    found = after < log->newest;
    if (found) {
        *ret = log->lines[id % FL_EVENT_LOG_MAX];
    }
    (void)pthread_mutex_unlock(&log->lock);
    return found;
}

uint64_t fl_event_log_newest(struct fl_event_log *log)
{
    uint64_t id;

    (void)pthread_mutex_lock(&log->lock);
    id = log->newest;
    (void)pthread_mutex_unlock(&log->lock);
    return id;
}
