#include "server/core/records.h"

const char *fl_part_state_name(enum fl_participant_state state)
{
    switch (state) {
    case FL_PARTICIPANT_SELECTED:
        return "selected";
    case FL_PARTICIPANT_REPORTED:
        return "reported";
    case FL_PARTICIPANT_PLANNED:
        return "planned";
    case FL_PARTICIPANT_ACCEPTED:
        return "accepted";
    case FL_PARTICIPANT_EMPTY:
        return "empty";
    case FL_PARTICIPANT_REJECTED:
        return "rejected";
    case FL_PARTICIPANT_LOST:
        return "lost";
    }
    return "unknown";
}

struct fl_client_figures fl_client_rec_figures(const struct fl_client_rec *rec)
{
#define X(type, member, ...) .member = rec->member,
    return (struct fl_client_figures){FL_CLIENT_FIGURES(X)};
#undef X
}
