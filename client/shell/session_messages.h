#ifndef FL_CLIENT_SHELL_SESSION_MESSAGES_H
#define FL_CLIENT_SHELL_SESSION_MESSAGES_H

/*
 * Messages of fl.v1.Federation and the session of a client: a command of the server becomes an
 * event of the session, an effect and the results of work become messages to the server.
 * fl-clientd, fl-sim and tests/sim use the same functions, so a field of a message meets the
 * session here and nowhere else. Bytes are encoded by the caller.
 *
 * Ownership: what is returned borrows from the arguments. Threading: pure functions.
 */

#include "client/core/session.h"
#include "client/store/result.h"
#include "client/work/evaluation.h"
#include "libfl/wire/messages.h"

/* A Welcome is filled in by take() of the shell, which prepares its setup. */
struct fl_session_event fl_session_event_of(const struct fl_wire_command *command);

/*
 * The message of an effect that sends one (HELLO, HEARTBEAT, REPORT, FAILED, NO_EVALUATION). A
 * Hello lacks what describes this client, a Heartbeat its number, and a Report has only the key of
 * the pending result: send() of the shell knows them.
 */
struct fl_wire_event fl_session_message_of(const struct fl_session_effect *e);
struct fl_wire_event fl_session_report(const struct fl_result *result);
struct fl_wire_event fl_session_failed(struct fl_round_key key, const char *reason, bool diverged);
/* NULL: no evaluation was made. */
struct fl_wire_event fl_session_evaluation(uint64_t round,
                                           const struct fl_evaluation_result *evaluation);

#endif
