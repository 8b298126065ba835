#include "client/daemon/status_line.h"

#include <inttypes.h>
#include <stdio.h>

/* The server's address follows this text. */
static const char *status_of_server(enum fl_session_state state)
{
    switch (state) {
    case FL_SESSION_OFFLINE:
        return "disconnected, reconnecting later to";
    case FL_SESSION_CONNECTING:
        return "connecting to";
    case FL_SESSION_GREETING:
        return "joining";
    case FL_SESSION_READY:
        return "waiting for a task of";
    case FL_SESSION_DONE:
        return "all rounds are done, waiting for more rounds of";
    case FL_SESSION_STOPPED:
        return "leaving";
    case FL_SESSION_FETCHING:
    case FL_SESSION_TRAINING:
    case FL_SESSION_REPORTED:
    case FL_SESSION_PUSHING:
    case FL_SESSION_COUNT:
        break;
    }
    return NULL;
}

static const char *status_of_round(enum fl_session_state state)
{
    switch (state) {
    case FL_SESSION_FETCHING:
        return "fetching the model";
    case FL_SESSION_TRAINING:
        return "training";
    case FL_SESSION_REPORTED:
        return "trained, waiting for the upload plan";
    case FL_SESSION_PUSHING:
        return "uploading";
    case FL_SESSION_OFFLINE:
    case FL_SESSION_CONNECTING:
    case FL_SESSION_GREETING:
    case FL_SESSION_READY:
    case FL_SESSION_DONE:
    case FL_SESSION_STOPPED:
    case FL_SESSION_COUNT:
        break;
    }
    return "";
}

const char *fl_client_status_line(enum fl_session_state state, uint64_t round, const char *server,
                                  const char *reason, char *out, size_t size)
{
    const char *text = status_of_server(state);

    if (state == FL_SESSION_OFFLINE && reason[0] != '\0') {
        (void)snprintf(out, size, "disconnected from %s, reconnecting later: %s", server, reason);
    } else if (text != NULL && round > 0) {
        (void)snprintf(out, size, "%s %s; last task: round %" PRIu64, text, server, round);
    } else if (text != NULL) {
        (void)snprintf(out, size, "%s %s", text, server);
    } else {
        (void)snprintf(out, size, "round %" PRIu64 ": %s", round, status_of_round(state));
    }
    return out;
}
