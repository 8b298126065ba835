/* The rows of the metrics of a client, and their counting from events of the session. Pure. */

#include "client/http/client_shown.h"

/* A small network trains in milliseconds, a large one on a phone for hours. */
static const double client_work_bounds[FL_HISTOGRAM_BOUNDS] = {0.01, 0.1, 1,    5,    30,
                                                               120,  600, 3600, 21600};

static const char *const info_words[] = {"version", "client"};
static const char *const state_words[FL_SESSION_COUNT] = {
    "offline",  "connecting", "greeting", "ready", "fetching",
    "training", "reported",   "pushing",  "done",  "stopped"};
static const char *const work_words[FL_CLIENT_WORK_N] = {"connect", "fetch", "train", "push",
                                                         "evaluate"};
static const char *const verdict_words[FL_CLIENT_VERDICTS] = {"accepted", "rejected", "dismissed"};
static const char *const direction_words[] = {"up", "down"};

#define ROW(TYPE, VALUE, field) FL_METRIC(struct fl_client_shown, TYPE, VALUE, field)
#define LABEL(name, list)       .label = name, .words = list, .n = sizeof(list) / sizeof((list)[0])

const struct fl_metric fl_client_metrics[] = {
    {ROW(INFO, TEXT, info), .name = "client", LABEL(NULL, info_words),
     .help = "What runs: program version and name of the client"},
    {ROW(GAUGE, U64, state), .name = "session_state", LABEL("state", state_words),
     .help = "1 for the current state of the session, 0 for the others"},
    {ROW(GAUGE, U64, connected), .name = "connected", .help = "1: the server has welcomed it"},
    {ROW(GAUGE, U64, round), .name = "task_round", .help = "Round of the newest task; 0: none"},
    {ROW(COUNTER, U64, tasks), .name = "tasks", .help = "Tasks of the server"},
    {ROW(COUNTER, U64, verdicts), .name = "results", LABEL("result", verdict_words),
     .help = "Verdicts of the server on results"},
    {ROW(GAUGE, MS, accepted_ms), .name = "result_accepted_timestamp_seconds",
     .help = "When a result was last accepted; 0: none was since the start"},
    {ROW(GAUGE, U64, pending), .name = "result_pending",
     .help = "1: a finished result waits for its delivery"},
    {ROW(COUNTER, U64, work), .name = "work_attempts", LABEL("kind", work_words),
     .help = "Work that began"},
    {ROW(COUNTER, U64, failures), .name = "work_failures", LABEL("kind", work_words),
     .help = "Of those, work that failed; of connect: connections that ended"},
    {ROW(HISTOGRAM, BUCKETS, seconds), .name = "work_duration_seconds", LABEL("kind", work_words),
     .bounds = client_work_bounds, .help = "Duration of work that succeeded"},
    {ROW(COUNTER, U64, refused), .name = "sessions_refused", .help = "Sessions the server refused"},
    {ROW(GAUGE, U64, samples), .name = "samples", .help = "Training samples that it announces"},
    {ROW(GAUGE, F64, train_loss), .name = "train_loss",
     .help = "Training loss of the pending result; NaN: none"},
    {ROW(COUNTER, U64, wire), .name = "wire_bytes", LABEL("direction", direction_words),
     .help = "All bytes of connections to the server, with framing and TLS"},
    {ROW(GAUGE, MS, certificate_ms), .name = "certificate_end_timestamp_seconds",
     .help = "When the certificate of the client expires; 0: none"},
    {ROW(COUNTER, U64, log_left_out), .name = "log_lines_left_out",
     .help = "Log lines that the rate limit left out"},
    {ROW(GAUGE, U64, disk.free), .name = "disk_free_bytes",
     .help = "Space that the daemon may still use on the file system of its state folder"},
    {ROW(GAUGE, U64, disk.size), .name = "disk_size_bytes",
     .help = "Size of that file system; 0: not known"},
    {ROW(COUNTER, U64, http.requests), .name = "http_requests",
     .help = "HTTP requests that were answered"},
    {ROW(COUNTER, U64, http.refused), .name = "http_requests_refused",
     .help = "HTTP requests that were answered with an error"},
    {ROW(COUNTER, U64, http.connections_refused), .name = "http_connections_refused",
     .help = "HTTP connections that were closed for a limit"},
    FL_METRIC_END};

void fl_client_shown_begin(struct fl_client_shown *shown, enum fl_client_work work, uint64_t now_ns)
{
    shown->work[work]++;
    shown->began_ns[work] = now_ns;
}

static void shown_end(struct fl_client_shown *shown, enum fl_client_work work, bool failed,
                      uint64_t now_ns)
{
    if (shown->began_ns[work] == 0) {
        return;
    }
    shown->failures[work] += failed;
    if (!failed) {
        fl_histogram_add(&shown->seconds[work], client_work_bounds,
                         (double)(now_ns - shown->began_ns[work]) / 1e9);
    }
    shown->began_ns[work] = 0;
}

/* Verdicts end the push, too. */
static void shown_verdict(struct fl_client_shown *shown, enum fl_client_verdict verdict,
                          uint64_t now_ns)
{
    shown->verdicts[verdict]++;
    shown_end(shown, FL_CLIENT_WORK_PUSH, verdict == FL_CLIENT_REJECTED, now_ns);
}

void fl_client_shown_event(struct fl_client_shown *shown, const struct fl_session_event *event,
                           uint64_t now_ns, uint64_t wall_ms)
{
    switch ((int)event->type) {
    case FL_CEV_WELCOME:
        shown_end(shown, FL_CLIENT_WORK_CONNECT, false, now_ns);
        break;
    case FL_CEV_DISCONNECTED:
        shown_end(shown, FL_CLIENT_WORK_CONNECT, true, now_ns);
        break;
    case FL_CEV_REFUSED:
        shown->refused++;
        break;
    case FL_CEV_TASK:
        shown->tasks++;
        break;
    case FL_CEV_ACCEPTED:
        shown->accepted_ms = wall_ms;
        shown_verdict(shown, FL_CLIENT_ACCEPTED, now_ns);
        break;
    case FL_CEV_REJECTED:
        shown_verdict(shown, FL_CLIENT_REJECTED, now_ns);
        break;
    case FL_CEV_DISMISSED:
        shown_verdict(shown, FL_CLIENT_DISMISSED, now_ns);
        break;
    case FL_CEV_FETCHED:
    case FL_CEV_FETCH_FAILED:
        shown_end(shown, FL_CLIENT_WORK_FETCH, event->type == FL_CEV_FETCH_FAILED, now_ns);
        break;
    case FL_CEV_TRAINED:
    case FL_CEV_TRAIN_FAILED:
        shown_end(shown, FL_CLIENT_WORK_TRAIN, event->type == FL_CEV_TRAIN_FAILED, now_ns);
        break;
    case FL_CEV_EVALUATED:
    case FL_CEV_EVALUATE_FAILED:
        shown_end(shown, FL_CLIENT_WORK_EVALUATE, event->type == FL_CEV_EVALUATE_FAILED, now_ns);
        break;
    case FL_CEV_PUSH_FAILED:
        shown_end(shown, FL_CLIENT_WORK_PUSH, true, now_ns);
        break;
    default:
        break;
    }
}

int fl_client_metrics_add(struct fl_buf *out, enum fl_metrics_format format,
                          const struct fl_client_shown *shown,
                          const struct fl_process_figures *process)
{
    return fl_process_metrics_add(out, format, fl_client_metrics, shown, process);
}

int fl_client_metrics_reference(struct fl_buf *out)
{
    return fl_process_metrics_reference(out, fl_client_metrics);
}
