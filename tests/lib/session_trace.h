#ifndef FL_SESSION_TRACE_H
#define FL_SESSION_TRACE_H

/*
 * A client session in virtual time whose events and effects are logged as text:
 *
 *   [  110] < task 7/1
 *            READY -> FETCHING: task 7/1
 *           > fetch 7/1
 */

#include <check.h>

#include "client/core/session.h"
#include "libfl/base/buf.h"

struct session_trace {
    struct fl_session *session;
    struct fl_buf text;
    uint64_t now_ms;
    struct fl_session_effects effects; /* of the last step */
};

void session_trace_init(struct session_trace *t, const struct fl_session_conf *conf);
void session_trace_done(struct session_trace *t);
/* Step with `event` at the present time. */
void session_trace_step(struct session_trace *t, struct fl_session_event event);
/* Let time pass up to the session's deadline and tick. */
void session_trace_tick(struct session_trace *t);
/* The text since the last call; ended by NUL. */
const char *session_trace_text(struct session_trace *t);
/* Discard the text so far. */
void session_trace_skip(struct session_trace *t);

/* Events. */
struct fl_session_event session_event(enum fl_session_event_type type);
struct fl_session_event session_event_key(enum fl_session_event_type type, uint64_t round,
                                          uint32_t attempt);
struct fl_session_event session_event_failed(enum fl_session_event_type type, uint64_t round,
                                             uint32_t attempt, const char *reason, bool permanent);
/* `units` "1011", NULL for all; kept. */
struct fl_session_event session_event_task(uint64_t round, uint32_t attempt, bool has_plan,
                                           const char *units);
struct fl_session_event session_event_plan(uint64_t round, uint32_t attempt, const char *units);
struct fl_session_event session_event_welcome(uint32_t heartbeat_ms);

/* --- the fixture of the session tests --- */

extern struct session_trace world;
/* Backoff 1 to 8 s, a rejection is final, ends with the federation. */
void session_setup(void);
/* The same, but stays when all rounds are done, asking every minute at the latest. */
void session_setup_staying(void);
void session_teardown(void);
void go(struct fl_session_event event);
void at(uint64_t now_ms);
/* READY in a session with heartbeats every 5 s; discards the text so far. */
void join(void);
/* From OFFLINE to READY again; discards the text so far. */
void rejoin(void);
void fetch_and_train(uint64_t round, uint32_t attempt);
/* REPORTED with the result of 7/1; discards the text so far. */
void join_and_report(void);
void lose(const char *reason);

#define TRACE(expected) ck_assert_str_eq(session_trace_text(&world), expected)

#endif
