/* The rows of the metrics of a server. Pure. */

#include "server/http/server_metrics.h"

/*
 * Bounds of buckets, from the quantiles of recorded runs that bench/buckets prints (docs/http.md
 * has the runs). Those of rounds go on to the sum of the default deadlines of training and upload.
 */
const double fl_coord_work_bounds[FL_HISTOGRAM_BOUNDS] = {0.005, 0.01, 0.02, 0.1, 0.2,
                                                          0.5,   2,    5,    10};
const double fl_coord_round_bounds[FL_HISTOGRAM_BOUNDS] = {0.5, 2, 5, 20, 50, 200, 500, 2000, 7200};

static const char *const info_words[] = {"version", "federation", "algorithm"};
static const char *const direction_words[] = {"up", "down"};
static const char *const phase_words[FL_PHASE_COUNT] = {
    "idle",       "selecting",  "training", "planning", "uploading", "aggregating",
    "evaluating", "committing", "paused",   "draining", "stopped"};
static const char *const client_words[FL_CLIENTS_STATES] = {
    "idle",    "unavailable", "disconnected", "quarantined", "selected", "reported",
    "planned", "accepted",    "empty",        "rejected",    "lost"};
static const char *const work_words[FL_COORD_WORK_N] = {"persist", "aggregate", "evaluate",
                                                        "commit"};
static const char *const did_words[FL_CLIENT_DID_N] = {
    "join", "leave", "report", "fail", "upload", "upload_invalid", "upload_unstored"};
static const char *const got_words[FL_CLIENT_GOT_N] = {"task",     "plan",     "evaluate",
                                                       "accepted", "rejected", "dismissed"};
static const char *const excluded_words[FL_EXCLUDED_N] = {"norm_cap", "robust_rule", "revoked"};
static const char *const limited_words[FL_LIMITED_N] = {"norm_clip", "weight_cap", "share_cap"};
static const char *const uplink_words[] = {"update", "feedback"};
static const char *const download_words[FL_DOWNLOAD_N] = {"model", "difference", "candidate",
                                                          "personal_model", "input"};
static const char *const thread_words[FL_SERVER_THREADS] = {"io", "db", "work", "identity"};
static const char *const certificate_words[] = {"server", "issuer"};

#define ROW(TYPE, VALUE, field) FL_METRIC(struct fl_server_figures, TYPE, VALUE, field)
#define LABEL(name, list)       .label = name, .words = list, .n = sizeof(list) / sizeof((list)[0])

const struct fl_metric fl_server_metrics[] = {
    {ROW(INFO, TEXT, info), .name = "federation", LABEL(NULL, info_words),
     .help = "What runs: program version, federation and algorithm"},
    {ROW(GAUGE, U64, coord.problem), .name = "problem", .label = "kind", .words = fl_problem_words,
     .n = FL_PROBLEM_N, .text = "text",
     .text_offset = offsetof(struct fl_server_figures, coord.problems),
     .text_stride = sizeof(struct fl_problem),
     .help = "1: there is such a problem, and text names cause and subject as flctl why does"},
    /* Rounds. */
    {ROW(GAUGE, U64, coord.round), .name = "round", .help = "Open round, or the next one"},
    {ROW(GAUGE, U64, coord.attempt), .name = "round_attempt", .help = "Its attempt"},
    {ROW(GAUGE, U64, coord.rounds_total), .name = "rounds_planned",
     .help = "Rounds to run (key rounds); 0: no limit"},
    {ROW(COUNTER, U64, coord.committed), .name = "rounds_committed",
     .help = "Committed rounds of the federation"},
    {ROW(COUNTER, U64, coord.attempts), .name = "round_attempts",
     .help = "Attempts of rounds that began since the start"},
    {ROW(COUNTER, U64, coord.aborted), .name = "round_attempts_aborted",
     .help = "Of those, attempts that ended without a commit"},
    {ROW(GAUGE, MS, coord.round_ended_ms), .name = "round_committed_timestamp_seconds",
     .help = "When the newest round was committed; 0: none was"},
    {ROW(HISTOGRAM, BUCKETS, coord.round_seconds), .name = "round_duration_seconds",
     .bounds = fl_coord_round_bounds, .help = "From selection to commit, of committed rounds"},
    {ROW(GAUGE, U64, coord.phase), .name = "phase", LABEL("phase", phase_words),
     .help = "1 for the current phase, 0 for the others"},
    {ROW(GAUGE, MS, coord.phase_since_ms), .name = "phase_start_timestamp_seconds",
     .help = "When the current phase began"},
    {ROW(COUNTER, MS, coord.phase_ms), .name = "phase_duration_seconds",
     LABEL("phase", phase_words), .help = "Time spent in each phase, the current one included"},
    {ROW(GAUGE, F64, coord.accuracy), .name = "accuracy_ratio",
     .help = "Accuracy of the newest evaluated model; NaN: none was evaluated"},
    {ROW(GAUGE, F64, coord.loss), .name = "loss", .help = "Its loss"},
    /* Bytes. */
    {ROW(COUNTER, U64, coord.uplink), .name = "uplink_payload_bytes", LABEL("kind", uplink_words),
     .help = "Coded payloads of accepted uploads and reports, of all committed rounds"},
    {ROW(COUNTER, U64, coord.uplink_full), .name = "uplink_full_bytes",
     .help = "What full float32 uploads of the same clients would have been, before any coding"},
    {ROW(COUNTER, U64, coord.uplink_saved), .name = "uplink_saved_bytes",
     .help = "The difference: bytes saved against full uploads"},
    {ROW(COUNTER, U64, coord.downlink), .name = "downlink_payload_bytes",
     .help = "Payloads that selected clients downloaded, of all committed rounds"},
    {ROW(COUNTER, U64, coord.downlink_full), .name = "downlink_full_bytes",
     .help = "What a full float32 model for each selected client would have been"},
    {ROW(COUNTER, U64, coord.downlink_saved), .name = "downlink_saved_bytes",
     .help = "Bytes saved against full downloads"},
    {ROW(COUNTER, U64, downloads), .name = "download_payload_bytes", LABEL("kind", download_words),
     .help = "Coded payloads that clients downloaded since the start, interrupted and repeated "
             "downloads included; difference: to a model that the client holds"},
    {ROW(COUNTER, U64, downloads_full), .name = "download_full_bytes",
     LABEL("kind", download_words),
     .help = "What those that were sent to the end would have been as full float32 payloads, "
             "before any coding"},
    {ROW(COUNTER, U64, coord.wire), .name = "wire_bytes", LABEL("direction", direction_words),
     .help = "All bytes of the addresses for clients since the start, with framing and TLS"},
    /* Clients. */
    {ROW(GAUGE, U64, coord.clients), .name = "clients", LABEL("state", client_words),
     .help = "Known clients by state; those of the open round by how far they are; unavailable: "
             "connected, and outside the conditions under which their owner lends them"},
    {ROW(GAUGE, U64, coord.connected), .name = "clients_connected", .help = "Connected clients"},
    {ROW(GAUGE, U64, clients_needed), .name = "clients_needed",
     .help = "Connected clients that a round needs to begin (round.min_clients)"},
    {ROW(COUNTER, U64, coord.did), .name = "client_events", LABEL("event", did_words),
     .help = "What clients did since the start; leave: sessions that ended"},
    {ROW(COUNTER, U64, coord.got), .name = "client_commands", LABEL("command", got_words),
     .help = "What the server sent to clients since the start"},
    {ROW(COUNTER, U64, coord.selected), .name = "clients_selected",
     .help = "Clients that were selected, added up over committed rounds"},
    {ROW(COUNTER, U64, coord.responders), .name = "clients_responded",
     .help = "Of those, clients whose report was accepted"},
    {ROW(COUNTER, U64, coord.client_errors), .name = "client_errors",
     .help = "Errors of clients that flctl clients lists, since the start"},
    {ROW(COUNTER, U64, coord.takeovers), .name = "client_takeovers",
     .help = "Sessions that ended another one of the same name"},
    {ROW(COUNTER, U64, coord.excluded), .name = "updates_excluded", LABEL("reason", excluded_words),
     .help = "Updates that were left out; revoked: clients, since the start"},
    {ROW(COUNTER, U64, coord.limited), .name = "updates_limited", LABEL("reason", limited_words),
     .help = "Updates whose weight or length was bounded"},
    /* The server's own work. */
    {ROW(COUNTER, U64, coord.work), .name = "work_attempts", LABEL("kind", work_words),
     .help = "Work of the coordinator on disk and processor since the start"},
    {ROW(COUNTER, U64, coord.work_failures), .name = "work_failures", LABEL("kind", work_words),
     .help = "Of those, work that failed and is retried"},
    {ROW(GAUGE, U64, coord.own_failure), .name = "work_failing",
     .help = "1: the newest work failed (flctl why says how)"},
    {ROW(HISTOGRAM, BUCKETS, coord.work_seconds), .name = "work_duration_seconds",
     LABEL("kind", work_words), .bounds = fl_coord_work_bounds, .help = "Duration of that work"},
    {ROW(GAUGE, U64, queued), .name = "thread_jobs", LABEL("thread", thread_words),
     .help = "Jobs of a worker thread that wait or run"},
    {ROW(GAUGE, MS, busy_since_ms), .name = "thread_busy_since_timestamp_seconds",
     LABEL("thread", thread_words), .help = "Since when the running job runs; 0: none runs"},
    {ROW(GAUGE, MS, waiting_since_ms), .name = "thread_waiting_since_timestamp_seconds",
     LABEL("thread", thread_words),
     .help = "Since when the oldest job waits that does not run yet; 0: none waits"},
    {ROW(COUNTER, U64, log_left_out), .name = "log_lines_left_out",
     .help = "Log lines that the rate limit left out"},
    {ROW(GAUGE, MS, certificate_ms), .name = "certificate_end_timestamp_seconds",
     LABEL("certificate", certificate_words),
     .help = "When the certificate expires that the server shows, and its issuer's; 0: none"},
    {ROW(GAUGE, U64, coord.disk.free), .name = "disk_free_bytes",
     .help = "Space that the daemon may still use on the file system of its state folder"},
    {ROW(GAUGE, U64, coord.disk.size), .name = "disk_size_bytes",
     .help = "Size of that file system; 0: not known"},
    {ROW(GAUGE, MS, coord.backup_ms), .name = "backup_timestamp_seconds",
     .help = "When flctl backup last completed a backup of the state folder; 0: never"},
    /* The port itself. */
    {ROW(COUNTER, U64, http.requests), .name = "http_requests",
     .help = "HTTP requests that were answered"},
    {ROW(COUNTER, U64, http.refused), .name = "http_requests_refused",
     .help = "HTTP requests that were answered with an error"},
    {ROW(COUNTER, U64, http.connections_refused), .name = "http_connections_refused",
     .help = "HTTP connections that were closed for a limit"},
    {ROW(GAUGE, U64, http.streams), .name = "http_streams", .help = "Open event streams"},
    FL_METRIC_END};

int fl_server_metrics_add(struct fl_buf *out, enum fl_metrics_format format,
                          const struct fl_server_figures *figures,
                          const struct fl_process_figures *process)
{
    return fl_process_metrics_add(out, format, fl_server_metrics, figures, process);
}

int fl_server_metrics_reference(struct fl_buf *out)
{
    int rv = fl_process_metrics_reference(out, fl_server_metrics);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_printf(out, "\nThese are %zu series.\n",
                         fl_metrics_series(fl_server_metrics) +
                             fl_metrics_series(fl_process_metrics));
}
