#ifndef FL_SIM_CREW_H
#define FL_SIM_CREW_H

/*
 * Who does the clients' work: training, coding, evaluation, by client/work. A piece of work is
 * begun when its client begins it in the simulated world and taken when that ends it there, so what
 * comes of it does not depend on how many do it or on which of them is done first.
 *
 * Of one client there is one piece at a time. Other processes may do a part of it (ranks.h).
 *
 * Threading: all calls from one thread. What a crew calls of its people is called from any.
 */

#include "server/work/server_work.h"
#include "tools/fl_sim/engine/model_cache.h"
#include "tools/fl_sim/engine/ranks.h"
#include "tools/fl_sim/engine/sim_clients.h"

enum fl_job_kind {
    FL_JOB_OFFER = 1, /* what it tells of its data */
    FL_JOB_TRAIN,     /* fetch and train; what comes of it is held */
    FL_JOB_CODE,      /* the granted units of what is held, into the server's spool */
    FL_JOB_EVALUATE
};

/* What comes of a piece of work, as far as the federation hears of it: plain numbers, so that they
   can be written down. */
struct fl_job_answer {
    int code;     /* of the work; FL_ENUMERIC: it diverged; a bad upload: fl_spool_is_bad() */
    char why[96]; /* of an error */
    uint64_t samples, steps;
    double train_loss, previous_dot;
    bool has_received, has_trained; /* evaluation: received is the model, trained the adapted */
    struct fl_eval_rec received, trained;
    uint64_t bytes; /* of the upload or offer */
    size_t n_units;
    /* [n_units], owned; NULL: none was measured. Of CODE: fl_norms.unit as floats, as many as
       fl_unit_norm has of each unit. */
    float *divergence;
    double rms[FL_NORMS_N]; /* of CODE: fl_norms */
};
void fl_job_answer_done(struct fl_job_answer *answer);
/* It is that of an upload, in a model of `n_units`; takes norms.unit. */
void fl_job_answer_coded(struct fl_job_answer *answer, const struct fl_norms *norms,
                         size_t n_units);
/* The norms of an upload in a model of `n_units`, as long as the answer; no `unit`: not known. */
struct fl_norms fl_job_answer_norms(const struct fl_job_answer *answer, size_t n_units);

struct fl_job;
struct fl_worker_pool;

struct fl_worker_pool_conf {
    unsigned threads;             /* 0 and 1: the caller's own */
    const struct fl_ranks *ranks; /* this is its leader; NULL: this process does everything */
    const struct fl_sim_clients *sim_clients;
    /* Where uploads go; NULL: in a process of a team, to its leader. */
    const struct fl_federation *federation;
    struct fl_setup *setup; /* a reference is taken */
    const char *dir;        /* of the clients' folders */
    bool dry;               /* nothing is computed: what is told is drawn from `seed` */
    size_t classes;         /* of the network; dry: of the data summaries */
    uint64_t seed;
    const struct fl_kernels *kernels; /* that clients train with; NULL: the fastest */
    const struct fl_log *log;
};

/* Borrows what `conf` points to. */
FL_MUST_CHECK int fl_worker_pool_create(const struct fl_worker_pool_conf *conf,
                                        struct fl_worker_pool **ret, struct fl_err *err);
void fl_worker_pool_free(
    struct fl_worker_pool *pool); /* NULL is allowed; ends what is under way. */

/* Begin; NULL: no memory. `shelf`: a reference is taken. */
struct fl_job *fl_worker_pool_offer(struct fl_worker_pool *pool, uint32_t client);
struct fl_job *fl_worker_pool_train(struct fl_worker_pool *pool, uint32_t client,
                                    const struct fl_task *task, struct fl_model_cache *model_cache);
/* `units` [units of the layout], copied; NULL: all. */
struct fl_job *fl_worker_pool_code(struct fl_worker_pool *pool, uint32_t client,
                                   struct fl_round_key key, const uint8_t *units);
/* Takes a reference to `model`. */
struct fl_job *fl_worker_pool_evaluate(struct fl_worker_pool *pool, uint32_t client,
                                       const struct fl_task *task, struct fl_blob *model,
                                       double rate);
/* Wait for it; the answer is the caller's. An offer's bytes stay in fl_job_bytes(). */
void fl_job_take(struct fl_job *job, struct fl_job_answer *ret);
const struct fl_buf *fl_job_bytes(const struct fl_job *job);
/* NULL is allowed. What was not taken is cancelled. */
void fl_job_free(struct fl_job *job);
/* What the client holds of `key` is of no more use. */
void fl_worker_pool_drop(struct fl_worker_pool *pool, uint32_t client, struct fl_round_key key);

#endif
