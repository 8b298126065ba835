#ifndef FL_SIM_WORKER_POOL_IMPL_H
#define FL_SIM_WORKER_POOL_IMPL_H

/* Shared by the files of the worker pool: worker_pool.c schedules jobs, worker_pool_work.c runs
   them, worker_pool_ranks.c sends them to other processes. */

#include <pthread.h>

#include "libfl/base/list.h"
#include "tools/fl_sim/engine/worker_pool.h"

enum fl__job_state { FL__JOB_QUEUED, FL__JOB_RUNNING, FL__JOB_DONE };

struct fl_pool_job {
    struct fl_worker_pool *pool;
    /* QUEUED: in the pool's queue; RUNNING in another process: its list */
    struct fl_list link;
    unsigned process; /* rank that runs it; 0: this process */
    uint64_t id;      /* in another process: id of its messages */
    enum fl__job_state state;
    enum fl_job_kind kind;
    uint32_t client;
    struct fl_task task;
    struct fl_model_cache *model_cache; /* TRAIN: a reference */
    struct fl_pool_collusion collusion; /* TRAIN: `malicious` is a reference */
    struct fl_blob *update;             /* TRAIN: of an honest client that shares it; owned */
    uint8_t *units;                     /* CODE: owned; NULL: all */
    struct fl_blob *model;              /* EVALUATE: a reference */
    double rate;
    atomic_bool cancel;
    struct fl_job_answer answer;
    struct fl_buf bytes; /* SUMMARY */
    /* CODE without a federation to upload to: data for the leader; owned. */
    struct fl_wire_part *parts;
    size_t n_parts;
    struct fl_blob *upload;
};

struct fl__worker_pool_ranks;

struct fl_worker_pool {
    struct fl_worker_pool_conf conf;
    struct fl_member **members; /* [sim_clients->n], NULL: it has no open member */
    /* Protects the queue, the states of jobs and `busy`. */
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    struct fl_list queue;
    bool *busy; /* [sim_clients->n] a thread uses the client's member */
    bool ending;
    pthread_t *threads;
    unsigned n_threads;
    /* Idle engines; there are never more than threads. */
    struct fl_trainer **spare;
    unsigned n_spare;
    uint64_t *unit_bytes;                /* dry: [units], coded length of a unit; else NULL */
    struct fl__worker_pool_ranks *ranks; /* NULL: no other processes */
};

/* With the lock held: the next queued job of a client that is not busy; NULL: there is none. */
static inline struct fl_pool_job *fl__worker_pool_first(const struct fl_worker_pool *pool)
{
    struct fl_pool_job *job;

    FL_LIST_FOREACH (job, &pool->queue, struct fl_pool_job, link) {
        if (!pool->busy[job->client]) {
            break;
        }
    }
    return job;
}

/* With the lock held: the client's member is in use, and in use no more. */
void fl__worker_pool_occupy(struct fl_worker_pool *pool, uint32_t client);
void fl__worker_pool_release(struct fl_worker_pool *pool, uint32_t client);
/* With the lock held, which is released meanwhile: run a queued job on this thread, of a client
   that is not busy. */
void fl__worker_pool_run(struct fl_pool_job *job);
/* Run the next queued job; false: there is none. */
bool fl__worker_pool_step(struct fl_worker_pool *pool);
/* Run a job of a dry run, at once; the function below computes the sizes first. */
void fl__worker_pool_dry(struct fl_pool_job *job);
FL_MUST_CHECK int fl__worker_pool_dry_sizes(struct fl_worker_pool *pool);
/* Close the client's member; its state on disk stays. */
void fl__worker_pool_close(struct fl_worker_pool *pool, uint32_t client);

/* --- worker_pool_ranks.c: jobs of other processes --- */

FL_MUST_CHECK int fl__ranks_open(struct fl_worker_pool *pool, struct fl_err *err);
void fl__ranks_close(struct fl_worker_pool *pool);
void fl__ranks_begin(struct fl_pool_job *job);
void fl__ranks_wait(struct fl_pool_job *job);
void fl__ranks_cancel(struct fl_pool_job *job);
void fl__ranks_drop(struct fl_worker_pool *pool, uint32_t client, struct fl_round_key key);

#endif
