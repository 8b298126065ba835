#ifndef FL_SERVER_HTTP_EVENT_LOG_H
#define FL_SERVER_HTTP_EVENT_LOG_H

/*
 * The newest events of a federation, for readers of the HTTP port: a ring in memory of a fixed
 * size, since the start. The coordinator adds, the HTTP thread reads; each holds the lock for one
 * copy only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/str.h"

#define FL_EVENT_LOG_MAX  1024
#define FL_EVENT_TEXT_MAX 384

enum fl_event_kind { FL_EVENT_ROUND, FL_EVENT_CLIENT, FL_EVENT_SERVER, FL_EVENT_KINDS };

/* Names of the kinds, NULL terminated. */
extern const char *const fl_event_kinds[];

struct fl_event_line {
    uint64_t id;    /* from 1, without gaps */
    uint64_t at_ms; /* wall clock */
    uint64_t round; /* open or next round */
    enum fl_event_kind kind;
    bool warning;
    char client[FL_NAME_MAX]; /* "": it is about no client */
    char text[FL_EVENT_TEXT_MAX];
};

struct fl_event_log;

FL_MUST_CHECK int fl_event_log_create(struct fl_event_log **ret);
void fl_event_log_free(struct fl_event_log *log); /* NULL is allowed */
/* `added(ctx)` is called after each event, on the thread that adds. Before the threads start. */
void fl_event_log_watch(struct fl_event_log *log, void (*added)(void *ctx), void *ctx);
/* Copies `line` and sets its id; longer texts keep beginning and end. NULL `log`: does nothing. */
void fl_event_log_add(struct fl_event_log *log, const struct fl_event_line *line, const char *text);
/*
 * The first event with a greater id than `after`: false, there is none. Older ones than the ring
 * holds are skipped.
 */
bool fl_event_log_next(struct fl_event_log *log, uint64_t after, struct fl_event_line *ret);
/* The newest id; 0: none. */
uint64_t fl_event_log_newest(struct fl_event_log *log);

#endif
