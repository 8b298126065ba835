#ifndef FL_SIM_WORKER_POOL_H
#define FL_SIM_WORKER_POOL_H

/*
 * A worker pool for the clients' work: training, coding, evaluation, by client/work. A job starts
 * when its client starts it in simulated time, and its result is taken when that ends it there, so
 * results depend neither on the number of threads nor on the order in which jobs complete.
 *
 * One job of a client runs at a time. Other processes may run a part
 * of the jobs (ranks.h).
 *
 * Threading: all calls from one thread. The pool calls the functions of struct fl_sim_clients from
 * any thread.
 */

#include "server/work/server_work.h"
#include "tools/fl_sim/engine/model_cache.h"
#include "tools/fl_sim/engine/ranks.h"
#include "tools/fl_sim/engine/sim_clients.h"

enum fl_job_kind {
    FL_JOB_SUMMARY = 1, /* make its data summary */
    FL_JOB_TRAIN,       /* fetch and train; keeps the pending result */
    FL_JOB_CODE,        /* code the upload mask of the pending result into the server's spool */
    FL_JOB_EVALUATE
};

/* The result of a job; owns its event and norms. */
struct fl_job_answer {
    int code;     /* error of the work; FL_ENUMERIC: it diverged; a bad upload: fl_spool_is_bad() */
    char why[96]; /* of an error */
    struct fl_wire_event event; /* TRAIN: Report; EVALUATE: Evaluation; type 0: none */
    uint64_t bytes;             /* of the upload or data summary */
    struct fl_norms norms;      /* CODE */
    size_t n_units;             /* [n_units] norms.unit; 0: not known */
};
void fl_job_answer_done(struct fl_job_answer *answer);
/* As bytes, for the journal and other processes; appends to `out`, on an error perhaps a part. */
FL_MUST_CHECK int fl_job_answer_encode(const struct fl_job_answer *answer, struct fl_buf *out);
/* FL_EFORMAT, and errors of fl_wire_event_decode(). The answer is the caller's. */
FL_MUST_CHECK int fl_job_answer_decode(const uint8_t *data, size_t len, struct fl_job_answer *ret,
                                       struct fl_err *err);

struct fl_pool_job;
struct fl_worker_pool;

/* Of a training in a round with attackers that collude. */
struct fl_pool_collusion {
    bool shares;               /* an honest client, whose update the attackers need */
    struct fl_blob *malicious; /* what an attacker sends; NULL: its own update */
};

struct fl_worker_pool_conf {
    unsigned threads;             /* 0 and 1: run jobs on the caller's thread */
    const struct fl_ranks *ranks; /* this process is the leader; NULL: it does all of the work */
    const struct fl_sim_clients *sim_clients;
    /* Destination of uploads; NULL: in another process than the leader, to the leader. */
    const struct fl_federation *federation;
    struct fl_setup *setup; /* takes a reference */
    const char *dir;        /* parent of the clients' folders */
    bool dry;               /* nothing is computed: results are drawn from `seed` */
    size_t classes;         /* of the network; dry: of the data summaries */
    uint64_t seed;
    const struct fl_kernels *kernels; /* for the clients' training; NULL: the fastest */
    const struct fl_log *log;
};

/* Borrows what `conf` points to. */
FL_MUST_CHECK int fl_worker_pool_create(const struct fl_worker_pool_conf *conf,
                                        struct fl_worker_pool **ret, struct fl_err *err);
void fl_worker_pool_free(struct fl_worker_pool *pool); /* NULL is allowed; cancels running jobs. */

/* Start a job; NULL: out of memory. Takes references to `model_cache` and `malicious`. */
struct fl_pool_job *fl_worker_pool_summary(struct fl_worker_pool *pool, uint32_t client);
struct fl_pool_job *fl_worker_pool_train(struct fl_worker_pool *pool, uint32_t client,
                                         const struct fl_task *task,
                                         struct fl_model_cache *model_cache,
                                         const struct fl_pool_collusion *collusion);
/* `units` [units of the layout], copied; NULL: all. */
struct fl_pool_job *fl_worker_pool_code(struct fl_worker_pool *pool, uint32_t client,
                                        struct fl_round_key key, const uint8_t *units);
/* Takes a reference to `model`. */
struct fl_pool_job *fl_worker_pool_evaluate(struct fl_worker_pool *pool, uint32_t client,
                                            const struct fl_task *task, struct fl_blob *model,
                                            double rate);
/* Wait for the job; the answer is the caller's. The bytes of a data summary stay in
   fl_job_bytes(). */
void fl_job_take(struct fl_pool_job *job, struct fl_job_answer *ret);
const struct fl_buf *fl_job_bytes(const struct fl_pool_job *job);
/* The trainable entries of an honest update, when the job ended well; NULL: it shares none. */
struct fl_blob *fl_job_update(const struct fl_pool_job *job);
/* NULL is allowed. A job whose answer was not taken is cancelled. */
void fl_pool_job_free(struct fl_pool_job *job);
/* Discard the client's pending result of `key`; waits for a job of the client that runs. */
void fl_worker_pool_drop(struct fl_worker_pool *pool, uint32_t client, struct fl_round_key key);

#endif
