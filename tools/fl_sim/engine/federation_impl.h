#ifndef FL_SIM_FEDERATION_IMPL_H
#define FL_SIM_FEDERATION_IMPL_H

/* The two sides of a federation in one process. */

#include "server/work/bundles.h"
#include "server/work/commit.h"
#include "tools/fl_sim/engine/federation.h"

struct fl__fed_client {
    char name[FL_NAME_MAX];
    uint64_t samples, evaluation_samples;
    uint32_t number; /* of the coordinator; UINT32_MAX: none */
    struct fl_member member;
};

/* An event under way, with what it points to. */
struct fl__fed_event {
    struct fl_event event;
    struct fl_result *result; /* a reference */
    double *distance;         /* owned */
    struct fl_err err;
};

/* A bundle of the open round. */
struct fl__fed_bundle {
    char name[FL_NAME_MAX], client[FL_NAME_MAX]; /* client "": everybody's */
    uint8_t *data;                               /* owned */
    size_t len;
    bool has_digest;
};

struct fl_fed {
    struct fl_fed_conf conf;
    char server_dir[512];
    int lock_fd;
    struct fl_federation federation;
    struct fl_progress progress;
    struct fl_coord_resume resume;
    struct fl_coord *coord;
    struct fl_setup *setup; /* what all members are told */
    uint64_t now_ms;
    bool finished;
    struct fl_err err; /* of what no event can tell */
    int code;
    struct fl__fed_client **clients;
    size_t n_clients, cap_clients;
    struct fl__fed_client *joining;
    struct fl__fed_event *queue; /* [n_queue], from `first` on under way */
    size_t first, n_queue, cap_queue;
    struct fl__fed_bundle *bundles;
    size_t n_bundles, cap_bundles;
};

/* Room for one more at the end of `list`. FL_ENOMEM. */
FL_MUST_CHECK int fl__fed_grow(void **list, size_t n, size_t *cap, size_t size);
/* A new event, to be filled in before the next call; NULL: no memory, which ends the run. */
struct fl__fed_event *fl__fed_event(struct fl_fed *fed, enum fl_event_type type);
/* The run ends with this error of ours. */
void fl__fed_fail(struct fl_fed *fed, int code, const struct fl_err *err, const char *what);

/* --- the server: an effect is carried out --- */

void fl__fed_persist(struct fl_fed *fed, const struct fl_effect *e);
void fl__fed_aggregate(struct fl_fed *fed, const struct fl_effect *e);
void fl__fed_commit(struct fl_fed *fed, const struct fl_effect *e);
void fl__fed_open_round(struct fl_fed *fed, const struct fl_effect *e);
void fl__fed_close_round(struct fl_fed *fed);

/* --- a client: a command came --- */

void fl__fed_task(struct fl_fed *fed, size_t client, const struct fl_effect *e);
/* Code and upload these units of what it holds. */
void fl__fed_push(struct fl_fed *fed, size_t client, const struct fl_effect *e);
void fl__fed_evaluate(struct fl_fed *fed, size_t client, const struct fl_effect *e);

#endif
