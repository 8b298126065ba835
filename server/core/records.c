#include "server/core/records.h"

const char *fl_part_state_name(enum fl_part_state state)
{
    switch (state) {
    case FL_PART_SELECTED:
        return "selected";
    case FL_PART_REPORTED:
        return "reported";
    case FL_PART_PLANNED:
        return "planned";
    case FL_PART_ACCEPTED:
        return "accepted";
    case FL_PART_EMPTY:
        return "empty";
    case FL_PART_REJECTED:
        return "rejected";
    case FL_PART_LOST:
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
