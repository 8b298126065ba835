#ifndef FL_SIM_CREW_IMPL_H
#define FL_SIM_CREW_IMPL_H

/* Inside of the crew: worker_pool.c hands work out, worker_pool_work.c does it, worker_pool_ranks.c
 * lets others do it. */

#include <pthread.h>

#include "tools/fl_sim/engine/worker_pool.h"

enum fl__job_state { FL__JOB_QUEUED, FL__JOB_RUNNING, FL__JOB_DONE };

struct fl_job {
    struct fl_worker_pool *pool;
    struct fl_job *previous, *next; /* QUEUED: in the crew's queue; RUNNING elsewhere: its list */
    unsigned process;               /* of the team; 0: this one */
    uint64_t id;                    /* elsewhere: of the message */
    enum fl__job_state state;
    enum fl_job_kind kind;
    uint32_t client;
    struct fl_task task;
    struct fl_model_cache *model_cache; /* TRAIN: a reference */
    uint8_t *units;                     /* CODE: owned; NULL: all */
    struct fl_blob *model;              /* EVALUATE: a reference */
    double rate;
    atomic_bool cancel;
    struct fl_job_answer answer;
    struct fl_buf bytes; /* OFFER */
    /* CODE without a federation to upload to: what goes back to the leader; owned. */
    struct fl_wire_part *parts;
    size_t n_parts;
    struct fl_blob *upload;
};

struct fl__worker_pool_team;

struct fl_worker_pool {
    struct fl_worker_pool_conf conf;
    struct fl_member **members; /* [people->n], NULL: it holds nothing */
    /* Of the queue and of the states of jobs. */
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    struct fl_job *first, *last;
    bool ending;
    pthread_t *threads;
    unsigned n_threads;
    /* Engines that nobody works with: there are never more than threads. */
    struct fl_trainer **spare;
    unsigned n_spare;
    uint64_t *unit_bytes;               /* dry: [units], of a coded unit; else NULL */
    struct fl__worker_pool_team *ranks; /* NULL: nobody else does any of it */
};

/* Do the next piece that nobody has begun; false: there is none. */
bool fl__worker_pool_step(struct fl_worker_pool *pool);

/* Carry it out, in any thread. */
void fl__worker_pool_run(struct fl_job *job);
/* The same of a dry crew, at once; its sizes first. */
void fl__worker_pool_dry(struct fl_job *job);
FL_MUST_CHECK int fl__worker_pool_dry_sizes(struct fl_worker_pool *pool);
/* The client's member goes, what it keeps on disk stays. */
void fl__worker_pool_close(struct fl_worker_pool *pool, uint32_t client);

/* --- worker_pool_ranks.c: work of another process --- */

FL_MUST_CHECK int fl__ranks_open(struct fl_worker_pool *pool, struct fl_err *err);
void fl__ranks_close(struct fl_worker_pool *pool);
void fl__ranks_begin(struct fl_job *job);
void fl__ranks_wait(struct fl_job *job);
void fl__ranks_cancel(struct fl_job *job);
void fl__ranks_drop(struct fl_worker_pool *pool, uint32_t client, struct fl_round_key key);

#endif
