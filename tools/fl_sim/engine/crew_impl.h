#ifndef FL_SIM_CREW_IMPL_H
#define FL_SIM_CREW_IMPL_H

/* Inside of the crew: crew.c hands work out, crew_work.c does it, crew_team.c lets others do it. */

#include <pthread.h>

#include "tools/fl_sim/engine/crew.h"

enum fl__job_state { FL__JOB_QUEUED, FL__JOB_RUNNING, FL__JOB_DONE };

struct fl_job {
    struct fl_crew *crew;
    struct fl_job *previous, *next; /* QUEUED: in the crew's queue; RUNNING elsewhere: its list */
    unsigned process;               /* of the team; 0: this one */
    uint64_t id;                    /* elsewhere: of the message */
    enum fl__job_state state;
    enum fl_job_kind kind;
    uint32_t client;
    struct fl_task task;
    struct fl_shelf *shelf; /* TRAIN: a reference */
    uint8_t *units;         /* CODE: owned; NULL: all */
    struct fl_blob *model;  /* EVALUATE: a reference */
    double rate;
    atomic_bool cancel;
    struct fl_job_answer answer;
    struct fl_buf bytes; /* OFFER */
    /* CODE without a federation to upload to: what goes back to the leader; owned. */
    struct fl_wire_part *parts;
    size_t n_parts;
    struct fl_blob *upload;
};

struct fl__crew_team;

struct fl_crew {
    struct fl_crew_conf conf;
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
    uint64_t *unit_bytes;       /* dry: [units], of a coded unit; else NULL */
    struct fl__crew_team *team; /* NULL: nobody else does any of it */
};

/* Do the next piece that nobody has begun; false: there is none. */
bool fl__crew_step(struct fl_crew *crew);

/* Carry it out, in any thread. */
void fl__crew_run(struct fl_job *job);
/* The same of a dry crew, at once; its sizes first. */
void fl__crew_dry(struct fl_job *job);
FL_MUST_CHECK int fl__crew_dry_sizes(struct fl_crew *crew);
/* The client's member goes, what it keeps on disk stays. */
void fl__crew_close(struct fl_crew *crew, uint32_t client);

/* --- crew_team.c: work of another process --- */

FL_MUST_CHECK int fl__team_open(struct fl_crew *crew, struct fl_err *err);
void fl__team_close(struct fl_crew *crew);
void fl__team_begin(struct fl_job *job);
void fl__team_wait(struct fl_job *job);
void fl__team_cancel(struct fl_job *job);
void fl__team_drop(struct fl_crew *crew, uint32_t client, struct fl_round_key key);

#endif
