#include "server/core/records.h"

#include <stdio.h>

const char *fl_part_state_name(int state)
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
    case FL_PARTICIPATION_EVALUATED:
        return "evaluated";
    default:
        return "unknown";
    }
}

static void eval_add_metrics(const char *of, const char *prefix, char out[FL_EVAL_METRICS_TEXT])
{
    char key[FL_EVAL_METRIC_KEY];
    struct fl_eval_metric m;

    while (of != NULL && fl_eval_metrics_next(&of, &m)) {
        (void)snprintf(key, sizeof(key), "%s%s", prefix, m.name);
        (void)fl_eval_metrics_add_key(out, key, m.value);
    }
}

void fl_client_eval_metrics(const struct fl_client_eval *eval, char out[FL_EVAL_METRICS_TEXT])
{
    out[0] = '\0';
    eval_add_metrics(eval->received_metrics, FL_EVAL_METRICS_RECEIVED, out);
    eval_add_metrics(eval->personal_metrics, FL_EVAL_METRICS_PERSONAL, out);
}

struct fl_client_figures fl_client_rec_figures(const struct fl_client_rec *rec)
{
#define X(type, member, ...) .member = rec->member,
    return (struct fl_client_figures){FL_CLIENT_FIGURES(X)};
#undef X
}
