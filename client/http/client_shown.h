#ifndef FL_CLIENT_HTTP_CLIENT_SHOWN_H
#define FL_CLIENT_HTTP_CLIENT_SHOWN_H

/*
 * What a client shows at its HTTP port, one row of the metrics for each (client_metrics.c). The
 * loop of the client keeps the counters, and hands a copy to the HTTP thread.
 */

#include "client/core/session.h"
#include "libfl/base/fs.h"
#include "libfl/http/http.h"
#include "libfl/http/process_figures.h"

enum fl_client_work {
    FL_CLIENT_WORK_CONNECT,
    FL_CLIENT_WORK_FETCH,
    FL_CLIENT_WORK_TRAIN,
    FL_CLIENT_WORK_PUSH,
    FL_CLIENT_WORK_EVALUATE,
    FL_CLIENT_WORK_N
};

enum fl_client_verdict {
    FL_CLIENT_ACCEPTED,
    FL_CLIENT_REJECTED,
    FL_CLIENT_DISMISSED,
    FL_CLIENT_VERDICTS
};

struct fl_client_shown {
    /* Counters since the start. */
    uint64_t tasks, verdicts[FL_CLIENT_VERDICTS], refused;
    uint64_t work[FL_CLIENT_WORK_N], failures[FL_CLIENT_WORK_N];
    struct fl_histogram seconds[FL_CLIENT_WORK_N];
    uint64_t began_ns[FL_CLIENT_WORK_N]; /* 0: it does not run; not shown */
    uint64_t accepted_ms;                /* wall clock */
    /* Filled in when it is asked. */
    uint64_t state[FL_SESSION_COUNT], connected, round, samples, pending;
    double train_loss;
    uint64_t wire[2]; /* up, down */
    uint64_t certificate_ms, log_left_out;
    struct fl_fs_room disk; /* of the state folder; set by the reader of the copy */
    char name[FL_NAME_MAX];
    const char *info[2]; /* version, name; set by the reader of the copy */
    struct fl_http_counts http;
};

extern const struct fl_metric fl_client_metrics[];

/* Count an activity that begins, an event of the session. `now_ns`: a monotonic clock. */
void fl_client_shown_begin(struct fl_client_shown *shown, enum fl_client_work work,
                           uint64_t now_ns);
void fl_client_shown_event(struct fl_client_shown *shown, const struct fl_session_event *event,
                           uint64_t now_ns, uint64_t wall_ms);
/* Append the text of all metrics of a client. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_client_metrics_add(struct fl_buf *out, enum fl_metrics_format format,
                                        const struct fl_client_shown *shown,
                                        const struct fl_process_figures *process);
/* Append the table of the reference (Markdown). */
FL_MUST_CHECK int fl_client_metrics_reference(struct fl_buf *out);

#endif
