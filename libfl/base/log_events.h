#ifndef FL_BASE_LOG_EVENTS_H
#define FL_BASE_LOG_EVENTS_H

/*
 * The events of a server that an operator's tools wait for. Their names are the member `event` of
 * JSON lines; their ids are MESSAGE_ID in the journal, whose catalog explains each
 * (systemd/fl-serverd.catalog). An id never changes its meaning, and a new event gets a new one
 * (journalctl --new-id128).
 */

/* X(id, name, message id) */
/* clang-format off */
#define FL_LOG_EVENTS(X)                                                                           \
    X(SERVER_STARTED, "server_started", "8efe00df8f714520aa635e6de3d268d2")                        \
    X(SERVER_STOPPED, "server_stopped", "b013025b85ea4971adbf97862d6f09b3")                        \
    X(ROUND_COMMITTED, "round_committed", "4904458b359c4da29167ee915dcc4bd7")                      \
    X(ROUND_ABORTED, "round_aborted", "7c737bff2c1f4ed5a50db49416fb7ea1")                          \
    X(PAUSED, "paused", "d31be768cfbe408fac8165b99217a63b")                                        \
    X(RESUMED, "resumed", "6f7a442c4c7b4e92bf6094a6b0737b2c")                                      \
    X(FINISHED, "finished", "01e9d259b1274c459a0e9c139cac30b1")                                    \
    X(CLIENT_QUARANTINED, "client_quarantined", "2325396bda044865b9d0f755efa4ae18")                \
    X(CLIENT_RELEASED, "client_released", "7d529504db054ac18b6635ae526a6a07")                      \
    X(CERTIFICATE_EXPIRING, "certificate_expiring", "ca115eef56ec4c3eb5dbbf7458c32410")            \
    X(DISK_STALLED, "disk_stalled", "9f0788fa31324bd7b96ceac832df494b")                            \
    X(DISK_ANSWERS, "disk_answers", "dae371c8be0e4e8a908ee70305067f4f")                            \
    X(WORK_FAILED, "work_failed", "f859ffccb3f44dc3a2260747cd6740c6")                              \
    X(HOOK_FAILED, "hook_failed", "4a8ce8d33324494e84e6378e7d46b73f")
/* clang-format on */

#define FL__LOG_EVENT_ID(id, ...) FL_LOG_EVENT_##id,
enum fl_log_event { FL_LOG_NO_EVENT, FL_LOG_EVENTS(FL__LOG_EVENT_ID) FL_LOG_EVENT_N };
#undef FL__LOG_EVENT_ID

struct fl_log_event_row {
    const char *name, *message_id; /* NULL: FL_LOG_NO_EVENT */
};

extern const struct fl_log_event_row fl_log_events[FL_LOG_EVENT_N];

#endif
