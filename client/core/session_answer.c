/*
 * How the client handles each command of the server in each state of the session. A command that
 * the contract (proto/fl/v1/federation.proto) does not allow ends the session before its contents
 * are read: they would refer to a setup that this session does not have. docs/clients.md
 * shows this table; tests/client/core/test_session_answer.c compares the two.
 */

#include "client/core/session.h"

#define IGNORE FL_SESSION_IGNORES
#define TAKE   FL_SESSION_TAKES
#define BREACH FL_SESSION_BREACH

/* No stream, or one that is being closed: commands still received belong to another session. */
#define AWAY                                                                           \
    {                                                                                  \
        IGNORE, IGNORE, IGNORE, IGNORE, IGNORE, IGNORE, IGNORE, IGNORE, IGNORE, IGNORE \
    }
/* One Welcome answers one Hello; all other commands need a client that knows the model. */
#define GREETING                                                               \
    {                                                                          \
        TAKE, TAKE, BREACH, BREACH, BREACH, BREACH, BREACH, BREACH, TAKE, TAKE \
    }
/* In any state of a round: commands name their round, and may be late. */
#define WELCOMED                                                     \
    {                                                                \
        BREACH, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE \
    }

enum { N_COMMANDS = FL_CEV_HEARTBEAT - FL_CEV_WELCOME + 1 };

/* In the order of fl_session_event_type: Welcome, Refused, Task, Plan, Accepted, Rejected,
   Dismissed, Evaluate, Drain, Heartbeat. */
static const unsigned char answers[FL_SESSION_COUNT][N_COMMANDS] = {
    [FL_SESSION_OFFLINE] = AWAY,      [FL_SESSION_CONNECTING] = AWAY,
    [FL_SESSION_GREETING] = GREETING, [FL_SESSION_READY] = WELCOMED,
    [FL_SESSION_FETCHING] = WELCOMED, [FL_SESSION_TRAINING] = WELCOMED,
    [FL_SESSION_REPORTED] = WELCOMED, [FL_SESSION_PUSHING] = WELCOMED,
    [FL_SESSION_DONE] = WELCOMED,     [FL_SESSION_STOPPED] = AWAY,
};

enum fl_session_answer fl_session_answer(enum fl_session_state state,
                                         enum fl_session_event_type command)
{
    FL_REQUIRE(state < FL_SESSION_COUNT && command >= FL_CEV_WELCOME &&
               command <= FL_CEV_HEARTBEAT);
    return (enum fl_session_answer)answers[state][command - FL_CEV_WELCOME];
}

const char *fl_session_command_name(enum fl_session_event_type command)
{
    static const char *const names[N_COMMANDS] = {"Welcome",  "Refused",  "Task",      "Plan",
                                                  "Accepted", "Rejected", "Dismissed", "Evaluate",
                                                  "Drain",    "Heartbeat"};

    FL_REQUIRE(command >= FL_CEV_WELCOME && command <= FL_CEV_HEARTBEAT);
    return names[command - FL_CEV_WELCOME];
}
