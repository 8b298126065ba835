#ifndef FL_SRV_DRIVER_STATE_H
#define FL_SRV_DRIVER_STATE_H

/* What the files of the coordinator thread share. Nobody else includes this. */

#include <stdatomic.h>

#include "libfl/data/dataset.h"
#include "server/srv/driver.h"

/* A model in memory with the server optimiser's vectors. */
struct fl_model_state {
    struct fl_blob *theta;          /* float32 block, exported order */
    float *state[FL_AGG_MAX_STATE]; /* owned */
};

struct fl_driver {
    struct fl_srv *srv;
    struct fl_loop *loop;
    struct fl_thread *thread;
    struct fl_timer *timer;
    struct fl_coord *coord;
    struct fl_store *store; /* used by the db lane only, after start */
    int lock_fd;
    struct fl_coord_conf coord_conf;
    struct fl_coord_resume resume;

    struct fl_model_state current; /* of the open round */
    struct fl_model_state next;    /* aggregated, not committed */
    size_t n_state;
    const char *const *state_names; /* the policy's */

    struct fl_dataset *test; /* NULL: the server does not evaluate; used by the work lane */
    struct fl_net *net;      /* for evaluation, work lane */
    atomic_bool cancel;      /* ends an evaluation early */

    struct fl_round_rec totals; /* over all committed rounds */
    double accuracy, loss;      /* newest evaluation; negative accuracy: none */
    bool stopped;
    bool finished;
};

static inline size_t fl_driver_floats(const struct fl_driver *driver)
{
    return fl_layout_count(driver->srv->conf->layout);
}

void fl_model_state_done(struct fl_model_state *model);

/* Step the core with an event (time is filled in here) and carry out the effects. */
void fl_driver_step(struct fl_driver *driver, struct fl_event *event);

/* Start the work of an effect on its lane; the answer comes back as an event. */
void fl_driver_persist(struct fl_driver *driver, const struct fl_effect *effect);
void fl_driver_aggregate(struct fl_driver *driver, const struct fl_effect *effect);
void fl_driver_evaluate(struct fl_driver *driver, const struct fl_effect *effect);
void fl_driver_commit(struct fl_driver *driver, const struct fl_effect *effect);
/* Tell the core that the work `seq` failed. */
void fl_driver_work_failed(struct fl_driver *driver, uint64_t seq, int code, const char *reason,
                           uint32_t client);

void fl_driver_admin(struct fl_driver *driver, struct fl_admin_request *request);

/* Send a message to the network; takes `down`. */
void fl_driver_down(struct fl_driver *driver, struct fl_down *down);
struct fl_down *fl_down_new(struct fl_driver *driver, enum fl_down_type type);

/* First model, or the newest good checkpoint (recover.c). */
FL_MUST_CHECK int fl_driver_recover(struct fl_driver *driver, int *ret_exit, struct fl_err *err);

#endif
