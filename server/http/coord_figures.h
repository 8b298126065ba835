#ifndef FL_SERVER_HTTP_COORD_FIGURES_H
#define FL_SERVER_HTTP_COORD_FIGURES_H

/*
 * What the coordinator knows for a scrape of the metrics (server_metrics.c has the rows). The
 * coordinator keeps the counters while it steps, fills in the rest when it is asked, and hands over
 * a copy: no pointers, and a size that does not depend on the number of clients.
 */

#include <stdint.h>

#include "libfl/base/fs.h"
#include "libfl/http/metrics.h"
#include "server/core/coord.h"
#include "server/core/problems.h"

/* Clients: idle, unavailable, disconnected, quarantined, then by enum fl_participant_state. */
enum {
    FL_CLIENTS_IDLE,
    FL_CLIENTS_UNAVAILABLE,
    FL_CLIENTS_DISCONNECTED,
    FL_CLIENTS_QUARANTINED,
    FL_CLIENTS_STATES = 11
};

enum fl_coord_work {
    FL_COORD_WORK_PERSIST,
    FL_COORD_WORK_AGGREGATE,
    FL_COORD_WORK_EVALUATE,
    FL_COORD_WORK_COMMIT,
    FL_COORD_WORK_N
};

/* What clients did, by events of the coordinator. */
enum fl_client_did {
    FL_CLIENT_DID_JOIN,
    FL_CLIENT_DID_LEAVE,
    FL_CLIENT_DID_REPORT,
    FL_CLIENT_DID_FAIL,
    FL_CLIENT_DID_UPLOAD,
    FL_CLIENT_DID_UPLOAD_INVALID,
    FL_CLIENT_DID_UPLOAD_UNSTORED,
    FL_CLIENT_DID_N
};

/* What it sent to clients. */
enum fl_client_got {
    FL_CLIENT_GOT_TASK,
    FL_CLIENT_GOT_PLAN,
    FL_CLIENT_GOT_EVALUATE,
    FL_CLIENT_GOT_ACCEPTED,
    FL_CLIENT_GOT_REJECTED,
    FL_CLIENT_GOT_DISMISSED,
    FL_CLIENT_GOT_N
};

enum fl_excluded { FL_EXCLUDED_NORM, FL_EXCLUDED_ROBUST, FL_EXCLUDED_REVOKED, FL_EXCLUDED_N };
enum fl_limited { FL_LIMITED_NORM_CLIP, FL_LIMITED_WEIGHT, FL_LIMITED_SHARE, FL_LIMITED_N };

struct fl_coord_figures {
    /* Counters since the start, kept while it steps. */
    uint64_t attempts, aborted;
    uint64_t did[FL_CLIENT_DID_N], got[FL_CLIENT_GOT_N];
    uint64_t client_errors, takeovers, revoked;
    uint64_t work[FL_COORD_WORK_N], work_failures[FL_COORD_WORK_N];
    struct fl_histogram work_seconds[FL_COORD_WORK_N], round_seconds;
    uint64_t phase_ms[FL_PHASE_COUNT];
    /* Filled in when it is asked. */
    uint64_t round, attempt, committed, rounds_total;
    uint64_t phase[FL_PHASE_COUNT]; /* 1: it is the current one */
    uint64_t phase_since_ms, round_ended_ms;
    double accuracy, loss;
    uint64_t selected, responders, uplink[2], uplink_full, uplink_saved;
    uint64_t downlink, downlink_full, downlink_saved;
    uint64_t excluded[FL_EXCLUDED_N], limited[FL_LIMITED_N];
    uint64_t wire[2]; /* up, down */
    uint64_t clients[FL_CLIENTS_STATES], connected;
    struct fl_problems problems;
    uint64_t problem[FL_PROBLEM_N]; /* 1: there is one */
    uint64_t own_failure;           /* 1: the newest work of the server failed, and is retried */
    struct fl_fs_room disk;         /* of the state folder, as last measured */
    uint64_t backup_ms;             /* the last backup; 0: none */
};

extern const double fl_coord_work_bounds[FL_HISTOGRAM_BOUNDS];
extern const double fl_coord_round_bounds[FL_HISTOGRAM_BOUNDS];

#endif
